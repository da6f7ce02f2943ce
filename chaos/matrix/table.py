"""Where each role crosses which boundary, and what must come of it: the matrix as data.

For shim and child the expectation is that of the kill-point table (`chaos/points.py`), in the words of what the store then says
of a whole attempt. Rule: design §7, §9; requirements M01, M02, M03.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.matrix.cell import CameTo, Cell, Harm, Role, Scene, Who
from shared.boundary import Boundary, Side

CHAIN = 3
BEFORE, AFTER = (Side.BEFORE,), (Side.AFTER,)
BOTH = (Side.BEFORE, Side.AFTER)

UNDISTURBED, RELAUNCHED, ADOPTED, FINISHED, RETRIED, TRIED_AGAIN, KILLED, ASKED, CANCELLED, DONE, REPEATED = (
    frozenset({word}) for word in CameTo
)
TAKEN_UP = ADOPTED | FINISHED
"""It ran, and another holder took it up before or after its end."""
IN_TIME = UNDISTURBED | RELAUNCHED
"""A claim came to a worker that was not there yet, or no more; or none had been made."""


@dataclass(frozen=True, slots=True)
class Point:
    """A boundary as one role crosses it in one scene, and what must come of each harm.

    Attributes:
        killed, all_killed: The process alone; everybody.
        holder_killed: The worker while a shim or child stands there, which then goes on; None: not tried.
        frozen: The process alone while others work; a shim, a child and a zygote are not waited for by any lease.
        all_frozen: Everybody, for longer than the leases last.
        incarnations: Killed so many times in a row.
    """

    role: Role
    boundary: Boundary
    sides: tuple[Side, ...]
    scene: Scene
    killed: frozenset[CameTo]
    all_killed: frozenset[CameTo]
    frozen: frozenset[CameTo]
    all_frozen: frozenset[CameTo]
    holder_killed: frozenset[CameTo] | None = None
    incarnations: int = 1

    def cells(self) -> Iterator[Cell]:
        """Its cells: both kinds of harm, to it and to everybody, on each of its sides."""
        for side in self.sides:
            yield self._cell(side, Harm.KILL, Who.SELF, self.killed, self.incarnations)
            if self.holder_killed is not None:
                yield self._cell(side, Harm.KILL, Who.HOLDER, self.holder_killed)
            yield self._cell(side, Harm.STOP, Who.SELF, self.frozen)
            if self.scene is not Scene.NEW_HOME:  # nobody else is there yet
                yield self._cell(side, Harm.KILL, Who.EVERYONE, self.all_killed, self.incarnations)
                yield self._cell(side, Harm.STOP, Who.EVERYONE, self.all_frozen)

    def _cell(self, side: Side, harm: Harm, who: Who, expected: frozenset[CameTo], incarnations: int = 1) -> Cell:
        scene = Scene.LONG_JOB if self._must_last(who) else self.scene
        return Cell(self.role, self.boundary, side, harm, who, scene, expected, incarnations)

    def _must_last(self, who: Who) -> bool:
        """Where a worker goes on for a moment while everybody is hit one by one, no job may end in that moment."""
        return self.scene is Scene.JOB and self.role is Role.COORDINATOR and who is Who.EVERYONE


def _worker(
    boundary: Boundary,
    sides: tuple[Side, ...],
    killed: frozenset[CameTo],
    *,
    scene: Scene = Scene.JOB,
    all_killed: frozenset[CameTo] | None = None,
    frozen: frozenset[CameTo] | None = None,
    all_frozen: frozenset[CameTo] | None = None,
    incarnations: int = 1,
) -> Point:
    """A point of the worker; what is not said is as for the worker killed alone."""
    return Point(
        Role.WORKER,
        boundary,
        sides,
        scene,
        killed,
        killed if all_killed is None else all_killed,
        killed if frozen is None else frozen,
        (killed if frozen is None else frozen) if all_frozen is None else all_frozen,
        incarnations=incarnations,
    )


def _launch(
    boundary: Boundary,
    sides: tuple[Side, ...],
    came_to: frozenset[CameTo],
    *,
    frozen: frozenset[CameTo] | None = None,
    all_frozen: frozenset[CameTo] | None = None,
) -> Point:
    """Between claim and running, as a worker sees it: met by a chain of takeovers."""
    return _worker(boundary, sides, came_to, frozen=frozen, all_frozen=all_frozen, incarnations=CHAIN)


def _coordinator(
    boundary: Boundary,
    sides: tuple[Side, ...],
    killed: frozenset[CameTo],
    *,
    scene: Scene = Scene.JOB,
    all_killed: frozenset[CameTo] | None = None,
    frozen: frozenset[CameTo] | None = None,
    all_frozen: frozenset[CameTo] | None = None,
) -> Point:
    return Point(
        Role.COORDINATOR,
        boundary,
        sides,
        scene,
        killed,
        killed if all_killed is None else all_killed,
        killed if frozen is None else frozen,
        (killed if all_killed is None else all_killed) if all_frozen is None else all_frozen,
    )


def _below(
    role: Role,
    boundary: Boundary,
    sides: tuple[Side, ...],
    *,
    killed: frozenset[CameTo],
    all_killed: frozenset[CameTo],
    all_frozen: frozenset[CameTo],
    holder_killed: frozenset[CameTo] | None = None,
    frozen: frozenset[CameTo] = UNDISTURBED,
    scene: Scene = Scene.LONG_JOB,
) -> Point:
    """A point of what a worker has launched: its worker goes on renewing while it is frozen alone."""
    return Point(role, boundary, sides, scene, killed, all_killed, frozen, all_frozen, holder_killed)


WORKER_POINTS = (
    # Before it takes part, nothing can be claimed for it.
    _worker(Boundary.QUEUE_LOCK, BOTH, UNDISTURBED),
    _worker(Boundary.INCARNATION_LOCK, BOTH, UNDISTURBED),
    _worker(Boundary.REGISTER_COMMIT, BOTH, UNDISTURBED),
    _worker(Boundary.ZYGOTE_EXEC, BOTH, UNDISTURBED),
    _worker(Boundary.RENEW_COMMIT, BOTH, IN_TIME),
    _launch(Boundary.ACCEPT_COMMIT, BOTH, RELAUNCHED),
    _launch(Boundary.ATTEMPT_MKDIR, BOTH, RELAUNCHED),
    _launch(Boundary.ATTEMPT_SPEC, BOTH, RELAUNCHED),
    _launch(Boundary.ATTEMPT_SYNC, BOTH, RELAUNCHED),
    _launch(Boundary.SHIM_SPAWN, BOTH, RELAUNCHED),
    _launch(Boundary.READY_RECEIVE, BOTH, RELAUNCHED),
    _launch(Boundary.PIN_COMMIT, BOTH, RELAUNCHED),
    # Frozen with the pin acknowledged and the lease checked: whoever takes it up finds a held shim, which the late GO releases.
    _launch(Boundary.GO_SEND, BEFORE, RELAUNCHED, frozen=ADOPTED, all_frozen=TAKEN_UP),
    _launch(Boundary.GO_SEND, AFTER, TAKEN_UP),
    _worker(Boundary.FINISH_COMMIT, BEFORE, FINISHED, frozen=UNDISTURBED),
    _worker(Boundary.FINISH_COMMIT, AFTER, UNDISTURBED),
    # A probe gets a free lock only: the far side is that of a shim that is gone.
    _worker(Boundary.LOCK_PROBE, BEFORE, ADOPTED, scene=Scene.TAKEOVER),
    _worker(Boundary.LOCK_PROBE, AFTER, FINISHED, scene=Scene.LOST_END),
    _worker(Boundary.ADOPT_COMMIT, BOTH, ADOPTED, scene=Scene.TAKEOVER),
    _worker(Boundary.RELAUNCH_COMMIT, BOTH, RELAUNCHED, scene=Scene.LOST_LAUNCH),
    _worker(Boundary.STOP_COMMIT, BOTH, CANCELLED, scene=Scene.LOST_STOP),
    _worker(Boundary.STOP_SIGNAL, BOTH, CANCELLED, scene=Scene.LOST_STOP),
    _worker(Boundary.BALLAST_FREE, BOTH, ADOPTED, scene=Scene.FULL_DISK),
)

COORDINATOR_POINTS = (
    _coordinator(Boundary.QUEUE_LOCK, BOTH, UNDISTURBED),
    _coordinator(Boundary.INCARNATION_LOCK, BOTH, UNDISTURBED),
    _coordinator(Boundary.REGISTER_COMMIT, BOTH, UNDISTURBED),
    _coordinator(Boundary.LEADER_COMMIT, BOTH, UNDISTURBED),
    # A claim that is not heard of in time is made anew, as a relaunch: the bell was not rung yet, or the store was held meanwhile.
    _coordinator(Boundary.CLAIM_COMMIT, BEFORE, UNDISTURBED, frozen=IN_TIME, all_frozen=IN_TIME),
    _coordinator(Boundary.CLAIM_COMMIT, AFTER, IN_TIME, all_killed=RELAUNCHED | ADOPTED),
    # A pass is recorded after its claims, so the worker may have come any way with the job; or had not been heard of in time.
    _coordinator(Boundary.PASS_COMMIT, BOTH, UNDISTURBED, all_killed=IN_TIME | ADOPTED, frozen=IN_TIME),
    # Nothing runs while a retry is waited for; whoever leads next finds the timer due, or fired.
    _coordinator(Boundary.TIMER_COMMIT, BOTH, TRIED_AGAIN, scene=Scene.RETRY),
    _coordinator(Boundary.BALLAST_RENAME, BOTH, UNDISTURBED, scene=Scene.NO_BALLAST),
    _coordinator(Boundary.LOCK_PROBE, BOTH, ADOPTED, scene=Scene.TAKEOVER),
    _coordinator(Boundary.RECOVERY_COMMIT, BOTH, ADOPTED, scene=Scene.TAKEOVER),
)

ZYGOTE_POINTS = (
    # Made by a worker before it takes part; without one the shim is exec'ed.
    _below(
        Role.ZYGOTE,
        Boundary.REAPER_PROBE,
        BOTH,
        killed=UNDISTURBED | RETRIED,  # it was asked for a shim before it had begun: that launch is lost
        all_killed=IN_TIME,
        all_frozen=IN_TIME,
        scene=Scene.JOB,
    ),
    _below(Role.ZYGOTE, Boundary.SHIM_FORK, BEFORE, killed=RETRIED, all_killed=RELAUNCHED, all_frozen=RELAUNCHED),
    # The shim goes on, and so may the launch.
    _below(
        Role.ZYGOTE,
        Boundary.SHIM_FORK,
        AFTER,
        killed=UNDISTURBED,
        all_killed=RELAUNCHED | ADOPTED,
        all_frozen=RELAUNCHED | ADOPTED,
    ),
)

SHIM_POINTS = (
    # Dead before READY: the launch failed under a live lease.
    _below(
        Role.SHIM,
        Boundary.SHIM_LOCK,
        BOTH,
        killed=RETRIED,
        holder_killed=RELAUNCHED,
        all_killed=RELAUNCHED,
        all_frozen=RELAUNCHED,
    ),
    _below(
        Role.SHIM,
        Boundary.READY_SEND,
        BEFORE,
        killed=RETRIED,
        holder_killed=RELAUNCHED,
        all_killed=RELAUNCHED,
        all_frozen=RELAUNCHED,
    ),
    # READY may have been read, pinned and answered while the shim stood there.
    _below(
        Role.SHIM,
        Boundary.READY_SEND,
        AFTER,
        killed=RELAUNCHED,
        holder_killed=RELAUNCHED | ADOPTED,
        all_killed=RELAUNCHED,
        all_frozen=RELAUNCHED | ADOPTED,
    ),
    _below(
        Role.SHIM,
        Boundary.GO_RECEIVE,
        AFTER,
        killed=RELAUNCHED,
        holder_killed=ADOPTED,
        all_killed=RELAUNCHED,
        all_frozen=ADOPTED,
    ),
    _below(
        Role.SHIM,
        Boundary.CHILD_FORK,
        BEFORE,
        killed=RELAUNCHED,
        holder_killed=ADOPTED,
        all_killed=RELAUNCHED,
        all_frozen=ADOPTED,
    ),
    # The child goes on alone.
    _below(
        Role.SHIM,
        Boundary.CHILD_FORK,
        AFTER,
        killed=UNDISTURBED,
        holder_killed=ADOPTED,
        all_killed=ADOPTED,
        all_frozen=ADOPTED,
    ),
    _below(
        Role.SHIM,
        Boundary.CHILD_EXEC,
        AFTER,
        killed=UNDISTURBED,
        holder_killed=ADOPTED,
        all_killed=ADOPTED,
        all_frozen=ADOPTED,
    ),
    # The job has ended, and its end dies with the shim.
    _below(
        Role.SHIM,
        Boundary.CHILD_REAP,
        AFTER,
        killed=ASKED,
        holder_killed=TAKEN_UP,
        all_killed=ASKED,
        all_frozen=TAKEN_UP,
        scene=Scene.JOB,
    ),
    _below(
        Role.SHIM,
        Boundary.EXIT_RENAME,
        BEFORE,
        killed=ASKED,
        holder_killed=TAKEN_UP,
        all_killed=ASKED,
        all_frozen=TAKEN_UP,
        scene=Scene.JOB,
    ),
    *(
        _below(
            Role.SHIM,
            boundary,
            sides,
            killed=UNDISTURBED,
            holder_killed=TAKEN_UP,
            all_killed=FINISHED,
            all_frozen=TAKEN_UP,
            scene=Scene.JOB,
        )
        for boundary, sides in (
            (Boundary.EXIT_RENAME, AFTER),
            (Boundary.EXIT_SYNC, BOTH),
            (Boundary.EXIT_DIRECTORY_SYNC, BOTH),
        )
    ),
    _below(
        Role.SHIM,
        Boundary.TREE_SIGNAL,
        BOTH,
        killed=CANCELLED,
        holder_killed=CANCELLED,
        all_killed=CANCELLED,
        frozen=CANCELLED,
        all_frozen=CANCELLED,
        scene=Scene.CANCEL,
    ),
)

CHILD_POINTS = (
    # Not registered: its shim sees that nothing ran.
    *(
        _below(
            Role.CHILD,
            boundary,
            sides,
            killed=RELAUNCHED,
            holder_killed=ADOPTED,
            all_killed=RELAUNCHED,
            all_frozen=ADOPTED,
        )
        for boundary, sides in ((Boundary.TREE_LOCK, BOTH), (Boundary.CHILD_RENAME, BEFORE))
    ),
    # Registered: from here on it counts as run. With its shim dead too, its status is lost as soon as somebody reaps it.
    *(
        _below(
            Role.CHILD,
            boundary,
            sides,
            killed=KILLED,
            holder_killed=ADOPTED,
            all_killed=KILLED | ASKED,
            all_frozen=ADOPTED,
        )
        for boundary, sides in (
            (Boundary.CHILD_RENAME, AFTER),
            (Boundary.CHILD_SYNC, BOTH),
            (Boundary.CHILD_DIRECTORY_SYNC, BOTH),
            (Boundary.CHILD_EXEC, BEFORE),
        )
    ),
)


def _command(
    boundary: Boundary, side: tuple[Side, ...], came_to: frozenset[CameTo], scene: Scene = Scene.COMMAND
) -> Point:
    """A point of a command: done or not done, never half; frozen it only takes longer."""
    return Point(Role.COMMAND, boundary, side, scene, came_to, came_to, DONE, DONE)


COMMAND_POINTS = (
    *(
        _command(boundary, side, came_to)
        for boundary in (
            Boundary.SUBMIT_COMMIT,
            Boundary.CONFIG_COMMIT,
            Boundary.CANCEL_COMMIT,
            Boundary.COMMAND_COMMIT,
        )
        for side, came_to in ((BEFORE, REPEATED), (AFTER, DONE))
    ),
    # `tenure init`: its last step is still to come, on either side.
    *(
        _command(boundary, BOTH, REPEATED, Scene.NEW_HOME)
        for boundary in (Boundary.MIGRATE_COMMIT, Boundary.STORE_LINK, Boundary.HOME_SYNC)
    ),
)

POINTS = (*WORKER_POINTS, *COORDINATOR_POINTS, *ZYGOTE_POINTS, *SHIM_POINTS, *CHILD_POINTS, *COMMAND_POINTS)

ELSEWHERE = {
    Boundary.DECLARE_COMMIT: "needs a program that declares; tests/process/test_waits_up.py has a worker killed there",
    Boundary.PARK_COMMIT: "needs a program that waits; tests/process/test_waits_up.py has a worker killed there",
    Boundary.WAKE_COMMIT: "needs a parked attempt; tests/process/test_waits_up.py has a coordinator killed there",
    Boundary.EVENT_COMMIT: "one commit of a command, as that of a submit; tests/process/test_waits_up.py has one killed there",
    **dict.fromkeys(
        (
            Boundary.STREAM_COMMIT,
            Boundary.DISPATCH_COMMIT,
            Boundary.ACKNOWLEDGE_COMMIT,
            Boundary.CHANNEL_RENAME,
            Boundary.CHANNEL_WRITE,
        ),
        "needs an agent that is spoken with; tests/process/test_agents_up.py has a worker killed on both sides of it",
    ),
    Boundary.INTENT_COMMIT: "one commit of a command, as that of a submit; tests/unit/test_store_fault_points.py breaks it",
    Boundary.HARM_SIGNAL: "sent by a supervisor or a harness to its own children; tests/process/test_up_signals.py kills there",
}
"""Boundaries without a point, and why."""
