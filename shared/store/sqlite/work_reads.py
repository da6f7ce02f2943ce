"""Reads of a Work between its attempts: its timer, its binding's routine, what was accepted under a key."""

from __future__ import annotations

from shared.ids import Incarnation, WorkId
from shared.model.attempt import Attempt
from shared.model.timer import Timer
from shared.store.contract import Routine, Submission
from shared.store.sqlite import host_rows, rows
from shared.store.sqlite.budget_reads import BudgetReads
from shared.store.sqlite.fragments import LIVE, SUSPECT

TIMER = "SELECT * FROM timer WHERE work_id = ? AND state = 'armed'"
LAST_TIMER = "SELECT * FROM timer WHERE work_id = ? ORDER BY id DESC LIMIT 1"
TIMERS_DUE = """SELECT * FROM timer WHERE state = 'armed' AND boot_id = :boot AND since_mono_us + after_us <= :mono
  ORDER BY since_mono_us + after_us LIMIT :limit + 0"""
TIMERS_DUE_AT = """SELECT * FROM timer WHERE state = 'armed' AND due_at_us IS NOT NULL AND due_at_us <= :wall
  ORDER BY due_at_us LIMIT :limit + 0"""
NEXT_TIMER = """SELECT since_mono_us + after_us FROM timer WHERE state = 'armed' AND boot_id = :boot
  ORDER BY since_mono_us + after_us LIMIT 1"""
NEXT_TIMER_AT = """SELECT due_at_us FROM timer WHERE state = 'armed' AND due_at_us IS NOT NULL
  ORDER BY due_at_us LIMIT 1"""
QUARANTINED = "SELECT binding FROM routine WHERE quarantined_at_us IS NOT NULL"
SUSPECTS = f"SELECT * FROM attempt WHERE {SUSPECT} ORDER BY workers_lost_in_row DESC, id LIMIT ? + 0"
SUSPECTS_LAUNCHING = f"""SELECT (SELECT l.owner FROM lease AS l WHERE l.attempt_id = attempt.id AND {LIVE}) AS owner
  FROM attempt WHERE {SUSPECT} AND attempt.pin_epoch IS NULL ORDER BY workers_lost_in_row DESC"""
ROUTINES = "SELECT * FROM routine WHERE failures > 0 OR quarantined_at_us IS NOT NULL ORDER BY binding LIMIT ? + 0"
SUBMISSION = "SELECT * FROM submission WHERE key = ?"


class WorkReads(BudgetReads):
    """See `work_contract.WorkReads`."""

    def timer(self, work_id: WorkId) -> Timer | None:
        """See `WorkReads.timer`."""
        row = self._db.one(TIMER, (work_id,))
        return None if row is None else rows.timer_of_row(row)

    def last_timer(self, work_id: WorkId) -> Timer | None:
        """See `WorkReads.last_timer`."""
        row = self._db.one(LAST_TIMER, (work_id,))
        return None if row is None else rows.timer_of_row(row)

    def timers_due(self, *, limit: int) -> list[Timer]:
        """See `WorkReads.timers_due`."""
        params = self._clock | {"wall": self._now.wall_us, "limit": limit}
        found: dict[int, Timer] = {}
        for sql in (TIMERS_DUE, TIMERS_DUE_AT):
            if len(found) < limit:
                found |= {row["id"]: rows.timer_of_row(row) for row in self._db.rows(sql, params)}
        return list(found.values())[:limit]

    def _next_timer_mono_us(self) -> int | None:
        """When the next timer is due, on this boot's monotonic clock; an overdue one by the wall is due now."""
        due = self._db.value(NEXT_TIMER, self._clock)
        due_at = self._db.value(NEXT_TIMER_AT)
        dues = [] if due is None else [int(due)]
        if due_at is not None:
            dues.append(self._now.mono_us + max(0, due_at - self._now.wall_us))
        return min(dues, default=None)

    def suspects(self, *, limit: int) -> list[Attempt]:
        """See `WorkReads.suspects`."""
        return self._readable(self._db.rows(SUSPECTS, (limit,)), rows.attempt_of_row)

    def suspects_launching(self) -> frozenset[Incarnation]:
        """See `WorkReads.suspects_launching`."""
        found = self._db.rows(SUSPECTS_LAUNCHING, self._clock)
        return frozenset(Incarnation(row["owner"]) for row in found if row["owner"] is not None)

    def quarantined(self) -> frozenset[str]:
        """See `WorkReads.quarantined`."""
        return frozenset(row[0] for row in self._db.rows(QUARANTINED))

    def routines(self, *, limit: int) -> list[Routine]:
        """See `WorkReads.routines`."""
        return [host_rows.routine_of_row(row) for row in self._db.rows(ROUTINES, (limit,))]

    def submission(self, key: str) -> Submission | None:
        """See `WorkReads.submission`."""
        row = self._db.one(SUBMISSION, (key,))
        return None if row is None else Submission(row["key"], row["digest"], WorkId(row["work_id"]), row["input"])
