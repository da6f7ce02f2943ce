"""Programs of cells that speak with tenure: an agent, a job that says things by its tool belt, a job that waits for an event.

Each plot says who is submitted, what brings the armed process to its boundary once that runs, and what has to come after the harm
before the valve opens. Rule: docs/agent-protocol.md; requirements O06, O08, O15, T01–T04.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from chaos.job import Job
from chaos.matrix.cell import Cell, Scene
from chaos.matrix.stage import AGENT, Stage
from chaos.notes import Ends
from chaos.random_drill import manners
from chaos.random_drill.manners import TOOL, Door, Manner
from chaos.witness import Mark
from shared.boundary import Boundary
from shared.ids import WorkId
from shared.model.event import NewEvent
from shared.model.intent import Fate, IntentKind
from shared.model.wait import WAKES_MAX
from shared.model.work import NewWork, Work, WorkState
from shared.policy.capacity import POOL_AGENTS, POOL_JOBS

EVENT = "matrix.go"
LONG_BYTES = 5_000
"""Of an input that does not fit into one line, so that it comes as a file."""
Told = Mapping[str, object]

_SAYS = asdict(manners.Scene(Ends.COMPLETED, turns=("done",)))
_WAITS = asdict(manners.Scene(Ends.PARKS, uses=0, event=EVENT))
_DOZES = asdict(manners.Scene(Ends.PARKS, uses=0, timer="3s"))
_WAITER = Path(__file__).with_name("waiter.py")
CROWD = WAKES_MAX + 3
"""Some are left when one commit has woken as many as it may."""
CROWD_BOUND_S = 60.0
_crowds = itertools.count(1)
_PLAYER = (sys.executable, "-P", "-m", "chaos.matrix.player")


class Submitting(Protocol):
    """Hands a program in."""

    def __call__(self, stage: Stage, *, is_cued: bool = False) -> WorkId:
        """With `is_cued`, it waits for its cue before it does what brings others to the boundary of its scene."""


@dataclass(frozen=True, slots=True)
class Plot:
    """How a scene with a program goes.

    Attributes:
        submit: Hand it in; see `Submitting`.
        await_ready: It runs, up to where it waits for its cue.
        provoke: Bring the armed process to its boundary once it is there; each time anew.
        await_due: Given its cue, it has done all that it can do without the armed process.
        resolve: See to it that it is held again, and told what is still for it.
    """

    submit: Submitting
    await_ready: Callable[[Stage, WorkId], None]
    provoke: Callable[[Stage, WorkId, Cell], None]
    await_due: Callable[[Stage, WorkId], None]
    resolve: Callable[[Stage, WorkId], None]


def submit_agent(stage: Stage, *, is_cued: bool = False) -> WorkId:
    """An agent that goes on until the valve opens. It needs no cue: it prints all the time."""
    del is_cued
    command = _command(stage, Door.AGENT, [_SAYS], cued_at=None)
    return _submit(stage, NewWork("", AGENT, command, (), "/", b"begin", "drill"), POOL_AGENTS)


def submit_waiting(stage: Stage, *, is_cued: bool = False) -> WorkId:
    """A job that asks to wait for an event, ends, and stays until the valve opens once it is woken."""
    return _submit_job(stage, [_WAITS, _SAYS], "leave" if is_cued else None)


def _submit_dozing(stage: Stage, *, is_cued: bool = False) -> WorkId:
    """A job that asks to wait for some time, longer than anybody needs to leave the stage, and then is as the one before."""
    return _submit_job(stage, [_DOZES, _SAYS], "leave" if is_cued else None)


def _submit_speaking(stage: Stage, *, is_cued: bool = False) -> WorkId:
    """A job that says by its tool belt what it used, stays until the valve opens, and then says its turn and its outcome."""
    return _submit_job(stage, [_SAYS], "begin" if is_cued else None)


def _submit_job(stage: Stage, scenes: Sequence[Told], cued_at: str | None) -> WorkId:
    command = _command(stage, Door.BELT, scenes, cued_at)
    return _submit(stage, NewWork("", None, command, (), "/", None, "drill"), POOL_JOBS)


def _command(stage: Stage, door: Door, scenes: Sequence[Told], cued_at: str | None) -> tuple[str, ...]:
    manner = {**asdict(Manner(door, ())), "scenes": scenes, "tool": TOOL, "cued_at": cued_at}
    places = {
        "witness": stage.harness.witness.path,
        "notes": stage.harness.notes,
        "valve": stage.valve,
        "cue": stage.cue,
    }
    return (*_PLAYER, json.dumps({**manner, **{name: str(path) for name, path in places.items()}}))


def _submit(stage: Stage, work: NewWork, pool: str) -> WorkId:
    found = stage.harness.store.write(lambda tx: tx.submit(work, pool))
    stage.harness.jobs.append(Job(found, 0, speaks=True, output=None))
    return found


def _submit_crowd(stage: Stage, *, is_cued: bool = False) -> WorkId:
    """More jobs than one commit wakes, that wait for the same event; the last of them."""
    del is_cued
    event = f"crowd.{next(_crowds)}"
    command = (sys.executable, "-I", "-S", str(_WAITER), str(stage.harness.witness.path), event)
    crowd = stage.harness.submit_commands([command] * CROWD)
    stage.harness.jobs += [Job(work_id, 0, output=None) for work_id in crowd]
    return crowd[-1]


def inject(stage: Stage, work_id: WorkId, *, is_long: bool = False) -> None:
    """Hand an input to a Work."""
    body = b"x" * LONG_BYTES if is_long else b"hello"
    stage.harness.store.write(lambda tx: tx.inject(work_id, body, by="drill"))


def publish(stage: Stage, work_id: WorkId) -> None:
    """Publish what a waiting job waits for."""
    stage.harness.store.write(lambda tx: tx.publish(NewEvent(EVENT, work_id, "null", "drill")))


def await_started(stage: Stage, work_id: WorkId) -> None:
    """Wait until it has said that it runs."""
    stage.await_mark(work_id, Mark.START)


def await_parked(stage: Stage, work_id: WorkId) -> None:
    """Wait until its attempt is parked."""
    stage.await_work(work_id, lambda work: work.state is WorkState.WAITING, "waits")


def await_taken(stage: Stage, work_id: WorkId) -> None:
    """Wait until somebody holds it, and its program has taken every input that was for it."""
    stage.await_held(work_id)

    def are_taken() -> bool:
        intents = stage.harness.read(lambda tx: tx.intents(work_id))
        return all(one.fate is Fate.CONSUMED for one in intents if one.kind is IntentKind.INJECT)

    stage.await_work(work_id, lambda _: are_taken(), "has taken every input")


def _await_declared(stage: Stage, work_id: WorkId) -> None:
    """Wait until it has said what it waits for; then it waits for its cue."""

    def has_declared() -> bool:
        attempts = stage.harness.read(lambda tx: [tx.declarations(one.id) for one in tx.attempts(work_id)])
        return any(attempts)

    stage.await_work(work_id, lambda _: has_declared(), "has declared its wait")


def _await_started_and_parked(stage: Stage, work_id: WorkId) -> None:
    await_started(stage, work_id)
    await_parked(stage, work_id)


def _await_crowd_parked(stage: Stage, work_id: WorkId) -> None:
    """Wait until all of them wait; nobody else does."""
    what = "and all that are to wait with it do"
    stage.await_work(work_id, lambda _: len(_waiting(stage)) == CROWD, what, CROWD_BOUND_S)


def _publish_to_crowd(stage: Stage, work_id: WorkId, _cell: Cell) -> None:
    awaited = stage.harness.read(lambda tx: tx.awaited(work_id))
    assert awaited is not None, "it is parked"
    assert awaited.event_type is not None, "for an event"
    event = NewEvent(awaited.event_type, None, "null", "drill")
    stage.harness.store.write(lambda tx: tx.publish(event))


def _await_crowd_over(stage: Stage, work_id: WorkId) -> None:
    """Wait until nobody waits any more."""
    what = "and all that waited with it were woken"
    stage.await_work(work_id, lambda _: not _waiting(stage), what, CROWD_BOUND_S)


def _waiting(stage: Stage) -> list[Work]:
    return stage.harness.read(lambda tx: tx.works(states=(WorkState.WAITING,), after=0, limit=2 * CROWD))


def _await_end(stage: Stage, work_id: WorkId) -> None:
    stage.await_mark(work_id, Mark.END)
    stage.await_shim_gone(work_id)


def _at_once(_stage: Stage, _work_id: WorkId) -> None:
    """There is nothing that it could do."""


def _by_itself(_stage: Stage, _work_id: WorkId, _cell: Cell) -> None:
    """It comes there without anybody's doing."""


def _hand_over(stage: Stage, work_id: WorkId, cell: Cell) -> None:
    inject(stage, work_id, is_long=cell.boundary is Boundary.CHANNEL_RENAME)


def _publish(stage: Stage, work_id: WorkId, _cell: Cell) -> None:
    publish(stage, work_id)


def _wake(stage: Stage, work_id: WorkId) -> None:
    """Publish what it waits for, and wait until it goes on."""
    await_parked(stage, work_id)
    publish(stage, work_id)
    stage.await_held(work_id)


PLOTS = {
    Scene.AGENT: Plot(submit_agent, await_started, _by_itself, _at_once, Stage.await_held),
    Scene.HAND_OVER: Plot(submit_agent, await_started, _hand_over, _at_once, await_taken),
    Scene.SPEAKING: Plot(_submit_speaking, await_started, _by_itself, _at_once, Stage.await_held),
    Scene.PARKING: Plot(submit_waiting, _await_declared, _by_itself, _await_end, _wake),
    Scene.CROWD: Plot(_submit_crowd, _await_crowd_parked, _publish_to_crowd, _at_once, _await_crowd_over),
    Scene.DOZING: Plot(_submit_dozing, _await_started_and_parked, _by_itself, _at_once, Stage.await_held),
    Scene.WAKING: Plot(submit_waiting, _await_started_and_parked, _publish, _at_once, Stage.await_held),
}
