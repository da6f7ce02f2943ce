"""Transitions by which a person ends what is not theirs to hold: a Work, one attempt of it, or one that waits for a word."""

from __future__ import annotations

from dataclasses import replace

from shared.boundary import Boundary
from shared.errors import NotFoundError, RefusedError
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt, AttemptState, Ending, FailureClass
from shared.model.cancel import CancelScope
from shared.model.work import WorkChange, WorkState
from shared.policy.steps import WorkEvent, is_final_work
from shared.store.sqlite.ends import Ends
from shared.store.sqlite.fragments import UNEXCLUDED
from shared.store.sqlite.rows import attempt_of_row
from shared.store.values import CancelOutcome
from shared.wake import COORDINATOR

UNEXCLUDED_ATTEMPT = f"SELECT * FROM attempt WHERE work_id = ? AND {UNEXCLUDED}"
INSERT_CANCELLATION = """INSERT INTO cancellation (work_id, attempt_id, epoch, scope, requested_by, reason, requested_at_us,
    settled_at_us, result) VALUES (:work, :attempt, :epoch, :scope, :by, :reason, :wall, :settled, :result) RETURNING id"""


class Cancels(Ends):
    """See `contract.Tx`, "Commands"."""

    def cancel_work(self, work_id: WorkId, *, by: str, reason: str) -> CancelOutcome:
        """See `Tx.cancel_work`."""
        work = self.work_outline(work_id)
        if work is None:
            raise NotFoundError(f"no work {work_id} in this home")
        if is_final_work(work.state):
            raise RefusedError(f"{work_id} has already ended: {work.state}")
        self._note(Boundary.CANCEL_COMMIT, COORDINATOR)
        row = self._db.one(UNEXCLUDED_ATTEMPT, (work_id,))
        left = None if row is None else attempt_of_row(row)
        live = left if left is not None and left.ended_at_us is None else None
        number = self._record_cancel(work_id, left, "work", by, reason)
        if live is not None:
            self._end(live, cancelled(live, by, reason), None, by)
        if work.state is WorkState.WAITING and live is None:
            self._cancel_wait(work_id, "its work was cancelled")
        self._cancel_timer(work_id, "its work was cancelled")
        counted = WorkChange(WorkState.CANCELLED, None, None, work.admission_failures, work.failures_used)
        self._step_work(work, WorkEvent.CANCELLED, counted)
        return CancelOutcome(work.state, None if live is None else live.id, number)

    def cancel_attempt(self, attempt_id: AttemptId, *, by: str, reason: str, change: WorkChange) -> CancelOutcome:
        """See `Tx.cancel_attempt`."""
        attempt = self._attempt_or_refuse(attempt_id)
        if attempt.ended_at_us is not None:
            raise RefusedError(f"{attempt_id} has already ended: {attempt.state}")
        self._note(Boundary.CANCEL_COMMIT, COORDINATOR)
        before = self._work_or_refuse(attempt.work_id).state
        number = self._record_cancel(attempt.work_id, attempt, "attempt", by, reason)
        self._end(attempt, cancelled(attempt, by, reason), change, by)
        return CancelOutcome(before, attempt_id, number)

    def reconcile(
        self,
        attempt_id: AttemptId,
        *,
        expected_epoch: int,
        ending: Ending,
        change: WorkChange,
        by: str,
        reason: str,
    ) -> None:
        """See `Tx.reconcile`."""
        attempt = self._attempt_or_refuse(attempt_id)
        if attempt.state is not AttemptState.RECOVERY_REQUIRED:
            raise RefusedError(f"{attempt_id} does not wait for a person: it is {attempt.state}")
        if attempt.epoch != expected_epoch:
            raise RefusedError(f"{attempt_id} is at epoch {attempt.epoch}, not {expected_epoch}")
        self._note(Boundary.FINISH_COMMIT, COORDINATOR)
        settled = replace(ending, proof=attempt.exclusion_proof)
        self._end(attempt, settled, change, by, reason=reason)

    def _record_cancel(self, work_id: WorkId, attempt: Attempt | None, scope: CancelScope, by: str, reason: str) -> int:
        """Record an accepted cancel.

        Args:
            attempt: What is not proven stopped: the live attempt it ends, or one that had ended before.
        """
        result = None
        if attempt is None:
            result = "nothing to stop"
        elif attempt.exclusion_proof is not None:
            result = f"stopped {attempt.exclusion_proof}"
        params: dict[str, object] = {
            "work": work_id,
            "attempt": None if attempt is None else attempt.id,
            "epoch": None if attempt is None else attempt.epoch,
            "scope": scope,
            "by": by,
            "reason": reason,
            "wall": self._now.wall_us,
            "settled": None if result is None else self._now.wall_us,
            "result": result,
        }
        number = int(self._db.value(INSERT_CANCELLATION, params))
        name, epoch = (None, None) if attempt is None else (attempt.id, attempt.epoch)
        told = {"cancellation": number, "scope": scope, "by": by, "reason": reason, "result": result}
        self._event("cancel.requested", told, work=work_id, attempt=name, epoch=epoch)
        return number

    def _attempt_or_refuse(self, attempt_id: AttemptId) -> Attempt:
        attempt = self.attempt(attempt_id)
        if attempt is None:
            raise NotFoundError(f"no attempt {attempt_id} in this home")
        return attempt


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
