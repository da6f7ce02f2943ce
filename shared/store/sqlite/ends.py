"""What the end of an attempt writes, whoever ends it: its holder, a person, or the leader for want of a holder."""

from __future__ import annotations

from collections.abc import Mapping

from shared.errors import FenceViolationError, RefusedError
from shared.model.attempt import Attempt, AttemptState, Ending, Exclusion
from shared.model.work import WorkChange, WorkState
from shared.policy.steps import WORK_EVENT_OF_STATE, ending_event
from shared.store.sqlite.fragments import CHARGE
from shared.store.sqlite.writing import Writing

SET_ENDED = f"""UPDATE attempt SET state = :state, recovered_from = NULL, ended_at_us = :wall, exit_status = :exit_status,
    failure = :failure, error = :error, exclusion = :exclusion, exclusion_proof = :proof, {CHARGE}"""
END_ATTEMPT = f"{SET_ENDED} WHERE id = :attempt AND epoch = :epoch AND ended_at_us IS NULL RETURNING id"
RETURN_INPUTS = "UPDATE input SET consumed_by = NULL WHERE consumed_by = ?"

_TRIED_AGAIN = (WorkState.READY, WorkState.BACKOFF, WorkState.HELD)
_TOOK_EFFECT = (AttemptState.SUCCEEDED, AttemptState.HANDED_OFF)


class Ends(Writing):
    """Pieces of the transitions that end an attempt."""

    def _ended_params(self, attempt: Attempt, ending: Ending) -> dict[str, object]:
        """The parameters of `SET_ENDED`, by the state table."""
        return self._budget(attempt) | {
            "state": self._step_attempt(attempt, ending_event(ending.state)),
            "exit_status": ending.exit_status,
            "failure": ending.failure,
            "error": ending.error,
            "exclusion": Exclusion.HELD if ending.proof is None else Exclusion.RELEASED,
            "proof": ending.proof,
        }

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
        self._revoke(attempt.id, "ended" if ending.state is not AttemptState.CANCELLED else "cancelled")
        told = {"exit_status": ending.exit_status, "failure": ending.failure, "proof": ending.proof, "why": ending.why}
        self._attempt_event(attempt, ending.state.value, ending.state, {**told, **facts})
        if ending.proof is None:
            self._order_stop(attempt, ending.why, by)
        if change is None:
            return
        if change.state in _TRIED_AGAIN and ending.state not in _TOOK_EFFECT:
            self._db.rows(RETURN_INPUTS, (attempt.id,))
        self._settle(attempt, change)

    def _settle(self, attempt: Attempt, change: WorkChange) -> None:
        event = WORK_EVENT_OF_STATE.get(change.state)
        if event is None:
            raise FenceViolationError(f"{attempt.id}: the end of an attempt cannot leave its Work {change.state}")
        self._step_work(self._work_or_refuse(attempt.work_id), event, change)
