"""Stop orders: taken under a lease of their own, ended only by a confirmation for the right epoch."""

from __future__ import annotations

from shared.boundary import Boundary
from shared.errors import NotFoundError, RefusedError
from shared.ids import AttemptId, Incarnation
from shared.model.attempt import Exclusion
from shared.model.stop import StopResult
from shared.store.sqlite.host_rows import finding_text
from shared.store.sqlite.writing import Writing
from shared.store.values import PERSON
from shared.wake import COORDINATOR

_LIVE = "boot_id = :boot AND expires_mono_us > :mono"

TAKE_ORDER = f"""UPDATE stop_order SET owner = :owner, boot_id = :boot, expires_mono_us = :mono + :lease
  WHERE id = :id AND closed_at_us IS NULL AND (NOT ({_LIVE}) OR owner = :owner) RETURNING attempt_id, epoch"""
RELEASE_EXCLUSION = """UPDATE attempt SET exclusion = 'released', exclusion_proof = :proof
  WHERE id = :attempt AND epoch = :epoch AND ended_at_us IS NOT NULL AND exclusion = 'held' RETURNING id"""
CLOSE_ORDER = """UPDATE stop_order SET closed_at_us = :wall, closed_by = :by
  WHERE attempt_id = :attempt AND closed_at_us IS NULL"""
ACKNOWLEDGE_CANCEL = """UPDATE cancellation SET acknowledged_at_us = :wall, acknowledged_by = :by
  WHERE attempt_id = :attempt AND settled_at_us IS NULL AND acknowledged_at_us IS NULL RETURNING id, epoch"""
SETTLE_CANCEL = """UPDATE cancellation SET settled_at_us = :wall, result = :result,
    acknowledged_at_us = coalesce(acknowledged_at_us, :wall), acknowledged_by = coalesce(acknowledged_by, :by)
  WHERE attempt_id = :attempt AND settled_at_us IS NULL RETURNING id, epoch"""
REPORT_UNPROVEN = f"""UPDATE stop_order SET owner = NULL, boot_id = :boot, expires_mono_us = :mono + :retry, tries = tries + 1,
  finding = :finding WHERE id = :id AND closed_at_us IS NULL AND owner = :owner AND {_LIVE} RETURNING attempt_id, epoch, tries"""


class Stops(Writing):
    """See `stop_contract.StopTransitions`."""

    def take_stop_order(self, order_id: int, owner: Incarnation, *, lease_us: int) -> bool:
        """See `Tx.take_stop_order`. Taking what one holds extends it. Raises RefusedError: the taker does not take part."""
        self._require_present(owner)
        self._note(Boundary.STOP_COMMIT)
        row = self._db.one(TAKE_ORDER, self._clock | {"id": order_id, "owner": owner, "lease": lease_us})
        if row is None:
            return False
        self._on_cancels(ACKNOWLEDGE_CANCEL, "cancel.acknowledged", AttemptId(row["attempt_id"]), {"by": owner})
        return True

    def _on_cancels(self, sql: str, kind: str, attempt_id: AttemptId, facts: dict[str, object]) -> None:
        """Take the open cancellations behind an attempt's stop one step further."""
        params = {"attempt": attempt_id, "wall": self._now.wall_us, **facts}
        for row in self._db.rows(sql, params):
            told = {"cancellation": row["id"], **facts}
            self._event(kind, told, attempt=attempt_id, epoch=row["epoch"])

    def confirm_stopped(
        self, attempt_id: AttemptId, *, expected_epoch: int, proof: str, by: str, reason: str | None = None
    ) -> None:
        """See `Tx.confirm_stopped`."""
        attempt = self.attempt(attempt_id)
        if attempt is None:
            raise NotFoundError(f"no attempt {attempt_id} in this home")
        if attempt.epoch != expected_epoch:
            raise RefusedError(f"{attempt_id} is at epoch {attempt.epoch}, not {expected_epoch}")
        if attempt.ended_at_us is None:
            raise RefusedError(f"{attempt_id} has not ended: it is {attempt.state}")
        if proof == PERSON and not reason:
            raise RefusedError(f"a person's word that {attempt_id} is stopped needs a reason")
        released = attempt.exclusion is Exclusion.RELEASED
        if released and proof == PERSON:
            raise RefusedError(f"the stop of {attempt_id} is proven already: {attempt.exclusion_proof}")
        self._note(Boundary.STOP_COMMIT, COORDINATOR)
        if released:
            return
        params = {"attempt": attempt_id, "epoch": expected_epoch, "proof": proof, "by": by, "wall": self._now.wall_us}
        if self._db.one(RELEASE_EXCLUSION, params) is None:
            raise RefusedError(f"{attempt_id} changed meanwhile")
        self._db.rows(CLOSE_ORDER, params)
        told = {"proof": proof, "by": by, "reason": reason}
        self._event("attempt.stop_confirmed", told, attempt=attempt_id, epoch=expected_epoch)
        self._on_cancels(SETTLE_CANCEL, "cancel.settled", attempt_id, {"by": by, "result": f"stopped {proof}"})

    def report_unproven(self, order_id: int, owner: Incarnation, result: StopResult, *, retry_us: int) -> None:
        """See `Tx.report_unproven`. Raises RefusedError when the order is not this owner's any more."""
        self._note(Boundary.STOP_COMMIT)
        finding = finding_text(result)
        before = self._db.value("SELECT finding FROM stop_order WHERE id = ?", (order_id,))
        params = self._clock | {"id": order_id, "owner": owner, "retry": retry_us, "finding": finding}
        row = self._db.one(REPORT_UNPROVEN, params)
        if row is None:
            raise RefusedError(f"stop order {order_id} is not held by {owner}")
        if finding != before:  # what is found again and again is told once
            facts = {"order": order_id, "tries": row["tries"], "by": owner}
            self._event("stop.unproven", facts, attempt=AttemptId(row["attempt_id"]), epoch=row["epoch"])
