"""Where what a worker has launched crosses a boundary: its zygote, the shim, the child before it becomes the job.

For shim and child the expectation is that of the kill-point table (`chaos/points.py`), in the words of what the store then says
of a whole attempt. The worker of one that is frozen alone goes on renewing.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.matrix.cell import Role, Scene
from chaos.matrix.point import (
    ADOPTED,
    AFTER,
    ASKED,
    BEFORE,
    BOTH,
    CANCELLED,
    FINISHED,
    IN_TIME,
    KILLED,
    RELAUNCHED,
    RETRIED,
    TAKEN_UP,
    UNDISTURBED,
    Comes,
    Point,
    Words,
)
from shared.boundary import Boundary, Side


def _below(
    role: Role, comes: Comes, *where: tuple[Boundary, tuple[Side, ...]], scene: Scene = Scene.LONG_JOB
) -> Iterator[Point]:
    return (Point(role, boundary, sides, scene, comes) for boundary, sides in where)


def _comes(
    killed: Words,
    *,
    all_killed: Words,
    all_frozen: Words,
    holder_killed: Words | None = None,
    frozen: Words = UNDISTURBED,
) -> Comes:
    return Comes(killed, all_killed, frozen, all_frozen, holder_killed)


ZYGOTE_POINTS = (
    # Made by a worker before it takes part; without one the shim is exec'ed. One that was asked for a shim before it had begun
    # takes that launch with it.
    *_below(
        Role.ZYGOTE,
        _comes(UNDISTURBED | RETRIED, all_killed=IN_TIME, all_frozen=IN_TIME),
        (Boundary.REAPER_PROBE, BOTH),
        scene=Scene.JOB,
    ),
    *_below(Role.ZYGOTE, _comes(RETRIED, all_killed=RELAUNCHED, all_frozen=RELAUNCHED), (Boundary.SHIM_FORK, BEFORE)),
    # The shim goes on, and so may the launch.
    *_below(
        Role.ZYGOTE,
        _comes(UNDISTURBED, all_killed=RELAUNCHED | ADOPTED, all_frozen=RELAUNCHED | ADOPTED),
        (Boundary.SHIM_FORK, AFTER),
    ),
)

SHIM_POINTS = (
    # Dead before READY: the launch failed under a live lease.
    *_below(
        Role.SHIM,
        _comes(RETRIED, holder_killed=RELAUNCHED, all_killed=RELAUNCHED, all_frozen=RELAUNCHED),
        (Boundary.SHIM_LOCK, BOTH),
        (Boundary.READY_SEND, BEFORE),
    ),
    # READY may have been read, pinned and answered while the shim stood there.
    *_below(
        Role.SHIM,
        _comes(RELAUNCHED, holder_killed=RELAUNCHED | ADOPTED, all_killed=RELAUNCHED, all_frozen=RELAUNCHED | ADOPTED),
        (Boundary.READY_SEND, AFTER),
    ),
    *_below(
        Role.SHIM,
        _comes(RELAUNCHED, holder_killed=ADOPTED, all_killed=RELAUNCHED, all_frozen=ADOPTED),
        (Boundary.GO_RECEIVE, AFTER),
        (Boundary.CHILD_FORK, BEFORE),
    ),
    # The child goes on alone.
    *_below(
        Role.SHIM,
        _comes(UNDISTURBED, holder_killed=ADOPTED, all_killed=ADOPTED, all_frozen=ADOPTED),
        (Boundary.CHILD_FORK, AFTER),
        (Boundary.CHILD_EXEC, AFTER),
    ),
    # The job has ended, and its end dies with the shim.
    *_below(
        Role.SHIM,
        _comes(ASKED, holder_killed=TAKEN_UP, all_killed=ASKED, all_frozen=TAKEN_UP),
        (Boundary.CHILD_REAP, AFTER),
        (Boundary.EXIT_RENAME, BEFORE),
        scene=Scene.JOB,
    ),
    *_below(
        Role.SHIM,
        _comes(ASKED, holder_killed=TAKEN_UP, all_killed=ASKED, all_frozen=TAKEN_UP),
        (Boundary.OUTPUT_SYNC, BOTH),
        scene=Scene.AGENT_END,
    ),
    *_below(
        Role.SHIM,
        _comes(UNDISTURBED, holder_killed=TAKEN_UP, all_killed=FINISHED, all_frozen=TAKEN_UP),
        (Boundary.EXIT_RENAME, AFTER),
        (Boundary.EXIT_SYNC, BOTH),
        (Boundary.EXIT_DIRECTORY_SYNC, BOTH),
        scene=Scene.JOB,
    ),
    *_below(
        Role.SHIM,
        _comes(CANCELLED, holder_killed=CANCELLED, all_killed=CANCELLED, frozen=CANCELLED, all_frozen=CANCELLED),
        (Boundary.TREE_SIGNAL, BOTH),
        scene=Scene.CANCEL,
    ),
)

CHILD_POINTS = (
    # Not registered: its shim sees that nothing ran.
    *_below(
        Role.CHILD,
        _comes(RELAUNCHED, holder_killed=ADOPTED, all_killed=RELAUNCHED, all_frozen=ADOPTED),
        (Boundary.TREE_LOCK, BOTH),
        (Boundary.CHILD_RENAME, BEFORE),
    ),
    # Registered: from here on it counts as run. With its shim dead too, its status is lost as soon as somebody reaps it.
    *_below(
        Role.CHILD,
        _comes(KILLED, holder_killed=ADOPTED, all_killed=KILLED | ASKED, all_frozen=ADOPTED),
        (Boundary.CHILD_RENAME, AFTER),
        (Boundary.CHILD_SYNC, BOTH),
        (Boundary.CHILD_DIRECTORY_SYNC, BOTH),
        (Boundary.CHILD_EXEC, BEFORE),
    ),
)
