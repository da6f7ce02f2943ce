"""Each check of the drills fires on the one fault it is for, by name and alone, and on nothing in a history without faults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.checks import CHECKS, examine
from chaos.checks.jobs import statuses_are_true
from chaos.checks.launches import launches_follow_their_pin, success_has_evidence
from chaos.history import History
from chaos.witness import Line, Mark, parse
from shared.ids import WorkId
from shared.model.attempt import AttemptState
from shared.model.work import WorkState
from shared.store.values import Event
from tests.support.binding_faults import BINDING_FAULTS
from tests.support.clean_faults import FAULTS, Faulty, neglected, unfinished, with_approvals, with_turns
from tests.support.clean_histories import (
    clean_history,
    index_of,
    with_event,
)
from tests.support.history_faults import (
    A1,
    A2,
    A6,
    W1,
    W2,
    go_without_pin,
    lost,
    started_unpinned,
    success_of_a_job_cut_short,
    with_attempt,
    with_job,
)
from tests.support.retry_faults import RETRY_FAULTS
from tests.support.routine_faults import ROUTINE_FAULTS
from tests.support.speech_faults import SPEECH_FAULTS
from tests.support.spoken_faults import SPOKEN_FAULTS


@pytest.fixture(scope="module")
def history() -> History:
    return clean_history()


def test_nothing_fires_without_a_fault(history: History) -> None:
    assert examine(history) == []
    assert len(history.jobs) == len(history.works) == 6


def test_nothing_fires_where_nobody_saw_the_processes_end(history: History) -> None:
    """As in a drill: no event is known beside a line, and no line tells that a process is gone."""
    lines = [replace(line, seq=None) for line in history.lines if line.mark is not Mark.GONE]

    assert examine(replace(history, lines=tuple(lines), gos=(), lives=(), looks=())) == []


def test_within_its_budget_and_with_its_approval_nothing_fires(history: History) -> None:
    """The controls."""
    assert examine(with_turns(history)) == []
    assert "gates_admit_before_the_first_start" not in {
        finding.check for finding in examine(with_approvals(history, released=True))
    }


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        pytest.param(check, fault, id=f"{check}-{fault.__name__.strip('_')}")
        for check, faults in FAULTS.items()
        for fault in faults
    ],
)
def test_each_check_fires_alone_on_its_fault(history: History, check: str, fault: Faulty) -> None:
    findings = examine(fault(history))

    assert {finding.check for finding in findings} == {check}, [str(finding) for finding in findings]


def test_every_check_has_its_fault() -> None:
    named = (FAULTS, RETRY_FAULTS, SPOKEN_FAULTS, SPEECH_FAULTS, ROUTINE_FAULTS, BINDING_FAULTS)
    faults = {name for each in named for name in each}
    faults.add("nothing_that_ran_is_put_off")  # on a history of its own, in test_checks_speech

    assert faults == {check.__name__ for check in CHECKS}


def test_what_starts_without_any_pin_is_found(history: History) -> None:
    """Beside it the state tables complain: without the pin's event, nothing that follows it fits."""
    names = {finding.check for finding in examine(started_unpinned(history))}

    assert names == {"launches_follow_their_pin", "tables_follow_the_changefeed"}


def test_nobody_is_neglected_while_nobody_could_act(history: History) -> None:
    """The control: the same looks, between two of which the coordinator was frozen."""
    left = neglected(history)
    looks = [replace(look, able=look.at_us == 0) for look in left.looks]

    assert examine(replace(left, looks=tuple(looks))) == []


def test_a_job_whose_evidence_was_destroyed_may_be_left_to_a_person(history: History) -> None:
    asked = with_attempt(unfinished(history), A6, state=AttemptState.RECOVERY_REQUIRED)
    told = with_event(
        asked,
        "attempt.recovery_required",
        attempt_id=A6,
        work_id=WorkId("w6"),
        epoch=2,
        data={"from": "running", "to": "recovery_required"},
    )
    left = replace(told, jobs=(*told.jobs, replace(history.jobs[-1], cancelled=False)))

    assert "nothing_is_stuck" in {finding.check for finding in examine(left)}
    assert examine(with_job(left, WorkId("w6"), may_need_person=True)) == []


def test_a_pin_that_the_store_forgot_was_one(history: History) -> None:
    pinned = history.events[index_of(history, "attempt.pinned", A2)]
    forgotten = started_unpinned(history)

    assert launches_follow_their_pin(forgotten) != []
    assert launches_follow_their_pin(replace(forgotten, lost=(pinned,))) == []


def test_a_gate_that_was_opened_under_a_pin_that_the_store_forgot_then(history: History) -> None:
    opened = go_without_pin(history)
    excused = replace(opened, gos=(*opened.gos[:-1], replace(opened.gos[-1], was_forgotten=True)))

    assert "gates_open_under_a_live_pin" in {finding.check for finding in examine(opened)}
    assert examine(excused) == []


def test_a_job_may_stay_open_where_the_store_is_refused(history: History) -> None:
    assert "jobs_are_one_set" in {finding.check for finding in examine(lost(history))}
    assert examine(with_job(lost(history), WorkId("w7"), may_stay_open=True)) == []


def test_a_work_that_was_to_be_tried_again_may_stay_so_where_the_store_is_refused(history: History) -> None:
    """Its attempt has ended; nothing came of that any more."""
    backs_off = replace(history, works={**history.works, W2: replace(history.works[W2], state=WorkState.BACKOFF)})

    assert statuses_are_true(backs_off) != []
    assert statuses_are_true(with_job(backs_off, W2, may_stay_open=True)) == []


def test_a_line_of_the_witness_is_read_as_it_is_written() -> None:
    assert parse("start w2 w2.1 3 7") == Line(Mark.START, W2, A2, 3, 7)


@pytest.mark.parametrize("text", ["", "start w2 w2.1 3", "begin w2 w2.1 3 7", "start w2 w2.1 x 7"])
def test_anything_else_is_no_line_of_a_witness(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


@pytest.mark.req("M02", "O15")
def test_a_program_that_was_killed_behind_its_word_has_said_all_that_counts(history: History) -> None:
    """It declared itself completed; without that word, or by an end of its own, the last line is missed."""
    cut = success_of_a_job_cut_short(history)
    word = Event(10**6, 0, "outcome.applied", W1, A1, 1, {"kind": "completed"})
    killed = with_attempt(cut, A1, exit_status=-9)

    assert success_has_evidence(replace(killed, events=(*killed.events, word))) == []
    assert success_has_evidence(killed) != []
    assert success_has_evidence(replace(cut, events=(*cut.events, word))) != []
