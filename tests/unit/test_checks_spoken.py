"""Each check of Works that speak fires on the one fault it is for, by name and alone, and on nothing in a history without faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from chaos.checks import examine
from chaos.checks.spoken import attempts_end_as_they_said, every_input_is_seen, turns_are_told_once
from chaos.checks.used import usage_is_what_was_said
from chaos.checks.wakes import waits_end
from chaos.history import History
from chaos.notes import Ends, Note, Word, parse
from shared.ids import AttemptId, WorkId
from shared.model.attempt import AttemptState
from tests.support.clean_histories import index_of
from tests.support.history_faults import with_attempt, with_job
from tests.support.spoken_faults import LAST, PARKED, SPOKEN_FAULTS, no_last_word
from tests.support.spoken_histories import spoken_history


@pytest.fixture(scope="module")
def history() -> History:
    return spoken_history()


def test_nothing_fires_without_a_fault(history: History) -> None:
    assert examine(history) == []
    assert {note.word for note in history.notes} >= set(Word) - {Word.AGAIN, Word.REFUSED}
    assert len(history.works) == 7


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        pytest.param(check, fault, id=f"{check}-{fault.__name__}")
        for check, faults in SPOKEN_FAULTS.items()
        for fault in faults
    ],
)
def test_each_check_fires_alone_on_its_fault(history: History, check: str, fault: Callable[[History], History]) -> None:
    findings = examine(fault(history))

    assert {finding.check for finding in findings} == {check}, [str(finding) for finding in findings]


def test_a_wait_may_be_satisfied_and_then_taken_back_before_a_slot_is_free(history: History) -> None:
    """The control beside a wait that ends twice: its attempt is ended in between."""
    place = index_of(history, "wait.satisfied", "w1.1")
    taken_back = replace(history.events[place], kind="wait.cancelled")

    ended = replace(history, events=(*history.events[: place + 1], taken_back, *history.events[place + 1 :]))
    twice = replace(history, events=(*ended.events[: place + 2], taken_back, *ended.events[place + 2 :]))

    assert waits_end(ended) == []
    assert waits_end(twice) != []


def test_what_the_drill_killed_need_not_have_said_how_it_ends(history: History) -> None:
    silent = no_last_word(with_attempt(history, LAST, state=AttemptState.FAILED, exit_status=-9))

    assert attempts_end_as_they_said(silent) == ["w5.2 is failed, and its last program did not say that it ends"]
    assert attempts_end_as_they_said(with_job(silent, WorkId("w5"), may_be_killed=True)) == []


def test_an_attempt_that_was_cancelled_need_not_have_read_what_it_was_given(history: History) -> None:
    """A standing Work that has one of its attempts cancelled goes on to its next input."""
    number = history.accepted[1].number
    notes = tuple(note for note in history.notes if (note.word, note.input) != (Word.SAW, number))
    unread = replace(history, notes=notes)

    assert every_input_is_seen(unread) == [
        f"input {number} of w2 was accepted, does not wait, and no program ever read it"
    ]
    assert every_input_is_seen(with_attempt(unread, AttemptId("w2.2"), state=AttemptState.CANCELLED)) == []


def test_only_the_last_word_of_a_program_that_was_ended_may_not_have_been_said(history: History) -> None:
    """It notes what it is about to say, and may be stopped right then."""
    used = Note(Word.USED, AttemptId("w3.1"), 1, 500, units={"tokens": Decimal(1)})

    once, twice = replace(history, notes=(*history.notes, used)), replace(history, notes=(*history.notes, used, used))

    assert usage_is_what_was_said(once) == []
    assert usage_is_what_was_said(twice) == ["w3.1 is charged with 0 tokens, its programs said 1 to 2"]


def test_a_turn_may_not_have_been_told_that_a_program_was_about_to_tell_when_it_was_ended(history: History) -> None:
    """Its program notes a turn before it says it; the one before is told then."""
    end = next(at for at, note in enumerate(history.notes) if (note.word, note.attempt_id) == (Word.ENDS, PARKED))
    noted = Note(Word.TURN, PARKED, 1, 500, status="whole")
    cut = replace(history, notes=(*history.notes[:end], noted, *history.notes[end + 1 :]))
    not_cut = replace(history, notes=(*history.notes[:end], noted, *history.notes[end:]))
    twice = replace(cut, notes=(*cut.notes[:end], noted, *cut.notes[end:]))

    assert turns_are_told_once(cut) == []
    assert turns_are_told_once(not_cut) == ["the turn of w1.1 (launch 1) was told as {'half'}, it said whole"]
    assert turns_are_told_once(twice) == ["the turn of w1.1 (launch 1) was told as {'half'}, it said whole"]


def test_a_note_is_read_as_it_is_written() -> None:
    note = parse(json.dumps({
        "word": "ends", "attempt": "w7.2", "epoch": 3, "pid": 9, "ends": "parks", "exit_status": 0, "awaits": ["go", "k"],
    }))  # fmt: skip

    assert (note.word, note.launch, note.work_id) == (Word.ENDS, ("w7.2", 3), "w7")
    assert (note.ends, note.awaits) == (Ends.PARKS, ("go", "k"))
    with pytest.raises(ValueError, match="shouts"):
        parse(json.dumps({"word": "shouts", "attempt": "w7.2", "epoch": 3, "pid": 9}))
