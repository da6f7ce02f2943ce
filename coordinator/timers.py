"""The timer part of a pass: accept the retries that due timers ask for. Rule: design §5; requirement O13."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from coordinator.leadership import Leadership
from shared.store.contract import Store, Tx

log = logging.getLogger(__name__)

BOUND = 64


@dataclass(frozen=True, slots=True)
class Fired:
    """What one run did. `more`: its bound cut it short."""

    fired: int
    more: bool


class Timers:
    """One pass's timers."""

    def __init__(self, store: Store, leadership: Leadership) -> None:
        self._store = store
        self._leadership = leadership

    def run(self) -> Fired:
        """Fire what is due; one transaction, and none when nothing is. What died before its commit is fired by the next leader."""
        if not self._store.read(lambda tx: tx.timers_due(limit=1)):
            return Fired(0, more=False)
        fired = self._store.write(self._fire)
        return Fired(fired, more=fired >= BOUND)

    def _fire(self, tx: Tx) -> int:
        self._leadership.assert_in(tx)
        due = tx.timers_due(limit=BOUND)
        for timer in due:
            tx.fire_timer(timer.id)
        return len(due)
