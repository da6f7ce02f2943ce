"""Transitions by which a person ends what is not theirs to hold: a Work, or one attempt of it."""

from __future__ import annotations

from shared.boundary import Boundary
from shared.errors import NotFoundError, RefusedError
from shared.ids import WorkId
from shared.model.attempt import Attempt, AttemptState, Ending, FailureClass
from shared.model.work import WorkChange, WorkState
from shared.policy.steps import WorkEvent, is_final_work
from shared.store.contract import CancelOutcome
from shared.store.sqlite.ends import Ends
from shared.store.sqlite.fragments import UNEXCLUDED
from shared.store.sqlite.rows import attempt_of_row
from shared.wake import COORDINATOR

UNFINISHED_ATTEMPT = f"SELECT * FROM attempt WHERE work_id = ? AND {UNEXCLUDED} AND ended_at_us IS NULL"
"""By the index of what is unexcluded: an unfinished attempt always is."""


class Cancels(Ends):
    """See `contract.Tx`, "Commands"."""

    def cancel_work(self, work_id: WorkId, *, by: str, reason: str) -> CancelOutcome:
        """See `Tx.cancel_work`."""
        work = self.work(work_id)
        if work is None:
            raise NotFoundError(f"no work {work_id} in this home")
        if is_final_work(work.state):
            raise RefusedError(f"{work_id} has already ended: {work.state}")
        self._note(Boundary.CANCEL_COMMIT, COORDINATOR, ends=True)
        live = self._unfinished(work_id)
        if live is not None:
            self._end(live, cancelled(live, by, reason), None, by)
        self._step_work(work, WorkEvent.CANCELLED, WorkChange(WorkState.CANCELLED, None, None, work.admission_failures))
        return CancelOutcome(work.state, None if live is None else live.id)

    def _unfinished(self, work_id: WorkId) -> Attempt | None:
        """The Work's attempt that has not ended."""
        row = self._db.one(UNFINISHED_ATTEMPT, (work_id,))
        return None if row is None else attempt_of_row(row)


def cancelled(attempt: Attempt, by: str, reason: str) -> Ending:
    """How an attempt ends that is cancelled. A proof of its stop, recorded when it was left to a person, still holds."""
    return Ending(
        AttemptState.CANCELLED,
        None,
        FailureClass.CANCELLED,
        f"cancelled by {by}: {reason}",
        attempt.exclusion_proof,
        f"cancelled: {reason}",
    )
