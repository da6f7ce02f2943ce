"""What the end of an attempt means for its Work, decided inside the transaction that writes it."""

from __future__ import annotations

from shared.ids import AttemptId, work_of
from shared.model.attempt import Ending, Snapshot
from shared.model.work import WorkChange
from shared.policy.settle import Before, settle
from shared.store.contract import ReadTx


def change_after(tx: ReadTx, attempt_id: AttemptId, ending: Ending, pinned: Snapshot | None = None) -> WorkChange:
    """Read what the decision rests on, and ask policy.

    Args:
        pinned: By the attempt, where the caller has it at hand. Its inputs are consumed, so whatever is pending came besides.
    """
    work_id = work_of(attempt_id)
    work, snapshot = tx.work_outline(work_id), pinned or tx.snapshot(attempt_id)
    assert work is not None, "an attempt has its Work"
    assert snapshot is not None, "and its snapshot"
    return settle(ending, Before(work, snapshot, bool(tx.pending_inputs(work_id, limit=1))), tx.now)
