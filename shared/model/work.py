"""Work: the durable thing to be done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.ids import WorkId
from shared.model.causality import TooDeep
from shared.model.instant import Instant
from shared.model.timer import TimerKind


class WorkState(StrEnum):
    """States of a Work; the last three are final. Rule: design §3, "States"."""

    IDLE = "idle"
    READY = "ready"
    HELD = "held"
    BACKOFF = "backoff"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class WorkKind(StrEnum):
    """What becomes of a Work when its attempt is done. Rule: requirement E12."""

    RUN_ONCE = "run_once"  # it is settled: completed, or failed once nothing is left to try
    STANDING = "standing"  # it rests until the next input; it ends only by a cancel


class Reason(StrEnum):
    """Why a Work that is not running does not start, or why it stopped for good. Rule: requirement C04."""

    CAPACITY_CONCURRENCY = "capacity_concurrency"
    CAPACITY_JOB_CONCURRENCY = "capacity_job_concurrency"
    CAPACITY_SCOPE = "capacity_scope"
    NO_WORKER = "no_worker"
    STOP_UNPROVEN = "stop_unproven"
    DISK_FULL = "disk_full"
    UNSUPPORTED_GENERATION = "unsupported_generation"
    TIMED_OUT = "timed_out"
    PERMANENT_FAILURE = "permanent_failure"
    EXHAUSTED = "exhausted"
    HOLD = "hold"  # a person holds it
    OVER_BUDGET = "over_budget"  # what it may consume is used up; it is held
    GATE_HELD = "gate_held"  # a start gate holds it
    GATE_UNDECIDED = "gate_undecided"  # a start gate has not decided; it is asked again
    QUARANTINED = "quarantined"  # its binding keeps failing


SET_ASIDE = (Reason.UNSUPPORTED_GENERATION, Reason.QUARANTINED)
"""Reasons of ready Works that no free slot ends. What is held back so lies outside the queue, until another configuration is in
force or the quarantine has ended.
"""


@dataclass(frozen=True, slots=True)
class NewWork:
    """What a person or program asks to have done, once.

    Attributes:
        binding: Name of a binding of the active configuration; None: the one that its scope names, if any does.
        command: Argument list; replaces the binding's command when both are given. None: the binding's.
        env: Names and values added on top of the binding's; stored, so never secrets.
        cwd: Absolute folder the command starts in; None: the binding's, else the configuration's folder.
        input: Bytes for the command's standard input; None: closed (`/dev/null`).
        submitted_by: Who asked, for the record (`uid 1000 via run`).
        grants: Names of its binding's grants that it asks for, sorted.
        kind: A standing one without an input rests until it gets one.
        correlate: Keys that events of its turns carry, sorted.
    """

    scope: str
    binding: str | None
    command: tuple[str, ...] | None
    env: tuple[tuple[str, str], ...]
    cwd: str | None
    input: bytes | None
    submitted_by: str
    priority: int = 0
    grants: tuple[str, ...] = ()
    kind: WorkKind = WorkKind.RUN_ONCE
    correlate: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hold:
    """A person's word that a Work must not start. One given while it runs counts from the end of that attempt on."""

    by: str
    reason: str
    since_at_us: int


class Permit(StrEnum):
    """Leave to start once, left behind by whoever settled a hold; an admitted start spends it. Rule: B04, G04."""

    BUDGET = "budget"  # over budget or not
    GATE = "gate"  # without asking the gates


@dataclass(frozen=True, slots=True)
class StartHold:
    """Why a start was turned into a hold: over budget, or at a gate; the Work's reason says which.

    Attributes:
        by: The gate's name, or the unit of the budget.
        reason: One line for people.
    """

    by: str
    reason: str
    since_at_us: int


@dataclass(frozen=True, slots=True)
class Work:
    """One stored Work.

    Attributes:
        number: The counter behind `id`; lists are ordered by it.
        pool: Capacity pool its executor counts against, as of its submission or last claim.
        reason: Why it does not start, or why it failed for good; None when nothing holds it.
        reason_limit: The full pool or scope that `reason` speaks of, or the gate with why it did not decide; None: of neither.
        revision: Grows with every change of this row; a claim decided on another revision is refused.
        ready_seq: Order among ready Work of one priority.
        attempts_used: Highest attempt number so far.
        admission_failures: Launches in a row that failed before anything ran.
        failures_used: Failures that its retry policy has counted; a success or a manual retry begins anew. Rule: O09, O14.
        backoff_since, backoff_us: While in backoff: when it began and how long it lasts (elapsed time).
        ended_at_us: UTC, set with a final state.
        grants, kind: As in `NewWork`.
        hold: None when no person holds it.
        start_hold: While it is held over budget or by a gate; else None.
        permits: Not spent yet.
    """

    id: WorkId
    number: int
    scope: str
    binding: str | None
    command: tuple[str, ...] | None
    env: tuple[tuple[str, str], ...]
    cwd: str | None
    pool: str
    state: WorkState
    reason: Reason | None
    priority: int
    revision: int
    ready_seq: int
    attempts_used: int
    admission_failures: int
    backoff_since: Instant | None
    backoff_us: int | None
    submitted_by: str
    submitted_at_us: int
    ended_at_us: int | None
    reason_limit: str | None = None
    grants: tuple[str, ...] = ()
    kind: WorkKind = WorkKind.RUN_ONCE
    failures_used: int = 0
    hold: Hold | None = None
    start_hold: StartHold | None = None
    permits: frozenset[Permit] = frozenset()


@dataclass(frozen=True, slots=True)
class RoutineNews:
    """What the end of a Work's attempt says of its binding. Rule: F03.

    Attributes:
        worked: False: the Work came to nothing, with nothing left to try.
        quarantine_after: So many in a row, and the binding is quarantined; 0 = never.
    """

    binding: str
    worked: bool
    quarantine_after: int


@dataclass(frozen=True, slots=True)
class WorkChange:
    """What the end of an attempt means for its Work; decided by `policy.settle`, written with the end.

    Attributes:
        backoff_us: How long it backs off, elapsed time; with it a timer is armed.
        admission_failures, failures_used: As the Work has them from now on.
        timer: What the timer is for.
        due_at_us: The timer is due at this wall time too, whichever comes first (a hint's reset); None: elapsed time alone.
        why: One line on what comes next, for people; None when the state says it all.
        spends_inputs: The attempt's inputs stay consumed although the Work may go on.
        routine: None when it says nothing of its binding.
        handoff: The next attempt follows a handoff at once: how deep the input is that lets it, which comes with the end; or why it
            does not, though that was asked for. None: it was not. Rule: O07.
    """

    state: WorkState
    reason: Reason | None
    backoff_us: int | None
    admission_failures: int
    failures_used: int = 0
    timer: TimerKind = TimerKind.ADMISSION
    due_at_us: int | None = None
    why: str | None = None
    spends_inputs: bool = False
    routine: RoutineNews | None = None
    handoff: int | TooDeep | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """One accepted input of a Work, in order of acceptance."""

    number: int
    body: bytes
