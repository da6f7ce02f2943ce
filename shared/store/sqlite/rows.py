"""Rows of the database to values, and values to what a column holds.

A row that says nothing of sense raises UnreadableError, which names the column and never what it holds: its content may be
anything, also a secret of somebody. Rule: requirement S05.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from shared.errors import UnreadableError
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
from shared.model.instant import Instant
from shared.model.settings import is_scope_name
from shared.model.timer import Timer, TimerKind, TimerState
from shared.model.usage import Usage
from shared.model.work import Hold, Input, Permit, Reason, StartHold, Work, WorkKind, WorkState
from shared.store.contract import Event
from shared.store.sqlite.columns import (
    as_text,
    decoded,
    json_text,
    key_of_row,
    object_of_text,
    pairs_of_text,
    words_of_text,
)
from shared.store.sqlite.connection import Row

T = TypeVar("T")


def work_of_row(row: Row) -> Work:
    """A row of `work`."""
    key = key_of_row("work", row)
    if row["scope"] and not is_scope_name(row["scope"]):
        raise UnreadableError("work", key, "scope")
    return _work(row, lambda column, decode, _: decoded("work", key, row, column, decode))


def outline_of_row(row: Row) -> Work:
    """A row of `work` with nothing in place of what cannot be read of what it runs, and why it waits."""

    def tolerant(column: str, decode: Callable[[str], T], otherwise: T) -> T:
        try:
            return decoded("work", "", row, column, decode)
        except UnreadableError:
            return otherwise

    return _work(as_text(row), tolerant)


class _Decode(Protocol):
    """Decodes a column of a row, or answers `otherwise`, or raises."""

    def __call__(self, column: str, decode: Callable[[str], T], otherwise: T) -> T: ...


def _work(row: Row | Mapping[str, Any], read: _Decode) -> Work:
    since = row["backoff_since_mono_us"]
    nothing: tuple[str, ...] = ()
    return Work(
        id=WorkId(row["id"]),
        number=row["number"],
        scope=row["scope"],
        binding=row["binding"],
        command=None if row["command"] is None else read("command", words_of_text, nothing),
        env=read("env", pairs_of_text, ()),
        cwd=row["cwd"],
        pool=row["pool"],
        state=WorkState(row["state"]),
        reason=None if row["reason"] is None else read("reason", Reason, None),
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
        grants=read("grants", words_of_text, nothing),
        kind=WorkKind(row["kind"]),
        failures_used=row["failures_used"],
        hold=None if row["hold_by"] is None else Hold(row["hold_by"], row["hold_reason"], row["hold_at_us"]),
        start_hold=_start_hold_of_row(row),
        permits=read("permits", _permits, frozenset()),
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
    key = key_of_row("attempt", row)
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
        failure=None if row["failure"] is None else decoded("attempt", key, row, "failure", FailureClass),
        error=row["error"],
        started_at_us=row["started_at_us"],
        ended_at_us=row["ended_at_us"],
        segments_dropped=row["segments_dropped"],
        segments_dropped_us=row["segments_dropped_us"],
        usage=decoded("attempt", key, row, "usage", _usage),
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
    key = key_of_row("segment", row, "attempt_id", "epoch")
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
        phases=decoded("segment", key, row, "phases", phases_of_text),
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


def input_of_row(row: Row) -> Input:
    """A row of `input`; whatever its bytes are, they are the input."""
    key_of_row("input", row, "number")
    return Input(row["number"], bytes(row["body"]))


def cancellation_of_row(row: Row) -> Cancellation:
    """A row of `cancellation`."""
    key_of_row("cancellation", row)
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


def event_of_row(row: Row) -> Event:
    """A row of `event`."""
    key = key_of_row("event", row, "seq")
    return Event(
        seq=row["seq"],
        at_us=row["at_us"],
        kind=row["kind"],
        work_id=None if row["work_id"] is None else WorkId(row["work_id"]),
        attempt_id=None if row["attempt_id"] is None else AttemptId(row["attempt_id"]),
        epoch=row["epoch"],
        data=decoded("event", key, row, "data", object_of_text),
    )


def snapshot_of_row(row: Row) -> Snapshot:
    """A row with the columns `attempt_id` and `body` of `snapshot`."""
    key = key_of_row("snapshot", row, "attempt_id")
    return decoded("snapshot", key, row, "body", Snapshot.from_json)
