"""Scenes as in `transitions`, of what budgets and start gates hold, charge and settle."""

from __future__ import annotations

from decimal import Decimal

from shared.ids import WorkId
from shared.model.budget import Budget, Per
from shared.model.instant import US_PER_S
from shared.store.values import GateHold
from tests.support.scenes import Scene, Transition, into
from tests.support.stores import COMPLETED, SUCCEEDED, World

TWO_TURNS = Budget("turns", Decimal(2), Per.ALL)
HELD_SCENES: dict[str, Scene] = {}
scene = into(HELD_SCENES)


def _held_at_gate(world: World) -> WorkId:
    """A Work that a gate holds."""
    work_id, owner = world.submit(), world.worker()
    world.try_claim(work_id, owner, gate_hold=GateHold("approval", "ask first"))
    return work_id


@scene("settle_gate")
def _settle_gate(world: World) -> Transition:
    work_id = _held_at_gate(world)
    return lambda tx: tx.settle_gate(work_id, holder="approval", verdict="admitted", by="t", reason="t", key="k")


@scene("settle_gate: refused")
def _refuse_at_gate(world: World) -> Transition:
    work_id = _held_at_gate(world)
    return lambda tx: tx.settle_gate(work_id, holder="approval", verdict="refused", by="t", reason="t", key="k")


@scene("release_work: of a budget")
def _release_budget(world: World) -> Transition:
    world.configure(TWO_TURNS)
    owner = world.worker()
    for _ in range(2):
        world.claimed(owner)
    work_id = world.submit()
    world.try_claim(work_id, owner, budgets=(TWO_TURNS,))
    return lambda tx: tx.release_work(work_id, by="t", reason="t")


@scene("claim: held at a gate")
def _claim_held_at_gate(world: World) -> Transition:
    request = world.request(world.submit(), world.worker(), gate_hold=GateHold("approval", "ask first"))
    return world.led(lambda tx: tx.claim(request))


@scene("claim: charged to a budget")
def _claim_charged(world: World) -> Transition:
    world.configure(TWO_TURNS)
    request = world.request(world.submit(), world.worker())
    return world.led(lambda tx: tx.claim(request))


@scene("claim: held over budget")
def _claim_over_budget(world: World) -> Transition:
    world.configure(TWO_TURNS)
    owner = world.worker()
    for _ in range(2):
        world.claimed(owner)
    request = world.request(world.submit(), owner)
    return world.led(lambda tx: tx.claim(request))


@scene("settle_usage")
def _settle_usage(world: World) -> Transition:
    minutes = Budget("minutes", Decimal(1), warn_at=Decimal("0.5"))
    generation = world.configure(minutes)
    key = world.running(world.worker())
    world.clock.advance(45 * US_PER_S)
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))
    return world.led(lambda tx: tx.settle_usage((minutes,), generation=generation, limit=9))
