"""What a store's tables say, in the form of `chaos.fold`, which folds the state tables over its changefeed."""

from __future__ import annotations

from chaos.fold import Folded, FoldedAttempt, fold
from shared.store.contract import ReadTx

__all__ = ["Folded", "FoldedAttempt", "fold", "tables"]


def tables(tx: ReadTx) -> Folded:
    """What the tables say, in the same form."""
    found = Folded()
    for work in tx.works(states=(), after=0, limit=10_000):
        found.works[work.id] = work.state
        for cancel in tx.cancellations(work.id, limit=1_000):
            acknowledged = "requested" if cancel.acknowledged_at_us is None else "acknowledged"
            found.cancels[cancel.id] = acknowledged if cancel.settled_at_us is None else "settled"
        for attempt in tx.attempts(work.id):
            lease = tx.lease(attempt.id)
            assert lease is not None
            found.attempts[attempt.id] = FoldedAttempt(
                attempt.state, attempt.epoch, attempt.exclusion, lease.revoked_at_us is not None
            )
    return found
