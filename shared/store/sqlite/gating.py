"""Settling what a start was held for: usage that was staged, a budget that is released, a gate that admits or refuses."""

from __future__ import annotations

from collections.abc import Sequence

from shared.boundary import Boundary
from shared.errors import KeyReusedError, NotFoundError, RefusedError
from shared.ids import WorkId
from shared.model.budget import Budget
from shared.model.work import Permit, Reason, Work, WorkChange, WorkState
from shared.policy.steps import WorkEvent, is_final_work
from shared.store.sqlite.cancels import Cancels
from shared.store.values import GateVerdict
from shared.wake import COORDINATOR

KNOWN_SETTLEMENT = "SELECT work_id, holder, verdict FROM gate_settlement WHERE key = ?"
KEEP_SETTLEMENT = (
    """INSERT INTO gate_settlement (key, work_id, holder, verdict, settled_at_us) VALUES (?, ?, ?, ?, ?)"""
)
TO_PERSONS_HOLD = """UPDATE work SET reason = 'hold', start_hold_by = NULL, start_hold_reason = NULL, start_hold_at_us = NULL,
  revision = revision + 1 WHERE id = :work AND state = 'held' RETURNING id"""

LIFT_WAITING = """UPDATE work SET reason = NULL, reason_limit = NULL, revision = revision + 1
  WHERE id = :work AND state = 'waiting' RETURNING id"""


class Gating(Cancels):
    """See `budget_contract.BudgetCommands`."""

    def settle_usage(self, budgets: Sequence[Budget], *, generation: int | None, limit: int) -> int:
        """See `BudgetCommands.settle_usage`."""
        self._require_leading()
        active = self.config()
        if (None if active is None else active.number) != generation:
            return 0
        self._note(Boundary.PASS_COMMIT)
        return self._settle_staged(budgets, limit)

    def settle_gate(
        self, work_id: WorkId, *, holder: str, verdict: GateVerdict, by: str, reason: str, key: str | None = None
    ) -> None:
        """See `BudgetCommands.settle_gate`."""
        known = None if key is None else self._db.one(KNOWN_SETTLEMENT, (key,))
        if known is not None:
            if tuple(known) != (work_id, holder, verdict):
                raise KeyReusedError(str(key), known["work_id"])
            return
        work = self.work(work_id)
        if work is None:
            raise NotFoundError(f"no work {work_id} in this home")
        if is_final_work(work.state):
            raise RefusedError(f"{work_id} has already ended: {work.state}")
        if work.reason is not Reason.GATE_HELD or work.start_hold is None:
            raise RefusedError(f"no gate holds {work_id}: it is {work.state}")
        if work.start_hold.by != holder:
            raise RefusedError(f"{work_id} is held by gate {work.start_hold.by}, which alone settles it")
        if key is not None:
            self._db.rows(KEEP_SETTLEMENT, (key, work_id, holder, verdict, self._now.wall_us))
        kind = "gate.released" if verdict == "admitted" else "gate.refused"
        self._event(kind, {"gate": holder, "by": by, "reason": reason, "key": key}, work=work_id)
        if verdict == "refused":
            self.cancel_work(work_id, by=by, reason=f"refused at gate {holder}: {reason}")
            return
        self._permit(work, Permit.GATE)
        self._lift_start(self._work_or_refuse(work_id))
        self._note(Boundary.COMMAND_COMMIT, COORDINATOR)

    def _release_budget(self, work: Work, by: str, reason: str) -> None:
        """A person's release of a budget's hold: the first start after it is admitted, over budget or not. Rule: B04."""
        self._event("budget.released", {"by": by, "reason": reason}, work=work.id)
        self._permit(work, Permit.BUDGET)
        self._lift_start(self._work_or_refuse(work.id))

    def _lift_start(self, work: Work) -> None:
        """Nothing but a person holds it from now on, or nothing at all; what is parked goes on once a slot is free."""
        if work.state is WorkState.WAITING:
            lifted = self._db.one(LIFT_WAITING, {"work": work.id})
            assert lifted is not None, "the Work was read in this transaction"
            return
        if work.hold is not None:
            found = self._db.one(TO_PERSONS_HOLD, {"work": work.id})
            assert found is not None, "the Work was read in this transaction"
            return
        ready = WorkChange(WorkState.READY, None, None, work.admission_failures, work.failures_used)
        self._step_work(work, WorkEvent.LIFTED, ready)
