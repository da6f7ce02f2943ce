"""One write for each transition that a store offers, in a home where it is due; for tests that go through all of them.

A scene makes the home ready and returns what to write. `finish: unproven` is another case of the transition `finish`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shared.ids import AttemptId, work_of
from shared.model.attempt import Phase
from shared.model.settings import DEFAULT
from shared.model.stop import StopResult
from shared.model.work import Reason, RoutineNews, WorkKind
from shared.policy.capacity import Wait
from shared.store.contract import Registration, Tx, UnreadableRow
from tests.support.agent_scenes import AGENT_SCENES
from tests.support.declarations import CONSUMED, HANDED_OFF, TICK, TURN, WAIT, WAIT_TO_RESUME, WAITS
from tests.support.passes import pass_record
from tests.support.stores import (
    ACCEPT_US,
    AGAIN,
    BACKED_OFF,
    COMPLETED,
    EXHAUSTED,
    FAILED,
    LEADERSHIP_US,
    LEASE_US,
    NOTHING_RAN,
    RETURNED,
    SUCCEEDED,
    TIMEOUT_US,
    UNPROVEN,
    World,
    identity,
    new_work,
)
from tests.support.transitions_derived import DERIVED_SCENES
from tests.support.transitions_held import HELD_SCENES

Transition = Callable[[Tx], object]
Scene = Callable[[World], Transition]

SCENES: dict[str, Scene] = {**HELD_SCENES, **AGENT_SCENES, **DERIVED_SCENES}
READS = {"checkpoint_due"}
"""Of `Tx`, and no transition."""


def scene(name: str) -> Callable[[Scene], Scene]:
    """Name the transition that a scene is for."""

    def named(made: Scene) -> Scene:
        SCENES[name] = made
        return made

    return named


def transition_of(name: str) -> str:
    """The transition of a scene, by the scene's name."""
    return name.partition(":")[0]


def contents(world: World) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    with world.outsider() as outsider:
        tables = [row[0] for row in outsider.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {
            name: sorted((tuple(row) for row in outsider.execute(f'SELECT * FROM "{name}"')), key=repr)
            for name in tables
        }


# --- commands


@scene("submit")
def _submit(world: World) -> Transition:
    return lambda tx: tx.submit(new_work(input_=b"one"), "jobs")


@scene("submit: with a key")
def _submit_with_key(world: World) -> Transition:
    return lambda tx: tx.submit(new_work(input_=b"one"), "jobs", key="nightly-3")


@scene("add_input")
def _add_input(world: World) -> Transition:
    work_id = world.submit(kind=WorkKind.STANDING)
    return lambda tx: tx.add_input(work_id, b"one", by="t", key="nightly-3")


@scene("retry_work")
def _retry_work(world: World) -> Transition:
    key = world.ended(world.worker(), FAILED, EXHAUSTED)
    work_id = work_of(key.attempt_id)
    return lambda tx: tx.retry_work(work_id, by="t", reason="t")


@scene("retry_work: in a backoff")
def _retry_in_backoff(world: World) -> Transition:
    key = world.ended(world.worker(), FAILED, BACKED_OFF)
    work_id = work_of(key.attempt_id)
    return lambda tx: tx.retry_work(work_id, by="t", reason="t")


@scene("hold_work")
def _hold_work(world: World) -> Transition:
    key = world.ended(world.worker(), FAILED, BACKED_OFF)
    work_id = work_of(key.attempt_id)
    return lambda tx: tx.hold_work(work_id, by="t", reason="t")


@scene("release_work")
def _release_work(world: World) -> Transition:
    work_id = world.submit()
    world.store.write(lambda tx: tx.hold_work(work_id, by="t", reason="t"))
    return lambda tx: tx.release_work(work_id, by="t", reason="t")


@scene("quarantine_binding")
def _quarantine_binding(world: World) -> Transition:
    return lambda tx: tx.quarantine_binding("backup", by="t", reason="t")


@scene("release_binding")
def _release_binding(world: World) -> Transition:
    world.store.write(lambda tx: tx.quarantine_binding("backup", by="t", reason="t"))
    return lambda tx: tx.release_binding("backup", by="t", reason="t")


@scene("cancel_work")
def _cancel_work(world: World) -> Transition:
    key = world.running(world.worker())
    work_id = world.attempt(key.attempt_id).work_id
    return lambda tx: tx.cancel_work(work_id, by="t", reason="t")


@scene("cancel_work: nothing to stop")
def _cancel_ready(world: World) -> Transition:
    work_id = world.submit()
    return lambda tx: tx.cancel_work(work_id, by="t", reason="t")


@scene("cancel_attempt")
def _cancel_attempt(world: World) -> Transition:
    key = world.running(world.worker())
    return lambda tx: tx.cancel_attempt(key.attempt_id, by="t", reason="t", change=RETURNED)


@scene("reconcile")
def _reconcile(world: World) -> Transition:
    key = world.running(world.worker())
    world.store.write(lambda tx: tx.require_recovery(key, why="?", proof=None))
    return lambda tx: tx.reconcile(
        key.attempt_id, expected_epoch=1, ending=FAILED, change=EXHAUSTED, by="t", reason="t"
    )


@scene("activate_config")
def _activate_config(world: World) -> Transition:
    return lambda tx: tx.activate_config(DEFAULT.to_json(), DEFAULT.digest, "tenure.toml")


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


# --- a worker's


@scene("beat")
def _beat(world: World) -> Transition:
    owner = world.worker()
    world.clock.advance(1)
    return lambda tx: tx.beat(owner)


@scene("renew")
def _renew(world: World) -> Transition:
    owner = world.worker()
    world.running(owner)
    world.accepted(owner)
    world.clock.advance(1)
    return lambda tx: tx.renew(owner, lease_us=LEASE_US)


@scene("accept")
def _accept(world: World) -> Transition:
    key = world.claimed(world.worker())
    return lambda tx: tx.accept(key, invoke_isolated=True, sandbox_digest="digest")


@scene("record_phases")
def _record_phases(world: World) -> Transition:
    key = world.accepted(world.worker())
    return lambda tx: tx.record_phases(key, [Phase("sandbox", 1, 2, "ok")])


@scene("pin")
def _pin(world: World) -> Transition:
    key = world.accepted(world.worker())
    return lambda tx: tx.pin(key, world.pin(key))


@scene("adopt")
def _adopt(world: World) -> Transition:
    key = world.recovering(world.worker(), pinned=True)
    return lambda tx: tx.adopt(key, why="t")


@scene("relaunch")
def _relaunch(world: World) -> Transition:
    key = world.recovering(world.worker(), pinned=True)
    return lambda tx: tx.relaunch(key, clear_pin=True, why="t")


@scene("declare")
def _declare(world: World) -> Transition:
    key = world.running(world.worker())
    return lambda tx: tx.declare(key, [TURN, WAIT])


@scene("finish: with what was declared")
def _finish_declared(world: World) -> Transition:
    key = world.declared(world.worker(), [TURN, CONSUMED])
    outcome = world.outcome(key)
    return lambda tx: tx.finish(key, SUCCEEDED, COMPLETED, outcome=outcome)


@scene("finish: and the next attempt waits")
def _finish_waiting(world: World) -> Transition:
    key = world.declared(world.worker(), [TURN, WAIT])
    outcome = world.outcome(key)
    return lambda tx: tx.finish(key, HANDED_OFF, WAITS, outcome=outcome)


@scene("park")
def _park(world: World) -> Transition:
    key = world.declared(world.worker(), [TURN, WAIT_TO_RESUME])
    outcome = world.outcome(key)
    return lambda tx: tx.park(key, outcome, proof="S1")


@scene("park: what it waits for has come")
def _park_satisfied(world: World) -> Transition:
    key = world.declared(world.worker(), [WAIT_TO_RESUME])
    world.store.write(lambda tx: tx.publish(TICK))
    outcome = world.outcome(key)
    return lambda tx: tx.park(key, outcome, proof="S1")


@scene("put_off")
def _put_off(world: World) -> Transition:
    key = world.resuming(world.worker())
    return lambda tx: tx.put_off(key, NOTHING_RAN, proof="S0", again=AGAIN)


@scene("publish")
def _publish(world: World) -> Transition:
    owner = world.worker()
    world.parked(owner)
    world.awaiting(owner)
    return lambda tx: tx.publish(TICK)


@scene("claim_resume")
def _claim_resume(world: World) -> Transition:
    owner = world.worker()
    key = world.parked(owner)
    world.store.write(lambda tx: tx.publish(TICK))
    request = world.resume_request(key.attempt_id, owner)
    return world.led(lambda tx: tx.claim_resume(request))


@scene("cancel_work: parked")
def _cancel_parked(world: World) -> Transition:
    work_id = work_of(world.parked(world.worker()).attempt_id)
    return lambda tx: tx.cancel_work(work_id, by="t", reason="t")


@scene("fire_timer: of a wait")
def _fire_wait(world: World) -> Transition:
    world.parked(world.worker())
    world.awaiting(world.worker())
    world.clock.advance(TIMEOUT_US)
    first, second = world.store.read(lambda tx: tx.timers_due(limit=2))

    def fire(tx: Tx) -> None:
        tx.fire_timer(first.id)
        tx.fire_timer(second.id)

    return world.led(fire)


@scene("finish")
def _finish(world: World) -> Transition:
    key = world.running(world.worker())
    return lambda tx: tx.finish(key, SUCCEEDED, COMPLETED)


@scene("finish: its binding is quarantined")
def _finish_quarantined(world: World) -> Transition:
    key = world.running(world.worker())
    news = RoutineNews("backup", worked=False, quarantine_after=1)
    return lambda tx: tx.finish(key, FAILED, replace(EXHAUSTED, routine=news))


@scene("finish: unproven, tried again")
def _finish_unproven(world: World) -> Transition:
    key = world.running(world.worker())
    return lambda tx: tx.finish(key, UNPROVEN, BACKED_OFF)


@scene("require_recovery")
def _require_recovery(world: World) -> Transition:
    key = world.running(world.worker())
    return lambda tx: tx.require_recovery(key, why="?", proof="S1")


@scene("release")
def _release(world: World) -> Transition:
    key = world.running(world.worker())
    return lambda tx: tx.release(key, reason="released")


# --- stop orders


def _ordered(world: World) -> tuple[AttemptId, int]:
    """A worker, and the order to stop what it left of a Work that was cancelled."""
    key = world.running(world.worker())
    work_id = world.attempt(key.attempt_id).work_id
    world.store.write(lambda tx: tx.cancel_work(work_id, by="t", reason="t"))
    (order,) = world.store.read(lambda tx: tx.stop_orders())
    return key.attempt_id, order.id


@scene("take_stop_order")
def _take_stop_order(world: World) -> Transition:
    _, number = _ordered(world)
    owner = world.worker()
    return lambda tx: tx.take_stop_order(number, owner, lease_us=LEASE_US)


@scene("confirm_stopped")
def _confirm_stopped(world: World) -> Transition:
    name, _ = _ordered(world)
    return lambda tx: tx.confirm_stopped(name, expected_epoch=1, proof="S1", by="t")


@scene("report_unproven")
def _report_unproven(world: World) -> Transition:
    _, number = _ordered(world)
    owner = world.worker()
    world.store.write(lambda tx: tx.take_stop_order(number, owner, lease_us=LEASE_US))
    result = StopResult(None, (), ("S1: no exit record",), None)
    return lambda tx: tx.report_unproven(number, owner, result, retry_us=LEASE_US)
