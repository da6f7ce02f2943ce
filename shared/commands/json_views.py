"""What programs read: every key always present, unknown is null, times ISO 8601 in UTC, durations in `*_ms`.

Keys are only ever added. Rule: design §12; issue item 6 names the keys of a work, an attempt, a segment and of the status.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from shared.commands.attendance import Attendance
from shared.commands.render import iso, milliseconds
from shared.model.attempt import Lease, Phase
from shared.model.cancel import Cancellation
from shared.model.causality import ChainRefusal
from shared.model.evidence import Pin
from shared.model.host import Leader, PassRecord, StopOrder, Worker
from shared.model.instant import Instant
from shared.model.timer import Timer, timer_due_us
from shared.model.wait import Awaited
from shared.model.work import Hold, StartHold
from shared.policy.lease import is_live
from shared.store.contract import Routine, UnreadableRow

Json = dict[str, object]


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
    """What a Work waits for. `until`: the time that ends it in any case; null: none does. `resumed_at`: when it is resumed again,
    after a resume of which nothing ran; null: that is no question.
    """
    return {
        "event": awaited.event_type,
        "correlate": awaited.correlate,
        "ask": awaited.ask,
        "resume": awaited.resume,
        "state": awaited.state,
        "attempt": awaited.attempt_id,
        "since": iso(awaited.registered_at_us),
        "until": None if timer is None or awaited.is_put_off else iso(timer_due_us(timer)),
        "resumed_at": iso(timer_due_us(timer)) if timer is not None and awaited.is_put_off else None,
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
