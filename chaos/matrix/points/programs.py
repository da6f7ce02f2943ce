"""Where a worker crosses a boundary for a program that speaks with it: an agent, a job with its tool belt, a job that waits."""

from __future__ import annotations

from chaos.matrix.cell import Kept, Role, Scene
from chaos.matrix.point import ADOPTED, AFTER, BEFORE, BOTH, CHAIN, FINISHED, RESUMED, Comes, Point, alike
from shared.boundary import Boundary, Side

SAYS = frozenset({Kept.LINES, Kept.SAID, Kept.USAGE, Kept.TURN})
TAKES = SAYS | {Kept.INPUTS}
DECLARES = frozenset({Kept.SAID, Kept.USAGE, Kept.TURN})
WAITS = frozenset({Kept.RESUMED_ONCE, Kept.USAGE, Kept.TURN})


def _chain(boundary: Boundary, sides: tuple[Side, ...], scene: Scene, comes: Comes, keeps: frozenset[Kept]) -> Point:
    return Point(Role.WORKER, boundary, sides, scene, comes, CHAIN, keeps)


PROGRAM_POINTS = (
    # The program goes on, asks again whoever holds it next, and drops what it was told before.
    _chain(Boundary.DECLARE_COMMIT, BOTH, Scene.SPEAKING, alike(ADOPTED), DECLARES),
    _chain(Boundary.STREAM_COMMIT, BOTH, Scene.AGENT, alike(ADOPTED), SAYS),
    *(
        _chain(boundary, BOTH, Scene.HAND_OVER, alike(ADOPTED), TAKES)
        for boundary in (
            Boundary.DISPATCH_COMMIT,
            Boundary.CHANNEL_RENAME,
            Boundary.CHANNEL_WRITE,
            Boundary.ACKNOWLEDGE_COMMIT,
        )
    ),
    # It has ended: whoever comes next reads the same end, and parks it; once that is done nobody is needed.
    _chain(Boundary.PARK_COMMIT, BEFORE, Scene.PARKING, alike(FINISHED, frozen=RESUMED), WAITS),
    Point(Role.WORKER, Boundary.PARK_COMMIT, AFTER, Scene.PARKING, alike(RESUMED), keeps=WAITS),
)
