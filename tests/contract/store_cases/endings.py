"""Ends, their exclusion, stop orders, cancels, backoff."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shared.errors import LeaseLostError, NotFoundError, RefusedError
from shared.ids import AttemptId, WorkId
from shared.model.attempt import AttemptState, Ending, Exclusion, FailureClass
from shared.model.instant import US_PER_S
from shared.model.stop import StopResult, Suspect
from shared.model.work import Reason, WorkState
from shared.wake import COORDINATOR
from tests.contract.store_cases import case
from tests.support.stores import (
    BACKED_OFF,
    COMPLETED,
    EXHAUSTED,
    FAILED,
    LEASE_US,
    RETURNED,
    SUCCEEDED,
    UNPROVEN,
    World,
)

ORDER_LEASE_US = 30 * US_PER_S
FOUND = StopResult(None, (Suspect(7, 1, 0, 70, "D", "sleep 9", ("session",)),), ("S1: no exit record",), None)


@case(pytest.mark.req("R10", "R11"))
def an_end_with_proof_frees_the_slot_and_settles_the_work(world: World) -> None:
    key = world.running(world.worker())
    world.rung.clear()

    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))

    attempt = world.attempt(key.attempt_id)
    work = world.work(attempt.work_id)
    assert (attempt.state, attempt.exit_status, attempt.exclusion, attempt.exclusion_proof) == (
        AttemptState.SUCCEEDED,
        0,
        Exclusion.RELEASED,
        "S1",
    )
    assert attempt.ended_at_us == world.clock.now().wall_us
    assert (work.state, work.reason, work.ended_at_us) == (WorkState.COMPLETED, None, world.clock.now().wall_us)
    lease = world.store.read(lambda tx: tx.lease(key.attempt_id))
    assert lease is not None
    assert lease.revoked_reason == "ended"
    assert [one.ended_at_us for one in world.store.read(lambda tx: tx.segments(key.attempt_id))] == [
        attempt.ended_at_us
    ]
    assert world.store.read(lambda tx: tx.stop_orders()) == []
    assert world.rung == [COORDINATOR]


@case(pytest.mark.req("R10", "R11"))
def an_end_without_proof_keeps_the_exclusion_and_orders_a_stop(world: World) -> None:
    owner, other = world.worker(), world.worker("worker-2")
    key = world.running(owner)
    world.rung.clear()

    world.store.write(lambda tx: tx.finish(key, UNPROVEN, EXHAUSTED))

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.exclusion, attempt.exclusion_proof) == (AttemptState.FAILED, Exclusion.HELD, None)
    [order] = world.store.read(lambda tx: tx.stop_orders())
    assert (order.attempt_id, order.epoch, order.why, order.ordered_by, order.owner, order.tries) == (
        key.attempt_id,
        1,
        UNPROVEN.why,
        owner,
        None,
        0,
    )
    assert set(world.rung) == {COORDINATOR, owner, other}
    assert world.store.read(lambda tx: tx.idle_state()).live == 1


@case(pytest.mark.req("R09"))
def an_outcome_is_written_once(world: World) -> None:
    key = world.ended(world.worker())
    before = world.everything()

    with pytest.raises(LeaseLostError, match="has ended: succeeded"):
        world.store.write(lambda tx: tx.finish(key, FAILED, EXHAUSTED))

    assert world.everything() == before


@case(pytest.mark.req("R10", "E03"))
def recovery_required_holds_slot_and_work_and_keeps_the_proof(world: World) -> None:
    key = world.running(world.worker())

    world.store.write(lambda tx: tx.require_recovery(key, why="nobody saw its end", proof="S1"))

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.error, attempt.ended_at_us) == (
        AttemptState.RECOVERY_REQUIRED,
        "nobody saw its end",
        None,
    )
    assert (attempt.exclusion, attempt.exclusion_proof) == (Exclusion.HELD, "S1")
    assert world.work(attempt.work_id).state is WorkState.RUNNING
    assert world.store.read(lambda tx: tx.needs_person(limit=9)) == [attempt]
    idle = world.store.read(lambda tx: tx.idle_state())
    assert (idle.live, idle.needs_person) == (0, (key.attempt_id,))


@case(pytest.mark.req("R11"))
def a_confirmation_for_another_epoch_is_refused(world: World) -> None:
    key = world.ended(world.worker(), UNPROVEN, EXHAUSTED)
    for epoch in (0, 2):
        with pytest.raises(RefusedError, match="epoch 1"):
            world.confirm(key, epoch=epoch)
    assert world.attempt(key.attempt_id).exclusion is Exclusion.HELD

    world.store.write(lambda tx: tx.confirm_stopped(key.attempt_id, expected_epoch=1, proof="S1", by="worker-1.1"))

    attempt = world.attempt(key.attempt_id)
    assert (attempt.exclusion, attempt.exclusion_proof) == (Exclusion.RELEASED, "S1")
    assert world.store.read(lambda tx: tx.stop_orders()) == []


@case(pytest.mark.req("R11"))
def a_confirmation_of_an_unfinished_attempt_is_refused(world: World) -> None:
    key = world.running(world.worker())

    with pytest.raises(RefusedError, match="has not ended"):
        world.store.write(lambda tx: tx.confirm_stopped(key.attempt_id, expected_epoch=1, proof="S1", by="test"))

    with pytest.raises(NotFoundError):
        world.store.write(lambda tx: tx.confirm_stopped(AttemptId("w9.9"), expected_epoch=1, proof="S1", by="test"))


@case(pytest.mark.req("R11"))
def a_confirmation_may_be_repeated(world: World) -> None:
    key = world.ended(world.worker(), UNPROVEN, EXHAUSTED)
    for proof in ("S1", "S3"):
        world.confirm(key, proof=proof)

    assert world.attempt(key.attempt_id).exclusion_proof == "S1"


@case(pytest.mark.req("R10", "R11"))
def a_stop_order_has_one_owner_until_its_lease_lapses(world: World) -> None:
    first, second = world.worker(), world.worker("worker-2")
    world.ended(first, UNPROVEN, EXHAUSTED)
    [order] = world.store.read(lambda tx: tx.stop_orders(unassigned=True))
    assert world.store.write(lambda tx: tx.take_stop_order(order.id, first, lease_us=ORDER_LEASE_US))

    assert not world.store.write(lambda tx: tx.take_stop_order(order.id, second, lease_us=ORDER_LEASE_US))
    assert world.store.read(lambda tx: tx.stop_orders(unassigned=True)) == []
    assert [one.owner for one in world.store.read(lambda tx: tx.stop_orders(owner=first))] == [first]

    world.clock.advance(ORDER_LEASE_US)
    assert [one.owner for one in world.store.read(lambda tx: tx.stop_orders(unassigned=True))] == [None]
    assert world.store.write(lambda tx: tx.take_stop_order(order.id, second, lease_us=ORDER_LEASE_US))
    assert world.store.read(lambda tx: tx.stop_orders(owner=first)) == []


@case(pytest.mark.req("R10"))
def a_stop_orders_owner_may_extend_it_and_a_gone_worker_takes_none(world: World) -> None:
    owner, gone = world.worker(), world.worker("worker-2")
    world.ended(owner, UNPROVEN, EXHAUSTED)
    [order] = world.store.read(lambda tx: tx.stop_orders())
    world.store.write(lambda tx: tx.retire_worker(gone, reason="released"))
    with pytest.raises(RefusedError):
        world.store.write(lambda tx: tx.take_stop_order(order.id, gone, lease_us=ORDER_LEASE_US))

    for _ in range(3):
        assert world.store.write(lambda tx: tx.take_stop_order(order.id, owner, lease_us=ORDER_LEASE_US))
        world.clock.advance(ORDER_LEASE_US - 1)

    assert len(world.store.read(lambda tx: tx.stop_orders(owner=owner))) == 1


@case(pytest.mark.req("R10", "R12"))
def an_unproven_stop_stays_open_and_is_tried_again_later(world: World) -> None:
    owner, other = world.worker(), world.worker("worker-2")
    world.ended(owner, UNPROVEN, EXHAUSTED)
    [order] = world.store.read(lambda tx: tx.stop_orders())
    with pytest.raises(RefusedError, match="not held by"):
        world.store.write(lambda tx: tx.report_unproven(order.id, other, FOUND, retry_us=US_PER_S))
    world.store.write(lambda tx: tx.take_stop_order(order.id, owner, lease_us=ORDER_LEASE_US))

    world.store.write(lambda tx: tx.report_unproven(order.id, owner, FOUND, retry_us=US_PER_S))

    assert world.store.read(lambda tx: tx.stop_orders(unassigned=True)) == []
    assert world.store.read(lambda tx: tx.stop_orders(owner=owner)) == []
    [open_order] = world.store.read(lambda tx: tx.stop_orders())
    assert (open_order.tries, open_order.owner) == (1, None)
    assert json.loads(open_order.finding or "")["suspects"][0]["pid"] == 7
    world.clock.advance(US_PER_S)
    assert len(world.store.read(lambda tx: tx.stop_orders(unassigned=True))) == 1


@case(pytest.mark.req("R10"))
def a_retired_workers_stop_orders_are_free_at_once(world: World) -> None:
    owner = world.worker()
    world.ended(owner, UNPROVEN, EXHAUSTED)
    [order] = world.store.read(lambda tx: tx.stop_orders())
    world.store.write(lambda tx: tx.take_stop_order(order.id, owner, lease_us=ORDER_LEASE_US))

    world.store.write(lambda tx: tx.retire_worker(owner, reason="released"))

    assert [one.id for one in world.store.read(lambda tx: tx.stop_orders(unassigned=True))] == [order.id]


@case(pytest.mark.req("R09", "R10"))
def a_cancel_ends_everything_in_one_transaction(world: World) -> None:
    owner, other = world.worker(), world.worker("worker-2")
    key = world.running(owner)
    work_id = world.attempt(key.attempt_id).work_id
    world.rung.clear()

    outcome = world.store.write(lambda tx: tx.cancel_work(work_id, by="uid 0", reason="wrong branch"))

    attempt = world.attempt(key.attempt_id)
    assert (outcome.state_before, outcome.attempt_id) == (WorkState.RUNNING, key.attempt_id)
    assert (attempt.state, attempt.failure, attempt.exclusion) == (
        AttemptState.CANCELLED,
        FailureClass.CANCELLED,
        Exclusion.HELD,
    )
    assert attempt.error == "cancelled by uid 0: wrong branch"
    assert world.work(work_id).state is WorkState.CANCELLED
    [order] = world.store.read(lambda tx: tx.stop_orders())
    assert (order.attempt_id, order.ordered_by) == (key.attempt_id, "uid 0")
    assert set(world.rung) == {COORDINATOR, owner, other}
    assert world.store.read(lambda tx: tx.usage()).counts == {("jobs", ""): 1}


@case(pytest.mark.req("R09", "R10"))
def a_cancel_reaches_every_open_state(world: World) -> None:
    owner = world.worker()
    ready = world.submit()
    launching = world.claimed(owner)
    recovering = world.recovering(owner, pinned=True)
    uncertain = world.running(owner)
    world.store.write(lambda tx: tx.require_recovery(uncertain, why="?", proof=None))
    backing_off = world.ended(owner, FAILED, BACKED_OFF)
    works = [ready, *(world.attempt(key.attempt_id).work_id for key in (launching, recovering, uncertain, backing_off))]

    outcomes = world.store.write(lambda tx: [tx.cancel_work(one, by="test", reason="all") for one in works])

    live = [None, launching.attempt_id, recovering.attempt_id, uncertain.attempt_id, None]
    assert [outcome.attempt_id for outcome in outcomes] == live
    assert {world.work(one).state for one in works} == {WorkState.CANCELLED}
    assert world.due() == []
    assert world.store.read(lambda tx: tx.ready("jobs", after=None, limit=9)) == []
    assert len(world.store.read(lambda tx: tx.stop_orders())) == 3


@case(pytest.mark.req("R09"))
def what_has_ended_or_never_was_cannot_be_cancelled(world: World) -> None:
    work_id = world.attempt(world.ended(world.worker()).attempt_id).work_id

    with pytest.raises(RefusedError, match="already ended: completed"):
        world.store.write(lambda tx: tx.cancel_work(work_id, by="test", reason="late"))
    with pytest.raises(NotFoundError):
        world.store.write(lambda tx: tx.cancel_work(WorkId("w99"), by="test", reason="late"))


@case(pytest.mark.req("K01"))
def a_backoff_ends_by_elapsed_time_and_not_before(world: World) -> None:
    key = world.ended(world.worker(), FAILED, BACKED_OFF)
    work_id = world.attempt(key.attempt_id).work_id
    world.clock.step_wall(86_400 * US_PER_S)
    world.clock.advance(US_PER_S - 1)
    assert world.due() == []
    with pytest.raises(RefusedError, match="not due"):
        world.fire(work_id)
    world.clock.advance(1)

    assert world.due() == [work_id]
    world.fire(work_id)

    work = world.work(work_id)
    assert (work.state, work.backoff_us, work.admission_failures) == (WorkState.READY, None, 1)
    with pytest.raises(RefusedError, match="not armed"):
        world.fire(work_id)


@case(pytest.mark.req("K01"))
def a_backoff_survives_a_reboot_by_the_wall(world: World) -> None:
    key = world.ended(world.worker(), FAILED, BACKED_OFF)
    work_id = world.attempt(key.attempt_id).work_id
    world.clock.reboot("boot-2", down_us=US_PER_S - 1)
    assert world.as_leader(lambda tx: tx.carry_timers(limit=9)) == 1
    assert world.as_leader(lambda tx: tx.carry_timers(limit=9)) == 0, "once"
    assert world.due() == []
    assert world.store.read(lambda tx: tx.next_due_mono_us()) == world.clock.now().mono_us + 1
    world.clock.advance(1)

    assert world.due() == [work_id]
    world.fire(work_id)


@case(pytest.mark.req("K01", "S01"))
def timers_are_carried_over_a_reboot_some_at_a_time_those_due_first_first(world: World) -> None:
    """Each by what has passed when its turn comes; what is left waits, and loses nothing."""
    owner = world.worker()
    keys = [world.ended(owner, FAILED, replace(BACKED_OFF, backoff_us=after_s * US_PER_S)) for after_s in (9, 2, 5)]
    works = [world.attempt(key.attempt_id).work_id for key in keys]
    world.clock.reboot("boot-2", down_us=2 * US_PER_S)
    assert world.due() == [], "the control: nothing is due by the clock of another boot"

    assert world.as_leader(lambda tx: tx.carry_timers(limit=2)) == 2
    assert world.due() == [works[1]]
    world.clock.advance(3 * US_PER_S)
    assert world.as_leader(lambda tx: tx.carry_timers(limit=2)) == 1

    assert world.due() == [works[1], works[2]]
    assert world.work(works[0]).backoff_us == 4 * US_PER_S
    world.clock.advance(4 * US_PER_S)
    assert world.due() == [works[1], works[2], works[0]]


@case(pytest.mark.req("K02"))
def a_wall_clock_that_is_behind_after_a_reboot_lengthens_no_backoff(world: World) -> None:
    key = world.ended(world.worker(), FAILED, BACKED_OFF)
    work_id = world.attempt(key.attempt_id).work_id
    world.clock.reboot("boot-2", down_us=-86_400 * US_PER_S)
    world.as_leader(lambda tx: tx.carry_timers(limit=9))
    world.clock.step_wall(-86_400 * US_PER_S)
    world.clock.advance(US_PER_S - 1)
    assert world.due() == []

    world.clock.advance(1)

    assert world.due() == [work_id]
    world.fire(work_id)


@case(pytest.mark.req("E03"))
def a_returned_work_is_ready_behind_the_others(world: World) -> None:
    key = world.running(world.worker())
    other = world.submit()
    interrupted = Ending(AttemptState.INTERRUPTED, None, None, None, "S1", "interrupted")

    world.store.write(lambda tx: tx.finish(key, interrupted, RETURNED))

    work_id = world.attempt(key.attempt_id).work_id
    assert [work.id for work in world.store.read(lambda tx: tx.ready("jobs", after=None, limit=9))] == [other, work_id]
    assert world.work(work_id).reason is None


@case(pytest.mark.req("E12"))
def a_failed_run_once_work_says_why(world: World) -> None:
    key = world.ended(world.worker(), FAILED, EXHAUSTED)

    work = world.work(world.attempt(key.attempt_id).work_id)

    assert (work.state, work.reason) == (WorkState.FAILED, Reason.EXHAUSTED)
    world.clock.advance(LEASE_US)
    assert world.store.read(lambda tx: tx.next_due_mono_us()) is None
