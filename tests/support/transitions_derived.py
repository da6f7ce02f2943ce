"""Scenes of the transitions that derive events and inputs, and that wake; see `tests.support.transitions`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shared.ids import AttemptId
from shared.model.attempt import LeaseKey
from shared.model.outcome import Outcome
from shared.model.wait import WAKES_MAX
from shared.model.work import WorkKind
from shared.store.contract import Tx
from shared.store.settling import change_after
from shared.store.sqlite.store import WriteTx
from tests.support.declarations import HANDED_OFF, HANDOFF, TICK, TURN
from tests.support.stores import World


def publish_with_key(world: World) -> Callable[[Tx], object]:
    world.parked(world.worker())
    return lambda tx: tx.publish(TICK, key="build-7")


def wake_on(world: World) -> Callable[[Tx], object]:
    owner = world.worker()
    world.parked(owner)
    world.awaiting(owner)

    def publish(tx: Tx) -> None:
        assert isinstance(tx, WriteTx)
        tx.notes.waits_ended = WAKES_MAX  # as if so many had ended in it before
        tx.publish(TICK)

    world.store.write(publish)
    return world.led(lambda tx: tx.wake_on(limit=9))


def finish_going_on(world: World) -> Callable[[Tx], object]:
    key = going_on(world, depth_max=100)
    outcome = world.outcome(key)
    return _handing_off(key, outcome)


def finish_too_deep(world: World) -> Callable[[Tx], object]:
    key = going_on(world, depth_max=0)
    outcome = world.outcome(key)
    return _handing_off(key, outcome)


def _handing_off(key: LeaseKey, outcome: Outcome) -> Callable[[Tx], object]:
    """As a worker does: what becomes of the Work, and whether it goes on, is decided in the same transaction."""

    def finish(tx: Tx) -> None:
        tx.finish(key, HANDED_OFF, change_after(tx, key.attempt_id, HANDED_OFF, None, outcome), outcome=outcome)

    return finish


def going_on(world: World, *, depth_max: int) -> LeaseKey:
    owner = world.worker()
    work_id = world.submit(kind=WorkKind.STANDING, input_=b"one")
    request = world.request(work_id, owner)
    pinned = replace(request.snapshot, continues=True, depth_max=depth_max)
    world.as_leader(lambda tx: tx.claim(replace(request, snapshot=pinned)))
    key = LeaseKey(AttemptId(f"{work_id}.1"), 1, owner)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
    world.store.write(lambda tx: tx.pin(key, world.pin(key)))
    world.store.write(lambda tx: tx.declare(key, [TURN, HANDOFF]))
    return key


DERIVED_SCENES = {
    "publish: with a key": publish_with_key,
    "wake_on": wake_on,
    "finish: a handoff that goes on": finish_going_on,
    "finish: a chain that is too long": finish_too_deep,
}
