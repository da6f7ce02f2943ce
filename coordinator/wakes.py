"""The part of a pass that goes on ending waits: an event may match more of them than one transaction ends. Rule: O08, S01."""

from __future__ import annotations

from coordinator.leadership import Leadership
from shared.store.contract import Store, Tx

BOUND = 64
"""Events looked at in one run."""


class Wakes:
    """One pass's wakes."""

    def __init__(self, store: Store, leadership: Leadership) -> None:
        self._store = store
        self._leadership = leadership

    def run(self) -> bool:
        """Go on with what has not woken all yet; one transaction, and none when nothing has. True: its bound cut it short.

        What died before its commit is gone on with by the next leader: the event stays in the store's list until all are woken.
        """
        if not self._store.read(lambda tx: tx.waking(limit=1)):
            return False
        return self._store.write(self._go_on)

    def _go_on(self, tx: Tx) -> bool:
        self._leadership.assert_in(tx)
        return tx.wake_on(limit=BOUND)
