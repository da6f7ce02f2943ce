"""Rows of the database to values, and values to what a column holds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import (
    Attempt,
    AttemptState,
    Exclusion,
    FailureClass,
    Invoke,
    Lease,
    Phase,
    Segment,
)
from shared.model.cancel import Cancellation
from shared.model.evidence import Pin, ProcessIdentity
from shared.model.host import ClockMark, Leader, PassRecord, StopOrder, Worker, WorkerState
from shared.model.instant import Instant
from shared.model.stop import StopResult
from shared.model.work import Reason, Work, WorkState
from shared.store.contract import ConfigGeneration, Event
from shared.store.sqlite.connection import Row


def work_of_row(row: Row) -> Work:
    """A row of `work`."""
    since = row["backoff_since_mono_us"]
    command = row["command"]
    return Work(
        id=WorkId(row["id"]),
        number=row["number"],
        scope=row["scope"],
        binding=row["binding"],
        command=None if command is None else tuple(json.loads(command)),
        env=_pairs(row["env"]),
        cwd=row["cwd"],
        pool=row["pool"],
        state=WorkState(row["state"]),
        reason=None if row["reason"] is None else Reason(row["reason"]),
        priority=row["priority"],
        revision=row["revision"],
        ready_seq=row["ready_seq"],
        attempts_used=row["attempts_used"],
        admission_failures=row["admission_failures"],
        backoff_since=None if since is None else Instant(row["backoff_since_at_us"], since, row["backoff_boot_id"]),
        backoff_us=row["backoff_us"],
        submitted_by=row["submitted_by"],
        submitted_at_us=row["submitted_at_us"],
        ended_at_us=row["ended_at_us"],
        reason_limit=row["reason_limit"],
        grants=tuple(json.loads(row["grants"])),
    )


def attempt_of_row(row: Row) -> Attempt:
    """A row of `attempt`."""
    return Attempt(
        id=AttemptId(row["id"]),
        work_id=WorkId(row["work_id"]),
        number=row["number"],
        epoch=row["epoch"],
        state=AttemptState(row["state"]),
        recovered_from=None if row["recovered_from"] is None else AttemptState(row["recovered_from"]),
        exclusion=Exclusion(row["exclusion"]),
        exclusion_proof=row["exclusion_proof"],
        invoke=None if row["invoke"] is None else Invoke(row["invoke"]),
        isolated=bool(row["isolated"]),
        pin=_pin_of_row(row),
        relaunches=row["relaunches"],
        pool=row["pool"],
        scope=row["scope"],
        budget_us=row["budget_us"],
        budget_since_mono_us=row["budget_since_mono_us"],
        budget_boot_id=row["budget_boot_id"],
        budget_since_at_us=row["budget_since_at_us"],
        exit_status=row["exit_status"],
        failure=None if row["failure"] is None else FailureClass(row["failure"]),
        error=row["error"],
        started_at_us=row["started_at_us"],
        ended_at_us=row["ended_at_us"],
        segments_dropped=row["segments_dropped"],
        segments_dropped_us=row["segments_dropped_us"],
    )


def _pin_of_row(row: Row) -> Pin | None:
    if row["pin_epoch"] is None:
        return None
    shim = ProcessIdentity(
        row["pin_pid"], row["pin_start_ticks"], row["pin_boot_id"], row["pin_pid_ns"], row["pin_pidfs_ino"]
    )
    return Pin(row["pin_epoch"], row["pin_directory"], shim, row["pin_directory_ino"], row["pin_lock_ino"])


def pin_params(pin: Pin) -> dict[str, object]:
    """A pin as the parameters `pin_*`."""
    return {
        "pin_epoch": pin.epoch,
        "pin_directory": pin.directory,
        "pin_pid": pin.shim.pid,
        "pin_start_ticks": pin.shim.start_ticks,
        "pin_boot_id": pin.shim.boot_id,
        "pin_pid_ns": pin.shim.pid_ns,
        "pin_pidfs_ino": pin.shim.pidfs_ino,
        "pin_directory_ino": pin.directory_ino,
        "pin_lock_ino": pin.lock_ino,
    }


def segment_of_row(row: Row) -> Segment:
    """A row of `segment`."""
    return Segment(
        epoch=row["epoch"],
        worker=Incarnation(row["worker"]),
        invoke=None if row["invoke"] is None else Invoke(row["invoke"]),
        isolated=bool(row["isolated"]),
        recovered=bool(row["recovered"]),
        relaunched=bool(row["relaunched"]),
        began_at_us=row["began_at_us"],
        ended_at_us=row["ended_at_us"],
        active_us=row["active_us"],
        phases=phases_of_text(row["phases"]),
        phases_dropped=row["phases_dropped"],
        wake_event=row["wake_event"],
        sandbox_digest=row["sandbox_digest"],
    )


def phases_of_text(text: str) -> tuple[Phase, ...]:
    """Phases as a segment's row has them."""
    return tuple(Phase(*fields) for fields in json.loads(text))


def phases_text(phases: Iterable[Phase]) -> str:
    """What `phases_of_text` reads."""
    return json_text([(one.name, one.began_at_us, one.ended_at_us, one.outcome) for one in phases])


def lease_of_row(row: Row) -> Lease:
    """A row of `lease`."""
    return Lease(
        attempt_id=AttemptId(row["attempt_id"]),
        epoch=row["epoch"],
        owner=Incarnation(row["owner"]),
        boot_id=row["boot_id"],
        expires_mono_us=row["expires_mono_us"],
        accepted_at_us=row["accepted_at_us"],
        revoked_at_us=row["revoked_at_us"],
        revoked_reason=row["revoked_reason"],
    )


def worker_of_row(row: Row) -> Worker:
    """A row of `worker` with its `in_use` and `overdue`."""
    return Worker(
        id=Incarnation(row["id"]),
        name=row["name"],
        identity=ProcessIdentity(row["pid"], row["start_ticks"], row["boot_id"], row["pid_ns"], row["pidfs_ino"]),
        machine_id=row["machine_id"],
        lock_device=row["lock_device"],
        lock_inode=row["lock_inode"],
        slots=row["slots"],
        executors=tuple(json.loads(row["executors"])),
        state=WorkerState(row["state"]),
        beat_mono_us=row["beat_mono_us"],
        in_use=row["in_use"],
        overdue=bool(row["overdue"]),
    )


def leader_of_row(row: Row) -> Leader:
    """A row of `leader`."""
    return Leader(
        generation=row["generation"],
        owner=Incarnation(row["owner"]),
        pid=row["pid"],
        boot_id=row["boot_id"],
        expires_mono_us=row["expires_mono_us"],
        lock_device=row["lock_device"],
        lock_inode=row["lock_inode"],
    )


def stop_order_of_row(row: Row, now: Instant) -> StopOrder:
    """A row of `stop_order`; its owner counts only while its lease is live."""
    live = row["boot_id"] == now.boot_id and row["expires_mono_us"] > now.mono_us
    return StopOrder(
        id=row["id"],
        attempt_id=AttemptId(row["attempt_id"]),
        epoch=row["epoch"],
        why=row["why"],
        ordered_by=row["ordered_by"],
        owner=Incarnation(row["owner"]) if live and row["owner"] is not None else None,
        tries=row["tries"],
        finding=row["finding"],
        ordered_at_us=row["ordered_at_us"],
    )


def cancellation_of_row(row: Row) -> Cancellation:
    """A row of `cancellation`."""
    return Cancellation(
        id=row["id"],
        work_id=WorkId(row["work_id"]),
        attempt_id=None if row["attempt_id"] is None else AttemptId(row["attempt_id"]),
        epoch=row["epoch"],
        scope=row["scope"],
        requested_by=row["requested_by"],
        reason=row["reason"],
        requested_at_us=row["requested_at_us"],
        acknowledged_at_us=row["acknowledged_at_us"],
        acknowledged_by=row["acknowledged_by"],
        settled_at_us=row["settled_at_us"],
        result=row["result"],
    )


def pass_of_row(row: Row) -> PassRecord:
    """A row of `pass`."""
    return PassRecord(
        generation=row["generation"],
        trigger=row["trigger"],
        due_at_us=row["due_at_us"],
        started_at_us=row["started_at_us"],
        duration_us=row["duration_us"],
        planned=row["planned"],
        claimed=row["claimed"],
        dispatched=row["dispatched"],
        recovered=row["recovered"],
        revoked=row["revoked"],
        waiting_jobs=row["waiting_jobs"],
        waiting_agents=row["waiting_agents"],
        cut_short=bool(row["cut_short"]),
        clock_jump_us=row["clock_jump_us"],
        error=row["error"],
    )


def clock_mark_of_row(row: Row) -> ClockMark:
    """The row of `clock`."""
    return ClockMark(row["boot_id"], row["offset_us"], row["jumped_at_us"], row["jumped_by_us"])


def config_of_row(row: Row) -> ConfigGeneration:
    """A row of `config`."""
    return ConfigGeneration(
        number=row["number"],
        body=row["body"],
        digest=row["digest"],
        source_path=row["source_path"],
        activated_at_us=row["activated_at_us"],
    )


def event_of_row(row: Row) -> Event:
    """A row of `event`."""
    return Event(
        seq=row["seq"],
        at_us=row["at_us"],
        kind=row["kind"],
        work_id=None if row["work_id"] is None else WorkId(row["work_id"]),
        attempt_id=None if row["attempt_id"] is None else AttemptId(row["attempt_id"]),
        epoch=row["epoch"],
        data=json.loads(row["data"]),
    )


def json_text(value: object) -> str:
    """Compact JSON in ASCII: an argument that is no UTF-8 is a lone surrogate, which a TEXT column would refuse."""
    return json.dumps(value, separators=(",", ":"))


def finding_text(result: StopResult) -> str:
    """What an unproven stop found, as the JSON text that `StopOrder.finding` is."""
    return json_text(asdict(result))


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in json.loads(text))
