"""Charging what attempts consume to the ledgers of budgets, each amount once, and telling what was crossed.

Turns and attempts are charged in the claim that admits them, to the window of that instant. What an attempt reports is staged in
the transition that ends it, and settled to the window in which it was staged. Rule: requirements B02–B05.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from shared.ids import WorkId
from shared.model.attempt import Attempt
from shared.model.budget import Budget, Ledger, Notice, plain
from shared.model.usage import ATTEMPTS, TURNS, Usage, sum_of, time_used
from shared.model.work import Permit, Reason, Work, WorkChange, WorkState
from shared.policy.budget import Line, first_full, lines_of, notice_of_hold, notices_of, reason_of
from shared.policy.capacity import POOL_JOBS
from shared.policy.lease import active_us
from shared.policy.steps import WorkEvent
from shared.store.sqlite.columns import json_text
from shared.store.sqlite.rows import permits_text
from shared.store.sqlite.wakes import Wakes

METERED = """SELECT (SELECT body FROM snapshot WHERE attempt_id = :attempt) AS body,
    (SELECT coalesce(sum(active_us), 0) FROM segment WHERE attempt_id = :attempt) AS ended_us,
    EXISTS (SELECT 1 FROM budget) AS budgeted,
    (SELECT usage FROM report WHERE attempt_id = :attempt) AS reported"""
STAGE = """INSERT INTO usage_pending (attempt_id, work_id, scope, usage, staged_at_us)
  VALUES (:attempt, :work, :scope, :usage, :wall)"""
TAKE_STAGED = """DELETE FROM usage_pending WHERE id IN (SELECT id FROM usage_pending ORDER BY id LIMIT ? + 0)
  RETURNING id, work_id, scope, usage, staged_at_us"""
SINCE = "SELECT since_staged FROM budget WHERE unit = ? AND per = ? AND period = ? AND scope = ?"
USED = """SELECT used FROM ledger WHERE unit = :unit AND per = :per AND period = :period AND scope = :scope
  AND window_at_us = :window AND subject = :subject"""
CHARGE_LEDGER = """INSERT INTO ledger (unit, per, period, scope, subject, window_at_us, used)
  VALUES (:unit, :per, :period, :scope, :subject, :window, :used)
  ON CONFLICT (unit, per, period, scope, window_at_us, subject) DO UPDATE SET used = :used"""
TELL_ONCE = """INSERT INTO budget_notice (unit, per, period, scope, subject, window_at_us, kind, limit_amount, told_in, told_at_us)
  VALUES (:unit, :per, :period, :scope, :subject, :window, :kind, :limit, :told_in, :wall) ON CONFLICT DO NOTHING RETURNING kind"""
SET_START_HOLD = """UPDATE work SET start_hold_by = :by, start_hold_reason = :reason, start_hold_at_us = :wall,
  revision = revision + 1 WHERE id = :work AND state = 'held' RETURNING id"""
SET_PERMITS = "UPDATE work SET permits = :permits, revision = revision + 1 WHERE id = :work RETURNING id"

TIMED = frozenset({"shell"})
"""Executors that report their running time. Rule: B02."""
A_TURN = Usage(((ATTEMPTS, Decimal(1)), (TURNS, Decimal(1))))
"""What a start consumes that creates an execution; a resume is a turn alone."""
REASON_CHARS_MAX = 500
SETTLED_AT_ONCE = 256


class Charging(Wakes):
    """Pieces of the transitions that end, admit or hold."""

    def _stage(self, attempt: Attempt, reported: Usage) -> str:
        """Stage what of an attempt's usage was not staged before; gives what its row says from now on.

        That is what its program reported so far, whoever ends it and whether or not that one heard it, and its running time up to
        now, the open segment included. Nothing is staged while no budget was ever configured.

        Args:
            reported: All that was consumed besides.
        """
        row = self._db.one(METERED, {"attempt": attempt.id})
        assert row is not None, "it selects from no table"
        used = reported
        if row["reported"] is not None:
            used = used.plus(Usage.from_plain(json.loads(row["reported"])))
        if _is_timed(row["body"], attempt):
            total_us = row["ended_us"] + attempt.segments_dropped_us + active_us(attempt, self._now)
            used = used.plus(time_used(total_us))
        further = used.beyond(attempt.usage)
        if row["budgeted"]:
            self._stage_further(attempt, further)
        return json_text(attempt.usage.plus(further).to_plain())

    def _stage_further(self, attempt: Attempt, further: Usage) -> None:
        if further.amounts:
            told = {"attempt": attempt.id, "work": attempt.work_id, "scope": attempt.scope}
            self._db.rows(STAGE, told | {"usage": json_text(further.to_plain()), "wall": self._now.wall_us})

    def _settle_staged(self, budgets: Sequence[Budget], limit: int) -> int:
        """Charge what was staged, the first first; a budget takes only what was staged since it was first configured."""
        staged = sorted(self._db.rows(TAKE_STAGED, (limit,)), key=lambda row: int(row["id"]))
        since: dict[Budget, int] = {}  # asked of those alone that count something here
        for row in staged:
            usage, work_id, at_us = (
                Usage.from_plain(json.loads(row["usage"])),
                WorkId(row["work_id"]),
                row["staged_at_us"],
            )
            lines = lines_of(budgets, work_id, row["scope"], at_us)
            counting = [line.budget for line in lines if usage.amount(line.budget.unit)]
            since |= {budget: self._since(budget) for budget in counting if budget not in since}
            counting = [budget for budget in counting if since[budget] < row["id"]]
            self._charge(counting, usage, work_id, row["scope"], at_us)
        return len(staged)

    def _since(self, budget: Budget) -> int:
        key = (budget.unit, budget.per, budget.period, budget.scope or "")
        found = self._db.value(SINCE, key)
        assert found is not None, "a budget of a configuration is recorded when that is activated"
        return int(found)

    def _charge(self, budgets: Sequence[Budget], usage: Usage, work_id: WorkId, scope: str, at_us: int) -> None:
        """Add to every ledger that counts this, and tell what that crossed."""
        lines = [line for line in lines_of(budgets, work_id, scope, at_us) if usage.amount(line.budget.unit)]
        before = self._used(lines)
        after = {ledger: sum_of(used, usage.amount(ledger.unit)) for ledger, used in before.items()}
        for ledger, used in after.items():
            self._db.rows(CHARGE_LEDGER, ledger_params(ledger) | {"used": plain(used)})
        for notice in notices_of(lines, before, after, scope):
            self._tell(notice, work_id)

    def _used(self, lines: Iterable[Line]) -> dict[Ledger, Decimal]:
        found = {}
        for ledger in {line.ledger: None for line in lines}:
            used = self._db.value(USED, ledger_params(ledger))
            found[ledger] = Decimal(0) if used is None else Decimal(used)
        return found

    def _tell(self, notice: Notice, work_id: WorkId) -> None:
        """Publish a notice about its scope, unless it was published before. Others may wait for it; the Work that it names is
        neither woken by it nor given it as an input. Rule: B05.
        """
        told: dict[str, object] = {"kind": notice.kind, "limit": plain(notice.limit), "told_in": notice.scope}
        params = ledger_params(notice.ledger) | told | {"wall": self._now.wall_us}
        if self._db.one(TELL_ONCE, params) is None:
            return
        facts = ledger_facts(notice.ledger) | {"limit": told["limit"], "used": plain(notice.used)}
        kind = f"budget.{notice.kind}"
        self._publish(
            kind, kind, notice.scope or None, facts | {"in_scope": notice.scope, "of_work": work_id}, by_work=work_id
        )

    def _hold_over_budget(self, work: Work, budgets: Sequence[Budget]) -> bool:
        """Hold a Work that would take a turn for which a budget leaves no room; whatever is staged is settled before. Rule: B04."""
        if not budgets:
            return False
        while self._settle_staged(budgets, SETTLED_AT_ONCE):
            pass
        lines = lines_of(budgets, work.id, work.scope, self._now.wall_us)
        used = self._used(lines)
        full = first_full(lines, used)
        if full is None or Permit.BUDGET in work.permits:
            return False
        amount = used[full.ledger]
        facts = ledger_facts(full.ledger) | {"limit": plain(full.budget.limit), "used": plain(amount)}
        self._hold_start(work, Reason.OVER_BUDGET, full.budget.unit, reason_of(full, amount), facts)
        self._tell(notice_of_hold(full, amount, work.scope), work.id)
        return True

    def _hold_start(self, work: Work, reason: Reason, by: str, why: str, facts: Mapping[str, object]) -> None:
        """Turn a start into a hold: its control event, its step, and why, all in the claim's transaction."""
        why = why[:REASON_CHARS_MAX]
        kind = "gate.held" if reason is Reason.GATE_HELD else "budget.held"
        self._event(kind, {**facts, "why": why}, work=work.id)
        held = WorkChange(WorkState.HELD, reason, None, work.admission_failures, work.failures_used)
        self._step_work(work, WorkEvent.HELD, held)
        params: dict[str, object] = {"work": work.id, "by": by, "reason": why, "wall": self._now.wall_us}
        found = self._db.one(SET_START_HOLD, params)
        assert found is not None, "the Work was read in this transaction"

    def _permit(self, work: Work, permit: Permit) -> None:
        """Leave a permit for the Work's next admission."""
        params: dict[str, object] = {"work": work.id, "permits": permits_text(work.permits | {permit})}
        found = self._db.one(SET_PERMITS, params)
        assert found is not None, "the Work was read in this transaction"


def _is_timed(body: str, attempt: Attempt) -> bool:
    """Whether its executor reports running time; of a snapshot that cannot be read its pool tells: its end must not fail of that."""
    try:
        return json.loads(body)["executor"] in TIMED
    except (ValueError, TypeError, KeyError, RecursionError):
        return attempt.pool == POOL_JOBS


def ledger_params(ledger: Ledger) -> dict[str, object]:
    """A ledger as the parameters of its statements."""
    return {
        "unit": ledger.unit,
        "per": ledger.per,
        "period": ledger.period,
        "scope": ledger.within or "",
        "subject": ledger.subject,
        "window": ledger.window_at_us,
    }


def ledger_facts(ledger: Ledger) -> dict[str, object]:
    """A ledger as an event tells it."""
    return {
        "unit": ledger.unit,
        "per": ledger.per,
        "period": ledger.period,
        "within": ledger.within,
        "subject": ledger.subject,
        "window_at_us": ledger.window_at_us,
    }
