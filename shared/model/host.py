"""Who takes part: workers, the leading coordinator, stop orders, passes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.ids import AttemptId, Incarnation
from shared.model.evidence import ProcessIdentity


class WorkerState(StrEnum):
    """`live` may be handed claims; `draining` finishes; `gone` is proven dead or has left."""

    LIVE = "live"
    DRAINING = "draining"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Worker:
    """One registered worker incarnation.

    Attributes:
        identity: Its process; boot and pid namespace tell where its pids mean something.
        machine_id: The host it runs on; None when the host has none.
        lock_device, lock_inode: Its incarnation's lock file, held for its whole life.
        slots: Attempts it is willing to hold at once; spreads starts, no limit of the system.
        executors: Registrations it has, such as `shell@1`.
        beat_mono_us: Last sign of life, on `identity.boot_id`'s monotonic clock.
        in_use: Unfinished attempts whose live lease it owns.
        overdue: It has a claim that it did not accept in time.
    """

    id: Incarnation
    name: str
    identity: ProcessIdentity
    machine_id: str | None
    lock_device: int
    lock_inode: int
    slots: int
    executors: tuple[str, ...]
    state: WorkerState
    beat_mono_us: int
    in_use: int
    overdue: bool


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader row. Live: this boot and `expires_mono_us > now`.

    Attributes:
        process: Whom to watch for its death; None: the row was written before schema 3.
    """

    generation: int
    owner: Incarnation
    pid: int
    boot_id: str
    expires_mono_us: int
    lock_device: int
    lock_inode: int
    process: ProcessIdentity | None = None


@dataclass(frozen=True, slots=True)
class StopOrder:
    """A durable order to stop what an ended attempt launched, until its stop is proven.

    Attributes:
        id: Counter. One open order per attempt.
        epoch: The attempt's epoch at its end; a confirmation must name it.
        owner: Worker that works on it; None when nobody does.
        tries: How often a worker reported `unproven`.
        finding: JSON text of the last unproven result (suspects, rules tried); None before the first.
    """

    id: int
    attempt_id: AttemptId
    epoch: int
    why: str
    ordered_by: str
    owner: Incarnation | None
    tries: int
    finding: str | None
    ordered_at_us: int


PASSES_KEPT = 1_000
"""Records of passes that a store keeps."""


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One coordinator pass, as it is kept: also one that failed, or that a bound cut short. Rule: requirement K05.

    A count is None when the pass failed before it came to that part; what is counted was committed.

    Attributes:
        trigger: `startup`, `wake`, `deadline`, or `clock`: the wall clock had jumped.
        planned: Occurrences planned; None as long as nothing plans.
        claimed: New attempts.
        dispatched: Attempts handed to a worker: new ones, and recovered ones that a worker took over.
        recovered: Attempts without a holder taken back: handed to a worker, or ended because they were out of time.
        waiting_jobs, waiting_agents: Ready Works that their pool's limit held back, among those looked at.
        cut_short: A bound ended it; the next one follows at once.
        clock_jump_us: How far the wall clock had jumped since the pass before; None: it had not.
        error: The class of the error that ended it; None: it came to its end.
    """

    generation: int
    trigger: str
    due_at_us: int
    started_at_us: int
    duration_us: int
    planned: int | None
    claimed: int | None
    dispatched: int | None
    recovered: int | None
    revoked: int | None
    waiting_jobs: int | None
    waiting_agents: int | None
    cut_short: bool
    clock_jump_us: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ClockMark:
    """How the wall clock lay to the monotonic one when a coordinator looked last.

    Attributes:
        boot_id, offset_us: Wall minus monotonic, in that boot.
        jumped_at_us, jumped_by_us: The last jump found, of any boot: when it was found (UTC), and how far; None: none yet.
    """

    boot_id: str
    offset_us: int
    jumped_at_us: int | None = None
    jumped_by_us: int | None = None
