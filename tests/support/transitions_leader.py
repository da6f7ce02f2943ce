"""Scenes of the transitions of whoever takes part, and of the leader; see `tests.support.transitions`."""

from __future__ import annotations

from shared.model.work import Reason
from shared.policy.capacity import Wait
from shared.store.contract import Registration, UnreadableRow
from tests.support.passes import pass_record
from tests.support.scenes import Scene, Transition, into
from tests.support.stores import (
    ACCEPT_US,
    BACKED_OFF,
    EXHAUSTED,
    FAILED,
    LEADERSHIP_US,
    LEASE_US,
    TIMEOUT_US,
    World,
    identity,
)

LEADER_SCENES: dict[str, Scene] = {}
scene = into(LEADER_SCENES)


# --- who takes part


@scene("next_incarnation")
def _next_incarnation(world: World) -> Transition:
    return lambda tx: tx.next_incarnation("worker-9")


@scene("register_worker")
def _register_worker(world: World) -> Transition:
    owner = world.store.write(lambda tx: tx.next_incarnation("worker-9"))
    registration = Registration(owner, "worker-9", identity(), "machine", 1, 7, 64, ("shell@1",))
    return lambda tx: tx.register_worker(registration)


@scene("register_worker: the first of a boot")
def _register_in_boot(world: World) -> Transition:
    owner = world.store.write(lambda tx: tx.next_incarnation("worker-9"))
    world.clock.reboot("boot-2")
    registration = Registration(owner, "worker-9", identity(100, "boot-2"), "machine", 1, 7, 64, ("shell@1",))
    return lambda tx: tx.register_worker(registration)


@scene("drain_worker")
def _drain_worker(world: World) -> Transition:
    owner = world.worker()
    return lambda tx: tx.drain_worker(owner)


@scene("retire_worker")
def _retire_worker(world: World) -> Transition:
    owner = world.worker()
    world.running(owner)
    world.claimed(owner)
    return lambda tx: tx.retire_worker(owner, reason="released")


@scene("take_leadership")
def _take_leadership(world: World) -> Transition:
    owner = world.store.write(lambda tx: tx.next_incarnation("coordinator"))
    return lambda tx: tx.take_leadership(
        owner, process=identity(1), lock_device=1, lock_inode=2, duration_us=LEADERSHIP_US, proven_dead=None
    )


@scene("take_leadership: after another")
def _succeed_leader(world: World) -> Transition:
    world.take_lead()
    owner = world.store.write(lambda tx: tx.next_incarnation("coordinator"))
    return lambda tx: tx.take_leadership(
        owner, process=identity(1), lock_device=1, lock_inode=2, duration_us=LEADERSHIP_US, proven_dead=1
    )


@scene("lead")
def _lead(world: World) -> Transition:
    owner = world.take_lead()
    world.clock.advance(LEADERSHIP_US // 2)
    return lambda tx: tx.lead(owner, 1, duration_us=LEADERSHIP_US, renew_after_us=LEADERSHIP_US // 3)


@scene("resign")
def _resign(world: World) -> Transition:
    owner = world.take_lead()
    return lambda tx: tx.resign(owner, 1)


# --- the leader's


@scene("revoke_foreign_boots")
def _revoke_foreign_boots(world: World) -> Transition:
    owner = world.worker()
    world.running(owner)
    world.claimed(owner)
    world.clock.reboot("boot-2")
    return world.led(lambda tx: tx.revoke_foreign_boots())


@scene("revoke_unaccepted")
def _revoke_unaccepted(world: World) -> Transition:
    owner = world.worker()
    world.claimed(owner)
    world.claimed(owner)
    world.clock.advance(ACCEPT_US)
    return world.led(lambda tx: tx.revoke_unaccepted(accept_timeout_us=ACCEPT_US))


@scene("claim")
def _claim(world: World) -> Transition:
    request = world.request(world.submit(), world.worker())
    return world.led(lambda tx: tx.claim(request))


@scene("claim_recovery")
def _claim_recovery(world: World) -> Transition:
    owner = world.worker()
    key = world.running(owner)
    world.release(key)
    return world.led(lambda tx: tx.claim_recovery(key.attempt_id, epoch_seen=1, worker=owner, lease_us=LEASE_US))


@scene("time_out_lapsed")
def _time_out_lapsed(world: World) -> Transition:
    key = world.running(world.worker())
    world.clock.advance(TIMEOUT_US)
    return world.led(lambda tx: tx.time_out_lapsed(key.attempt_id, epoch_seen=1, why="t", change=EXHAUSTED))


@scene("hold_back")
def _hold_back(world: World) -> Transition:
    waits = [Wait(world.submit(), Reason.NO_WORKER, None) for _ in range(2)]
    return world.led(lambda tx: tx.hold_back(waits))


@scene("fire_timer")
def _fire_timer(world: World) -> Transition:
    world.ended(world.worker(), FAILED, BACKED_OFF)
    world.clock.advance(TIMEOUT_US)
    (timer,) = world.store.read(lambda tx: tx.timers_due(limit=2))
    return world.led(lambda tx: tx.fire_timer(timer.id))


@scene("fire_timer: of a resume that was put off")
def _fire_put_off(world: World) -> Transition:
    world.put_off(world.resuming(world.worker()))
    world.clock.advance(TIMEOUT_US)
    (timer,) = world.store.read(lambda tx: tx.timers_due(limit=2))
    return world.led(lambda tx: tx.fire_timer(timer.id))


@scene("record_pass")
def _record_pass(world: World) -> Transition:
    return world.led(lambda tx: tx.record_pass(pass_record()))


DAMAGED = [UnreadableRow("work", "w1", "command")]


@scene("mark_unreadable")
def _mark_unreadable(world: World) -> Transition:
    return world.led(lambda tx: tx.mark_unreadable(DAMAGED))


@scene("unmark_readable")
def _unmark_readable(world: World) -> Transition:
    world.as_leader(lambda tx: tx.mark_unreadable(DAMAGED))
    return world.led(lambda tx: tx.unmark_readable(DAMAGED))


@scene("mark_clock")
def _mark_clock(world: World) -> Transition:
    return world.led(lambda tx: tx.mark_clock(offset_us=1))


@scene("record_clock_jump")
def _record_clock_jump(world: World) -> Transition:
    return world.led(lambda tx: tx.record_clock_jump(7, offset_us=1))


@scene("requeue")
def _requeue(world: World) -> Transition:
    work_id = world.submit()
    world.as_leader(lambda tx: tx.hold_back([Wait(work_id, Reason.UNSUPPORTED_GENERATION, None)]))
    return world.led(lambda tx: tx.requeue([work_id]))


@scene("carry_timers")
def _carry_timers(world: World) -> Transition:
    world.ended(world.worker(), FAILED, BACKED_OFF)
    world.clock.reboot("boot-2")
    return world.led(lambda tx: tx.carry_timers(limit=9))
