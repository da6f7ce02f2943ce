"""The leader's transitions on what has no holder any more: hand it to a worker, or end it when its time is used up too."""

from __future__ import annotations

from shared.boundary import Boundary
from shared.ids import AttemptId, Incarnation
from shared.model.attempt import SEGMENTS_KEPT, Attempt, AttemptState, Ending, FailureClass
from shared.model.work import WorkChange
from shared.policy.lease import budget_left_us
from shared.policy.steps import AttemptEvent, is_final_attempt
from shared.store.sqlite.ends import Ends
from shared.store.sqlite.fragments import CHARGE, NOT_LIVE
from shared.wake import COORDINATOR

TAKE_OVER = f"""UPDATE attempt SET epoch = epoch + 1, state = :state, recovered_from = coalesce(recovered_from, state), {CHARGE}
  WHERE id = :attempt AND epoch = :epoch AND ended_at_us IS NULL
    AND EXISTS (SELECT 1 FROM lease AS l WHERE l.attempt_id = attempt.id AND {NOT_LIVE}) RETURNING epoch"""
TAKE_LEASE = """UPDATE lease SET epoch = :epoch, owner = :owner, boot_id = :boot, expires_mono_us = :expires,
    claimed_mono_us = :mono, accepted_at_us = NULL, revoked_at_us = NULL, revoked_reason = NULL
  WHERE attempt_id = :attempt AND epoch < :epoch RETURNING epoch"""
RECOVERED_SEGMENT = """INSERT INTO segment
    (attempt_id, epoch, worker, invoke, isolated, recovered, relaunched, began_at_us, sandbox_digest)
  VALUES (:attempt, :epoch, :owner, NULL, 0, 1, 0, :wall,
    (SELECT sandbox_digest FROM segment WHERE attempt_id = :attempt AND epoch = :epoch - 1))"""
DROP_SEGMENTS = "DELETE FROM segment WHERE attempt_id = :attempt AND epoch <= :epoch - :kept RETURNING active_us"
COUNT_DROPPED = """UPDATE attempt SET segments_dropped = segments_dropped + :count,
  segments_dropped_us = segments_dropped_us + :us WHERE id = :attempt"""


class Takeovers(Ends):
    """See `leader_contract.LeaderTransitions`."""

    def claim_recovery(
        self, attempt_id: AttemptId, *, epoch_seen: int, worker: Incarnation, lease_us: int
    ) -> int | None:
        """See `Tx.claim_recovery`."""
        self._require_leading()
        attempt = self.attempt(attempt_id)
        if attempt is None or not _is_recoverable(attempt.state):
            return None
        snapshot = self.snapshot(attempt_id)
        assert snapshot is not None
        if worker != self._leading and not self._offers(worker, snapshot.registration):
            return None
        epoch = self._take_over(attempt, epoch_seen, worker, lease_us)
        if epoch is not None:
            self._note(Boundary.RECOVERY_COMMIT, worker)
        return epoch

    def time_out_lapsed(self, attempt_id: AttemptId, *, epoch_seen: int, why: str, change: WorkChange) -> bool:
        """See `Tx.time_out_lapsed`."""
        self._require_leading()
        assert self._leading is not None
        attempt = self.attempt(attempt_id)
        if attempt is None or not _is_recoverable(attempt.state) or budget_left_us(attempt, self._now) > 0:
            return False
        self._note(Boundary.RECOVERY_COMMIT, COORDINATOR)
        if self._take_over(attempt, epoch_seen, self._leading, lease_us=0) is None:
            return False
        taken = self.attempt(attempt_id)
        assert taken is not None
        ending = Ending(AttemptState.TIMED_OUT, None, FailureClass.TIMED_OUT, why, None, why)
        self._end(taken, ending, change, self._leading)
        return True

    def _take_over(self, attempt: Attempt, epoch_seen: int, owner: Incarnation, lease_us: int) -> int | None:
        """The next epoch for `owner`; None when the epoch is not the one seen, or its lease is live."""
        state = self._step_attempt(attempt, AttemptEvent.TAKEN_OVER)
        params = self._budget(attempt) | {
            "attempt": attempt.id,
            "epoch": epoch_seen,
            "state": state,
            "owner": owner,
            "expires": self._now.mono_us + lease_us,
        }
        epoch: int | None = self._db.value(TAKE_OVER, params)
        if epoch is None:
            return None
        params["epoch"] = epoch
        taken = self._db.one(TAKE_LEASE, params)
        assert taken is not None, "the lease's epoch is the attempt's"
        self._end_segment(attempt)
        self._db.rows(RECOVERED_SEGMENT, params)
        if epoch > SEGMENTS_KEPT:
            self._drop_segments(attempt.id, epoch)
        self._attempt_event(attempt, "taken_over", state, {"worker": owner}, epoch=epoch)
        return epoch

    def _drop_segments(self, attempt_id: AttemptId, epoch: int) -> None:
        """Rule: E17. There is one segment an epoch, so what is too old is known by its epoch."""
        params = {"attempt": attempt_id, "epoch": epoch, "kept": SEGMENTS_KEPT}
        dropped = [row["active_us"] for row in self._db.rows(DROP_SEGMENTS, params)]
        self._db.rows(COUNT_DROPPED, {"attempt": attempt_id, "count": len(dropped), "us": sum(dropped)})


def _is_recoverable(state: AttemptState) -> bool:
    return not is_final_attempt(state) and state not in (AttemptState.PARKED, AttemptState.RECOVERY_REQUIRED)
