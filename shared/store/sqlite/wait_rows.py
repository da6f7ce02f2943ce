"""Rows of the tables of `schema_waits` to values. They hold words of our own, checked when they came in."""

from __future__ import annotations

from shared.ids import AttemptId, WorkId
from shared.model.causality import ChainRefusal, Derived
from shared.model.declaration import Declaration, DeclarationKind, Recorded
from shared.model.wait import Awaited, WaitState
from shared.store.sqlite.connection import Row


def recorded_of_row(row: Row) -> Recorded:
    """A row of `declaration`."""
    declaration = Declaration(row["key"], DeclarationKind(row["kind"]), row["body"])
    return Recorded(declaration, row["seq"], row["recorded_at_us"], row["epoch"], row["applied_epoch"])


def chain_refusal_of_row(row: Row) -> ChainRefusal:
    """A row of `chain_refusal`, with the Work of its attempt."""
    return ChainRefusal(
        attempt_id=AttemptId(row["attempt_id"]),
        work_id=WorkId(row["work_id"]),
        epoch=row["epoch"],
        derived=Derived(row["derived"]),
        depth=row["depth"],
        depth_max=row["depth_max"],
        refused_at_us=row["refused_at_us"],
    )


def awaited_of_row(row: Row) -> Awaited:
    """A row of `wait`."""
    return Awaited(
        attempt_id=AttemptId(row["attempt_id"]),
        epoch=row["epoch"],
        work_id=WorkId(row["work_id"]),
        resume=bool(row["resume"]),
        event_type=row["event_type"],
        correlate=row["correlate"],
        since_seq=row["since_seq"],
        state=WaitState(row["state"]),
        registered_at_us=row["registered_at_us"],
        wake_seq=row["wake_seq"],
        woken_at_us=row["woken_at_us"],
        ask=row["ask"],
        due_seq=row["due_seq"],
    )
