"""The check that every row of the store can be read, and what to do about one that cannot."""

from __future__ import annotations

from collections.abc import Sequence

from shared.commands.findings import NAMED_MAX, Finding, Severity
from shared.commands.open_home import OpenHome
from shared.commands.render import counted, escaped
from shared.store.contract import UnreadableRow
from shared.store.sqlite.inspect import newest_unreadable_rows

NEWEST = 2_000
MARKED_MAX = 100
RESTORE = "put a backup back, or leave it: nothing else is held up by it"


def check_rows(door: OpenHome) -> list[Finding]:
    """Every row of the store says something: those that somebody came upon, and the last that were written of each table."""
    found, cut = newest_unreadable_rows(door.place.path, newest=NEWEST)
    marked = door.store.read(lambda tx: tx.unreadable_rows(after=None, limit=MARKED_MAX))
    found += [row for row in marked if row not in found and door.store.read(lambda tx, row=row: tx.is_unreadable(row))]  # type: ignore[misc]
    return _unreadable(found, door) + _cut(cut, door)


def _cut(tables: Sequence[str], door: OpenHome) -> list[Finding]:
    """What was not looked at: so that what this costs does not grow with history."""
    if not tables:
        return []
    message = f"of {', '.join(tables)} only the {NEWEST} rows that were written last were read"
    return [Finding("rows.newest", Severity.INFO, message, f"to read every row: {door.command('store check')}")]


def _unreadable(found: Sequence[UnreadableRow], door: OpenHome) -> list[Finding]:
    held = {row: _holds_up(row, door) for row in found}
    kinds = dict.fromkeys((row.table, holds_up) for row, holds_up in held.items())
    return [
        _finding(table, [row for row in found if row.table == table and held[row] is holds_up], door, holds_up=holds_up)
        for table, holds_up in kinds
    ]


def _holds_up(row: UnreadableRow, door: OpenHome) -> bool:
    """Whether something does not go on because of it; an event, or a configuration that was replaced, is history."""
    return row.table != "event" and door.store.read(lambda tx: tx.is_unreadable(row))


def _finding(table: str, rows: Sequence[UnreadableRow], door: OpenHome, *, holds_up: bool) -> Finding:
    names = ", ".join(f"{escaped(row.key)} (column {row.error})" for row in rows[:NAMED_MAX])
    more = f" and {len(rows) - NAMED_MAX} more" if len(rows) > NAMED_MAX else ""
    message = (
        f"{counted(len(rows), 'row')} of {table} cannot be read and {'is' if len(rows) == 1 else 'are'} left out: "
    )
    severity = Severity.ERROR if holds_up else Severity.WARNING
    step = _step(table, rows[0], door) if holds_up else RESTORE
    return Finding("rows.unreadable", severity, message + names + more, step)


def _step(table: str, row: UnreadableRow, door: OpenHome) -> str:
    if table == "config":
        return f"activate the file once more, as a new generation: {door.command('apply')}; until then nothing starts"
    if table == "work":
        return f"put a backup back, or end it if it has not ended: {door.command(f'work cancel {row.key}')}"
    if table in ("attempt", "snapshot", "segment"):
        name = row.key.split("/")[0]
        return (
            f"what runs of it runs on, its slot stays held: {door.command(f'attempt show {name}')}; put a backup back"
        )
    if table == "worker":
        return "start that worker again: it is given nothing until then"
    return RESTORE
