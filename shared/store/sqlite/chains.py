"""What an observed end derives: its turn's events, the input that lets a handoff go on; each once, within the depth of its chain.

Rule: requirements O06, O07, O15.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.model.attempt import Attempt, Snapshot
from shared.model.causality import Derived
from shared.model.event import HANDOFF_EVENT, TURN_EVENT
from shared.model.outcome import Outcome, OutcomeKind, Turn
from shared.policy.causality import TooDeep, asks_to_continue, derive
from shared.policy.submission import event_digest
from shared.store.sqlite.columns import json_text
from shared.store.sqlite.reporting import CONSUME
from shared.store.sqlite.wakes import Wakes

MARK_APPLIED = """UPDATE declaration SET applied_epoch = :epoch
  WHERE attempt_id = :attempt AND applied_epoch IS NULL RETURNING key"""
KEYED = "SELECT seq, digest FROM published WHERE key = ?"
REFUSE_CHAIN = """INSERT INTO chain_refusal (attempt_id, epoch, derived, depth, depth_max, refused_at_us)
  VALUES (:attempt, :epoch, :derived, :depth, :depth_max, :wall) ON CONFLICT DO NOTHING RETURNING derived"""


class Chains(Wakes):
    """Base of the transitions that end or park an attempt."""

    def _apply_declared(self, attempt: Attempt, outcome: Outcome) -> None:
        """What an observed end applies, whatever its kind: what it derives, the inputs taken, the mark."""
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
        if outcome.turn is not None or outcome.kind is OutcomeKind.HANDOFF:
            pinned = self.snapshot(attempt.id)
            assert pinned is not None, "an attempt has pinned something"
            self._derive(attempt, outcome, pinned)

    def _derive(self, attempt: Attempt, outcome: Outcome, pinned: Snapshot) -> None:
        depth = derive(attempt.depth, pinned)
        wanted = [Derived.TURN] if outcome.turn is not None else []
        wanted += [Derived.HANDOFF] if asks_to_continue(outcome, pinned) else []
        for derived in wanted:
            if isinstance(depth, TooDeep):
                self._refuse_chain(attempt, derived, depth)
            elif derived is Derived.HANDOFF:
                self._go_on(attempt, outcome.summary, depth)
            elif outcome.turn is not None:
                self._publish_turn(attempt, outcome.turn, depth)

    def _publish_turn(self, attempt: Attempt, turn: Turn, depth: int) -> None:
        """One event for each correlation key of the Work, or one without."""
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
