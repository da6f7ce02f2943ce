"""Resumes that come to nothing: the attempt is parked again, and woken by what had woken it."""

from __future__ import annotations

import pytest

from shared.errors import RefusedError
from shared.ids import work_of
from shared.model.attempt import AttemptState, LeaseKey
from shared.model.event import NewEvent
from shared.model.instant import US_PER_S
from shared.model.timer import TimerKind
from shared.model.wait import Wake
from shared.model.work import Reason, WorkState
from shared.policy.capacity import Usage, Wait
from shared.store.contract import ClaimRefused
from tests.contract.store_cases import case
from tests.contract.store_cases.waiting import finish, woken
from tests.support.declarations import TICK
from tests.support.stores import AGAIN, BACKED_OFF, NOTHING_RAN, TIMEOUT_US, World

S, W = AttemptState, WorkState


def fire_due(world: World) -> list[TimerKind]:
    due = world.store.read(lambda tx: tx.timers_due(limit=9))
    for timer in due:
        world.as_leader(lambda tx, number=timer.id: tx.fire_timer(number))  # type: ignore[misc]
    return [timer.kind for timer in due]


def wake_of(world: World, key: LeaseKey) -> Wake | None:
    attempt = world.attempt(key.attempt_id)
    assert attempt.epoch == key.epoch
    return world.store.read(lambda tx: tx.wake(attempt))


def accept(world: World, key: LeaseKey) -> LeaseKey:
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
    return key


@case(pytest.mark.req("O08", "F01", "E13"))
def an_attempt_whose_resume_came_to_nothing_is_parked_again(world: World) -> None:
    key = world.resuming(world.worker())
    world.clock.advance(2 * US_PER_S)
    before = world.attempt(key.attempt_id)

    world.put_off(key)

    attempt, work = world.attempt(key.attempt_id), world.work(work_of(key.attempt_id))
    assert (attempt.state, attempt.epoch, attempt.launch_epoch, attempt.pin) == (S.PARKED, 2, 2, None)
    assert attempt.budget_us == before.budget_us - 2 * US_PER_S, "the time it held its lease is charged"
    assert (work.state, work.admission_failures, work.failures_used) == (W.WAITING, 1, 0)
    assert world.store.read(lambda tx: tx.usage()) == Usage({}), "its slot is free"
    assert world.recoverable() == []
    timer = world.store.read(lambda tx: tx.timer(work.id))
    assert timer is not None
    assert (timer.kind, timer.after_us, timer.attempt_id, timer.why) == (
        TimerKind.RESUME,
        AGAIN.after_us,
        key.attempt_id,
        AGAIN.why,
    )
    assert woken(world) == [], "not before the backoff is over"
    request = world.resume_request(key.attempt_id, key.owner)
    assert world.as_leader(lambda tx: tx.claim_resume(request)) == ClaimRefused("work", None, None)


@case(pytest.mark.req("O08", "O13"))
def what_had_woken_it_wakes_it_again_once_the_backoff_is_over(world: World) -> None:
    key = world.resuming(world.worker())
    first = wake_of(world, key)
    world.put_off(key)
    world.store.write(lambda tx: tx.publish(NewEvent("tick", None, '"another"', "me")))
    assert woken(world) == []
    world.clock.advance(US_PER_S)

    assert fire_due(world) == [TimerKind.RESUME]

    assert woken(world) == [key.attempt_id]
    again = accept(world, world.resumed(key, key.owner))
    assert first is not None
    assert (again.epoch, wake_of(world, again)) == (3, first)
    assert world.work(work_of(key.attempt_id)).admission_failures == 1, "until something of it has run"
    world.store.write(lambda tx: tx.pin(again, world.pin(again)))
    finish(world, again)
    assert (world.attempt(key.attempt_id).state, world.work(work_of(key.attempt_id)).state) == (
        S.SUCCEEDED,
        W.COMPLETED,
    )


@case(pytest.mark.req("O08"))
def a_resume_is_put_off_as_often_as_it_comes_to_nothing(world: World) -> None:
    key = world.resuming(world.worker())
    for epoch in (2, 3, 4):
        assert key.epoch == epoch
        world.put_off(key)
        world.clock.advance(US_PER_S)
        fire_due(world)
        key = accept(world, world.resumed(key, key.owner))

    assert world.work(work_of(key.attempt_id)).admission_failures == 3
    assert len(world.store.read(lambda tx: tx.segments(key.attempt_id))) == 5


@case(pytest.mark.req("O08", "R03"))
def a_lost_resume_that_came_to_nothing_is_put_off_by_whoever_took_it_over(world: World) -> None:
    owner = world.worker()
    lost = world.resuming(owner)
    world.release(lost)
    key = world.take_over(lost, owner)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=None))

    world.put_off(key)

    assert (world.attempt(key.attempt_id).state, world.attempt(key.attempt_id).epoch) == (S.PARKED, 3)
    world.clock.advance(US_PER_S)
    fire_due(world)
    wake = accept(world, world.resumed(key, owner))
    assert wake_of(world, wake) is not None


@case(pytest.mark.req("O08"))
def only_what_was_parked_is_parked_again(world: World) -> None:
    key = world.accepted(world.worker())
    before = world.everything()

    with pytest.raises(RefusedError, match="never parked"):
        world.store.write(lambda tx: tx.put_off(key, NOTHING_RAN, proof="S0", again=AGAIN))

    assert world.everything() == before


@case(pytest.mark.req("T01", "O08"))
def a_cancel_takes_a_resume_that_is_put_off_back_with_its_timer(world: World) -> None:
    key = world.put_off(world.resuming(world.worker()))
    work_id = work_of(key.attempt_id)

    world.store.write(lambda tx: tx.cancel_work(work_id, by="me", reason="no more"))

    assert (world.attempt(key.attempt_id).state, world.work(work_id).state) == (S.CANCELLED, W.CANCELLED)
    assert world.store.read(lambda tx: tx.timer(work_id)) is None
    world.clock.advance(TIMEOUT_US)
    assert (fire_due(world), woken(world)) == ([], [])


@case(pytest.mark.req("T01", "O09"))
def an_attempt_whose_resume_is_put_off_may_end_in_a_backoff_like_any_other(world: World) -> None:
    """The timer of the resume and that of the backoff are both of this attempt and epoch."""
    key = world.put_off(world.resuming(world.worker()))

    world.store.write(lambda tx: tx.cancel_attempt(key.attempt_id, by="me", reason="no", change=BACKED_OFF))

    timer = world.store.read(lambda tx: tx.timer(work_of(key.attempt_id)))
    assert timer is not None
    assert (world.work(work_of(key.attempt_id)).state, timer.kind) == (W.BACKOFF, TimerKind.ADMISSION)


@case(pytest.mark.req("O14"))
def a_held_work_keeps_its_resume_put_off_and_then_waiting(world: World) -> None:
    key = world.put_off(world.resuming(world.worker()))
    work_id = work_of(key.attempt_id)
    world.store.write(lambda tx: tx.hold_work(work_id, by="me", reason="not now"))
    world.clock.advance(US_PER_S)

    assert fire_due(world) == [TimerKind.RESUME]

    request = world.resume_request(key.attempt_id, key.owner)
    assert world.as_leader(lambda tx: tx.claim_resume(request)) == ClaimRefused(None, Reason.HOLD, None)
    world.store.write(lambda tx: tx.release_work(work_id, by="me", reason="now"))
    assert world.resumed(key, key.owner).epoch == 3


@case(pytest.mark.req("C02", "S01"))
def woken_attempts_are_passed_over_that_say_already_what_holds_them_back(world: World) -> None:
    owner = world.worker()
    keys = [world.parked(owner) for _ in range(4)]
    world.store.write(lambda tx: tx.publish(TICK))
    full, held, told, free = (work_of(key.attempt_id) for key in keys)
    world.store.write(lambda tx: tx.hold_work(held, by="me", reason="not now"))
    waits = [
        Wait(full, Reason.CAPACITY_SCOPE, "narrow"),
        Wait(held, Reason.HOLD, None),
        Wait(told, Reason.CAPACITY_SCOPE, "other"),
    ]
    world.as_leader(lambda tx: tx.hold_back(waits))

    page = world.store.read(lambda tx: tx.woken("jobs", limit=9, told={(Reason.CAPACITY_SCOPE, "narrow")}))

    assert [one.work.id for one in page.woken] == [told, free], "what held it back holds no longer, or was never said"
    assert page.end is None
    first = world.store.read(lambda tx: tx.woken("jobs", limit=3))
    assert [one.work.id for one in first.woken] == [full, told, free], "a person's hold stands until it is lifted"
    one = world.store.read(lambda tx: tx.woken("jobs", limit=1))
    rest = world.store.read(lambda tx: tx.woken("jobs", after=one.end, limit=9))
    assert [one.woken[0].work.id, *(each.work.id for each in rest.woken)] == [full, told, free]
    assert world.store.read(lambda tx: tx.woken("agents", limit=9)).woken == ()
