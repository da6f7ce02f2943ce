"""What the end of an attempt writes, whoever ends it: its holder, a person, or the leader for want of a holder."""

from __future__ import annotations

from collections.abc import Mapping

from shared.errors import FenceViolationError, RefusedError
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt, AttemptState, Ending, Exclusion
from shared.model.work import RoutineNews, WorkChange, WorkState
from shared.policy.retry import hint_fault
from shared.policy.steps import WORK_EVENT_OF_STATE, ending_event
from shared.store.sqlite.chains import Chains
from shared.store.sqlite.fragments import CHARGE

SET_ENDED = f"""UPDATE attempt SET state = :state, recovered_from = NULL, ended_at_us = :wall, exit_status = :exit_status,
    failure = :failure, error = :error, usage = :usage, exclusion = :exclusion, exclusion_proof = :proof, {CHARGE}"""
END_ATTEMPT = f"{SET_ENDED} WHERE id = :attempt AND epoch = :epoch AND ended_at_us IS NULL RETURNING id"
RETURN_INPUTS = """UPDATE input SET consumed_by = NULL, depth = max(depth, (SELECT depth FROM attempt WHERE id = :attempt))
  WHERE consumed_by = :attempt"""
"""As deep as the attempt was that gives them back: what tries it again is in the chain that the attempt was in. Rule: O09."""
RETURN_INTENTS = """UPDATE intent SET settled_at_us = :wall,
    fate = CASE WHEN EXISTS (SELECT 1 FROM input AS i WHERE i.number = input AND i.consumed_by = :attempt) THEN 'consumed' ELSE 'returned' END,
    why = CASE WHEN EXISTS (SELECT 1 FROM input AS i WHERE i.number = input AND i.consumed_by = :attempt) THEN NULL ELSE 'its attempt was over first' END
  WHERE attempt_id = :attempt AND settled_at_us IS NULL RETURNING number, fate"""

ARM_TIMER = """INSERT INTO timer (work_id, kind, state, attempt_id, epoch, trigger_input, since_mono_us, boot_id, since_at_us,
    after_us, due_at_us, armed_seq, why)
  VALUES (:work, :kind, 'armed', :attempt, :epoch, :trigger, :mono, :boot, :wall, :after, :due_at, :armed_seq, :why) RETURNING id"""
ROUTINE_WORKED = "UPDATE routine SET failures = 0 WHERE binding = ? AND failures > 0"
ROUTINE_FAILED = """INSERT INTO routine (binding, failures, work_id, failed_at_us) VALUES (:binding, 1, :work, :wall)
  ON CONFLICT (binding) DO UPDATE SET failures = failures + 1, work_id = :work, failed_at_us = :wall
  RETURNING failures, quarantined_at_us"""
QUARANTINE = """UPDATE routine SET quarantined_at_us = :wall, quarantined_by = :by, reason = :reason
  WHERE binding = :binding AND quarantined_at_us IS NULL RETURNING binding"""

_TRIED_AGAIN = (WorkState.READY, WorkState.BACKOFF, WorkState.HELD)
_TOOK_EFFECT = (AttemptState.SUCCEEDED, AttemptState.HANDED_OFF)


class Ends(Chains):
    """Pieces of the transitions that end an attempt."""

    def _ended_params(self, attempt: Attempt, ending: Ending) -> dict[str, object]:
        """The parameters of `SET_ENDED`, by the state table."""
        return self._budget(attempt) | {
            "state": self._step_attempt(attempt, ending_event(ending.state)),
            "exit_status": ending.exit_status,
            "failure": ending.failure,
            "error": self._error_told(ending),
            "usage": self._stage(attempt, ending.usage),
            "exclusion": Exclusion.HELD if ending.proof is None else Exclusion.RELEASED,
            "proof": ending.proof,
        }

    def _error_told(self, ending: Ending) -> str | None:
        """The failure's one line; a retry hint that is refused is told with it. Rule: O10."""
        fault = None if ending.hint is None else hint_fault(ending.hint, self._now)
        return ending.error if fault is None else "; ".join(part for part in (ending.error, fault) if part)

    def _end(self, attempt: Attempt, ending: Ending, change: WorkChange | None, by: str, **facts: object) -> None:
        """End an attempt without a lease of it: for those whose authority is another one. `facts` go into its event."""
        params = self._ended_params(attempt, ending) | {"attempt": attempt.id, "epoch": attempt.epoch}
        if self._db.one(END_ATTEMPT, params) is None:
            raise RefusedError(f"{attempt.id} changed meanwhile")
        self._after_end(attempt, ending, change, by, {"by": by, **facts})

    def _after_end(
        self, attempt: Attempt, ending: Ending, change: WorkChange | None, by: str, facts: Mapping[str, object]
    ) -> None:
        """All that follows once the attempt's row says that it ended.

        Args:
            change: What becomes of its Work; None when the caller settles that itself.
            by: Who orders the stop, when there is no proof of one.
        """
        self._end_segment(attempt)
        self._consume_declared(attempt)
        if attempt.state is AttemptState.PARKED:
            self._cancel_wait(attempt.work_id, ending.why)
        self._revoke(attempt.id, "ended" if ending.state is not AttemptState.CANCELLED else "cancelled")
        told = {"exit_status": ending.exit_status, "failure": ending.failure, "proof": ending.proof, "why": ending.why}
        self._attempt_event(attempt, ending.state.value, ending.state, {**told, **facts})
        ended_seq = self.notes.last_seq
        self._return_intents(attempt)
        if ending.proof is None:
            self._order_stop(attempt, ending.why, by)
        if change is None:
            return
        if change.state in _TRIED_AGAIN and ending.state not in _TOOK_EFFECT and not change.spends_inputs:
            self._return_inputs(attempt.id)
        self._settle(attempt, change)
        if change.backoff_us is not None:
            self._arm(attempt, change, ended_seq)
        if change.routine is not None:
            self._tell_routine(change.routine, attempt.work_id)

    def _return_intents(self, attempt: Attempt) -> None:
        """What the attempt was still to be told is never told to another one; the inputs wait for that by themselves, unless it took them. Rule: T03."""
        for row in self._db.rows(RETURN_INTENTS, {"attempt": attempt.id, "wall": self._now.wall_us}):
            told = {"intent": f"i{row['number']}"}
            self._event(f"intent.{row['fate']}", told, attempt=attempt.id, epoch=attempt.epoch)

    def _return_inputs(self, attempt_id: AttemptId) -> None:
        """What an attempt was given is pending again, for the next one."""
        self._db.rows(RETURN_INPUTS, {"attempt": attempt_id})

    def _arm(self, attempt: Attempt, change: WorkChange, ended_seq: int) -> None:
        """Arm the timer that ends the Work's backoff. Rule: O09: with the attempt that failed, and what had set it off."""
        snapshot = self.snapshot(attempt.id)
        why = change.why or ""
        params = self._clock | {
            "work": attempt.work_id,
            "kind": change.timer,
            "attempt": attempt.id,
            "epoch": attempt.epoch,
            "trigger": None if snapshot is None else snapshot.trigger,
            "after": change.backoff_us,
            "due_at": change.due_at_us,
            "armed_seq": ended_seq,
            "why": why,
        }
        number = self._db.value(ARM_TIMER, params)
        told = {"timer": number, "kind": change.timer, "attempt": attempt.id, "after_us": change.backoff_us, "why": why}
        self._event("timer.armed", told, work=attempt.work_id)

    def _tell_routine(self, news: RoutineNews, work_id: WorkId) -> None:
        """Count how a binding does, and quarantine one that keeps failing. Rule: F03."""
        if news.worked:
            self._db.rows(ROUTINE_WORKED, (news.binding,))
            return
        params = {"binding": news.binding, "work": work_id, "wall": self._now.wall_us}
        row = self._db.one(ROUTINE_FAILED, params)
        assert row is not None, "an upsert gives its row"
        if row["quarantined_at_us"] is None and row["failures"] >= news.quarantine_after:
            reason = f"{row['failures']} works of it in a row came to nothing, the last of them {work_id}"
            self._db.rows(QUARANTINE, params | {"by": "tenure", "reason": reason})
            told = {"binding": news.binding, "by": "tenure", "reason": reason}
            self._event("binding.quarantined", told, work=work_id)

    def _settle(self, attempt: Attempt, change: WorkChange) -> None:
        event = WORK_EVENT_OF_STATE.get(change.state)
        if event is None:
            raise FenceViolationError(f"{attempt.id}: the end of an attempt cannot leave its Work {change.state}")
        self._step_work(self._work_or_refuse(attempt.work_id), event, change)
