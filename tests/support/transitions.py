"""One write for each transition that a store offers, in a home where it is due; for tests that go through all of them.

A scene makes the home ready and returns what to write. `finish: unproven` is another case of the transition `finish`.
"""

from __future__ import annotations

from shared.ids import AttemptId, work_of
from shared.model.settings import DEFAULT
from shared.model.stop import StopResult
from shared.model.work import WorkKind
from tests.support.agent_scenes import AGENT_SCENES
from tests.support.scenes import Scene, Transition, into
from tests.support.stores import (
    BACKED_OFF,
    EXHAUSTED,
    FAILED,
    LEASE_US,
    RETURNED,
    World,
    new_work,
)
from tests.support.transitions_derived import DERIVED_SCENES
from tests.support.transitions_held import HELD_SCENES
from tests.support.transitions_leader import LEADER_SCENES
from tests.support.transitions_worker import WORKER_SCENES

SCENES: dict[str, Scene] = {
    **HELD_SCENES,
    **AGENT_SCENES,
    **DERIVED_SCENES,
    **LEADER_SCENES,
    **WORKER_SCENES,
}
scene = into(SCENES)
READS = {"checkpoint_due"}
"""Of `Tx`, and no transition."""


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
