"""What the end of an attempt means for its Work, decided inside the transaction that writes it."""

from __future__ import annotations

from dataclasses import replace

from shared.ids import AttemptId, work_of
from shared.model.attempt import Attempt, Ending, Snapshot
from shared.model.declaration import outcome_of
from shared.model.outcome import Outcome
from shared.model.work import WorkChange
from shared.policy.causality import asks_to_continue, derive
from shared.policy.resumption import put_off
from shared.policy.retry import Arm
from shared.policy.settle import Before, settle
from shared.store.contract import ReadTx


def change_after(
    tx: ReadTx,
    attempt_id: AttemptId,
    ending: Ending,
    pinned: Snapshot | None = None,
    outcome: Outcome | None = None,
) -> WorkChange:
    """Read what the decision rests on, and ask policy.

    Args:
        pinned: By the attempt, where the caller has it at hand. Its inputs are consumed, so whatever is pending came besides.
        outcome: What is applied with this end, where the caller has that at hand. Inputs that the program said it took are not
            pending, whatever the end. Rule: O01.
    """
    work_id = work_of(attempt_id)
    work, snapshot = tx.work_outline(work_id), pinned or tx.snapshot(attempt_id)
    assert work is not None, "an attempt has its Work"
    assert snapshot is not None, "and its snapshot"
    taken = (outcome or outcome_of(tx.declarations(attempt_id, unapplied=True))).consumed
    pending = tx.pending_inputs(work_id, limit=len(taken) + 1)
    handoff = derive(_depth(tx, attempt_id), snapshot) if asks_to_continue(outcome, snapshot) else None
    before = Before(
        work,
        snapshot,
        inputs_wait=isinstance(handoff, int) or any(number not in taken for number in pending),
        waits=ending.failure is None and outcome is not None and outcome.wait is not None,
    )
    return replace(settle(ending, before, tx.now), handoff=handoff)


def put_off_after(tx: ReadTx, attempt: Attempt, ending: Ending, pinned: Snapshot) -> Arm | None:
    """When an attempt is resumed once more although it would end like this; None: it ends."""
    work = tx.work_outline(attempt.work_id)
    assert work is not None, "an attempt has its Work"
    return put_off(ending, attempt, work, pinned, tx.now)


def _depth(tx: ReadTx, attempt_id: AttemptId) -> int:
    attempt = tx.attempt(attempt_id)
    assert attempt is not None, "it is about to end"
    return attempt.depth
