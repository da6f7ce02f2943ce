"""Which rows of the store can be read: one by its key, and all of them. Rule: requirement S05."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shared.errors import UnreadableError
from shared.model.instant import Instant
from shared.store.sqlite import host_rows, rows
from shared.store.sqlite.connection import Connection, Row, reading_damage
from shared.store.values import UnreadableRow

_SOME_TIME = Instant(0, 0, "")


@dataclass(frozen=True, slots=True)
class Kind:
    """How the rows of one table are read. `key`: its columns, in the order in which a key joins them by `/`."""

    key: tuple[str, ...]
    parse: Callable[[Row], object]


KINDS: dict[str, Kind] = {
    "config": Kind(("number",), lambda row: host_rows.config_of_row(row).config()),
    "work": Kind(("id",), rows.work_of_row),
    "input": Kind(("number",), rows.input_of_row),
    "attempt": Kind(("id",), rows.attempt_of_row),
    "snapshot": Kind(("attempt_id",), rows.snapshot_of_row),
    "segment": Kind(("attempt_id", "epoch"), rows.segment_of_row),
    "worker": Kind(("id",), host_rows.executors_of_row),
    "stop_order": Kind(("id",), lambda row: host_rows.stop_order_of_row(row, _SOME_TIME)),
    "cancellation": Kind(("id",), rows.cancellation_of_row),
    "event": Kind(("seq",), rows.event_of_row),
}
"""What is read by more than its columns' types. A table that is not here holds numbers and plain words of our own."""


NEWEST = " ORDER BY rowid DESC LIMIT :newest + 0"
OF_ATTEMPTS = " WHERE attempt_id IN (SELECT id FROM attempt ORDER BY rowid DESC LIMIT :newest + 0)"
MORE_THAN = "SELECT count(*) > :newest FROM (SELECT 1 FROM {table} LIMIT :newest + 1)"


def holds_more(connection: Connection, newest: int) -> list[str]:
    """Tables with more rows than that."""
    return [table for table in KINDS if connection.value(MORE_THAN.format(table=table), {"newest": newest})]


def is_unreadable(connection: Connection, row: UnreadableRow) -> bool:
    """Whether a row that could not be read still cannot, and matters; False when it can, is gone, or is a configuration in
    whose place another one has been activated.
    """
    kind = KINDS[row.table]
    where = " AND ".join(f"{column} = ?" for column in kind.key)
    found = connection.one(f"SELECT * FROM {row.table} WHERE {where}", row.key.split("/"))
    if found is None or _fault(kind, found) is None:
        return False
    return row.table != "config" or found["number"] == connection.value("SELECT max(number) FROM config")


def unreadable(connection: Connection, *, newest: int | None = None) -> Iterator[UnreadableRow]:
    """Every row that cannot be read, table by table, read a row at a time.

    Args:
        newest: Only so many rows of each table, the last that were written, and what belongs to so many attempts; None: all.
    """
    for table, kind in KINDS.items():
        sql = f"SELECT * FROM {table}"
        if newest is not None:
            sql += OF_ATTEMPTS if kind.key[0] == "attempt_id" else NEWEST
        with reading_damage(connection.raw):
            for row in connection.raw.execute(sql, {"newest": newest}):
                fault = _fault(kind, row)
                if fault is not None:
                    yield fault


def _fault(kind: Kind, row: Row) -> UnreadableRow | None:
    try:
        kind.parse(row)
    except UnreadableError as error:
        return UnreadableRow(error.table, error.key, error.column)
    return None
