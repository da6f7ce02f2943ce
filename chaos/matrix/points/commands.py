"""Where a command of a person crosses a boundary: done or not done, never half; frozen it only takes longer."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.matrix.cell import Kept, Role, Scene
from chaos.matrix.point import AFTER, BEFORE, BOTH, DONE, NOTHING, REPEATED, Comes, Point
from chaos.matrix.points.programs import TAKES, WAITS
from shared.boundary import Boundary

INJECTED = TAKES | {Kept.ONE_INTENT}
INTERRUPTED = frozenset({Kept.ONE_INTENT, Kept.HANDED_ON})
_NOT_DONE, _DONE = Comes(REPEATED, REPEATED, DONE, DONE), Comes(DONE, DONE, DONE, DONE)


def _command(boundary: Boundary, scene: Scene = Scene.COMMAND, keeps: frozenset[Kept] = NOTHING) -> Iterator[Point]:
    for side, comes in ((BEFORE, _NOT_DONE), (AFTER, _DONE)):
        yield Point(Role.COMMAND, boundary, side, scene, comes, keeps=keeps)


COMMAND_POINTS = (
    *_command(Boundary.SUBMIT_COMMIT),
    *_command(Boundary.CONFIG_COMMIT),
    *_command(Boundary.CANCEL_COMMIT),
    *_command(Boundary.COMMAND_COMMIT),
    *_command(Boundary.EVENT_COMMIT, keeps=WAITS),
    *_command(Boundary.INTENT_COMMIT, keeps=INJECTED),
    *_command(Boundary.INTENT_COMMIT, Scene.INTERRUPT, INTERRUPTED),
    # `tenure init`: its last step is still to come, on either side.
    *(
        Point(Role.COMMAND, boundary, BOTH, Scene.NEW_HOME, _NOT_DONE)
        for boundary in (Boundary.MIGRATE_COMMIT, Boundary.STORE_LINK, Boundary.HOME_SYNC)
    ),
)
