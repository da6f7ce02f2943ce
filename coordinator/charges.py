"""The charging part of a pass: what ended attempts consumed goes to the ledgers of the budgets. Rule: requirement B03."""

from __future__ import annotations

from coordinator.leadership import Leadership
from shared.store.active import ActiveConfig
from shared.store.contract import Store, Tx

BOUND = 256


class Charges:
    """One pass's charges."""

    def __init__(self, store: Store, leadership: Leadership) -> None:
        self._store = store
        self._leadership = leadership

    def run(self, active: ActiveConfig) -> bool:
        """Settle what is staged; one transaction, and none when nothing is, or while the active configuration cannot be read.
        True: its bound cut it short.
        """
        if active.fault is not None or not self._store.read(lambda tx: tx.has_staged_usage()):
            return False

        def settle(tx: Tx) -> int:
            self._leadership.assert_in(tx)
            return tx.settle_usage(active.config.budgets, generation=active.number, limit=BOUND)

        return self._store.write(settle) >= BOUND
