"""Where a coordinator crosses a boundary."""

from __future__ import annotations

from chaos.matrix.cell import Kept, Role, Scene
from chaos.matrix.point import (
    ADOPTED,
    AFTER,
    BEFORE,
    BOTH,
    IN_TIME,
    NOTHING,
    RELAUNCHED,
    RESUMED,
    TRIED_AGAIN,
    UNDISTURBED,
    Comes,
    Point,
    Words,
)
from chaos.matrix.points.programs import WAITS
from shared.boundary import Boundary, Side


def _coordinator(
    boundary: Boundary,
    sides: tuple[Side, ...],
    comes: Comes,
    scene: Scene = Scene.JOB,
    keeps: frozenset[Kept] = NOTHING,
) -> Point:
    return Point(Role.COORDINATOR, boundary, sides, scene, comes, keeps=keeps)


def _alike(
    killed: Words, *, all_killed: Words | None = None, frozen: Words | None = None, all_frozen: Words | None = None
) -> Comes:
    """What is not said is as for it killed alone; of all frozen, as for all killed."""
    everybody = killed if all_killed is None else all_killed
    return Comes(
        killed, everybody, killed if frozen is None else frozen, everybody if all_frozen is None else all_frozen
    )


COORDINATOR_POINTS = (
    *(
        _coordinator(boundary, BOTH, _alike(UNDISTURBED))
        for boundary in (
            Boundary.QUEUE_LOCK,
            Boundary.INCARNATION_LOCK,
            Boundary.REGISTER_COMMIT,
            Boundary.LEADER_COMMIT,
        )
    ),
    # A claim that is not heard of in time is made anew, as a relaunch: the bell was not rung yet, or the store was held meanwhile.
    _coordinator(Boundary.CLAIM_COMMIT, BEFORE, _alike(UNDISTURBED, frozen=IN_TIME, all_frozen=IN_TIME)),
    _coordinator(Boundary.CLAIM_COMMIT, AFTER, _alike(IN_TIME, all_killed=RELAUNCHED | ADOPTED)),
    # A pass is recorded after its claims, so the worker may have come any way with the job; or had not been heard of in time.
    _coordinator(Boundary.PASS_COMMIT, BOTH, _alike(UNDISTURBED, all_killed=IN_TIME | ADOPTED, frozen=IN_TIME)),
    # Nothing runs while a retry is waited for; whoever leads next finds the timer due, or fired.
    _coordinator(Boundary.TIMER_COMMIT, BOTH, _alike(TRIED_AGAIN), Scene.RETRY),
    # So it is for the time of a wait: the resume is another commit.
    _coordinator(Boundary.TIMER_COMMIT, BOTH, _alike(RESUMED), Scene.DOZING, WAITS),
    # Whoever published has woken as many as one commit may; it is gone on with by whoever leads.
    _coordinator(
        Boundary.EVENT_COMMIT,
        BOTH,
        _alike(RESUMED),
        Scene.CROWD,
        frozenset({Kept.ALL_RESUMED}),
    ),
    # A resume is a claim, of an attempt that was there before.
    _coordinator(
        Boundary.WAKE_COMMIT,
        BEFORE,
        _alike(RESUMED, frozen=RESUMED | RELAUNCHED, all_frozen=RESUMED | RELAUNCHED),
        Scene.WAKING,
        WAITS,
    ),
    _coordinator(
        Boundary.WAKE_COMMIT,
        AFTER,
        _alike(RESUMED | RELAUNCHED, all_killed=RELAUNCHED | ADOPTED),
        Scene.WAKING,
        WAITS,
    ),
    _coordinator(Boundary.BALLAST_RENAME, BOTH, _alike(UNDISTURBED), Scene.NO_BALLAST),
    *(
        _coordinator(boundary, BOTH, _alike(ADOPTED), Scene.TAKEOVER)
        for boundary in (Boundary.LOCK_PROBE, Boundary.RECOVERY_COMMIT)
    ),
)
