"""Attempt: one numbered execution of a Work, its segments, its lease and what it pinned."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Literal

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.causality import DEPTH_MAX
from shared.model.evidence import Pin
from shared.model.settings import (
    OUTPUT_MAX_BYTES,
    WORKERS_LOST_MAX,
    Exponential,
    OnExhausted,
    OnInjectError,
    RetryCause,
    RetryPolicy,
    SandboxConfig,
    sandbox_of,
)
from shared.model.usage import NO_USAGE, Usage
from shared.model.work import WorkKind


class AttemptState(StrEnum):
    """States of an attempt; from `succeeded` on they are final. Rule: design §3, "States"."""

    LAUNCHING = "launching"
    RUNNING = "running"
    RESUMING = "resuming"
    RECOVERING = "recovering"
    PARKED = "parked"
    RECOVERY_REQUIRED = "recovery_required"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    HANDED_OFF = "handed_off"
    CANCELLED = "cancelled"


class Exclusion(StrEnum):
    """Whether the attempt still claims physical resources; independent of its state."""

    HELD = "held"
    RELEASED = "released"


class Invoke(StrEnum):
    """How far a segment's launch got towards its executor."""

    PENDING = "pending"
    CALLED = "called"


PHASES_MAX = 16
"""Of one segment; what comes after them is only counted. Rule: E15."""

SEGMENTS_KEPT = 50
"""Of one attempt; older ones are only counted. Rule: E17."""

PhaseOutcome = Literal["ok", "failed", "cancelled"]


class FailureClass(StrEnum):
    """Why an attempt did not succeed; `policy.retry.RETRIED` says what each lets be tried again. Rule: requirement F01."""

    VALIDATION = "validation"  # what was asked for is wrong
    AUTHORITY = "authority"  # the writer had lost its right to write
    TRANSIENT = "transient"  # the store or the scheduler could not just then
    ADMISSION = "admission"  # nothing ran; does not count against the retry policy
    KNOWN = "known"  # it ran and failed
    PERMANENT = "permanent"  # it cannot run: no such command, not executable, arguments too long
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    AMBIGUOUS = "ambiguous"  # it may have run; the outcome is unknown
    DELIVERY = "delivery"  # it ran, and its output is not yet where it belongs


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What an attempt pinned at its claim; written once, never changed.

    Attributes:
        generation: Configuration generation it was resolved in; None when none was ever activated.
        executor: Registered name; `isolated`: the executor holds everything it launches until its pin.
        binding: The one it was resolved from, named by the Work or inherited from its scope; None for a bare command.
        command, env, cwd, timeout_us, grace_us: The resolved binding. `cwd` is absolute.
        retry_delays_us, retry_on, retry_exponential, retry_exhausted: Of `retry`; without a policy nothing is ever armed.
        replay: `never` or `safe`.
        inputs: Numbers of the inputs this attempt consumed, in order.
        registration: The executor with its version, `shell@1`; recovery and control need exactly this one.
        grants: Names of the grants it took, sorted; what they give is in the other fields already.
        secrets: (variable, reference), sorted. The values are read at each launch and never stored.
        sandbox: None: it sees and changes what its user may.
        output_max_bytes: Kept of each output stream; 0 = unbounded.
        kind: Of its Work.
        trigger: Number of the input that set it off, one of `inputs`; None without inputs. Rule: E12, O09.
        idle_us, on_inject_error: As in `Binding`; `continues` too, and False unless its Work is standing.
        quarantine_after: Failed Works in a row after which its binding is quarantined; 0: they are not counted, as when the Work
            brings its own command.
        workers_lost_max: As in `Settings`.
        depth_max: Causal depth of the deepest event or input that may be derived from it.
    """

    generation: int | None
    binding: str | None
    scope: str
    pool: str
    executor: str
    isolated: bool
    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: str
    timeout_us: int
    grace_us: int
    retry_delays_us: tuple[int, ...]
    replay: str
    inputs: tuple[int, ...]
    registration: str = "shell@1"
    grants: tuple[str, ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    sandbox: SandboxConfig | None = None
    output_max_bytes: int = OUTPUT_MAX_BYTES
    retry_on: tuple[RetryCause, ...] = ()
    retry_exponential: Exponential | None = None
    retry_exhausted: OnExhausted = "fail"
    kind: WorkKind = WorkKind.RUN_ONCE
    trigger: int | None = None
    quarantine_after: int = 0
    workers_lost_max: int = WORKERS_LOST_MAX
    idle_us: int | None = None
    on_inject_error: OnInjectError = "queue"
    continues: bool = False
    depth_max: int = DEPTH_MAX

    @property
    def retry(self) -> RetryPolicy:
        """The retry policy it pinned."""
        return RetryPolicy(self.retry_delays_us, self.retry_on, self.retry_exponential, self.retry_exhausted)

    def to_json(self) -> str:
        """Canonical JSON text of this value."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        if self.sandbox is not None:
            fields["sandbox"] = asdict(self.sandbox)
        if self.retry_exponential is not None:
            fields["retry_exponential"] = asdict(self.retry_exponential)
        return json.dumps(fields, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Snapshot:
        """The value that `to_json` wrote; a field that did not exist then has its default."""
        fields = json.loads(text)
        for name in ("command", "retry_delays_us", "inputs", "grants", "retry_on"):
            if name in fields:
                fields[name] = tuple(fields[name])
        for name in ("env", "secrets"):
            if name in fields:
                fields[name] = tuple((variable, value) for variable, value in fields[name])
        if fields.get("sandbox") is not None:
            fields["sandbox"] = sandbox_of(fields["sandbox"])
        if fields.get("retry_exponential") is not None:
            fields["retry_exponential"] = Exponential(**fields["retry_exponential"])
        fields["kind"] = WorkKind(fields.get("kind", WorkKind.RUN_ONCE))
        return Snapshot(**fields)


@dataclass(frozen=True, slots=True)
class Phase:
    """A named part of a launch, e.g. `environment`, `secrets`, `sandbox`. A trail for people: nothing is decided on it.

    Attributes:
        ended_at_us, outcome: None together: it had not ended when its segment last wrote, or its end was refused.
    """

    name: str
    began_at_us: int
    ended_at_us: int | None
    outcome: PhaseOutcome | None


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch in which an attempt held one lease.

    Attributes:
        epoch: The lease's epoch; one segment per epoch.
        worker: The incarnation that held it.
        invoke: None when this segment wrote none (a recovery writes none).
        recovered: Began by taking over a lost or released lease.
        relaunched: A recovery proved that nothing had run and launched again.
        active_us: What it charged to the attempt's budget, measured as the budget is; None while it is open.
        phases: In the order in which they were first reported; at most `PHASES_MAX`.
        phases_dropped: Reports of further phases.
        wake_event: The event that woke the attempt into it; None when none did.
        sandbox_digest: Of the sandbox its launch was planned with, carried by those that recover it; None without one.
    """

    epoch: int
    worker: Incarnation
    invoke: Invoke | None
    isolated: bool
    recovered: bool
    relaunched: bool
    began_at_us: int
    ended_at_us: int | None
    active_us: int | None = None
    phases: tuple[Phase, ...] = ()
    phases_dropped: int = 0
    wake_event: int | None = None
    sandbox_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One stored attempt.

    Attributes:
        recovered_from: While recovering: the unfinished state it was in when first recovered.
        invoke, isolated: The last written invoke mark of any segment since the launch began (None: none).
        pin: Identity of the held or running launch; None before the pin and after a proven relaunch.
        relaunches: Relaunches without a pin so far.
        workers_lost: Workers that died while they held it, so far.
        workers_lost_in_row: The last of them that its launch, or what runs since its pin, is suspected of.
        exit_status: 0..255, or negative for a signal; None when unknown or nothing ran.
        error: One line for the operator; never the command's output.
        exclusion_proof: `S0`, `S1`, … once released.
        budget_us: What was left of the timeout when the open segment began, or the last one ended; 0 means none left.
        budget_since_mono_us, budget_boot_id, budget_since_at_us: When that measurement began.
        segments_dropped, segments_dropped_us: How many segments are kept no more, and the time they were active.
        usage: What it is known to have consumed; kept as history. Rule: O02.
        launch_epoch: With which its launch began, or its last resume: whatever ran under an earlier epoch is proven gone.
        token_sha256: Of the token by which the running program names itself; None before a launch was pinned with one.
        depth: Causal depth of what set its present launch off; 0: a root did. Rule: `policy.causality`.
    """

    id: AttemptId
    work_id: WorkId
    number: int
    epoch: int
    state: AttemptState
    recovered_from: AttemptState | None
    exclusion: Exclusion
    exclusion_proof: str | None
    invoke: Invoke | None
    isolated: bool
    pin: Pin | None
    relaunches: int
    pool: str
    scope: str
    budget_us: int
    budget_since_mono_us: int
    budget_boot_id: str
    budget_since_at_us: int
    exit_status: int | None
    failure: FailureClass | None
    error: str | None
    started_at_us: int
    ended_at_us: int | None
    segments_dropped: int = 0
    segments_dropped_us: int = 0
    usage: Usage = NO_USAGE
    launch_epoch: int = 1
    token_sha256: str | None = None
    depth: int = 0
    workers_lost: int = 0
    workers_lost_in_row: int = 0

    @property
    def was_resumed(self) -> bool:
        """Whether it has been parked before: an earlier segment of it ran, and took effect."""
        return self.launch_epoch > 1


@dataclass(frozen=True, slots=True)
class LeaseKey:
    """What a fenced write names: exactly this lease."""

    attempt_id: AttemptId
    epoch: int
    owner: Incarnation


@dataclass(frozen=True, slots=True)
class Lease:
    """One row of the lease table. Live: `boot_id` is this boot, not revoked, `expires_mono_us > now`."""

    attempt_id: AttemptId
    epoch: int
    owner: Incarnation
    boot_id: str
    expires_mono_us: int
    accepted_at_us: int | None
    revoked_at_us: int | None
    revoked_reason: str | None


@dataclass(frozen=True, slots=True)
class RetryHint:
    """What a failure itself says on when trying again makes sense.

    Attributes:
        reset_at_us: UTC, when what it ran into is reset; None: that is not known.
    """

    reset_at_us: int | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ends; decided from evidence, written once.

    Attributes:
        hint: Of a failure only; None: it gave none.
        usage: What it consumed besides what its program reported, its running time apart.
        proof: Stop proof that comes with this end (`S0`, `S1`, `S1b`, `S3`); None keeps the exclusion held, and the
            same transaction writes a stop order with `why`.
    """

    state: AttemptState
    exit_status: int | None
    failure: FailureClass | None
    error: str | None
    proof: str | None
    why: str
    hint: RetryHint | None = None
    usage: Usage = NO_USAGE
