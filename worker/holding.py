"""What a worker holds: one record per lease, in memory only. The store is the truth; this is what the worker must do for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from shared.ids import AttemptId
from shared.model.attempt import Ending, LeaseKey
from shared.model.attempt import Phase as LaunchPhase
from shared.model.evidence import Pin
from shared.model.instant import Instant
from shared.model.stream import Place
from shared.process.launcher import HeldLaunch
from shared.store.contract import Assignment
from worker.trail import Trail


class Phase(StrEnum):
    """Where a holding stands; each is left by exactly one kind of completion or commit."""

    ACCEPTING = "accepting"  # the accept is queued
    LAUNCHING = "launching"  # a pool thread launches it, up to READY
    PINNING = "pinning"  # READY; the pin is queued, the gate is shut
    EXAMINING = "examining"  # a pool thread reads its evidence
    PAUSED = (
        "paused"  # its lock is held though its shim is gone, or its evidence could not be read: look again in a moment
    )
    DRAINING = "draining"  # its end was seen; what it wrote is read up to the end before that is written
    WATCHING = "watching"  # its shim (or orphaned child) lives, and a pidfd says when that ends
    ENDING = "ending"  # its end is queued


@dataclass(slots=True)
class Following:
    """How far the output of an agent was read here.

    Attributes:
        pin_epoch: Of the launch that wrote it.
        place: Recorded up to there.
        heard_mono_us: When its output was last seen to have grown; of an attempt taken over, when that was.
        looked_mono_us: When it was last looked at.
        end: How far it reached then.
        due_mono_us, pause_us: When to look again, and how long apart.
        unseen: How often in a row it could not be looked at.
        is_reading: A look is under way, or being recorded. `drains`: that look is to reach the end.
        is_over: Nothing writes to it any more.
        then: What follows once all of it is read; None while it may still grow.
    """

    pin_epoch: int
    place: Place
    heard_mono_us: int
    looked_mono_us: int
    end: int = 0
    due_mono_us: int = 0
    pause_us: int = 1
    unseen: int = 0
    is_reading: bool = False
    drains: bool = False
    is_over: bool = False
    then: Callable[[], None] | None = None


@dataclass(slots=True)
class Holding:
    """One held lease.

    Attributes:
        recovering: It took over an earlier lease, and neither adopted nor relaunched yet.
        launch: The held launch between READY and GO; closing it shuts the gate for good.
        pin: The launch being watched.
        orphan: The shim is dead; its child is watched.
        gone: What was watched ended before its adoption was written.
        look_again_mono_us: While paused: when to examine again.
        unseen: How often in a row its evidence could not be read.
        token_sha256: Of the token that its program has; None: it has none.
        trail: Phases of its launch; None before one began.
        deadline_mono_us: When the attempt runs out of time, on this boot's monotonic clock.
        following: Of an agent that runs; None otherwise.
        seen: How it ended, while what it wrote is still read.
        lease_until_mono_us: Until when the lease surely holds, by what this worker was told; GO is not sent later.
    """

    assignment: Assignment
    phase: Phase
    deadline_mono_us: int
    recovering: bool
    lease_until_mono_us: int
    launch: HeldLaunch | None = None
    pin: Pin | None = None
    orphan: bool = False
    gone: bool = False
    look_again_mono_us: int = 0
    unseen: int = 0
    trail: Trail | None = None
    token_sha256: str | None = None
    following: Following | None = None
    seen: Ending | None = None

    @property
    def key(self) -> LeaseKey:
        """The lease."""
        return self.assignment.key

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt held."""
        return self.assignment.key.attempt_id

    def phases(self) -> tuple[LaunchPhase, ...]:
        """Phases of its launch so far."""
        return () if self.trail is None else self.trail.phases()

    def shut_gate(self) -> None:
        """Make sure that a launch still held never runs anything."""
        if self.launch is not None:
            self.launch.close()
            self.launch = None


def holding_of(assignment: Assignment, now: Instant) -> Holding:
    """A new holding of an assignment, its deadline derived from what is left of the attempt's time."""
    attempt = assignment.attempt
    if attempt.budget_boot_id == now.boot_id:
        since_us = attempt.budget_since_mono_us
    else:
        since_us = now.mono_us - max(0, now.wall_us - attempt.budget_since_at_us)
    deadline_mono_us = since_us + attempt.budget_us
    return Holding(
        assignment,
        Phase.ACCEPTING,
        deadline_mono_us,
        recovering=assignment.recovery,
        lease_until_mono_us=assignment.expires_mono_us,
        pin=attempt.pin,
        token_sha256=attempt.token_sha256,
    )
