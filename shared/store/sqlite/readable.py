"""Which rows of the store can be read: one by its key, and all of them. Rule: requirement S05."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shared.errors import UnreadableError
from shared.model.instant import Instant
from shared.store.sqlite import rows
from shared.store.sqlite.connection import Connection, Row, reading_damage
from shared.store.values import UnreadableRow

_SOME_TIME = Instant(0, 0, "")


@dataclass(frozen=True, slots=True)
class Kind:
    """How the rows of one table are read. `key`: its columns, in the order in which a key joins them by `/`."""

    key: tuple[str, ...]
    parse: Callable[[Row], object]


KINDS: dict[str, Kind] = {
    "config": Kind(("number",), lambda row: rows.config_of_row(row).config()),
    "work": Kind(("id",), rows.work_of_row),
    "input": Kind(("number",), rows.input_of_row),
    "attempt": Kind(("id",), rows.attempt_of_row),
    "snapshot": Kind(("attempt_id",), rows.snapshot_of_row),
    "segment": Kind(("attempt_id", "epoch"), rows.segment_of_row),
    "worker": Kind(("id",), rows.executors_of_row),
    "stop_order": Kind(("id",), lambda row: rows.stop_order_of_row(row, _SOME_TIME)),
    "cancellation": Kind(("id",), rows.cancellation_of_row),
    "event": Kind(("seq",), rows.event_of_row),
}
"""What is read by more than its columns' types. A table that is not here holds numbers and plain words of our own."""


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


def unreadable(connection: Connection) -> Iterator[UnreadableRow]:
    """Every row that cannot be read, table by table. Reads the whole store, a row at a time."""
    for table, kind in KINDS.items():
        with reading_damage(connection.raw):
            for row in connection.raw.execute(f"SELECT * FROM {table}"):
                fault = _fault(kind, row)
                if fault is not None:
                    yield fault


def _fault(kind: Kind, row: Row) -> UnreadableRow | None:
    try:
        kind.parse(row)
    except UnreadableError as error:
        return UnreadableRow(error.table, error.key, error.column)
    return None
