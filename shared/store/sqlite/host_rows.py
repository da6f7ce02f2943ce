"""Rows about whoever takes part, and about what is configured, to values. See `rows`."""

from __future__ import annotations

from dataclasses import asdict

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.evidence import ProcessIdentity
from shared.model.host import ClockMark, Leader, PassRecord, StopOrder, Worker, WorkerState
from shared.model.instant import Instant
from shared.model.stop import StopResult
from shared.store.contract import ConfigGeneration, Routine
from shared.store.sqlite.columns import (
    decoded,
    json_text,
    key_of_row,
    words_of_text,
)
from shared.store.sqlite.connection import Row


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
        executors=executors_of_row(row),
        state=WorkerState(row["state"]),
        beat_mono_us=row["beat_mono_us"],
        in_use=row["in_use"],
        overdue=bool(row["overdue"]),
    )


def executors_of_row(row: Row) -> tuple[str, ...]:
    """What a row of `worker` says it offers."""
    return decoded("worker", key_of_row("worker", row), row, "executors", words_of_text)


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
        process=_leading_process(row),
    )


def stop_order_of_row(row: Row, now: Instant) -> StopOrder:
    """A row of `stop_order`; its owner counts only while its lease is live."""
    key_of_row("stop_order", row)
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
    """A row of `config`; what its body says is `ConfigGeneration.config`'s to find out."""
    key_of_row("config", row, "number")
    return ConfigGeneration(
        number=row["number"],
        body=row["body"],
        digest=row["digest"],
        source_path=row["source_path"],
        activated_at_us=row["activated_at_us"],
    )


def routine_of_row(row: Row) -> Routine:
    """A row of `routine`."""
    return Routine(
        binding=row["binding"],
        failures=row["failures"],
        work_id=None if row["work_id"] is None else WorkId(row["work_id"]),
        failed_at_us=row["failed_at_us"],
        quarantined_at_us=row["quarantined_at_us"],
        quarantined_by=row["quarantined_by"],
        reason=row["reason"],
    )


def finding_text(result: StopResult) -> str:
    """What an unproven stop found, as the JSON text that `StopOrder.finding` is."""
    return json_text(asdict(result))


def _leading_process(row: Row) -> ProcessIdentity | None:
    if row["start_ticks"] is None:
        return None
    return ProcessIdentity(row["pid"], row["start_ticks"], row["boot_id"], row["pid_ns"], row["pidfs_ino"])
