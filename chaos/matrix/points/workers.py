"""Where a worker crosses a boundary for jobs that do not speak with it."""

from __future__ import annotations

from chaos.matrix.cell import Role, Scene
from chaos.matrix.point import (
    ADOPTED,
    AFTER,
    BEFORE,
    BOTH,
    CANCELLED,
    CHAIN,
    FINISHED,
    IN_TIME,
    RELAUNCHED,
    TAKEN_UP,
    UNDISTURBED,
    Comes,
    Point,
    alike,
)
from shared.boundary import Boundary, Side


def _worker(boundary: Boundary, sides: tuple[Side, ...], comes: Comes, scene: Scene = Scene.JOB) -> Point:
    return Point(Role.WORKER, boundary, sides, scene, comes)


def _launch(boundary: Boundary, sides: tuple[Side, ...], comes: Comes) -> Point:
    """Between claim and running: met by a chain of takeovers."""
    return Point(Role.WORKER, boundary, sides, Scene.JOB, comes, CHAIN)


WORKER_POINTS = (
    # Before it takes part, nothing can be claimed for it.
    *(
        _worker(boundary, BOTH, alike(UNDISTURBED))
        for boundary in (
            Boundary.QUEUE_LOCK,
            Boundary.INCARNATION_LOCK,
            Boundary.REGISTER_COMMIT,
            Boundary.ZYGOTE_EXEC,
        )
    ),
    _worker(Boundary.RENEW_COMMIT, BOTH, alike(IN_TIME)),
    *(
        _launch(boundary, BOTH, alike(RELAUNCHED))
        for boundary in (
            Boundary.ACCEPT_COMMIT,
            Boundary.ATTEMPT_MKDIR,
            Boundary.ATTEMPT_SPEC,
            Boundary.ATTEMPT_SYNC,
            Boundary.SHIM_SPAWN,
            Boundary.READY_RECEIVE,
            Boundary.PIN_COMMIT,
        )
    ),
    # Frozen with the pin acknowledged and the lease checked: whoever takes it up finds a held shim, which the late GO releases.
    _launch(Boundary.GO_SEND, BEFORE, alike(RELAUNCHED, frozen=ADOPTED, all_frozen=TAKEN_UP)),
    _launch(Boundary.GO_SEND, AFTER, alike(TAKEN_UP)),
    _worker(Boundary.FINISH_COMMIT, BEFORE, alike(FINISHED, frozen=UNDISTURBED)),
    _worker(Boundary.FINISH_COMMIT, AFTER, alike(UNDISTURBED)),
    # A probe gets a free lock only: the far side is that of a shim that is gone.
    _worker(Boundary.LOCK_PROBE, BEFORE, alike(ADOPTED), Scene.TAKEOVER),
    _worker(Boundary.LOCK_PROBE, AFTER, alike(FINISHED), Scene.LOST_END),
    _worker(Boundary.ADOPT_COMMIT, BOTH, alike(ADOPTED), Scene.TAKEOVER),
    _worker(Boundary.RELAUNCH_COMMIT, BOTH, alike(RELAUNCHED), Scene.LOST_LAUNCH),
    *(
        _worker(boundary, BOTH, alike(CANCELLED), Scene.LOST_STOP)
        for boundary in (Boundary.STOP_COMMIT, Boundary.STOP_SIGNAL)
    ),
    _worker(Boundary.BALLAST_FREE, BOTH, alike(ADOPTED), Scene.FULL_DISK),
)
