"""Reads of what programs declared, of what is waited for, and of what woke whom."""

from __future__ import annotations

import json
from collections.abc import Collection

from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt
from shared.model.causality import ChainRefusal
from shared.model.declaration import Recorded
from shared.model.usage import NO_USAGE, Usage
from shared.model.wait import Awaited, Wake
from shared.model.work import Reason
from shared.store.sqlite import columns, rows
from shared.store.sqlite.connection import Row
from shared.store.sqlite.wait_rows import awaited_of_row, chain_refusal_of_row, recorded_of_row
from shared.store.sqlite.work_reads import WorkReads
from shared.store.values import Woken, WokenPage

DECLARATIONS = "SELECT * FROM declaration WHERE attempt_id = ? {which} ORDER BY seq, key"
AWAITED = "SELECT * FROM wait WHERE work_id = ? AND state IN ('registered', 'satisfied')"
WOKEN_LOOK = 2_048
WOKEN_STRIDE = 256
WOKEN = """SELECT w.due_seq, w.attempt_id, w.epoch, k.reason, k.reason_limit,
    CASE WHEN k.hold_by IS NOT NULL THEN k.reason IS 'hold'
      ELSE k.reason IS 'over_budget' AND instr(k.permits, 'budget') = 0 END AS stands
  FROM wait AS w INDEXED BY wait_woken CROSS JOIN work AS k ON k.id = w.work_id
  WHERE w.state = 'satisfied' AND w.due_seq IS NOT NULL AND w.pool = :pool AND (w.due_seq, w.attempt_id) > (:seq, :attempt)
  ORDER BY w.due_seq, w.attempt_id LIMIT :limit + 0"""
"""Places of woken attempts. `stands`: a person or a budget holds it back, and its Work says so."""
ASKED = """SELECT * FROM wait INDEXED BY wait_asked WHERE state = 'registered' AND ask IS NOT NULL
  ORDER BY registered_seq LIMIT ? + 0"""
WAKE_SEQ = "SELECT wake_seq FROM wait WHERE attempt_id = :attempt AND epoch = :launch - 1"
WAIT_AT = "SELECT * FROM wait WHERE attempt_id = ? AND epoch = ?"
CHAIN_REFUSALS = """SELECT r.*, a.work_id FROM chain_refusal AS r JOIN attempt AS a ON a.id = r.attempt_id
  WHERE r.attempt_id = ? ORDER BY r.epoch, r.derived"""
CHAINS_STOPPED = """SELECT r.*, a.work_id FROM chain_refusal AS r JOIN attempt AS a ON a.id = r.attempt_id AND a.epoch = r.epoch
  JOIN work AS w ON w.id = a.work_id AND w.attempts_used = a.number WHERE w.ended_at_us IS NULL
  ORDER BY r.refused_at_us DESC, r.attempt_id, r.derived LIMIT ? + 0"""
PUBLISHED = """SELECT p.seq, p.type, p.correlate, e.data FROM published AS p JOIN event AS e ON e.seq = p.seq
  WHERE p.seq = ?"""


class WaitReads(WorkReads):
    """See `wait_contract.WaitReads`."""

    def declarations(self, attempt_id: AttemptId, *, unapplied: bool = False) -> list[Recorded]:
        """See `WaitReads.declarations`."""
        which = "AND applied_epoch IS NULL" if unapplied else ""
        return [recorded_of_row(row) for row in self._db.rows(DECLARATIONS.format(which=which), (attempt_id,))]

    def reported(self, attempt_id: AttemptId) -> Usage:
        """See `WaitReads.reported`."""
        text = self._db.value("SELECT usage FROM report WHERE attempt_id = ?", (attempt_id,))
        return NO_USAGE if text is None else Usage.from_plain(json.loads(text))

    def awaited(self, work_id: WorkId) -> Awaited | None:
        """See `WaitReads.awaited`."""
        row = self._db.one(AWAITED, (work_id,))
        return None if row is None else awaited_of_row(row)

    def asked(self, *, limit: int) -> list[Awaited]:
        """See `WaitReads.asked`."""
        return [awaited_of_row(row) for row in self._db.rows(ASKED, (limit,))]

    def woken(
        self,
        pool: str,
        *,
        after: tuple[int, str] | None = None,
        limit: int,
        told: Collection[tuple[Reason, str | None]] = (),
    ) -> WokenPage:
        """See `WaitReads.woken`. Reads the rows of nothing but what it gives back."""
        found: list[Woken] = []
        end = after or (0, "")
        for _ in range(WOKEN_LOOK // WOKEN_STRIDE):
            places = self._db.rows(WOKEN, {"pool": pool, "seq": end[0], "attempt": end[1], "limit": WOKEN_STRIDE})
            for row in places:
                end = (row["due_seq"], row["attempt_id"])
                if row["stands"] or (row["reason"], row["reason_limit"]) in told:
                    continue
                found += self._readable([row], self._woken_at)
                if len(found) == limit:
                    return WokenPage(tuple(found), end)
            if len(places) < WOKEN_STRIDE:
                return WokenPage(tuple(found), None)
        return WokenPage(tuple(found), end)

    def _woken_at(self, place: Row) -> Woken:
        wait = self._db.one(WAIT_AT, (place["attempt_id"], place["epoch"]))
        assert wait is not None, "one snapshot"
        awaited = awaited_of_row(wait)
        attempt = self._db.one("SELECT * FROM attempt WHERE id = ?", (awaited.attempt_id,))
        work = self._db.one("SELECT * FROM work WHERE id = ?", (awaited.work_id,))
        snapshot = self._db.one("SELECT * FROM snapshot WHERE attempt_id = ?", (awaited.attempt_id,))
        assert attempt is not None, "a wait has its attempt"
        assert work is not None, "and its Work"
        assert snapshot is not None, "and what that pinned"
        return Woken(awaited, rows.attempt_of_row(attempt), rows.snapshot_of_row(snapshot), rows.work_of_row(work))

    def wake(self, attempt: Attempt) -> Wake | None:
        """See `WaitReads.wake`."""
        seq = self._db.value(WAKE_SEQ, {"attempt": attempt.id, "launch": attempt.launch_epoch})
        return None if seq is None else self._wake_at(seq)

    def _wake_at(self, seq: int) -> Wake:
        row = self._db.one(PUBLISHED, (seq,))
        assert row is not None, "what wakes somebody is kept"
        told = json.loads(row["data"])
        data = told["data"] if "data" in told else columns.json_text(told)
        return Wake(row["seq"], row["type"], row["correlate"], data)

    def waking(self, *, limit: int) -> list[int]:
        """See `WaitReads.waking`."""
        return [row[0] for row in self._db.rows("SELECT seq FROM waking ORDER BY seq LIMIT ? + 0", (limit,))]

    def chain_refusals(self, attempt_id: AttemptId) -> list[ChainRefusal]:
        """See `WaitReads.chain_refusals`."""
        return self._readable(self._db.rows(CHAIN_REFUSALS, (attempt_id,)), chain_refusal_of_row)

    def chains_stopped(self, *, limit: int) -> list[ChainRefusal]:
        """See `WaitReads.chains_stopped`."""
        return self._readable(self._db.rows(CHAINS_STOPPED, (limit,)), chain_refusal_of_row)

    def correlations(self, work_id: WorkId) -> tuple[str, ...]:
        """See `WaitReads.correlations`."""
        found = self._db.rows("SELECT key FROM correlation WHERE work_id = ? ORDER BY key", (work_id,))
        return tuple(row[0] for row in found)
