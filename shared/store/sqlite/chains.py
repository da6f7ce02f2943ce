"""What an observed end derives: its turn's events, the input that lets a handoff go on; each once, within the depth of its chain.

Rule: requirements O06, O07, O15.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.model.attempt import Attempt
from shared.model.causality import Derived, TooDeep
from shared.model.event import HANDOFF_EVENT, TURN_EVENT
from shared.model.outcome import Outcome, Turn
from shared.policy.causality import derive
from shared.policy.submission import event_digest
from shared.store.sqlite.columns import json_text
from shared.store.sqlite.reporting import CONSUME, Reporting

MARK_APPLIED = """UPDATE declaration SET applied_epoch = :epoch
  WHERE attempt_id = :attempt AND applied_epoch IS NULL RETURNING key"""
KEYED = "SELECT seq, digest FROM published WHERE key = ?"
REFUSE_CHAIN = """INSERT INTO chain_refusal (attempt_id, epoch, derived, depth, depth_max, refused_at_us)
  VALUES (:attempt, :epoch, :derived, :depth, :depth_max, :wall) ON CONFLICT DO NOTHING RETURNING derived"""


class Chains(Reporting):
    """Base of the transitions that end or park an attempt."""

    def _apply_declared(self, attempt: Attempt, outcome: Outcome, handoff: int | TooDeep | None = None) -> None:
        """What an observed end applies, whatever its kind: what it derives, the inputs taken, the mark.

        Args:
            handoff: As `WorkChange.handoff` says: what becomes of the Work was decided with it.
        """
        self._db.rows(MARK_APPLIED, {"attempt": attempt.id, "epoch": attempt.epoch})
        for number in outcome.consumed:
            self._db.rows(CONSUME, {"attempt": attempt.id, "number": number, "work": attempt.work_id})
        told = {
            "kind": outcome.kind,
            "summary": outcome.summary,
            "artifacts": outcome.artifacts,
            "usage": self.reported(attempt.id).beyond(attempt.usage).to_plain(),
            "consumed": outcome.consumed,
        }
        if any(told.values()):
            self._event("outcome.applied", told, attempt=attempt.id, epoch=attempt.epoch)
        if outcome.turn is not None:
            self._publish_turn(attempt, outcome.turn)
        if isinstance(handoff, TooDeep):
            self._refuse_chain(attempt, Derived.HANDOFF, handoff)
        elif handoff is not None:
            self._go_on(attempt, outcome.summary, handoff)

    def _publish_turn(self, attempt: Attempt, turn: Turn) -> None:
        """One event for each correlation key of the Work, or one without; none where the chain is too long."""
        pinned = self.snapshot(attempt.id)
        assert pinned is not None, "an attempt has pinned something"
        depth = derive(attempt.depth, pinned)
        if isinstance(depth, TooDeep):
            self._refuse_chain(attempt, Derived.TURN, depth)
            return
        facts = {"status": turn.status, "comment": turn.comment, "work": attempt.work_id, "attempt": attempt.id}
        for correlate in self.correlations(attempt.work_id) or (None,):
            self._publish_once("turn", TURN_EVENT, correlate, facts, attempt, depth)

    def _go_on(self, attempt: Attempt, summary: str, depth: int) -> None:
        """Let the next attempt follow a handoff: its queue has the input in the commit that has the outcome."""
        facts = {"data": json_text({"attempt": attempt.id, "summary": summary})}
        seq = self._publish_once("handoff", HANDOFF_EVENT, None, facts, attempt, depth)
        if seq is not None:
            self._accept_derived(attempt.work_id, seq, "handoff")

    def _publish_once(
        self,
        kind: str,
        event_type: str,
        correlate: str | None,
        facts: Mapping[str, object],
        attempt: Attempt,
        depth: int,
    ) -> int | None:
        """Publish what an attempt's segment derives; None, and nothing written: that was done before."""
        key = "/".join([kind, attempt.id, str(attempt.epoch), *([] if correlate is None else [correlate])])
        if self._db.one(KEYED, (key,)) is not None:
            return None
        digest = event_digest(event_type, correlate, json_text(facts))
        told = {**facts, "depth": depth}
        return self._publish(
            event_type, event_type, correlate, told, attempt=attempt, depth=depth, key=key, digest=digest
        )

    def _refuse_chain(self, attempt: Attempt, derived: Derived, refused: TooDeep) -> None:
        """Keep the outcome, and tell what it did not get: that branch stops here. Rule: O06, O07."""
        facts = {"derived": derived, "depth": refused.depth, "depth_max": refused.depth_max}
        key = {"attempt": attempt.id, "epoch": attempt.epoch, "wall": self._now.wall_us}
        if self._db.one(REFUSE_CHAIN, {**facts, **key}) is not None:
            told = {"derived": derived, "depth": refused.depth, "limit": refused.depth_max}
            self._event("causality.refused", told, attempt=attempt.id, epoch=attempt.epoch)
