"""The part of the store contract that is about budgets and start gates.

Rule: requirements B01–B06, G01–G05; the fence and the leadership are told in `shared.store.contract`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Protocol

from shared.ids import WorkId
from shared.model.budget import Budget, Ledger
from shared.model.work import Reason, Work
from shared.store.values import GateVerdict


class BudgetReads(Protocol):
    """Reads of one snapshot."""

    def held_for(self, reasons: Sequence[Reason], *, limit: int) -> list[Work]:
        """Works held for one of these reasons, by number; also those that are parked, and are held from going on."""

    def ledgers(self, budget: Budget, window_at_us: int, *, limit: int) -> list[tuple[Ledger, Decimal]]:
        """What the ledgers of a budget have come to in that window, by subject; one that was never charged has none."""

    def budget_since(self, budget: Budget) -> int | None:
        """When it was first configured, UTC; its ledgers count from then on. None: no activated configuration had it."""

    def has_staged_usage(self) -> bool:
        """Whether usage waits to be settled."""


class BudgetCommands(Protocol):
    """Transitions."""

    def settle_usage(self, budgets: Sequence[Budget], *, generation: int | None, limit: int) -> int:
        """Charge staged usage to the ledgers of the active configuration, at most `limit` reports, the first first; without
        budgets it is dropped. Each is charged, or dropped, with the deletion of what was staged, so once.

        Args:
            budgets, generation: Of the configuration as the caller knows it; 0 and nothing is written when another is active.
        Returns: how many reports were settled. *leader* Rule: B03.
        """

    def settle_gate(
        self, work_id: WorkId, *, holder: str, verdict: GateVerdict, by: str, reason: str, key: str | None = None
    ) -> None:
        """Settle a gate's hold in its name: admitted, the Work's next start asks no gate; refused, the Work is cancelled.

        A key that was used before for the same answers without writing anything. Raises NotFoundError; KeyReusedError: the key was
        used for another Work or verdict; RefusedError: this gate does not hold it, or it has ended. Rings the coordinator. Rule: G04.
        """
