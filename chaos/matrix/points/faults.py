"""What a role writes, and what must come of it when store or disk fails it just then. Rule: requirement M05."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.matrix.cell import Cell, Harm, Kept, Role, Scene, Who
from chaos.matrix.point import (
    ADOPTED,
    AFTER,
    BEFORE,
    CANCELLED,
    DONE,
    FINISHED,
    IN_TIME,
    NOTHING,
    RELAUNCHED,
    REPEATED,
    RESUMED,
    RETRIED,
    UNDISTURBED,
    Words,
)
from chaos.matrix.points.commands import INJECTED, INTERRUPTED
from chaos.matrix.points.programs import DECLARES, SAYS, TAKES, WAITS
from shared.boundary import Boundary, Side


@dataclass(frozen=True, slots=True)
class FaultPoint:
    """What a role writes, where it stands just before, and what must come of each fault.

    Attributes:
        gate: The boundary and side where it stands while the fault is made, with the queue in nobody's hands; None: the harness
            stops it while it rests.
        busy, full, broken: None: not tried.
        keeps: What must hold besides, whatever came of it.
    """

    role: Role
    boundary: Boundary
    scene: Scene
    gate: tuple[Boundary, tuple[Side]] | None
    busy: Words | None = None
    full: Words | None = None
    broken: Words | None = None
    keeps: frozenset[Kept] = NOTHING

    def cells(self) -> Iterator[Cell]:
        """One for each fault."""
        gate = None if self.gate is None else (self.gate[0], self.gate[1][0])
        for harm, expected in ((Harm.BUSY, self.busy), (Harm.FULL, self.full), (Harm.BROKEN, self.broken)):
            if expected is not None:
                yield Cell(
                    self.role,
                    self.boundary,
                    Side.BEFORE,
                    harm,
                    Who.SELF,
                    self.scene,
                    expected,
                    incarnations=1,
                    gate=gate,
                    keeps=self.keeps,
                )


def _store(
    role: Role,
    boundary: Boundary,
    gate: tuple[Boundary, tuple[Side]] | None,
    expected: Words,
    scene: Scene = Scene.JOB,
    *,
    broken: Words | None = None,
    keeps: frozenset[Kept] = NOTHING,
) -> FaultPoint:
    """A commit: all three faults. `broken`: where an answer that is unknown leads elsewhere."""
    return FaultPoint(role, boundary, scene, gate, expected, expected, expected if broken is None else broken, keeps)


def _command(boundary: Boundary, scene: Scene = Scene.COMMAND, keeps: frozenset[Kept] = NOTHING) -> FaultPoint:
    """A commit of a command, which is called again where it was not done."""
    return _store(Role.COMMAND, boundary, None, REPEATED, scene, broken=REPEATED | DONE, keeps=keeps)


FAULT_POINTS = (
    _store(Role.WORKER, Boundary.REGISTER_COMMIT, (Boundary.INCARNATION_LOCK, AFTER), UNDISTURBED),
    _store(Role.WORKER, Boundary.ACCEPT_COMMIT, None, IN_TIME),
    _store(Role.WORKER, Boundary.PIN_COMMIT, (Boundary.READY_RECEIVE, AFTER), UNDISTURBED, broken=IN_TIME),
    _store(Role.WORKER, Boundary.RENEW_COMMIT, None, UNDISTURBED, Scene.LONG_JOB),
    # Given up where its answer is unknown and the end is not there: then another holder reads the same evidence.
    _store(Role.WORKER, Boundary.FINISH_COMMIT, None, UNDISTURBED, Scene.ENDED_JOB, broken=UNDISTURBED | FINISHED),
    _store(Role.WORKER, Boundary.ADOPT_COMMIT, (Boundary.LOCK_PROBE, BEFORE), ADOPTED, Scene.TAKEOVER),
    _store(Role.WORKER, Boundary.RELAUNCH_COMMIT, (Boundary.LOCK_PROBE, BEFORE), RELAUNCHED, Scene.LOST_PIN),
    _store(Role.WORKER, Boundary.STOP_COMMIT, (Boundary.STOP_SIGNAL, BEFORE), CANCELLED, Scene.LOST_STOP),
    _store(Role.COORDINATOR, Boundary.REGISTER_COMMIT, (Boundary.QUEUE_LOCK, BEFORE), UNDISTURBED),
    _store(Role.COORDINATOR, Boundary.LEADER_COMMIT, (Boundary.INCARNATION_LOCK, AFTER), UNDISTURBED),
    _store(Role.COORDINATOR, Boundary.CLAIM_COMMIT, None, UNDISTURBED),
    # It comes right after the claim, so there is no instant before it at which the queue is in nobody's hands.
    FaultPoint(
        Role.COORDINATOR,
        Boundary.PASS_COMMIT,
        Scene.JOB,
        (Boundary.CLAIM_COMMIT, AFTER),
        full=IN_TIME,
        broken=IN_TIME,
    ),
    _store(Role.COORDINATOR, Boundary.RECOVERY_COMMIT, None, ADOPTED, Scene.LONG_JOB),
    # What a program said or was told is put off, or said and told again.
    _store(Role.WORKER, Boundary.DECLARE_COMMIT, None, UNDISTURBED, Scene.SPEAKING, keeps=DECLARES),
    _store(Role.WORKER, Boundary.STREAM_COMMIT, None, UNDISTURBED, Scene.AGENT, keeps=SAYS),
    _store(Role.WORKER, Boundary.DISPATCH_COMMIT, None, UNDISTURBED, Scene.HAND_OVER, keeps=TAKES),
    _store(
        Role.WORKER,
        Boundary.ACKNOWLEDGE_COMMIT,
        (Boundary.CHANNEL_WRITE, AFTER),
        UNDISTURBED,
        Scene.HAND_OVER,
        keeps=TAKES,
    ),
    _store(Role.WORKER, Boundary.PARK_COMMIT, None, RESUMED, Scene.PARKING, broken=RESUMED | FINISHED, keeps=WAITS),
    _store(Role.COORDINATOR, Boundary.WAKE_COMMIT, None, RESUMED, Scene.WAKING, keeps=WAITS),
    *(
        _command(boundary)
        for boundary in (
            Boundary.SUBMIT_COMMIT,
            Boundary.CONFIG_COMMIT,
            Boundary.CANCEL_COMMIT,
            Boundary.COMMAND_COMMIT,
        )
    ),
    _command(Boundary.EVENT_COMMIT, keeps=WAITS),
    _command(Boundary.INTENT_COMMIT, keeps=INJECTED),
    _command(Boundary.INTENT_COMMIT, Scene.INTERRUPT, INTERRUPTED),
    # Evidence: a launch that cannot leave any comes to nothing, an end waits until it can be written.
    FaultPoint(Role.WORKER, Boundary.ATTEMPT_MKDIR, Scene.JOB, (Boundary.ATTEMPT_MKDIR, BEFORE), full=RETRIED),
    FaultPoint(Role.WORKER, Boundary.ATTEMPT_SYNC, Scene.JOB, (Boundary.ATTEMPT_SYNC, BEFORE), broken=RETRIED),
    FaultPoint(Role.SHIM, Boundary.READY_SEND, Scene.JOB, (Boundary.SHIM_LOCK, AFTER), full=RETRIED),
    FaultPoint(Role.CHILD, Boundary.CHILD_RENAME, Scene.JOB, (Boundary.TREE_LOCK, AFTER), full=RETRIED),
    FaultPoint(Role.CHILD, Boundary.CHILD_SYNC, Scene.JOB, (Boundary.CHILD_RENAME, AFTER), broken=RETRIED),
    FaultPoint(Role.SHIM, Boundary.EXIT_RENAME, Scene.JOB, (Boundary.CHILD_REAP, AFTER), full=UNDISTURBED),
    FaultPoint(Role.SHIM, Boundary.EXIT_SYNC, Scene.JOB, (Boundary.EXIT_RENAME, AFTER), broken=UNDISTURBED),
)
