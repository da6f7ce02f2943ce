"""Scenes of the transitions of a worker that holds an attempt; see `tests.support.transitions`."""

from __future__ import annotations

from dataclasses import replace

from shared.ids import work_of
from shared.model.attempt import Phase
from shared.model.work import RoutineNews
from shared.store.contract import Tx
from tests.support.declarations import CONSUMED, HANDED_OFF, TICK, TURN, WAIT, WAIT_TO_RESUME, WAITS
from tests.support.scenes import Scene, Transition, into
from tests.support.stores import (
    AGAIN,
    BACKED_OFF,
    COMPLETED,
    EXHAUSTED,
    FAILED,
    LEASE_US,
    NOTHING_RAN,
    SUCCEEDED,
    TIMEOUT_US,
    UNPROVEN,
    World,
)

WORKER_SCENES: dict[str, Scene] = {}
scene = into(WORKER_SCENES)


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
