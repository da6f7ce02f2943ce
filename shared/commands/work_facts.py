"""What is shown of works and their attempts, read in one snapshot, and for programs as JSON. Rule: design §12."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.commands.json_views import (
    Json,
    awaited_view,
    cancellation_view,
    chain_refusal_view,
    hold_view,
    lease_view,
    phase_view,
    pin_view,
    start_hold_view,
    stop_order_view,
    timer_view,
)
from shared.commands.render import iso, masked, milliseconds
from shared.errors import UnreadableError
from shared.ids import AttemptId, WorkId, attempt_id
from shared.model.attempt import Attempt, Lease, Segment, Snapshot
from shared.model.cancel import Cancellation
from shared.model.causality import ChainRefusal
from shared.model.host import StopOrder
from shared.model.instant import Instant
from shared.model.settings import RetryPolicy
from shared.model.timer import Timer
from shared.model.wait import Awaited
from shared.model.work import Work
from shared.store.contract import ReadTx

ATTEMPTS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """An attempt with all that the store knows about it. `stop_order`: the open one, if there is; `refusals`: of its chain."""

    attempt: Attempt
    segments: tuple[Segment, ...]
    lease: Lease | None
    stop_order: StopOrder | None
    command: tuple[str, ...] | None
    refusals: tuple[ChainRefusal, ...]


@dataclass(frozen=True, slots=True)
class WorkFacts:
    """A Work with its last attempts by number, read in one snapshot at `now`.

    Attributes:
        earlier: Number of the first attempt in `attempts`, when there are earlier ones; else None.
    """

    work: Work
    attempts: tuple[AttemptFacts, ...]
    timer: Timer | None
    awaited: Awaited | None
    correlate: tuple[str, ...]
    retry: RetryPolicy | None
    cancellations: tuple[Cancellation, ...]
    now: Instant
    earlier: int | None = None


def work_facts(tx: ReadTx, works: Sequence[Work]) -> list[WorkFacts]:
    """Read all about some Works, and their last attempts."""
    pages = {work.id: last_attempts(tx, work.id, None, ATTEMPTS_SHOWN) for work in works}
    return [
        WorkFacts(
            work=work,
            attempts=pages[work.id][0],
            earlier=pages[work.id][1],
            timer=tx.timer(work.id),
            awaited=tx.awaited(work.id),
            correlate=tx.correlations(work.id),
            retry=_policy_of(tx, work),
            cancellations=tuple(tx.cancellations(work.id)),
            now=tx.now,
        )
        for work in works
    ]


def last_attempts(
    tx: ReadTx, work_id: WorkId, before: int | None, limit: int
) -> tuple[tuple[AttemptFacts, ...], int | None]:
    """The last attempts before that number (None: of all), and the number before which there are more of them."""
    found = tx.last_attempts(work_id, before=before, limit=limit + 1)
    shown = found[-limit:]
    return tuple(attempt_facts(tx, each) for each in shown), shown[0].number if len(found) > limit else None


def _policy_of(tx: ReadTx, work: Work) -> RetryPolicy | None:
    """The retry policy that its last attempt pinned; None before the first."""
    pinned = snapshot_if_readable(tx, attempt_id(work.id, work.attempts_used)) if work.attempts_used else None
    return None if pinned is None else pinned.retry


def attempt_facts(tx: ReadTx, attempt: Attempt) -> AttemptFacts:
    """Read all about one attempt."""
    snapshot = snapshot_if_readable(tx, attempt.id)
    return AttemptFacts(
        attempt=attempt,
        segments=tuple(tx.segments(attempt.id)),
        lease=tx.lease(attempt.id),
        stop_order=tx.open_stop_order(attempt.id),
        command=None if snapshot is None else snapshot.command,
        refusals=tuple(tx.chain_refusals(attempt.id)),
    )


def snapshot_if_readable(tx: ReadTx, attempt_id: AttemptId) -> Snapshot | None:
    """What an attempt pinned; None when that cannot be read: what is known besides is told all the same."""
    try:
        return tx.snapshot(attempt_id)
    except UnreadableError:
        return None


def work_view(facts: WorkFacts) -> Json:
    """A Work with its attempts. `next`: before this number there are earlier ones (`work show --before`); null: all are there."""
    work = facts.work
    return {
        "id": work.id,
        "state": work.state,
        "reason": work.reason,
        "reason_limit": work.reason_limit,
        "scope": work.scope,
        "binding": work.binding,
        "command": None if work.command is None else list(work.command),
        "env": dict(masked(work.env)),
        "cwd": work.cwd,
        "pool": work.pool,
        "priority": work.priority,
        "grants": list(work.grants),
        "kind": work.kind,
        "failures_used": work.failures_used,
        "failures_max": None if facts.retry is None else facts.retry.attempts_max,
        "timer": None if facts.timer is None else timer_view(facts.timer),
        "waits_for": None if facts.awaited is None else awaited_view(facts.awaited, facts.timer),
        "correlate": list(facts.correlate),
        "hold": None if work.hold is None else hold_view(work.hold),
        "start_hold": None if work.start_hold is None else start_hold_view(work.start_hold),
        "permits": sorted(work.permits),
        "attempts_used": work.attempts_used,
        "admission_failures": work.admission_failures,
        "backoff_ms": milliseconds(work.backoff_us),
        "backoff_since": None if work.backoff_since is None else iso(work.backoff_since.wall_us),
        "submitted_by": work.submitted_by,
        "submitted_at": iso(work.submitted_at_us),
        "ended_at": iso(work.ended_at_us),
        "attempts": [attempt_view(each, facts.now) for each in facts.attempts],
        "next": facts.earlier,
        "cancellations": [cancellation_view(record) for record in facts.cancellations],
    }


def attempt_view(facts: AttemptFacts, now: Instant) -> Json:
    """An attempt with its segments. `worker` is the incarnation that holds it, or held it last."""
    attempt = facts.attempt
    status = attempt.exit_status
    return {
        "id": attempt.id,
        "number": attempt.number,
        "state": attempt.state,
        "recovered_from": attempt.recovered_from,
        "epoch": attempt.epoch,
        "worker": worker_of(facts),
        "exit_code": status if status is not None and status >= 0 else None,
        "signal": -status if status is not None and status < 0 else None,
        "failure": attempt.failure,
        "error": attempt.error,
        "exclusion": attempt.exclusion,
        "exclusion_proof": attempt.exclusion_proof,
        "command": None if facts.command is None else list(facts.command),
        "pool": attempt.pool,
        "scope": attempt.scope,
        "relaunches": attempt.relaunches,
        "workers_lost": attempt.workers_lost,
        "workers_lost_in_row": attempt.workers_lost_in_row,
        "invoke": attempt.invoke,
        "isolated": attempt.isolated,
        "budget_ms": milliseconds(attempt.budget_us),
        "budget_since": iso(attempt.budget_since_at_us),
        "started_at": iso(attempt.started_at_us),
        "ended_at": iso(attempt.ended_at_us),
        "pin": None if attempt.pin is None else pin_view(attempt.pin),
        "lease": None if facts.lease is None else lease_view(facts.lease, now),
        "stop_order": None if facts.stop_order is None else stop_order_view(facts.stop_order),
        "segments": [segment_view(segment) for segment in facts.segments],
        "segments_dropped": attempt.segments_dropped,
        "segments_dropped_ms": milliseconds(attempt.segments_dropped_us),
        "usage": attempt.usage.to_plain(),
        "depth": attempt.depth,
        "chain_refusals": [chain_refusal_view(refusal) for refusal in facts.refusals],
    }


def worker_of(facts: AttemptFacts) -> str | None:
    """The incarnation that holds an attempt, or held it last."""
    return facts.segments[-1].worker if facts.segments else None


def segment_view(segment: Segment) -> Json:
    """A stretch under one lease."""
    return {
        "epoch": segment.epoch,
        "worker": segment.worker,
        "invoke": segment.invoke,
        "isolated": segment.isolated,
        "recovered": segment.recovered,
        "relaunched": segment.relaunched,
        "began_at": iso(segment.began_at_us),
        "ended_at": iso(segment.ended_at_us),
        "active_ms": milliseconds(segment.active_us),
        "wake_event": segment.wake_event,
        "sandbox_digest": segment.sandbox_digest,
        "phases": [phase_view(phase) for phase in segment.phases],
        "phases_dropped": segment.phases_dropped,
    }
