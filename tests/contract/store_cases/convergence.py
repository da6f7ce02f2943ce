"""Of two ends of one attempt exactly one counts, whichever comes first, and the loser leaves nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shared.errors import LeaseLostError, RefusedError
from shared.ids import work_of
from shared.model.attempt import AttemptState, Ending, FailureClass, LeaseKey
from shared.model.work import Reason, WorkChange, WorkState
from shared.policy.steps import is_final_attempt
from shared.store.contract import Event
from tests.contract.store_cases import add, case
from tests.contract.store_cases.cancels import cancel_attempt, events, reconcile
from tests.support.stores import COMPLETED, EXHAUSTED, FAILED, SUCCEEDED, TIMEOUT_US, World

TIMED_OUT = WorkChange(WorkState.FAILED, Reason.TIMED_OUT, None, 0)
OUT_OF_TIME = Ending(AttemptState.TIMED_OUT, None, FailureClass.TIMED_OUT, "out of time", None, "out of time")

Finisher = Callable[[World, LeaseKey], None]


def _complete(world: World, key: LeaseKey) -> None:
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))


def _time_out(world: World, key: LeaseKey) -> None:
    world.store.write(lambda tx: tx.finish(key, OUT_OF_TIME, TIMED_OUT))


def _time_out_lapsed(world: World, key: LeaseKey) -> None:
    done = world.as_leader(
        lambda tx: tx.time_out_lapsed(key.attempt_id, epoch_seen=key.epoch, why="out of time", change=TIMED_OUT)
    )
    if not done:
        raise RefusedError("not timed out")


def _cancel_work(world: World, key: LeaseKey) -> None:
    world.store.write(lambda tx: tx.cancel_work(work_of(key.attempt_id), by="uid 0", reason="wrong"))


def _leave_to_a_person(world: World, key: LeaseKey) -> None:
    world.store.write(lambda tx: tx.require_recovery(key, why="?", proof=None))


FINISHERS: dict[str, tuple[Finisher, AttemptState, WorkState]] = {
    "completion": (_complete, AttemptState.SUCCEEDED, WorkState.COMPLETED),
    "timeout": (_time_out, AttemptState.TIMED_OUT, WorkState.FAILED),
    "cancel_of_the_work": (_cancel_work, AttemptState.CANCELLED, WorkState.CANCELLED),
    "cancel_of_the_attempt": (cancel_attempt, AttemptState.CANCELLED, WorkState.CANCELLED),
}


def _race(first: str, second: str) -> Callable[[World], None]:
    def raced(world: World) -> None:
        key = world.running(world.worker())
        finish, state, work_state = FINISHERS[first]
        finish(world, key)
        before = world.everything()

        with pytest.raises(RefusedError):
            FINISHERS[second][0](world, key)

        assert world.everything() == before, "the loser left nothing"
        assert world.attempt(key.attempt_id).state is state
        assert world.work(work_of(key.attempt_id)).state is work_state
        finals = [event for event in events(world, "attempt.") if is_final(event)]
        assert len(finals) == 1

    return raced


def is_final(event: Event) -> bool:
    """Whether the event is the end of an attempt."""
    return "to" in event.data and is_final_attempt(AttemptState(str(event.data["to"])))


for _first in FINISHERS:
    for _second in FINISHERS:
        add(f"of_{_first}_and_then_{_second}_the_first_counts", _race(_first, _second), pytest.mark.req("X02", "R09"))


@case(pytest.mark.req("X02", "E14", "R09"))
def of_a_lapsed_timeout_and_any_other_end_the_first_counts(world: World) -> None:
    """The lease is not live any more, so its holder's end is refused before and after; a cancel may come first."""
    owner = world.worker()
    first, second = world.running(owner), world.running(owner)
    world.clock.advance(TIMEOUT_US)
    with pytest.raises(LeaseLostError):
        _complete(world, first)
    _time_out_lapsed(world, first)
    _cancel_work(world, second)
    before = world.everything()

    for late in (_complete, _time_out, _cancel_work, cancel_attempt, _time_out_lapsed):
        with pytest.raises(RefusedError):
            late(world, first)
    with pytest.raises(RefusedError):
        _time_out_lapsed(world, second)

    assert world.everything() == before
    states = [world.attempt(key.attempt_id).state for key in (first, second)]
    assert states == [AttemptState.TIMED_OUT, AttemptState.CANCELLED]


@case(pytest.mark.req("X02", "X03"))
def what_is_left_to_a_person_is_settled_once_by_whoever_comes_first(world: World) -> None:
    owner = world.worker()
    reconciled, cancelled = world.running(owner), world.running(owner)
    for key in (reconciled, cancelled):
        _leave_to_a_person(world, key)
    reconcile(world, reconciled, FAILED, EXHAUSTED)
    cancel_attempt(world, cancelled)
    before = world.everything()

    for late in (cancel_attempt, _cancel_work, _complete, _time_out_lapsed):
        with pytest.raises(RefusedError):
            late(world, reconciled)
    with pytest.raises(RefusedError):
        reconcile(world, cancelled, SUCCEEDED, COMPLETED)

    assert world.everything() == before
