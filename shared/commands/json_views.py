"""What programs read: every key always present, unknown is null, times ISO 8601 in UTC, durations in `*_ms`.

Keys are only ever added. Rule: design §12; issue item 6 names the keys of a work, an attempt, a segment and of the status.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from shared.commands.attendance import Attendance
from shared.commands.render import iso, masked, milliseconds
from shared.errors import UnreadableError
from shared.ids import AttemptId, WorkId, attempt_id
from shared.model.attempt import Attempt, Lease, Phase, Segment, Snapshot
from shared.model.cancel import Cancellation
from shared.model.causality import ChainRefusal
from shared.model.evidence import Pin
from shared.model.host import Leader, PassRecord, StopOrder, Worker
from shared.model.instant import Instant
from shared.model.settings import RetryPolicy
from shared.model.timer import Timer, timer_due_us
from shared.model.wait import Awaited
from shared.model.work import Hold, StartHold, Work
from shared.policy.lease import is_live
from shared.store.contract import ReadTx, Routine, UnreadableRow

Json = dict[str, object]
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


def chain_refusal_view(refusal: ChainRefusal) -> Json:
    """What an outcome did not get because its chain was too long."""
    return {
        "derived": refusal.derived,
        "epoch": refusal.epoch,
        "depth": refusal.depth,
        "depth_max": refusal.depth_max,
        "refused_at": iso(refusal.refused_at_us),
    }


def start_hold_view(hold: StartHold) -> Json:
    """Why a start was turned into a hold; the work's reason says whether by a budget or a gate."""
    return {"by": hold.by, "reason": hold.reason, "since": iso(hold.since_at_us)}


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


def phase_view(phase: Phase) -> Json:
    """A named part of a launch; without an end it was under way when its segment last wrote."""
    return {
        "name": phase.name,
        "began_at": iso(phase.began_at_us),
        "ended_at": iso(phase.ended_at_us),
        "outcome": phase.outcome,
    }


def pin_view(pin: Pin) -> Json:
    """Who was launched, and where its files are (below the home's `attempts/`)."""
    return {
        "epoch": pin.epoch,
        "directory": pin.directory,
        "shim_pid": pin.shim.pid,
        "shim_start_ticks": pin.shim.start_ticks,
        "boot_id": pin.shim.boot_id,
        "pid_ns": pin.shim.pid_ns,
    }


def lease_view(lease: Lease, now: Instant) -> Json:
    """A lease. `expires_in_ms` is null in another boot, where its clock means nothing."""
    here = lease.boot_id == now.boot_id
    return {
        "owner": lease.owner,
        "epoch": lease.epoch,
        "live": is_live(lease, now),
        "expires_in_ms": milliseconds(lease.expires_mono_us - now.mono_us) if here else None,
        "accepted_at": iso(lease.accepted_at_us),
        "revoked_at": iso(lease.revoked_at_us),
        "revoked_reason": lease.revoked_reason,
    }


def stop_order_view(order: StopOrder) -> Json:
    """An open stop order; `finding` is what the last try without proof saw."""
    return {
        "id": order.id,
        "attempt": order.attempt_id,
        "epoch": order.epoch,
        "why": order.why,
        "ordered_by": order.ordered_by,
        "ordered_at": iso(order.ordered_at_us),
        "owner": order.owner,
        "tries": order.tries,
        "finding": finding_of(order),
    }


def cancellation_view(record: Cancellation) -> Json:
    """A cancel: who asked when and why, who took it up, what settled it."""
    return {
        "id": record.id,
        "scope": record.scope,
        "work": record.work_id,
        "attempt": record.attempt_id,
        "epoch": record.epoch,
        "requested_by": record.requested_by,
        "reason": record.reason,
        "requested_at": iso(record.requested_at_us),
        "acknowledged_by": record.acknowledged_by,
        "acknowledged_at": iso(record.acknowledged_at_us),
        "settled_at": iso(record.settled_at_us),
        "result": record.result,
    }


def finding_of(order: StopOrder) -> Json | None:
    """What the last try without proof found; None before the first, or when it cannot be read."""
    if order.finding is None:
        return None
    try:
        found = json.loads(order.finding)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def timer_view(timer: Timer) -> Json:
    """What a work waits for before it is tried again."""
    return {
        "id": timer.id,
        "kind": timer.kind,
        "attempt": timer.attempt_id,
        "after_ms": milliseconds(timer.after_us),
        "armed_at": iso(timer.since.wall_us),
        "due_at": iso(timer_due_us(timer)),
        "why": timer.why,
    }


def awaited_view(awaited: Awaited, timer: Timer | None) -> Json:
    """What a Work waits for. `until`: the time that ends it in any case; null: none does."""
    return {
        "event": awaited.event_type,
        "correlate": awaited.correlate,
        "ask": awaited.ask,
        "resume": awaited.resume,
        "state": awaited.state,
        "attempt": awaited.attempt_id,
        "since": iso(awaited.registered_at_us),
        "until": None if timer is None else iso(timer_due_us(timer)),
        "woken_by": awaited.wake_seq,
        "woken_at": iso(awaited.woken_at_us),
    }


def hold_view(hold: Hold) -> Json:
    """A person's hold."""
    return {"by": hold.by, "reason": hold.reason, "since": iso(hold.since_at_us)}


def routine_view(routine: Routine) -> Json:
    """How a binding has done lately."""
    return {
        "binding": routine.binding,
        "quarantined": routine.quarantined_at_us is not None,
        "quarantined_at": iso(routine.quarantined_at_us),
        "quarantined_by": routine.quarantined_by,
        "reason": routine.reason,
        "failures": routine.failures,
        "last_failed_work": routine.work_id,
        "last_failed_at": iso(routine.failed_at_us),
    }


def leader_view(leader: Leader) -> Json:
    """The leading coordinator."""
    return {"id": leader.owner, "pid": leader.pid, "generation": leader.generation}


def worker_view(worker: Worker, now: Instant) -> Json:
    """A worker that is there."""
    return {
        "id": worker.id,
        "name": worker.name,
        "state": worker.state,
        "pid": worker.identity.pid,
        "slots": worker.slots,
        "in_use": worker.in_use,
        "overdue": worker.overdue,
        "executors": list(worker.executors),
        "last_beat_ms": milliseconds(max(0, now.mono_us - worker.beat_mono_us)),
    }


def attendance_view(there: Attendance, now: Instant) -> Json:
    """Who is up."""
    return {
        "coordinator": None if there.leader is None else leader_view(there.leader),
        "workers": [worker_view(worker, now) for worker in there.workers],
    }


def unreadable_view(row: UnreadableRow) -> Json:
    """A row of the store that cannot be read, and in which column."""
    return {"table": row.table, "key": row.key, "column": row.error}


def pass_view(record: PassRecord) -> Json:
    """The last pass of a coordinator."""
    counts = {key: value for key, value in asdict(record).items() if not key.endswith("_us")}
    return {
        **counts,
        "due_at": iso(record.due_at_us),
        "started_at": iso(record.started_at_us),
        "duration_ms": record.duration_us / 1000,
        "clock_jump_ms": milliseconds(record.clock_jump_us),
    }
