"""Reads of budgets, and of what is held for want of one or at a gate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TypeVar

from shared.errors import UnreadableError
from shared.model.budget import Budget, Ledger
from shared.model.instant import Instant
from shared.model.work import Reason, Work
from shared.store.contract import UnreadableRow
from shared.store.sqlite import rows
from shared.store.sqlite.connection import Connection, Row

T = TypeVar("T")

HELD_FOR = "SELECT * FROM work WHERE state = 'held' AND reason = ? ORDER BY number LIMIT ? + 0"
PARKED_FOR = """SELECT work.* FROM wait INDEXED BY wait_woken CROSS JOIN work ON work.id = wait.work_id
  WHERE wait.state = 'satisfied' AND wait.due_seq IS NOT NULL AND work.state = 'waiting' AND work.reason = ? ORDER BY number LIMIT ? + 0"""
LEDGERS = """SELECT subject, used FROM ledger WHERE unit = ? AND per = ? AND period = ? AND scope = ? AND window_at_us = ?
  ORDER BY subject LIMIT ? + 0"""
BUDGET_SINCE = "SELECT since_at_us FROM budget WHERE unit = ? AND per = ? AND period = ? AND scope = ?"
HAS_STAGED = "SELECT EXISTS (SELECT 1 FROM usage_pending)"


class BudgetReads:
    """See `budget_contract.BudgetReads`."""

    def __init__(self, connection: Connection, now: Instant) -> None:
        self._db = connection
        self._now = now
        self._clock = {"boot": now.boot_id, "mono": now.mono_us}
        self._skipped: list[UnreadableRow] = []

    @property
    def now(self) -> Instant:
        """See `ReadTx.now`."""
        return self._now

    @property
    def skipped(self) -> Sequence[UnreadableRow]:
        """See `ReadTx.skipped`."""
        return self._skipped

    def _readable(self, found: Iterable[Row], parse: Callable[[Row], T]) -> list[T]:
        """What these rows say; those that cannot be read are left out, and remembered. Rule: S05."""
        kept = []
        for row in found:
            try:
                kept.append(parse(row))
            except UnreadableError as error:
                self._skipped.append(UnreadableRow(error.table, error.key, error.column))
        return kept

    def held_for(self, reasons: Sequence[Reason], *, limit: int) -> list[Work]:
        """See `BudgetReads.held_for`."""
        statements = [(sql, reason) for reason in set(reasons) for sql in (HELD_FOR, PARKED_FOR)]
        found = [row for sql, reason in statements for row in self._db.rows(sql, (reason, limit))]
        return self._readable(sorted(found, key=lambda row: int(row["number"]))[:limit], rows.work_of_row)

    def ledgers(self, budget: Budget, window_at_us: int, *, limit: int) -> list[tuple[Ledger, Decimal]]:
        """See `BudgetReads.ledgers`."""
        key = (budget.unit, budget.per, budget.period, budget.scope or "", window_at_us, limit)
        return [
            (
                Ledger(budget.unit, budget.per, budget.period, budget.scope, row["subject"], window_at_us),
                Decimal(row["used"]),
            )
            for row in self._db.rows(LEDGERS, key)
        ]

    def budget_since(self, budget: Budget) -> int | None:
        """See `BudgetReads.budget_since`."""
        found = self._db.value(BUDGET_SINCE, (budget.unit, budget.per, budget.period, budget.scope or ""))
        return None if found is None else int(found)

    def has_staged_usage(self) -> bool:
        """See `BudgetReads.has_staged_usage`."""
        return bool(self._db.value(HAS_STAGED))
