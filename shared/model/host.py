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
    """The leader row. Live: this boot and `expires_mono_us > now`."""

    generation: int
    owner: Incarnation
    pid: int
    boot_id: str
    expires_mono_us: int
    lock_device: int
    lock_inode: int


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


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One coordinator pass, as it is kept. Rule: requirement K05."""

    generation: int
    trigger: str
    due_at_us: int
    started_at_us: int
    duration_us: int
    claimed: int
    recovered: int
    revoked: int
    waiting_jobs: int
    waiting_agents: int
    error: str | None
