"""The words of the matrix: a cell, who crosses its boundary, what is done there and to whom, and what may come of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chaos.results import Story
from shared.boundary import Boundary, Side


class Role(StrEnum):
    """Whose boundary it is."""

    COORDINATOR = "coordinator"
    WORKER = "worker"
    ZYGOTE = "zygote"
    SHIM = "shim"
    CHILD = "child"  # of a shim, before it becomes the job
    COMMAND = "command"  # what a person types


class Harm(StrEnum):
    """What is done at the boundary."""

    KILL = "kill"
    STOP = "stop"  # frozen until what it holds has lapsed, then let go on
    BUSY = "busy"  # the store's queue is held for longer than anybody waits for it
    FULL = "disk_full"  # writes of the store, or of evidence, get ENOSPC
    BROKEN = "io_error"  # syncs get EIO


FAULTS = frozenset({Harm.BUSY, Harm.FULL, Harm.BROKEN})


class Who(StrEnum):
    """Who is hit: the process that came to the boundary, or others while it stands there."""

    SELF = "self"
    HOLDER = "holder"  # the worker that launched it
    EVERYONE = "everyone"  # every process of tenure in the home but what runs jobs elsewhere


class Scene(StrEnum):
    """What is under way, so that the process comes to its boundary."""

    JOB = "job"  # a new job waits
    LONG_JOB = "long job"  # the same, and it lasts until the harm is over
    TAKEOVER = "takeover"  # a job runs, and its worker is dead
    LOST_END = "lost end"  # a job has ended, and its worker was dead by then
    LOST_LAUNCH = "lost launch"  # a job was accepted by a worker that died before it launched it
    LOST_PIN = "lost pin"  # a job was pinned by a worker that died before it let it go
    LOST_STOP = "lost stop"  # a job runs, its worker is dead, and it was cancelled
    CANCEL = "cancel"  # a job runs under a living worker, and is cancelled
    NO_BALLAST = "no ballast"  # the space kept for ends was given up, and there is space again
    FULL_DISK = "full disk"  # a job runs, and no write of its worker to the store succeeds
    ENDED_JOB = "ended job"  # a job has ended, and its worker has not seen it
    RETRY = "retry"  # a new job waits, which fails, and which its binding tries once more
    AGENT = "agent"  # an agent runs and goes on printing
    AGENT_END = "agent's end"  # a new agent waits, which soon ends
    HAND_OVER = "hand-over"  # an agent runs, and an input comes for it
    SPEAKING = "speaking"  # a job says by its tool belt what it used, its turn and its outcome
    PARKING = "parking"  # a job has asked to wait for an event, and ends
    WAKING = "waking"  # a parked job, and the event comes that it waits for
    DOZING = "dozing"  # a parked job, and the time comes until which it waits
    CROWD = "crowd"  # more parked jobs than one commit wakes, and the event comes that all of them wait for
    COMMAND = "command"  # a person calls for it
    INTERRUPT = "interrupt"  # a person interrupts an agent that runs
    NEW_HOME = "new home"  # nobody was here before


class CameTo(StrEnum):
    """What came of the job that was under way, by what the store says of it."""

    UNDISTURBED = "undisturbed"  # one attempt, one holder, its own end
    RELAUNCHED = "relaunched"  # the same attempt was launched again: nothing had run
    ADOPTED = "adopted"  # it went on running under another holder
    FINISHED = "finished"  # it had ended, and another holder read how
    RETRIED = "retried"  # its launch came to nothing; the next attempt ran, and no retry was spent
    TRIED_AGAIN = "tried again"  # it failed, and the one retry that its binding has followed
    KILLED = "killed"  # it was killed before it became the job, and that is its end
    ASKED = "recovery_required"  # nobody can know how it ended, so a person was asked
    CANCELLED = "cancelled"  # it was cancelled, and its stop is proven
    RESUMED = "resumed"  # it waited, was woken, and the same attempt went on; nobody noticed
    DONE = "done"  # the command's effect was there though it never came back
    REPEATED = "repeated"  # nothing had been done, and calling again did it


class Kept(StrEnum):
    """What must hold of the Work of a cell besides the word that it came to, in which every program notes what it met."""

    LINES = "every line of the agent was read once"
    SAID = "what it declared is recorded once, as it said it"
    USAGE = "it is charged what it used"
    TURN = "its turn was published once"
    INPUTS = "every input was seen once, taken once, and its intent says so"
    HANDED_ON = "the interrupted attempt's inputs are the next one's, which began once"
    RESUMED_ONCE = "it was parked once, woken once by the one event that there is for it, and went on one epoch later"
    ALL_RESUMED = "everybody who waited for that event was woken by it, each once"
    ONE_INTENT = "what was asked for was accepted once"


class Kind(StrEnum):
    """Which cells may share a home."""

    DEATHS = "deaths"
    FREEZES = "freezes"
    FAULTS = "faults"


TOLD_APART = frozenset({Scene.INTERRUPT, Scene.DOZING})
"""Scenes in which a role crosses a boundary that it crosses in another scene as well: named in the cell."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing that is tried.

    Attributes:
        incarnations: How many in a row are hit there before one is left alone.
        expected: What may come of it; several where it is a matter of who is faster.
        keeps: What must hold besides, whatever came of it.
        gate: For a fault: where the process stands still while the fault is made; None: it is made at rest.
    """

    role: Role
    boundary: Boundary
    side: Side
    harm: Harm
    who: Who
    scene: Scene
    expected: frozenset[CameTo]
    incarnations: int = 1
    gate: tuple[Boundary, Side] | None = None
    keeps: frozenset[Kept] = frozenset()

    @property
    def is_fault(self) -> bool:
        """The store or disk is harmed, not a process."""
        return self.harm in FAULTS

    @property
    def kind(self) -> Kind:
        """The kind of home it needs."""
        if self.is_fault:
            return Kind.FAULTS
        return Kind.FREEZES if self.harm is Harm.STOP else Kind.DEATHS

    def order(self, harm: Harm) -> str:
        """The value of TENURE_ARM that stops or kills at the boundary; for a fault, that stops at its gate."""
        boundary, side = self.gate or (self.boundary, self.side)
        return f"{boundary}:{side}:{harm.upper()}"

    def __str__(self) -> str:
        where = f"{self.role}-{self.boundary}"
        if self.scene in TOLD_APART:
            where += f"-{self.scene}"
        return f"{where}-{self.harm}" if self.is_fault else f"{where}-{self.side}-{self.harm}-{self.who}"


@dataclass(frozen=True, slots=True)
class Played:
    """What one cell came to.

    Attributes:
        came_to: In words; empty when it did not come to anything.
        findings: What is wrong, `CHECK: WHAT` each.
        skipped: Why it could not be played here; empty when it was.
        stories: Of its Work, where there is something to be seen in it: a finding, or a chain of takeovers.
    """

    name: str
    came_to: str
    took_ms: int
    findings: tuple[str, ...] = ()
    skipped: str = ""
    stories: tuple[Story, ...] = ()
