"""The schema as one text: what a store remembers of it, and what is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_SCHEMA = """SELECT type || ' ' || name || ': ' || sql FROM sqlite_schema
  WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND tbl_name <> '_sqlite_migrations' ORDER BY type, name"""

_SEPARATOR = "\n;\n"


def schema_text(rows: Callable[[str], Sequence[Sequence[Any]]]) -> str:
    """Every table, index and trigger, in one order. `rows` runs a statement."""
    return _SEPARATOR.join(row[0] for row in rows(_SCHEMA))


def schema_differences(remembered: str, found: str) -> list[str]:
    """What is missing, new or altered, by name, e.g. `trigger lease_live`."""
    if remembered == found:
        return []
    before, after = _by_name(remembered), _by_name(found)
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _by_name(text: str) -> dict[str, str]:
    return dict(part.split(": ", 1) for part in text.split(_SEPARATOR) if part)
