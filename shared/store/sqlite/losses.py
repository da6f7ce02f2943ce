"""Counting on attempts that the worker which held them is dead, and quarantining the binding that costs too many."""

from __future__ import annotations

from shared.errors import UnreadableError
from shared.ids import AttemptId, Incarnation
from shared.model.attempt import Snapshot
from shared.policy.losses import Lost, binding_to_blame, in_row_after
from shared.store.sqlite.ends import QUARANTINE
from shared.store.sqlite.writing import Writing

HELD_BY_DEAD = """SELECT l.attempt_id, l.claimed_mono_us FROM lease AS l JOIN attempt AS a ON a.id = l.attempt_id
  WHERE l.owner = :owner AND l.revoked_at_us IS NULL AND l.accepted_at_us IS NOT NULL AND l.boot_id = :boot
    AND a.ended_at_us IS NULL ORDER BY l.attempt_id"""
"""A claim that was never accepted had nothing launched for it, and a lease of another boot ended with its host."""
COUNT_LOSS = """UPDATE attempt SET workers_lost = workers_lost + 1, workers_lost_in_row = :in_row
  WHERE id = :attempt AND ended_at_us IS NULL RETURNING workers_lost"""
KNOW_ROUTINE = "INSERT INTO routine (binding, failures) VALUES (:binding, 0) ON CONFLICT (binding) DO NOTHING"


class Losses(Writing):
    """A piece of `Registrations.retire_worker`."""

    def _count_losses(self, owner: Incarnation) -> None:
        """Count the death on whatever the worker held, and quarantine the binding that is to blame, if one is. Rule: case C056."""
        held = self._db.rows(HELD_BY_DEAD, self._clock | {"owner": owner})
        lost = [self._count_loss(AttemptId(row[0]), self._now.mono_us - row[1], owner) for row in held]
        binding = binding_to_blame([each for each in lost if each is not None])
        if binding is not None:
            self._quarantine_costly(binding, max(each.attempt.workers_lost_in_row for each in lost if each is not None))

    def _count_loss(self, attempt_id: AttemptId, held_us: int, owner: Incarnation) -> Lost | None:
        try:
            attempt = self.attempt(attempt_id)
        except UnreadableError:
            return None
        if attempt is None:
            return None
        in_row = in_row_after(attempt, held_us)
        self._db.rows(COUNT_LOSS, {"attempt": attempt_id, "in_row": in_row})
        facts = {"worker": owner, "lost": attempt.workers_lost + 1, "in_row": in_row}
        self._event("worker.lost", facts, attempt=attempt_id, epoch=attempt.epoch)
        counted = self.attempt(attempt_id)
        return None if counted is None else Lost(counted, self._snapshot_if_readable(attempt_id))

    def _snapshot_if_readable(self, attempt_id: AttemptId) -> Snapshot | None:
        try:
            return self.snapshot(attempt_id)
        except UnreadableError:
            return None

    def _quarantine_costly(self, binding: str, workers: int) -> None:
        self._db.rows(KNOW_ROUTINE, {"binding": binding})
        reason = f"its works cost {workers} workers in a row their lives"
        params = {"binding": binding, "by": "tenure", "reason": reason, "wall": self._now.wall_us}
        if self._db.one(QUARANTINE, params) is not None:
            self._event("binding.quarantined", {"binding": binding, "by": "tenure", "reason": reason})
