"""What is under way when the armed process comes on stage."""

from __future__ import annotations

from chaos.harness import COORDINATOR
from chaos.matrix.cell import Cell, Role, Scene
from chaos.matrix.programs import PLOTS, Plot
from chaos.matrix.stage import SECOND_WORKER, STANDBY, WORKER, Stage
from chaos.witness import Mark
from shared.boundary import Boundary, Side
from shared.ids import WorkId

JOB_S = 0.02
STATUS = 7
LOST = {
    Scene.LOST_LAUNCH: f"{Boundary.ACCEPT_COMMIT}:{Side.AFTER}:KILL",
    Scene.LOST_PIN: f"{Boundary.PIN_COMMIT}:{Side.AFTER}:KILL",
}
"""Where the worker before dies."""
JOB_SCENES = frozenset({Scene.JOB, Scene.LONG_JOB, Scene.NO_BALLAST, Scene.RETRY, Scene.AGENT_END})
LASTING_SCENES = frozenset({Scene.LONG_JOB, Scene.TAKEOVER, Scene.FULL_DISK})
"""The job waits until somebody holds it again, so that it is not over before that by chance."""


def hit_name(role: Role) -> str:
    """Whom the armed process belongs to, by the name it has on stage."""
    return COORDINATOR if role is Role.COORDINATOR else WORKER


def set_scene(stage: Stage, cell: Cell) -> WorkId | None:
    """Leave the partner of the armed process on stage and nobody else, with what the scene needs; the job that the cell is about,
    None when it is still to be submitted.
    """
    stage.supervise()
    stage.leave(SECOND_WORKER, STANDBY, hit_name(cell.role))
    partner = WORKER if cell.role is Role.COORDINATOR else COORDINATOR
    match cell.scene:
        case Scene.TAKEOVER:
            return _lose_worker(stage, cell.role)
        case Scene.LOST_STOP:
            work_id = _lose_worker(stage, cell.role)
            stage.harness.cancel(work_id)
            return work_id
        case Scene.LOST_LAUNCH | Scene.LOST_PIN:
            stage.ensure(COORDINATOR)
            work_id = submit(stage, cell)
            since = len(stage.harness.reached())
            stage.start(WORKER, LOST[cell.scene])
            stage.await_gone(stage.await_reached(LOST[cell.scene], since), "the worker before died")
            if cell.scene is Scene.LOST_PIN:
                stage.await_shim_gone(work_id)
            return work_id
        case Scene.WAKING | Scene.DOZING | Scene.CROWD:
            return _parked(stage, PLOTS[cell.scene])
        case Scene.LOST_END:
            work_id = _lose_worker(stage, cell.role)
            with stage.valve_open():
                stage.await_mark(work_id, Mark.END)
                stage.await_shim_gone(work_id)
            return work_id
        case _:
            stage.ensure(partner)
    return None


def submit(stage: Stage, cell: Cell) -> WorkId:
    """A job as the scene wants it."""
    if cell.scene is Scene.AGENT_END:
        return stage.submit_agent(seconds=JOB_S, status=STATUS)
    lasts = cell.scene not in {Scene.JOB, *LOST, Scene.NO_BALLAST, Scene.RETRY}
    return stage.submit(at_valve=lasts, seconds=JOB_S, status=STATUS, is_retried=cell.scene is Scene.RETRY)


def _parked(stage: Stage, plot: Plot) -> WorkId:
    """A job that waits, or many of them; the coordinator has left."""
    stage.ensure(COORDINATOR)
    stage.ensure(WORKER)
    work_id = plot.submit(stage)
    plot.await_ready(stage, work_id)
    stage.leave(COORDINATOR)
    return work_id


def _lose_worker(stage: Stage, role: Role) -> WorkId:
    """A job that waits at the valve, its worker killed; for a coordinator's cell the coordinator first."""
    stage.ensure(COORDINATOR)
    stage.ensure(WORKER)
    work_id = stage.submit(at_valve=True, seconds=0, status=STATUS)
    stage.await_mark(work_id, Mark.START)
    if role is Role.COORDINATOR:
        stage.leave(COORDINATOR)
    stage.leave(WORKER)
    return work_id
