"""What goes into a store and comes out of it beside the model's values: requests, answers, listings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from shared.errors import UnreadableError, UnsupportedError
from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import Attempt, LeaseKey, Snapshot
from shared.model.budget import Budget
from shared.model.evidence import ProcessIdentity
from shared.model.settings import Config
from shared.model.stream import Stream
from shared.model.wait import Awaited, Wake
from shared.model.work import Input, Reason, Work, WorkState
from shared.policy.capacity import Usage

PERSON = "person"
"""The proof of a stop that is somebody's word."""

GateVerdict = Literal["admitted", "refused"]
"""How a gate settles its hold."""


@dataclass(frozen=True, slots=True)
class FaultyStream:
    """An agent's output in which not every line was understood. `is_live`: its attempt has not ended."""

    attempt_id: AttemptId
    stream: Stream
    is_live: bool


@dataclass(frozen=True, slots=True)
class ConfigGeneration:
    """One activated configuration: its number, its canonical JSON body, the digest of that, and the file it came from."""

    number: int
    body: str
    digest: str
    source_path: str
    activated_at_us: int

    def config(self) -> Config:
        """What it says.

        Raises:
            UnreadableError: its body is no configuration, or not the one it was stored as.
        """
        try:
            if hashlib.sha256(self.body.encode()).hexdigest() == self.digest:
                return Config.from_json(self.body)
        except (ValueError, TypeError, AttributeError, RecursionError, UnsupportedError):
            pass
        raise UnreadableError("config", str(self.number), "body")

    @property
    def is_readable(self) -> bool:
        """Whether `config` answers."""
        try:
            self.config()
        except UnreadableError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row of the store that says nothing of sense. `error`: the column that does not; never what it holds."""

    table: str
    key: str
    error: str


@dataclass(frozen=True, slots=True)
class Registration:
    """What a worker registers with, after its lock is held."""

    id: Incarnation
    name: str
    identity: ProcessIdentity
    machine_id: str | None
    lock_device: int
    lock_inode: int
    slots: int
    executors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """A live claim that its owner has not accepted yet, with everything the owner needs to act on it.

    Attributes:
        recovery: It takes over an earlier lease; False for a first claim.
        inputs: Bodies of the consumed inputs, in order.
        expires_mono_us: When its lease lapses unless it is renewed.
        wake: What woke it, when its launch is a resume; None for a first launch.
    """

    key: LeaseKey
    attempt: Attempt
    snapshot: Snapshot
    recovery: bool
    inputs: tuple[Input, ...]
    expires_mono_us: int
    wake: Wake | None = None


@dataclass(frozen=True, slots=True)
class GateHold:
    """A gate's answer that a Work must not start yet. `reason`: one line for people."""

    gate: str
    reason: str


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a claim was decided on. `revision` and `inputs` are rechecked inside the claim's transaction.

    Attributes:
        snapshot: What the attempt pins; `snapshot.inputs` are the pending inputs it consumes.
        refusal: Called with the usage read inside the transaction; returns why it must not start, or None. Pure.
        budgets: Of the configuration in `snapshot.generation`.
        gate_hold: What a gate said to this very start; None: none objects, or none was to be asked.
        by_permit: No gate was asked because one admitted it before; the claim is refused when that is no longer so.
    """

    work_id: WorkId
    revision: int
    worker: Incarnation
    snapshot: Snapshot
    lease_us: int
    refusal: Callable[[Usage], tuple[Reason, str | None] | None]
    budgets: tuple[Budget, ...] = ()
    gate_hold: GateHold | None = None
    by_permit: bool = False


@dataclass(frozen=True, slots=True)
class ClaimHeld:
    """A claim that became a hold, in its transaction: `gate_held` or `over_budget`."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Woken:
    """A parked attempt whose wait is over, with its Work and what it pinned."""

    awaited: Awaited
    attempt: Attempt
    snapshot: Snapshot
    work: Work


@dataclass(frozen=True, slots=True)
class WokenPage:
    """Parked attempts found by one bounded look.

    Attributes:
        end: Where the look ended, for the next one: since when the last one may be resumed (`Awaited.due_seq`), and its name; None:
            nothing is behind it. Whatever may be resumed from now on lies behind it.
    """

    woken: tuple[Woken, ...]
    end: tuple[int, str] | None


@dataclass(frozen=True, slots=True)
class ResumeRequest:
    """What a resume was decided on; `refusal` and `budgets` as in `ClaimRequest`."""

    attempt_id: AttemptId
    epoch_seen: int
    worker: Incarnation
    lease_us: int
    refusal: Callable[[Usage], tuple[Reason, str | None] | None]
    budgets: tuple[Budget, ...] = ()


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim that was made."""

    attempt_id: AttemptId


@dataclass(frozen=True, slots=True)
class ClaimRefused:
    """A claim that was not made: the Work changed, its input changed, its worker went or lacks the executor, or a limit is reached.

    Attributes:
        changed: `work`, `input`, `config` (another generation is active) or `worker`; None when a limit refused it
            (`reason`, `limit`).
    """

    changed: str | None
    reason: Reason | None
    limit: str | None


@dataclass(frozen=True, slots=True)
class ReadyPage:
    """Ready Works found by one bounded look.

    Attributes:
        end: Where the look ended, (priority, ready_seq), for the next one; None: nothing is behind it.
        passed: One ready Work of each skipped scope that was passed over as a whole.
    """

    works: tuple[Work, ...]
    end: tuple[int, int] | None
    passed: tuple[Work, ...] = ()


@dataclass(frozen=True, slots=True)
class SetAside:
    """Ready Works outside the queue, found by one bounded look, in the order of the queue.

    Attributes:
        works: Those of `ids` that can be read.
        end: As in `ReadyPage`.
    """

    ids: tuple[WorkId, ...]
    works: tuple[Work, ...]
    end: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Recoverable:
    """An unfinished attempt without a live lease, which recovery may claim.

    Attributes:
        pin: Recovery goes only to a worker on the pin's host, boot and pid namespace.
        revoked: The lease was revoked (release, proven death, other boot, not accepted), not merely lapsed.
        last_owner: Whoever held it last; a claim that was not accepted in time prefers another worker.
        out_of_time: Its budget is used up: it is ended (`time_out_lapsed`), not handed to a worker.
    """

    attempt: Attempt
    snapshot: Snapshot
    revoked: str | None
    last_owner: Incarnation
    out_of_time: bool = False


@dataclass(frozen=True, slots=True)
class CancelOutcome:
    """What a cancel found.

    Attributes:
        state_before: Of the Work.
        attempt_id: The live attempt it ended; None when none was live.
        cancellation_id: Its record among `ReadTx.cancellations`.
    """

    state_before: WorkState
    attempt_id: AttemptId | None
    cancellation_id: int


@dataclass(frozen=True, slots=True)
class Routine:
    """How a binding has done lately. Rule: F03.

    Attributes:
        failures: Works of it in a row that came to nothing.
        work_id, failed_at_us: The last of them; None together.
        quarantined_at_us, quarantined_by, reason: None together: it is not quarantined.
    """

    binding: str
    failures: int
    work_id: WorkId | None
    failed_at_us: int | None
    quarantined_at_us: int | None
    quarantined_by: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Submission:
    """What was accepted under a key: the same content under it is answered with this, other content is refused.

    Attributes:
        input: The input that was accepted with it; None: a standing Work was handed in without one.
    """

    key: str
    digest: str
    work_id: WorkId
    input: int | None


@dataclass(frozen=True, slots=True)
class IdleState:
    """What keeps a home from being idle; at most 100 of each are counted and named.

    Attributes:
        live: Attempts unfinished, or ended without proof of stop and still being worked on.
        waiting: Works ready, in backoff, or whose next attempt waits for an event or a time, but for those of a quarantined binding.
        needs_person: Names of attempts in `recovery_required`, of held Works, of those of a quarantined binding, and of
            attempts that wait for a person's answer and for nothing else.
    """

    live: int
    waiting: int
    needs_person: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the changefeed; `seq` grows without gaps among what is kept. `data` is a flat JSON object."""

    seq: int
    at_us: int
    kind: str
    work_id: WorkId | None
    attempt_id: AttemptId | None
    epoch: int | None
    data: Mapping[str, object]
