"""Marking the rows that cannot be read, so that a person sees them, and taking the mark off again. Rule: requirement S05."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from coordinator.notes import Notes
from shared.errors import UnreadableError
from shared.store.contract import ReadTx, Store, UnreadableRow

log = logging.getLogger(__name__)

REVIEWED_MAX = 64


class Marks:
    """What passes of this leader came upon, and what was marked before."""

    def __init__(self, store: Store, notes: Notes) -> None:
        self._store = store
        self._notes = notes
        self._found: dict[tuple[str, str], UnreadableRow] = {}
        self._known: dict[tuple[str, str], UnreadableRow] | None = None
        self._after: tuple[str, str] | None = None

    def forget(self) -> None:
        """The store is the truth again: somebody else led meanwhile."""
        self._known, self._after = None, None

    def note(self, skipped: Iterable[UnreadableRow]) -> None:
        """Rows that a read of this pass left out. May be called within a transaction."""
        self._found.update(((row.table, row.key), row) for row in skipped)

    def note_fault(self, fault: UnreadableError | None) -> None:
        """The active configuration cannot be read: nothing starts until another one is activated."""
        if fault is not None:
            self.note([UnreadableRow(fault.table, fault.key, fault.column)])

    def review(self) -> None:
        """At the end of a pass: mark what it came upon, each row once, and look again at some of those marked before, in turn."""
        found, self._found = self._found, {}
        known = self._loaded()
        marked_before = sorted(key for key in known if self._after is None or key > self._after)[:REVIEWED_MAX]
        self._after = marked_before[-1] if len(marked_before) == REVIEWED_MAX else None
        for key in found.keys() - known.keys():
            row = known[key] = found[key]
            self._notes.mark_unreadable(row)
            log.error("row.unreadable", extra={"table": row.table, "key": row.key, "column": row.error})
        if marked_before:
            self._unmark(known, marked_before)

    def _unmark(self, known: dict[tuple[str, str], UnreadableRow], keys: Sequence[tuple[str, str]]) -> None:
        for row in self._store.read(lambda tx: [known[key] for key in keys if not tx.is_unreadable(known[key])]):
            del known[row.table, row.key]
            self._notes.unmark_readable(row)
            log.info("row.readable", extra={"table": row.table, "key": row.key})

    def _loaded(self) -> dict[tuple[str, str], UnreadableRow]:
        if self._known is None:
            self._known = {(row.table, row.key): row for row in self._store.read(_all_marked)}
        return self._known


def _all_marked(tx: ReadTx) -> list[UnreadableRow]:
    """Every mark there is, in bounded pages."""
    found: list[UnreadableRow] = []
    after: tuple[str, str] | None = None
    while page := tx.unreadable_rows(after=after, limit=REVIEWED_MAX):
        found += page
        after = (page[-1].table, page[-1].key)
    return found
