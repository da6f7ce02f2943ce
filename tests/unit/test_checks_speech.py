"""Each check of overheard programs fires on the one fault it is for, by name and alone, and on nothing in a history without faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chaos.checks import examine
from chaos.checks.retries import retries_are_not_spent
from chaos.checks.speech import every_line_is_heard_once
from chaos.checks.wakes import PUT_OFF, nothing_that_ran_is_put_off, resumes_follow_their_wait, waits_end
from chaos.checks.words import fates_are_true
from chaos.history import History
from shared.ids import AttemptId, WorkId
from shared.model.attempt import AttemptState, FailureClass
from shared.model.intent import Fate
from shared.store.contract import Event
from tests.support.speech_faults import SPEECH_FAULTS
from tests.support.speech_histories import A1, A3, overheard, told_of

W1 = WorkId("w1")


@pytest.fixture(scope="module")
def history() -> History:
    return overheard().history


@pytest.mark.req("O15", "T02", "T04")
def test_nothing_fires_without_a_fault(history: History) -> None:
    """And everything happened: something was handed over and taken, waited for and woken, interrupted and told so."""
    assert examine(history) == []
    assert history.attempts[A3].state is AttemptState.INTERRUPTED
    assert told_of(history, "interrupt", A3)
    assert {event.kind for event in history.events} >= {
        "intent.consumed",
        "wait.satisfied",
        "execution.turn",
        "stream.refused",
    }


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        pytest.param(check, fault, id=f"{check}-{fault.__name__}")
        for check, faults in SPEECH_FAULTS.items()
        for fault in faults
    ],
)
def test_each_check_fires_alone_on_its_fault(history: History, check: str, fault: Callable[[History], History]) -> None:
    findings = examine(fault(history))

    assert {finding.check for finding in findings} == {check}, [str(finding) for finding in findings]


def test_what_ran_before_it_was_parked_counts_where_its_resume_came_to_nothing(history: History) -> None:
    """Unless its resumes were given up, after ten that came to nothing."""
    parked = replace(history.attempts[A1], failure=FailureClass.ADMISSION)
    following = replace(parked, id=AttemptId("w1.2"), number=2)
    both = replace(history, attempts={**history.attempts, A1: parked, following.id: following})
    unresumed = tuple(line for line in history.lines if (line.attempt_id, line.epoch) != (A1, 2))

    assert retries_are_not_spent(replace(both, lines=unresumed)) != []
    assert retries_are_not_spent(replace(both, lines=())) == [], "nothing of it ever ran"
    put_off = tuple(Event(900 + each, 1, PUT_OFF, W1, A1, 2, {}) for each in range(10))
    given_up = replace(both, lines=unresumed, events=(*history.events, *put_off))
    assert retries_are_not_spent(given_up) == []
    assert retries_are_not_spent(replace(given_up, events=given_up.events[:-1])) != []


def test_a_resume_that_is_put_off_is_resumed_again_and_had_run_nothing(history: History) -> None:
    """A history in which the resume of epoch 2 came to nothing, and that of epoch 3 ran."""
    last = max(event.seq for event in history.events)
    kinds = ((PUT_OFF, 2), ("resume.due", 2), ("attempt.woken", 3))
    events = tuple(Event(last + at, 1, kind, W1, A1, epoch, {}) for at, (kind, epoch) in enumerate(kinds, 1))
    resumed = tuple(
        replace(line, epoch=3) if (line.attempt_id, line.epoch) == (A1, 2) else line for line in history.lines
    )
    again = replace(history, events=(*history.events, *events), lines=resumed)

    assert (nothing_that_ran_is_put_off(again), resumes_follow_their_wait(again), waits_end(again)) == ([], [], [])
    assert nothing_that_ran_is_put_off(replace(again, lines=history.lines)) != [], "the launch of epoch 2 had run"
    early = replace(again, events=tuple(event for event in again.events if event.kind != "resume.due"))
    assert resumes_follow_their_wait(early) != [], "nothing had said that it may be tried again"
    cancelled = Event(last + 2, 1, "wait.cancelled", W1, A1, 2, {})
    assert waits_end(replace(again, events=(*history.events, events[0], cancelled))) == []
    assert waits_end(replace(history, events=(*history.events, cancelled))) != [], "it had no wait that was open"


def test_what_a_store_has_forgotten_handing_over_it_may_give_back(history: History) -> None:
    """The program took it all the same; whoever is told of it again is told of an input that the store never knew as handed over."""
    taken = next(one for one in history.events if one.kind == "intent.consumed")
    every = {
        work_id: tuple(replace(one, fate=Fate.RETURNED) if one.id == taken.data["intent"] else one for one in intents)
        for work_id, intents in history.intents.items()
    }
    given_back = replace(history, intents=every)
    handed = tuple(one for one in history.events if one.kind == "intent.dispatched")

    assert fates_are_true(given_back) != []
    assert fates_are_true(replace(given_back, lost=handed)) == []


def test_what_a_store_has_forgotten_handing_over_is_a_stranger_to_it(history: History) -> None:
    """The program says rightly that it took it, and is refused."""
    stream = history.streams[A1]
    refused = replace(history, streams={**history.streams, A1: replace(stream, refused=stream.refused + 1)})
    handed = tuple(one for one in history.events if one.kind == "intent.dispatched")

    assert every_line_is_heard_once(history) == []
    assert every_line_is_heard_once(refused) != []
    assert every_line_is_heard_once(replace(refused, lost=handed)) == []
