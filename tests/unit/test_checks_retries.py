"""Each check of inputs and retries fires on the one fault it is for, by name and alone; see `test_checks.py` for the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.checks import examine
from chaos.checks.inputs import is_retried_by_person, no_input_is_consumed_twice
from chaos.checks.retries import retries_keep_the_policy
from chaos.history import History
from shared.ids import AttemptId
from shared.model.attempt import AttemptState
from shared.model.instant import US_PER_HOUR as HOUR_US
from shared.model.work import WorkKind, WorkState
from tests.support.retry_faults import (
    FIRST,
    RETRY_FAULTS,
    W1,
    W2,
    W3,
    asked_history,
    events_of,
    fired_early,
    retried_history,
    with_snapshot,
)

Fault = tuple[str, int]


@pytest.mark.req("O09", "O13", "O01")
def test_nothing_fires_where_everything_is_tried_again_as_it_should() -> None:
    history = retried_history()

    assert examine(history) == []
    assert [len(history.attempts_of(work_id)) for work_id in sorted(history.works)] == [3, 3, 2]
    assert (history.works[W2].state, history.works[W3].state) == (WorkState.IDLE, WorkState.FAILED)
    assert len(history.accepted) == len(events_of(history, "input.accepted", W2)) == 3


@pytest.mark.parametrize(
    ("check", "place"),
    [
        pytest.param(check, place, id=f"{check}-{fault.__name__}")
        for check, faults in RETRY_FAULTS.items()
        for place, fault in enumerate(faults)
    ],
)
def test_each_check_fires_alone_on_its_fault(check: str, place: int) -> None:
    findings = examine(RETRY_FAULTS[check][place](retried_history()))

    assert {finding.check for finding in findings} == {check}, [str(finding) for finding in findings]


def test_an_input_that_others_overtook() -> None:
    history = retried_history()
    waits = replace(history, pending_inputs={**history.pending_inputs, W2: (1,)})

    assert no_input_is_consumed_twice(history) == []
    assert any("input 1 of w2 waits" in found for found in no_input_is_consumed_twice(waits))


def test_nobody_can_say_that_a_timer_fired_early_who_saw_no_time() -> None:
    assert examine(replace(fired_early(retried_history()), ticks=())) == []


@pytest.mark.req("O10", "K01")
@pytest.mark.parametrize(
    ("timer", "by_us", "is_early"),
    [("hint", HOUR_US, False), ("hint", -HOUR_US, True), ("retry", HOUR_US, True)],
)
def test_a_clock_that_is_set_forward_brings_the_time_that_a_hint_named(timer: str, by_us: int, is_early: bool) -> None:
    """And no other: a wait that is a span of time is as long as ever."""
    history = fired_early(retried_history())
    for place, event in enumerate(history.events):
        if event.kind == "timer.armed":
            history = armed_as(history, place, timer)
    requests = [event for event in history.events if event.kind == "retry.requested"]
    jumps = [replace(event, seq=event.seq - 1, kind="clock.jumped", data={"by_us": by_us}) for event in requests]
    history = replace(history, events=(*history.events, *jumps))

    found = [one for one in retries_keep_the_policy(history) if one.startswith("timer")]

    assert (found != []) == is_early


@pytest.mark.req("O12")
def test_standing_work_is_tried_again_by_a_hint_whatever_its_policy_lists() -> None:
    history = with_snapshot(retried_history(), FIRST, retry_on=("timeout",), kind=WorkKind.STANDING)
    (armed, *_) = events_of(history, "timer.armed", W1)
    hinted = armed_as(history, armed, "hint")

    assert [one for one in retries_keep_the_policy(hinted) if one.startswith(FIRST)] == []
    run_once = with_snapshot(hinted, FIRST, kind=WorkKind.RUN_ONCE)
    assert any("does not try again" in one for one in retries_keep_the_policy(run_once))


def armed_as(history: History, place: int, timer: str) -> History:
    """The timer that is armed there is one of that kind."""
    event = history.events[place]
    armed = replace(event, data={**event.data, "kind": timer})
    return replace(history, events=(*history.events[:place], armed, *history.events[place + 1 :]))


@pytest.mark.req("O14")
def test_a_person_may_ask_for_more_than_the_policy_has() -> None:
    """The control: without the person's word the third attempt is one too many."""
    history = asked_history()
    attempts = history.attempts_of(history.jobs[0].work_id)
    unasked = _without_persons(history)

    assert [attempt.state for attempt in attempts] == [AttemptState.FAILED] * 4
    assert is_retried_by_person(history, attempts[1])
    assert {"retries_keep_the_policy", "retries_come_from_accepted_events"} <= {one.check for one in examine(unasked)}


def _without_persons(history: History) -> History:
    events = [
        replace(event, kind="note.made") if event.data.get("by") == "a person" and "attempt" in event.data else event
        for event in history.events
    ]
    return replace(history, events=tuple(events))


def test_a_failure_whose_inputs_come_again_is_no_second_consumption() -> None:
    """Inputs of an attempt that did not take effect are the next one's."""
    history = retried_history()
    inputs = {history.snapshots[attempt.id].inputs for attempt in history.attempts_of(history.jobs[0].work_id)}

    assert len(inputs) == 1
    assert no_input_is_consumed_twice(with_snapshot(history, FIRST, inputs=())) == []
    assert AttemptId("w1.3") in history.attempts
