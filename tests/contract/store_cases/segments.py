"""Segments: their launch phases, what they charge, how many are kept; and ends for want of time and of a holder."""

from __future__ import annotations

import pytest

from shared.errors import LeaseLostError
from shared.ids import work_of
from shared.model.attempt import SEGMENTS_KEPT, AttemptState, Exclusion, FailureClass, LeaseKey, Phase, Segment
from shared.model.instant import US_PER_S
from shared.model.work import Reason, WorkChange, WorkState
from shared.policy.lease import budget_left_us
from shared.wake import COORDINATOR
from tests.contract.store_cases import case
from tests.support.stores import COMPLETED, EXHAUSTED, FAILED, LEASE_US, SUCCEEDED, TIMEOUT_US, World

TIMED_OUT = WorkChange(WorkState.FAILED, Reason.TIMED_OUT, None, 0)


def segments(world: World, key: LeaseKey) -> list[Segment]:
    return world.store.read(lambda tx: tx.segments(key.attempt_id))


def time_out(world: World, key: LeaseKey, *, epoch: int | None = None, change: WorkChange = TIMED_OUT) -> bool:
    seen = key.epoch if epoch is None else epoch
    return world.as_leader(
        lambda tx: tx.time_out_lapsed(key.attempt_id, epoch_seen=seen, why="out of time", change=change)
    )


def used_and_left(world: World, key: LeaseKey) -> int:
    """What its segments used so far, the open one up to now, and what is left of the timeout."""
    attempt = world.attempt(key.attempt_id)
    ended = sum(one.active_us for one in segments(world, key) if one.active_us is not None)
    return attempt.segments_dropped_us + ended + attempt.budget_us


@case(pytest.mark.req("E15"))
def phases_are_kept_by_name_in_the_order_they_began(world: World) -> None:
    key = world.accepted(world.worker())
    began = [Phase("environment", 10, 20, "ok"), Phase("sandbox", 20, None, None)]
    world.store.write(lambda tx: tx.record_phases(key, began))
    ended = [Phase("sandbox", 20, 30, "failed"), Phase("pin", 30, 31, "cancelled")]

    world.store.write(lambda tx: tx.record_phases(key, ended))

    [segment] = segments(world, key)
    assert segment.phases == (began[0], *ended)
    assert segment.phases_dropped == 0
    told = [
        event for event in world.store.read(lambda tx: tx.events(after=0, limit=99)) if event.kind == "segment.phases"
    ]
    assert [(event.epoch, event.data["phases"]) for event in told] == [
        (1, [["environment", "ok"], ["sandbox", None]]),
        (1, [["sandbox", "failed"], ["pin", "cancelled"]]),
    ]


@case(pytest.mark.req("E15", "S01"))
def a_segment_keeps_sixteen_phases_and_counts_the_rest(world: World) -> None:
    key = world.accepted(world.worker())
    world.store.write(lambda tx: tx.record_phases(key, [Phase(f"p{n}", n, n, "ok") for n in range(16)]))
    assert segments(world, key)[0].phases_dropped == 0

    world.store.write(lambda tx: tx.record_phases(key, [Phase("more", 1, None, None), Phase("p3", 3, 9, "ok")]))
    world.store.write(lambda tx: tx.record_phases(key, [Phase("more", 1, 2, "ok")]))

    [segment] = segments(world, key)
    assert [one.name for one in segment.phases] == [f"p{n}" for n in range(16)]
    assert (segment.phases[3].ended_at_us, segment.phases_dropped) == (9, 2)


@case(pytest.mark.req("E15"))
def each_segment_has_its_own_phases_and_a_lost_one_keeps_what_it_wrote(world: World) -> None:
    key = world.recovering(world.worker(), pinned=False)
    world.store.write(lambda tx: tx.record_phases(key, [Phase("evidence", 1, None, None)]))
    world.release(key)
    with pytest.raises(LeaseLostError):
        world.store.write(lambda tx: tx.record_phases(key, [Phase("evidence", 1, 2, "ok")]))

    world.take_over(key, key.owner)

    assert [one.phases for one in segments(world, key)] == [(), (Phase("evidence", 1, None, None),), ()]


@case(pytest.mark.req("R14"))
def the_sandboxs_digest_is_written_at_the_launch_and_carried_on(world: World) -> None:
    owner = world.worker()
    key = world.claimed(owner)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=True, sandbox_digest="abc"))
    plain = world.accepted(owner)

    for _ in range(2):
        world.release(key)
        key = world.take_over(key, owner)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=None))
    assert [one.sandbox_digest for one in segments(world, key)] == ["abc"] * 3
    world.store.write(lambda tx: tx.relaunch(key, clear_pin=False, why="nothing ran"))
    assert segments(world, key)[-1].sandbox_digest == "abc"
    world.release(key)
    key = world.take_over(key, owner)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=None))
    world.store.write(lambda tx: tx.relaunch(key, clear_pin=False, why="nothing ran", sandbox_digest="def"))

    assert [one.sandbox_digest for one in segments(world, key)] == ["abc", "abc", "abc", "def"]
    assert [one.sandbox_digest for one in segments(world, plain)] == [None]
    assert {one.wake_event for one in segments(world, key)} == {None}


@case(pytest.mark.req("E13", "R07"))
def what_segments_used_and_what_is_left_is_the_timeout(world: World) -> None:
    """Also the time between a lost or released lease and its recovery: the segment that ended is charged with it."""
    owner = world.worker()
    key = world.running(owner)
    world.clock.advance(10 * US_PER_S)
    world.release(key)
    world.clock.advance(3 * US_PER_S)
    key = world.take_over(key, owner)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=None))
    world.clock.step_wall(86_400 * US_PER_S)
    world.clock.advance(LEASE_US + 7 * US_PER_S)
    key = world.take_over(key, owner)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=None))
    world.store.write(lambda tx: tx.adopt(key, why="it lives"))
    assert used_and_left(world, key) == TIMEOUT_US
    world.clock.advance(5 * US_PER_S)
    attempt = world.attempt(key.attempt_id)
    assert budget_left_us(attempt, world.clock.now()) == attempt.budget_us - 5 * US_PER_S

    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))

    used = [one.active_us for one in segments(world, key)]
    assert used == [13 * US_PER_S, LEASE_US + 7 * US_PER_S, 5 * US_PER_S]
    assert world.attempt(key.attempt_id).budget_us == TIMEOUT_US - sum(one or 0 for one in used)


@case(pytest.mark.req("E13"))
def waiting_for_a_person_uses_no_time(world: World) -> None:
    owner = world.worker()
    key = world.running(owner)
    world.clock.advance(10 * US_PER_S)
    world.store.write(lambda tx: tx.require_recovery(key, why="nobody saw its end", proof=None))
    world.clock.advance(TIMEOUT_US)
    assert used_and_left(world, key) == TIMEOUT_US

    world.store.write(lambda tx: tx.cancel_work(work_of(key.attempt_id), by="test", reason="enough"))

    assert [one.active_us for one in segments(world, key)] == [10 * US_PER_S]
    assert world.attempt(key.attempt_id).budget_us == TIMEOUT_US - 10 * US_PER_S


@case(pytest.mark.req("E17", "E13"))
def the_last_fifty_segments_are_kept_and_the_others_counted(world: World) -> None:
    owner = world.worker()
    key = world.running(owner)
    for number in range(SEGMENTS_KEPT + 2):
        world.clock.advance(US_PER_S)
        world.release(key)
        if number == SEGMENTS_KEPT - 1:
            assert world.attempt(key.attempt_id).segments_dropped == 0, "fifty are kept"
        key = world.take_over(key, owner)

    attempt = world.attempt(key.attempt_id)
    assert (attempt.epoch, attempt.segments_dropped, attempt.segments_dropped_us) == (53, 3, 3 * US_PER_S)
    assert [one.epoch for one in segments(world, key)] == list(range(4, 54))
    assert used_and_left(world, key) == TIMEOUT_US


@case(pytest.mark.req("E14", "R06", "O05", "R10"))
def an_attempt_without_holder_and_time_is_timed_out_by_the_leader(world: World) -> None:
    owner = world.worker()
    key = world.running(owner)
    world.clock.advance(TIMEOUT_US + 5 * US_PER_S)
    [found] = world.recoverable()
    assert found.out_of_time
    world.as_leader(lambda tx: None)
    world.rung.clear()

    assert time_out(world, key)

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.failure, attempt.epoch) == (AttemptState.TIMED_OUT, FailureClass.TIMED_OUT, 2)
    assert (attempt.exclusion, attempt.exclusion_proof, attempt.budget_us) == (Exclusion.HELD, None, 0)
    assert attempt.pin == world.pin(key), "the pin stays: it says what is to be stopped"
    old, new = segments(world, key)
    assert (old.ended_at_us, old.active_us) == (attempt.ended_at_us, TIMEOUT_US + 5 * US_PER_S)
    assert (new.epoch, new.worker, new.recovered, new.relaunched, new.invoke) == (2, world.leader, True, False, None)
    assert (new.began_at_us, new.ended_at_us, new.active_us) == (old.ended_at_us, old.ended_at_us, 0)
    work = world.work(attempt.work_id)
    assert (work.state, work.reason) == (WorkState.FAILED, Reason.TIMED_OUT)
    [order] = world.store.read(lambda tx: tx.stop_orders())
    assert (order.attempt_id, order.epoch, order.why, order.ordered_by) == (attempt.id, 2, "out of time", world.leader)
    lease = world.store.read(lambda tx: tx.lease(attempt.id))
    assert lease is not None
    assert (lease.epoch, lease.owner, lease.revoked_reason) == (2, world.leader, "ended")
    assert set(world.rung) == {COORDINATOR, owner}
    kinds = [event.kind for event in world.store.read(lambda tx: tx.attempt_events(attempt.id, limit=4))]
    assert kinds == ["attempt.taken_over", "lease.revoked", "attempt.timed_out", "stop.ordered"]


@case(pytest.mark.req("E14", "R06"))
def with_a_live_lease_or_time_left_nothing_is_timed_out(world: World) -> None:
    """At each edge: the last microsecond of the lease, and the last one of the budget."""
    owner = world.worker()
    held, lapsed = world.running(owner), world.running(owner)
    for _ in range(TIMEOUT_US // (LEASE_US // 2)):
        world.store.write(lambda tx: tx.renew(owner, lease_us=LEASE_US))
        world.clock.advance(LEASE_US // 2)
    world.clock.advance(LEASE_US // 2 - 1)
    world.as_leader(lambda tx: None)
    before = world.everything()
    assert not time_out(world, held), "its lease is live for one microsecond more"
    assert world.everything() == before
    world.clock.advance(1)
    assert time_out(world, held)

    world.release(fresh := world.running(owner))
    world.clock.advance(TIMEOUT_US - 1)
    assert not time_out(world, fresh), "it has one microsecond left"
    world.clock.advance(1)
    assert time_out(world, fresh)
    assert time_out(world, lapsed)


@case(pytest.mark.req("E14", "E07"))
def a_timeout_decided_on_an_older_epoch_is_refused(world: World) -> None:
    owner = world.worker()
    first = world.running(owner)
    world.release(first)
    second = world.take_over(first, owner)
    world.clock.advance(TIMEOUT_US)
    world.as_leader(lambda tx: None)
    before = world.everything()

    assert not time_out(world, first)

    assert world.everything() == before
    assert time_out(world, second)


@case(pytest.mark.req("E14", "R06"))
def what_has_ended_or_waits_for_a_person_is_not_timed_out(world: World) -> None:
    owner = world.worker()
    ended, uncertain, control = world.ended(owner, FAILED, EXHAUSTED), world.running(owner), world.running(owner)
    world.store.write(lambda tx: tx.require_recovery(uncertain, why="?", proof=None))
    world.clock.advance(TIMEOUT_US)

    assert [time_out(world, key) for key in (ended, uncertain, control)] == [False, False, True]
    assert world.attempt(uncertain.attempt_id).state is AttemptState.RECOVERY_REQUIRED


@case(pytest.mark.req("E14", "O05"))
def a_timeout_may_leave_its_work_to_be_tried_again_once_the_stop_is_proven(world: World) -> None:
    owner = world.worker()
    work_id = world.submit(input_=b"data")
    key = world.running(owner, work_id)
    world.clock.advance(TIMEOUT_US)

    assert time_out(world, key, change=WorkChange(WorkState.READY, None, None, 0))

    assert world.store.read(lambda tx: tx.unexcluded(work_id)) == key.attempt_id
    world.confirm(key, epoch=2)
    again = world.claimed(world.worker(), work_id)
    assert again.attempt_id == f"{work_id}.2"
    assert world.attempt(again.attempt_id).budget_us == TIMEOUT_US


@case(pytest.mark.req("E14", "L01"))
def what_runs_out_of_time_unheld_is_due_then(world: World) -> None:
    key = world.running(world.worker())
    world.clock.advance(10 * US_PER_S)
    world.release(key)

    due = world.store.read(lambda tx: tx.next_due_mono_us())

    assert due == world.clock.now().mono_us + TIMEOUT_US - 10 * US_PER_S
    world.clock.reboot("boot-2", down_us=20 * US_PER_S)
    due = world.store.read(lambda tx: tx.next_due_mono_us())
    assert due == world.clock.now().mono_us + TIMEOUT_US - 30 * US_PER_S
