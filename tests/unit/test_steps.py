"""Both state tables, every pair of state and event, against a statement of the rules made apart from them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from itertools import product
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.attempt import AttemptState, FailureClass
from shared.model.work import WorkState
from shared.policy.steps import (
    ATTEMPT_STEPS,
    WORK_EVENT_OF_STATE,
    WORK_STEPS,
    AttemptEvent,
    IllegalStepError,
    WorkEvent,
    ending_event,
    is_final_attempt,
    is_final_work,
    step_attempt,
    step_work,
)

# Written from the texts, a line per state: design §3 "States" and §7, requirements R02–R06, O01–O08, T03–T05, X02, X03.
ATTEMPT_RULES: dict[str, dict[str, str]] = {
    # From claim to pin. Nothing was observed yet, so it can neither have succeeded nor have handed off; it holds a lease, so
    # it can be taken over; what it launched is unknown when its executor does not hold it (R01).
    "launching": {
        "pinned": "running",
        "taken_over": "recovering",
        "uncertain": "recovery_required",
        "failed": "failed",
        "timed_out": "timed_out",
        "interrupted": "interrupted",
        "cancelled": "cancelled",
    },
    "running": {
        "taken_over": "recovering",
        "parked": "parked",
        "uncertain": "recovery_required",
        "succeeded": "succeeded",
        "failed": "failed",
        "timed_out": "timed_out",
        "interrupted": "interrupted",
        "handed_off": "handed_off",
        "cancelled": "cancelled",
    },
    # As launching: a wake starts the parked attempt again at epoch + 1 (O08).
    "resuming": {
        "put_off": "parked",  # nothing of it ran: what it did before counts on
        "pinned": "running",
        "taken_over": "recovering",
        "uncertain": "recovery_required",
        "failed": "failed",
        "timed_out": "timed_out",
        "interrupted": "interrupted",
        "cancelled": "cancelled",
    },
    # Any epoch may be lost again. Evidence may say that it runs, that nothing ran, how it ended, or nothing.
    "recovering": {
        "taken_over": "recovering",
        "adopted": "running",
        "parked": "parked",
        "put_off": "parked",
        "relaunched": "launching",
        "relaunched_resume": "resuming",
        "uncertain": "recovery_required",
        "succeeded": "succeeded",
        "failed": "failed",
        "timed_out": "timed_out",
        "interrupted": "interrupted",
        "handed_off": "handed_off",
        "cancelled": "cancelled",
    },
    # No process, no lease: nothing to take over, adopt or observe.
    "parked": {
        "woken": "resuming",
        "failed": "failed",
        "timed_out": "timed_out",
        "interrupted": "interrupted",
        "cancelled": "cancelled",
    },
    # No lease: recovery leaves it alone. A person, or late evidence, settles it.
    "recovery_required": {
        "succeeded": "succeeded",
        "failed": "failed",
        "timed_out": "timed_out",
        "interrupted": "interrupted",
        "cancelled": "cancelled",
    },
    "succeeded": {},
    "failed": {},
    "timed_out": {},
    "interrupted": {},
    "handed_off": {},
    "cancelled": {},
}

# Design §3, requirements O01–O13, T04, T05, F01; a Work is running while its attempt is live, waiting while that is parked.
WORK_RULES: dict[str, dict[str, str]] = {
    "idle": {"input": "ready", "held": "held", "retried": "ready", "cancelled": "cancelled"},
    "ready": {"claimed": "running", "held": "held", "exhausted_input": "idle", "cancelled": "cancelled"},
    "held": {"lifted": "ready", "rested": "idle", "retried": "ready", "cancelled": "cancelled"},
    # Ordinary input does not end a backoff (O13); a person's retry does (O14).
    "backoff": {"retry_due": "ready", "retried": "ready", "held": "held", "cancelled": "cancelled"},
    "running": {
        "attempt_parked": "waiting",
        "waits": "waiting",
        "retry_armed": "backoff",
        "returned": "ready",
        "rested": "idle",
        "held": "held",
        "completed": "completed",
        "failed": "failed",
        "cancelled": "cancelled",
    },
    # Nothing completes while it is parked; its attempt can only be woken or end without success. Where the attempt has ended,
    # the wake makes the Work ready for the next one (O08).
    "waiting": {
        "attempt_woken": "running",
        "woken": "ready",
        "retry_armed": "backoff",
        "returned": "ready",
        "rested": "idle",
        "held": "held",
        "failed": "failed",
        "cancelled": "cancelled",
    },
    "completed": {},
    # It has ended, and a person may still try it again (O11).
    "failed": {"retried": "ready"},
    "cancelled": {},
}

S = TypeVar("S")
E = TypeVar("E")

ATTEMPT_PAIRS = list(product(AttemptState, AttemptEvent))
WORK_PAIRS = list(product(WorkState, WorkEvent))
ATTEMPT_FINAL = {"succeeded", "failed", "timed_out", "interrupted", "handed_off", "cancelled"}
WORK_FINAL = {"completed", "failed", "cancelled"}


def test_the_rules_name_every_state() -> None:
    assert set(ATTEMPT_RULES) == {state.value for state in AttemptState}
    assert set(WORK_RULES) == {state.value for state in WorkState}


@pytest.mark.parametrize(("state", "event"), ATTEMPT_PAIRS, ids=str)
def test_each_pair_of_an_attempt_steps_as_the_rules_say(state: AttemptState, event: AttemptEvent) -> None:
    expected = ATTEMPT_RULES[state.value].get(event.value)

    if expected is None:
        with pytest.raises(IllegalStepError) as caught:
            step_attempt(state, event)
        assert (caught.value.state, caught.value.event) == (state, event)
        assert str(caught.value) == f"no step from {state.value} on {event.value}"
    else:
        assert step_attempt(state, event).value == expected


@pytest.mark.parametrize(("state", "event"), WORK_PAIRS, ids=str)
def test_each_pair_of_a_work_steps_as_the_rules_say(state: WorkState, event: WorkEvent) -> None:
    expected = WORK_RULES[state.value].get(event.value)

    if expected is None:
        with pytest.raises(IllegalStepError):
            step_work(state, event)
    else:
        assert step_work(state, event).value == expected


def test_the_tables_hold_nothing_but_the_rules() -> None:
    told = {(s.value, e.value): t.value for (s, e), t in ATTEMPT_STEPS.items()}
    assert told == {(s, e): t for s, row in ATTEMPT_RULES.items() for e, t in row.items()}

    told = {(s.value, e.value): t.value for (s, e), t in WORK_STEPS.items()}
    assert told == {(s, e): t for s, row in WORK_RULES.items() for e, t in row.items()}


def test_a_final_state_has_no_row_and_is_called_final() -> None:
    assert {state.value for state in AttemptState if is_final_attempt(state)} == ATTEMPT_FINAL
    assert {state.value for state in WorkState if is_final_work(state)} == WORK_FINAL
    assert not {state.value for state, _ in ATTEMPT_STEPS} & ATTEMPT_FINAL
    rows = {(state.value, event.value) for state, event in WORK_STEPS if state.value in WORK_FINAL}
    assert rows == {("failed", "retried")}, "a person's word alone takes a Work back, and only one that failed"


def test_every_open_state_has_a_way_to_the_end() -> None:
    for state in AttemptState:
        assert is_final_attempt(state) or (state, AttemptEvent.CANCELLED) in ATTEMPT_STEPS
    for work in WorkState:
        assert is_final_work(work) or (work, WorkEvent.CANCELLED) in WORK_STEPS


def test_every_state_can_be_reached_from_the_first() -> None:
    assert _reachable(AttemptState.LAUNCHING, ATTEMPT_STEPS) == set(AttemptState)
    assert _reachable(WorkState.IDLE, WORK_STEPS) == set(WorkState)


@given(st.lists(st.sampled_from(AttemptEvent), max_size=30))
def test_no_history_of_an_attempt_leaves_a_final_state(events: list[AttemptEvent]) -> None:
    state = AttemptState.LAUNCHING
    for event in events:
        was_final = is_final_attempt(state)
        try:
            state = step_attempt(state, event)
        except IllegalStepError:
            continue
        assert not was_final


@given(st.lists(st.sampled_from(WorkEvent), max_size=30))
def test_no_history_of_a_work_leaves_a_final_state_without_a_person_s_retry(events: list[WorkEvent]) -> None:
    state = WorkState.IDLE
    for event in events:
        was_final = is_final_work(state)
        try:
            state = step_work(state, event)
        except IllegalStepError:
            continue
        assert not was_final or event is WorkEvent.RETRIED


@given(st.lists(st.sampled_from(AttemptEvent), max_size=30))
def test_an_attempt_becomes_running_only_by_its_pin_or_by_an_adoption(events: list[AttemptEvent]) -> None:
    state = AttemptState.LAUNCHING
    for event in events:
        try:
            before, state = state, step_attempt(state, event)
        except IllegalStepError:
            continue
        if state is AttemptState.RUNNING and before is not state:
            assert event in (AttemptEvent.PINNED, AttemptEvent.ADOPTED)


def test_each_end_is_an_event_of_the_same_name() -> None:
    for state in AttemptState:
        if is_final_attempt(state):
            assert ending_event(state).value == state.value
            assert step_attempt(AttemptState.RUNNING, ending_event(state)) is state


def test_an_open_state_is_no_end() -> None:
    with pytest.raises(ValueError, match="launching"):
        ending_event(AttemptState.LAUNCHING)


def test_the_state_chosen_for_a_work_whose_attempt_ended_is_reached_from_running() -> None:
    assert {state.value for state in WORK_EVENT_OF_STATE} == {
        "idle", "ready", "backoff", "held", "waiting", "completed", "failed", "cancelled",
    }  # fmt: skip
    for target, event in WORK_EVENT_OF_STATE.items():
        assert step_work(WorkState.RUNNING, event) is target


def test_words_of_states_and_classes_are_the_glossary_s() -> None:
    assert [state.value for state in WorkState] == [
        "idle", "ready", "held", "backoff", "running", "waiting", "completed", "failed", "cancelled",
    ]  # fmt: skip
    assert [state.value for state in AttemptState] == [
        "launching", "running", "resuming", "recovering", "parked", "recovery_required",
        "succeeded", "failed", "timed_out", "interrupted", "handed_off", "cancelled",
    ]  # fmt: skip
    assert len({failure.value for failure in FailureClass}) == len(FailureClass)


def test_an_illegal_step_survives_pickling() -> None:
    error = IllegalStepError("parked", "adopted")

    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), copy.state, copy.event, str(copy)) == (IllegalStepError, "parked", "adopted", str(error))


def _reachable(start: S, steps: Mapping[tuple[S, E], S]) -> set[S]:
    found, grown = {start}, True
    while grown:
        more = {target for (state, _), target in steps.items() if state in found} - found
        grown = bool(more)
        found |= more
    return found
