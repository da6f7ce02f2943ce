"""Rows of the database to values, and values to what a column holds.

A row that says nothing of sense raises UnreadableError, which names the column and never what it holds: its content may be
anything, also a secret of somebody. Rule: requirement S05.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from shared.errors import UnreadableError, UnsupportedError
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
    Snapshot,
)
from shared.model.cancel import Cancellation
from shared.model.evidence import Pin, ProcessIdentity
from shared.model.host import ClockMark, Leader, PassRecord, StopOrder, Worker, WorkerState
from shared.model.instant import Instant
from shared.model.settings import is_scope_name
from shared.model.stop import StopResult
from shared.model.timer import Timer, TimerKind, TimerState
from shared.model.usage import Usage
from shared.model.work import Hold, Input, Permit, Reason, StartHold, Work, WorkKind, WorkState
from shared.store.contract import ConfigGeneration, Event, Routine
from shared.store.sqlite.connection import DamagedRow, Row

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


def work_of_row(row: Row) -> Work:
    """A row of `work`."""
    key = _key("work", row)
    if row["scope"] and not is_scope_name(row["scope"]):
        raise UnreadableError("work", key, "scope")
    return _work(row, lambda column, decode, _: _decoded("work", key, row, column, decode))


def outline_of_row(row: Row) -> Work:
    """A row of `work` with nothing in place of what cannot be read of what it runs, and why it waits."""

    def tolerant(column: str, decode: Callable[[str], T], otherwise: T) -> T:
        try:
            return _decoded("work", "", row, column, decode)
        except UnreadableError:
            return otherwise

    return _work(as_text(row), tolerant)


class _Decode(Protocol):
    """Decodes a column of a row, or answers `otherwise`, or raises."""

    def __call__(self, column: str, decode: Callable[[str], T], otherwise: T) -> T: ...


def _work(row: Row | Mapping[str, Any], decoded: _Decode) -> Work:
    since = row["backoff_since_mono_us"]
    nothing: tuple[str, ...] = ()
    return Work(
        id=WorkId(row["id"]),
        number=row["number"],
        scope=row["scope"],
        binding=row["binding"],
        command=None if row["command"] is None else decoded("command", _words, nothing),
        env=decoded("env", _pairs, ()),
        cwd=row["cwd"],
        pool=row["pool"],
        state=WorkState(row["state"]),
        reason=None if row["reason"] is None else decoded("reason", Reason, None),
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
        grants=decoded("grants", _words, nothing),
        kind=WorkKind(row["kind"]),
        failures_used=row["failures_used"],
        hold=None if row["hold_by"] is None else Hold(row["hold_by"], row["hold_reason"], row["hold_at_us"]),
        start_hold=_start_hold_of_row(row),
        permits=decoded("permits", _permits, frozenset()),
    )


def _start_hold_of_row(row: Row | Mapping[str, Any]) -> StartHold | None:
    if row["start_hold_by"] is None:
        return None
    return StartHold(row["start_hold_by"], row["start_hold_reason"], row["start_hold_at_us"])


def _permits(text: str) -> frozenset[Permit]:
    return frozenset(Permit(word) for word in text.split())


def permits_text(permits: Iterable[Permit]) -> str:
    """Permits as a Work's row has them."""
    return " ".join(sorted(permits))


def attempt_of_row(row: Row) -> Attempt:
    """A row of `attempt`."""
    key = _key("attempt", row)
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
        failure=None if row["failure"] is None else _decoded("attempt", key, row, "failure", FailureClass),
        error=row["error"],
        started_at_us=row["started_at_us"],
        ended_at_us=row["ended_at_us"],
        segments_dropped=row["segments_dropped"],
        segments_dropped_us=row["segments_dropped_us"],
        usage=_decoded("attempt", key, row, "usage", _usage),
        launch_epoch=row["launch_epoch"],
        token_sha256=row["token_sha256"],
        depth=row["depth"],
        workers_lost=row["workers_lost"],
        workers_lost_in_row=row["workers_lost_in_row"],
    )


def _usage(text: str) -> Usage:
    return Usage.from_plain(json.loads(text))


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
    key = _key("segment", row, "attempt_id", "epoch")
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
        phases=_decoded("segment", key, row, "phases", phases_of_text),
        phases_dropped=row["phases_dropped"],
        wake_event=row["wake_event"],
        sandbox_digest=row["sandbox_digest"],
    )


BLOBS = ("body",)
"""Columns that may hold bytes: inputs; a snapshot or configuration that is bytes is no JSON to its decoder."""


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
        executors=executors_of_row(row),
        state=WorkerState(row["state"]),
        beat_mono_us=row["beat_mono_us"],
        in_use=row["in_use"],
        overdue=bool(row["overdue"]),
    )


def executors_of_row(row: Row) -> tuple[str, ...]:
    """What a row of `worker` says it offers."""
    return _decoded("worker", _key("worker", row), row, "executors", _words)


def input_of_row(row: Row) -> Input:
    """A row of `input`; whatever its bytes are, they are the input."""
    _key("input", row, "number")
    return Input(row["number"], bytes(row["body"]))


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


def _leading_process(row: Row) -> ProcessIdentity | None:
    if row["start_ticks"] is None:
        return None
    return ProcessIdentity(row["pid"], row["start_ticks"], row["boot_id"], row["pid_ns"], row["pidfs_ino"])


def stop_order_of_row(row: Row, now: Instant) -> StopOrder:
    """A row of `stop_order`; its owner counts only while its lease is live."""
    _key("stop_order", row)
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
    _key("cancellation", row)
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
    """A row of `config`; what its body says is `ConfigGeneration.config`'s to find out."""
    _key("config", row, "number")
    return ConfigGeneration(
        number=row["number"],
        body=row["body"],
        digest=row["digest"],
        source_path=row["source_path"],
        activated_at_us=row["activated_at_us"],
    )


def timer_of_row(row: Row) -> Timer:
    """A row of `timer`."""
    return Timer(
        id=row["id"],
        work_id=WorkId(row["work_id"]),
        kind=TimerKind(row["kind"]),
        state=TimerState(row["state"]),
        attempt_id=AttemptId(row["attempt_id"]),
        epoch=row["epoch"],
        trigger_input=row["trigger_input"],
        since=Instant(row["since_at_us"], row["since_mono_us"], row["boot_id"]),
        after_us=row["after_us"],
        due_at_us=row["due_at_us"],
        armed_seq=row["armed_seq"],
        why=row["why"],
        fired_seq=row["fired_seq"],
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


def event_of_row(row: Row) -> Event:
    """A row of `event`."""
    key = _key("event", row, "seq")
    return Event(
        seq=row["seq"],
        at_us=row["at_us"],
        kind=row["kind"],
        work_id=None if row["work_id"] is None else WorkId(row["work_id"]),
        attempt_id=None if row["attempt_id"] is None else AttemptId(row["attempt_id"]),
        epoch=row["epoch"],
        data=_decoded("event", key, row, "data", _object),
    )


def json_text(value: object) -> str:
    """Compact JSON in ASCII: an argument that is no UTF-8 is a lone surrogate, which a TEXT column would refuse."""
    return json.dumps(value, separators=(",", ":"))


def finding_text(result: StopResult) -> str:
    """What an unproven stop found, as the JSON text that `StopOrder.finding` is."""
    return json_text(asdict(result))


def snapshot_of_row(row: Row) -> Snapshot:
    """A row with the columns `attempt_id` and `body` of `snapshot`."""
    key = _key("snapshot", row, "attempt_id")
    return _decoded("snapshot", key, row, "body", Snapshot.from_json)


def _key(table: str, row: Row, *columns: str) -> str:
    """The row's key as one word; of a row of a damaged answer every text has to be text."""
    key = "/".join(str(row[column]) for column in columns or ("id",))
    if isinstance(row, DamagedRow):
        for column, found in zip(row.keys(), row, strict=True):
            if isinstance(found, bytes) and column not in BLOBS:
                raise UnreadableError(table, key, column)
    return key


def as_text(row: Row) -> Mapping[str, Any]:
    """A row by its columns, with signs of replacement in a text that is none."""
    return {
        column: found.decode(errors="replace") if isinstance(found, bytes) and column not in BLOBS else found
        for column, found in zip(row.keys(), row, strict=True)
    }


def _decoded(table: str, key: str, row: Row | Mapping[str, Any], column: str, decode: Callable[[str], T]) -> T:
    try:
        return decode(row[column])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, UnsupportedError):
        raise UnreadableError(table, key, column) from None  # the cause would quote what the column holds


def _words(text: str) -> tuple[str, ...]:
    found = json.loads(text)
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise ValueError("no list of words")
    return tuple(found)


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    pairs = tuple((name, value) for name, value in json.loads(text))
    if not all(isinstance(word, str) for pair in pairs for word in pair):
        raise ValueError("no names and values")
    return pairs


def _object(text: str) -> dict[str, object]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError("no object")
    return found
