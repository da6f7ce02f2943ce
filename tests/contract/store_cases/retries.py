"""Timers, retries by policy and by a person, and the count of failures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.errors import FenceViolationError, NotFoundError, RefusedError
from shared.ids import WorkId, attempt_id
from shared.model.attempt import AttemptState, LeaseKey, RetryHint
from shared.model.instant import US_PER_S
from shared.model.timer import TimerKind, TimerState
from shared.model.work import Reason, WorkChange, WorkKind, WorkState
from shared.policy.settle import Before, settle
from shared.store.contract import Claimed, Event
from shared.wake import COORDINATOR
from tests.contract.store_cases import case
from tests.support.stores import (
    COMPLETED,
    EXHAUSTED,
    FAILED,
    RETURNED,
    UNPROVEN,
    World,
)

FIVE_MIN_US = 300 * US_PER_S
ARMED = WorkChange(WorkState.BACKOFF, None, FIVE_MIN_US, 0, 1, timer=TimerKind.RETRY, why="failure 1 of 3")
HELD = WorkChange(WorkState.HELD, Reason.EXHAUSTED, None, 0, 3)
BLOCKED = WorkChange(WorkState.HELD, Reason.TIMED_OUT, None, 0, 1)
RESTED = WorkChange(WorkState.IDLE, None, None, 0, 1, spends_inputs=True)


def failed(world: World, change: WorkChange = ARMED, **work: Any) -> WorkId:
    """A Work whose first attempt failed."""
    owner = world.worker()
    key = world.running(owner, world.submit(**work))
    world.store.write(lambda tx: tx.finish(key, FAILED, change))
    return world.attempt(key.attempt_id).work_id


def state(world: World, work_id: WorkId) -> tuple[WorkState, Reason | None, int]:
    work = world.work(work_id)
    return work.state, work.reason, work.failures_used


def retry(world: World, work_id: WorkId) -> None:
    world.store.write(lambda tx: tx.retry_work(work_id, by="me", reason="fixed"))


def told(world: World, *kinds: str) -> list[Event]:
    return [event for event in world.store.read(lambda tx: tx.events(after=0, limit=1_000)) if event.kind in kinds]


def run_again(world: World, work_id: WorkId) -> LeaseKey:
    owner = world.worker(f"worker-{world.work(work_id).attempts_used + 2}")
    return world.running(owner, work_id)


@case(pytest.mark.req("O09", "F02"))
def a_failure_arms_a_timer_with_the_attempt_and_what_had_set_it_off(world: World) -> None:
    owner = world.worker()
    work_id = world.submit(input_=b"data")
    [number] = world.store.read(lambda tx: tx.pending_inputs(work_id, limit=9))
    request = world.request(work_id, owner)
    request = replace(request, snapshot=replace(request.snapshot, trigger=number))
    assert isinstance(world.as_leader(lambda tx: tx.claim(request)), Claimed)
    key = LeaseKey(attempt_id(work_id, 1), 1, owner)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
    world.store.write(lambda tx: tx.pin(key, world.pin(key)))

    world.store.write(lambda tx: tx.finish(key, FAILED, ARMED))

    timer = world.store.read(lambda tx: tx.timer(work_id))
    assert timer is not None
    assert (timer.kind, timer.state, timer.attempt_id, timer.epoch) == (
        TimerKind.RETRY,
        TimerState.ARMED,
        key.attempt_id,
        1,
    )
    assert (timer.trigger_input, timer.after_us, timer.why) == (number, FIVE_MIN_US, "failure 1 of 3")
    [ended] = told(world, "attempt.failed")
    assert timer.armed_seq == ended.seq
    [armed] = told(world, "timer.armed")
    assert armed.data == {
        "timer": timer.id,
        "kind": "retry",
        "attempt": key.attempt_id,
        "after_us": FIVE_MIN_US,
        "why": "failure 1 of 3",
    }
    assert state(world, work_id) == (WorkState.BACKOFF, None, 1)
    assert world.store.read(lambda tx: tx.pending_inputs(work_id, limit=9)) == [number]


@case(pytest.mark.req("O13"))
def a_timer_fires_once_by_an_event_behind_its_failure(world: World) -> None:
    work_id = failed(world)
    world.clock.advance(FIVE_MIN_US)
    world.rung.clear()

    world.fire(work_id)

    timer = world.store.read(lambda tx: tx.last_timer(work_id))
    [requested] = told(world, "retry.requested")
    assert timer is not None
    assert (timer.state, timer.fired_seq) == (TimerState.FIRED, requested.seq)
    assert requested.seq > timer.armed_seq
    assert (requested.data["timer"], requested.data["by"]) == (timer.id, "timer")
    assert state(world, work_id) == (WorkState.READY, None, 1)
    assert world.rung == [COORDINATOR]
    before = world.everything()
    with pytest.raises(RefusedError, match="not armed"):
        world.fire(work_id)
    assert world.everything() == before


@case(pytest.mark.req("O13"))
def a_due_clock_alone_changes_nothing(world: World) -> None:
    work_id = failed(world)
    before = world.everything()
    world.clock.advance(2 * FIVE_MIN_US)

    assert world.due() == [work_id]
    assert state(world, work_id) == (WorkState.BACKOFF, None, 1)
    assert world.everything() == before


@case(pytest.mark.req("O13"))
def a_timer_that_has_fired_cannot_clear_a_later_failure(world: World) -> None:
    work_id = failed(world)
    world.clock.advance(FIVE_MIN_US)
    world.fire(work_id)
    first = world.store.read(lambda tx: tx.last_timer(work_id))
    assert first is not None
    key = run_again(world, work_id)
    world.store.write(lambda tx: tx.finish(key, FAILED, replace(ARMED, failures_used=2)))

    with pytest.raises(RefusedError, match="not armed"):
        world.as_leader(lambda tx: tx.fire_timer(first.id))

    assert state(world, work_id) == (WorkState.BACKOFF, None, 2)
    world.clock.advance(FIVE_MIN_US)
    world.fire(work_id)
    assert state(world, work_id) == (WorkState.READY, None, 2), "control: its own timer does"


@case(pytest.mark.req("O13", "L01"))
def only_the_leader_fires_and_only_what_is_due(world: World) -> None:
    work_id = failed(world)
    timer = world.store.read(lambda tx: tx.timer(work_id))
    assert timer is not None
    world.clock.advance(FIVE_MIN_US - 1)
    with pytest.raises(RefusedError, match="not due"):
        world.fire(work_id)
    world.clock.advance(1)
    with pytest.raises(FenceViolationError, match="without `lead`"):
        world.store.write(lambda tx: tx.fire_timer(timer.id))
    with pytest.raises(RefusedError, match="not armed"):
        world.as_leader(lambda tx: tx.fire_timer(timer.id + 1))
    assert state(world, work_id)[0] is WorkState.BACKOFF

    world.fire(work_id)
    assert state(world, work_id)[0] is WorkState.READY


@case(pytest.mark.req("O13", "K02"))
def a_step_of_the_wall_clock_neither_hastens_nor_delays_a_delay(world: World) -> None:
    work_id = failed(world)
    for us in (86_400 * US_PER_S, -2 * 86_400 * US_PER_S):
        world.clock.step_wall(us)
        assert world.due() == []
    world.clock.advance(FIVE_MIN_US)

    assert world.due() == [work_id]


@case(pytest.mark.req("O10", "K02"))
def a_hint_s_timer_is_due_at_its_wall_time_or_after_its_wait(world: World) -> None:
    hinted = replace(ARMED, timer=TimerKind.HINT, due_at_us=world.clock.now().wall_us + FIVE_MIN_US)
    work_id = failed(world, hinted)
    assert world.due() == []
    assert _due_in(world) == FIVE_MIN_US
    world.clock.step_wall(FIVE_MIN_US - 1)  # the host slept: no elapsed time
    assert (world.due(), _due_in(world)) == ([], 1)
    world.clock.step_wall(1)
    assert world.due() == [work_id]

    world.clock.step_wall(-86_400 * US_PER_S)
    assert world.due() == []
    world.clock.advance(FIVE_MIN_US)
    assert world.due() == [work_id], "a clock that was set back delays nothing for ever"
    world.fire(work_id)
    assert state(world, work_id)[0] is WorkState.READY


def _due_in(world: World) -> int | None:
    due = world.store.read(lambda tx: tx.next_due_mono_us())
    return None if due is None else due - world.clock.now().mono_us


@case(pytest.mark.req("O09", "K01"))
def a_timer_survives_a_reboot_and_is_due_by_what_the_wall_says_has_passed(world: World) -> None:
    work_id = failed(world)
    world.clock.reboot("boot-2", down_us=FIVE_MIN_US - 1)
    assert world.as_leader(lambda tx: tx.carry_timers(limit=9)) == 1
    assert world.work(work_id).backoff_us == 1
    assert (world.due(), _due_in(world)) == ([], 1)
    world.clock.advance(1)

    assert world.due() == [work_id]
    world.fire(work_id)
    assert state(world, work_id)[0] is WorkState.READY


@case(pytest.mark.req("O13", "T05"))
def a_cancel_takes_the_timer_back(world: World) -> None:
    work_id = failed(world)
    world.store.write(lambda tx: tx.cancel_work(work_id, by="me", reason="no more"))
    world.clock.advance(FIVE_MIN_US)

    assert world.due() == []
    with pytest.raises(RefusedError, match="not armed"):
        world.fire(work_id)
    assert state(world, work_id)[0] is WorkState.CANCELLED
    assert len(told(world, "timer.cancelled")) == 1


@case(pytest.mark.req("R10", "O13"))
def a_retry_that_fired_still_waits_for_the_proof_of_the_stop(world: World) -> None:
    owner = world.worker()
    key = world.ended(owner, UNPROVEN, ARMED)
    work_id = world.attempt(key.attempt_id).work_id
    world.clock.advance(FIVE_MIN_US)
    world.fire(work_id)

    answer = world.try_claim(work_id, world.worker())

    assert not isinstance(answer, Claimed)
    assert answer.reason is Reason.STOP_UNPROVEN
    world.confirm(key)
    assert isinstance(world.try_claim(work_id, world.worker("worker-9")), Claimed), "control"


# --- a person's retry


@case(pytest.mark.req("O11", "O14"))
def a_person_s_retry_begins_the_count_anew_and_not_the_numbers(world: World) -> None:
    for change in (EXHAUSTED, HELD, BLOCKED, replace(ARMED, failures_used=2)):
        work_id = failed(world, change, input_=b"data")

        retry(world, work_id)

        assert state(world, work_id) == (WorkState.READY, None, 0)
        assert world.work(work_id).ended_at_us is None
        key = run_again(world, work_id)
        assert key.attempt_id == attempt_id(work_id, 2)
        [one] = world.store.read(lambda tx, name=key.attempt_id: tx.inputs(tx.snapshot(name).inputs))  # type: ignore[misc]
        assert one.body == b"data"
        world.store.write(lambda tx, held=key: tx.finish(held, FAILED, EXHAUSTED))  # type: ignore[misc]


@case(pytest.mark.req("O13", "O14"))
def a_person_s_retry_in_a_backoff_takes_the_timer_back(world: World) -> None:
    work_id = failed(world)

    retry(world, work_id)

    assert world.store.read(lambda tx: tx.timer(work_id)) is None
    world.clock.advance(FIVE_MIN_US)
    assert world.due() == []
    [requested] = told(world, "retry.requested")
    assert (requested.data["by"], requested.data["reason"]) == ("me", "fixed")


@case(pytest.mark.req("O14", "R10"))
def a_person_s_retry_of_what_is_not_to_be_retried_is_refused_and_changes_nothing(world: World) -> None:
    owner = world.worker()
    running = world.attempt(world.running(owner).attempt_id).work_id
    ready = world.submit()
    completed = world.attempt(world.ended(owner).attempt_id).work_id
    cancelled = world.submit()
    world.store.write(lambda tx: tx.cancel_work(cancelled, by="t", reason="t"))
    unproven = world.attempt(world.ended(owner, UNPROVEN, EXHAUSTED).attempt_id).work_id
    held = failed(world, HELD)
    world.store.write(lambda tx: tx.hold_work(held, by="me", reason="wait"))
    fresh = world.submit()
    world.store.write(lambda tx: tx.hold_work(fresh, by="me", reason="wait"))
    uncertain = world.running(owner)
    world.store.write(lambda tx: tx.require_recovery(uncertain, why="?", proof=None))
    before = world.everything()

    for work_id, why in (
        (running, "is running"),
        (ready, "no attempt yet"),
        (completed, "already ended: completed"),
        (cancelled, "already ended: cancelled"),
        (unproven, "the stop of .* is not proven"),
        (held, "is held by me"),
        (fresh, "no attempt yet"),
        (world.attempt(uncertain.attempt_id).work_id, "is running: .* is recovery_required"),
    ):
        with pytest.raises(RefusedError, match=why):
            retry(world, work_id)
    with pytest.raises(NotFoundError):
        retry(world, WorkId("w99"))

    assert world.everything() == before
    retry(world, failed(world, HELD))  # control


@case(pytest.mark.req("O14"))
def a_work_that_is_ready_again_is_not_retried_twice(world: World) -> None:
    work_id = failed(world, EXHAUSTED)
    retry(world, work_id)

    with pytest.raises(RefusedError, match="ready already"):
        retry(world, work_id)


@case(pytest.mark.req("O12", "O14"))
def standing_work_that_rests_after_a_failure_is_retried_with_what_it_had(world: World) -> None:
    work_id = failed(world, RESTED, kind=WorkKind.STANDING, input_=b"data")
    assert world.store.read(lambda tx: tx.pending_inputs(work_id, limit=9)) == [], "it is not repeated by itself"

    retry(world, work_id)

    assert len(world.store.read(lambda tx: tx.pending_inputs(work_id, limit=9))) == 1
    assert state(world, work_id)[0] is WorkState.READY
    key = run_again(world, work_id)
    world.store.write(lambda tx: tx.finish(key, replace(FAILED, state=AttemptState.SUCCEEDED, failure=None), RESTED))
    with pytest.raises(RefusedError, match="did not fail"):
        retry(world, work_id)


@case(pytest.mark.req("O10"))
def a_hint_that_is_refused_is_told_with_the_failure(world: World) -> None:
    key = world.running(world.worker())
    ending = replace(FAILED, hint=RetryHint(1))

    world.store.write(lambda tx: tx.finish(key, ending, EXHAUSTED))

    assert world.attempt(key.attempt_id).error == "exit status 7; its retry hint lies in the past"
    good = world.running(world.worker("worker-2"))
    world.store.write(lambda tx: tx.finish(good, replace(FAILED, hint=RetryHint(None)), EXHAUSTED))
    assert world.attempt(good.attempt_id).error == "exit status 7", "control"


@case(pytest.mark.req("O09", "O13", "O14"))
def a_whole_life_by_policy_alone(world: World) -> None:
    """Two delays, three failures, exhausted; a person's retry; a success; each count where it belongs."""
    work_id = world.submit()
    owner = world.worker()
    seen = []
    for number in range(1, 4):
        key = world.running(owner, work_id)

        def end(tx: object, held: LeaseKey = key) -> None:
            pinned = replace(tx.snapshot(held.attempt_id), retry_delays_us=(5, 10), retry_on=("failure",))  # type: ignore[attr-defined]
            before = Before(tx.work(work_id), pinned, inputs_wait=False)  # type: ignore[attr-defined]
            tx.finish(held, FAILED, settle(FAILED, before, tx.now))  # type: ignore[attr-defined]

        world.store.write(end)
        work = world.work(work_id)
        seen.append((work.state, work.failures_used, work.attempts_used, work.backoff_us))
        if number < 3:
            world.clock.advance(10)
            world.fire(work_id)

    assert seen == [
        (WorkState.BACKOFF, 1, 1, 5),
        (WorkState.BACKOFF, 2, 2, 10),
        (WorkState.FAILED, 3, 3, None),
    ]
    retry(world, work_id)
    key = world.running(owner, work_id)
    world.store.write(lambda tx: tx.finish(key, replace(FAILED, state=AttemptState.SUCCEEDED, failure=None), COMPLETED))
    assert (world.work(work_id).state, world.work(work_id).failures_used) == (WorkState.COMPLETED, 0)
    assert world.work(work_id).attempts_used == 4


@case(pytest.mark.req("O03"))
def a_work_is_ready_again_once_its_failure_s_wait_is_over_and_not_for_any_other_reason(world: World) -> None:
    work_id = failed(world)
    for _ in range(3):
        world.as_leader(lambda tx: tx.hold_back([]))
        assert world.ready() == []
    world.clock.advance(FIVE_MIN_US)
    world.fire(work_id)

    assert [work.id for work in world.ready()] == [work_id]
    returned = world.running(world.worker("worker-5"), work_id)
    world.store.write(lambda tx: tx.finish(returned, FAILED, RETURNED))
    assert [work.id for work in world.ready()] == [work_id], "at once, where policy says so"
