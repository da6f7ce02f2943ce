"""Every read, as SQL beside the method that runs it. Each is one bounded statement over what is live, or by key.

A bound is written `LIMIT ? + 0`: SQLite since 3.47 plans by the value of a bare `LIMIT ?` and so compiles the statement anew each
time it is bound, which costs ten times what running it does. A state is written `CAST(? AS TEXT)` for the same reason: partial
indexes are of states, so a bare one would be planned by its value too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

from shared.ids import AttemptId, Incarnation, WorkId, attempt_directory
from shared.model.attempt import Attempt, AttemptState, Lease, LeaseKey, Segment, Snapshot
from shared.model.cancel import Cancellation
from shared.model.host import ClockMark, Leader, PassRecord, StopOrder, Worker
from shared.model.work import Input, Reason, Work, WorkState
from shared.policy.capacity import Usage
from shared.policy.lease import budget_left_us
from shared.store.contract import Assignment, ConfigGeneration, Event, IdleState, Recoverable, UnreadableRow
from shared.store.sqlite import columns, host_rows, readable, rows
from shared.store.sqlite.agent_reads import AgentReads
from shared.store.sqlite.connection import Row
from shared.store.sqlite.fragments import ACCEPT_BY, LIVE, NOT_LIVE, RECOVERABLE, SLOT, UNEXCLUDED
from shared.store.sqlite.ready_reads import ReadyReads

T = TypeVar("T")

IDLE_COUNTED_MAX = 100
"""What keeps a home from being idle is counted, and named, no further."""

WORK = "SELECT * FROM work WHERE id = :work"
WORKS = "SELECT * FROM work WHERE number > :after {like} ORDER BY number LIMIT :limit + 0"
WORKS_OF_STATE = """SELECT * FROM work WHERE state = CAST(:state AS TEXT) AND number > :after {like}
  ORDER BY number LIMIT :limit + 0"""
COUNT_WORKS = "SELECT count(*) FROM (SELECT 1 FROM work WHERE state = CAST(? AS TEXT) LIMIT ? + 0)"
PENDING_INPUTS = "SELECT number FROM input WHERE work_id = ? AND consumed_by IS NULL ORDER BY number LIMIT ? + 0"
UNEXCLUDED_ATTEMPT = f"SELECT id FROM attempt WHERE work_id = ? AND {UNEXCLUDED}"
ATTEMPT = "SELECT * FROM attempt WHERE id = :attempt"
LAST_ATTEMPTS = """SELECT * FROM attempt WHERE work_id = :work AND number < :before
  ORDER BY number DESC LIMIT :limit + 0"""
NEXT_ATTEMPTS = """SELECT * FROM attempt WHERE work_id = :work AND number > :after
  ORDER BY number LIMIT :limit + 0"""
NUMBER_MAX = 2**62
HOLDERS = f"SELECT * FROM attempt WHERE {SLOT} ORDER BY started_at_us, id LIMIT ? + 0"
USAGE = f"SELECT pool, scope, count(*) AS held FROM attempt WHERE {SLOT} GROUP BY pool, scope"
WORKERS = f"""SELECT w.*,
  (SELECT count(*) FROM lease AS l WHERE l.owner = w.id AND {LIVE}) AS in_use,
  EXISTS (SELECT 1 FROM lease AS l WHERE l.owner = w.id AND {LIVE} AND l.accepted_at_us IS NULL AND {ACCEPT_BY} <= :mono)
    AS overdue
  FROM worker AS w WHERE (w.state = 'gone') = :gone ORDER BY w.name, w.number"""
WORKERS_PRESENT = WORKERS.replace("(w.state = 'gone') = :gone", "w.state <> 'gone'")
ASSIGNMENTS = f"""SELECT a.*, l.expires_mono_us AS lease_expires_mono_us, s.attempt_id, s.body FROM lease AS l
  JOIN attempt AS a ON a.id = l.attempt_id JOIN snapshot AS s ON s.attempt_id = a.id
  WHERE l.owner = :owner AND {LIVE} AND l.accepted_at_us IS NULL AND a.ended_at_us IS NULL
  ORDER BY l.claimed_mono_us, l.attempt_id LIMIT :limit + 0"""
HELD = f"""SELECT l.attempt_id, l.epoch FROM lease AS l WHERE l.owner = :owner AND {LIVE} AND l.accepted_at_us IS NOT NULL
  ORDER BY l.attempt_id"""
RECOVERABLE_ATTEMPTS = f"""SELECT attempt.*, s.attempt_id, s.body, l.revoked_reason AS revoked, l.owner AS last_owner FROM attempt
  JOIN lease AS l ON l.attempt_id = attempt.id JOIN snapshot AS s ON s.attempt_id = attempt.id
  WHERE attempt.id > :after AND {RECOVERABLE} AND {NOT_LIVE} ORDER BY attempt.id LIMIT :limit + 0"""
NEXT_LAPSE = """SELECT min(expires_mono_us) FROM lease
  WHERE revoked_at_us IS NULL AND boot_id = :boot AND expires_mono_us > :mono"""
NEXT_OVERDUE = f"""SELECT min({ACCEPT_BY}) FROM lease AS l
  WHERE l.accepted_at_us IS NULL AND l.revoked_at_us IS NULL AND l.boot_id = :boot"""
NEXT_OUT_OF_TIME = f"""SELECT min(due) FROM (SELECT CASE WHEN budget_boot_id = :boot THEN budget_since_mono_us + budget_us
    ELSE :mono + budget_since_at_us + budget_us - :wall END AS due
  FROM attempt JOIN lease AS l ON l.attempt_id = attempt.id WHERE {RECOVERABLE} AND {NOT_LIVE}) WHERE due > :mono"""
ORDER_LIVE = "boot_id = :boot AND expires_mono_us > :mono"
STOP_ORDERS = "SELECT * FROM stop_order WHERE closed_at_us IS NULL {which} ORDER BY id LIMIT :limit + 0"
OPEN_STOP_ORDER = "SELECT * FROM stop_order WHERE attempt_id = ? AND closed_at_us IS NULL"
CANCELLATIONS = "SELECT * FROM cancellation WHERE work_id = ? ORDER BY id DESC LIMIT ? + 0"
_LOST = "EXISTS (SELECT 1 FROM unreadable WHERE table_name IN ('attempt', 'snapshot') AND row_key = attempt.id)"
"""Nobody holds the attempt, and nobody can recover it: one of its rows cannot be read."""
_ASKS_ALONE = """w.state = 'registered' AND w.ask IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM timer AS t WHERE t.work_id = w.work_id AND t.state = 'armed')"""
"""A wait that a person's answer ends, and nothing else."""
IDLE_LIVE = f"""SELECT count(*) FROM
  (SELECT 1 FROM attempt WHERE {UNEXCLUDED} AND state <> 'recovery_required' AND NOT {_LOST}
    AND NOT EXISTS (SELECT 1 FROM wait AS w WHERE w.attempt_id = attempt.id AND w.epoch = attempt.epoch AND {_ASKS_ALONE})
  LIMIT ? + 0)"""
_IN_QUARANTINE = "EXISTS (SELECT 1 FROM routine WHERE binding = reason_limit AND quarantined_at_us IS NOT NULL)"
"""By the binding itself: the reason that a Work was given stays until the next pass."""
_READABLE = "NOT EXISTS (SELECT 1 FROM unreadable WHERE table_name = 'work' AND row_key = work.id)"
IDLE_WAITING = f"""SELECT count(*) FROM (SELECT 1 FROM work WHERE state IN ('ready', 'backoff')
      AND (reason IS NOT 'quarantined' OR NOT {_IN_QUARANTINE}) AND {_READABLE}
    UNION ALL SELECT 1 FROM wait AS w INDEXED BY wait_for_next JOIN work ON work.id = w.work_id
      WHERE w.state = 'registered' AND resume = 0 AND work.state = 'waiting' AND {_READABLE} AND NOT ({_ASKS_ALONE})
    LIMIT ? + 0)"""
IDLE_NEEDS_PERSON = f"""SELECT id FROM (SELECT id, started_at_us AS at FROM attempt WHERE state = 'recovery_required')
  UNION ALL SELECT id FROM work INDEXED BY work_held WHERE state = 'held'
  UNION ALL SELECT id FROM work INDEXED BY work_quarantined WHERE state = 'ready' AND reason = 'quarantined' AND {_IN_QUARANTINE}
  UNION ALL SELECT row_key FROM unreadable JOIN work ON work.id = row_key
    WHERE table_name = 'work' AND ended_at_us IS NULL AND state IN ('ready', 'backoff')
  UNION ALL SELECT attempt.id FROM unreadable JOIN attempt ON attempt.id = row_key
    WHERE table_name IN ('attempt', 'snapshot') AND {UNEXCLUDED} AND state <> 'recovery_required'
  UNION ALL SELECT w.attempt_id FROM wait AS w INDEXED BY wait_asked WHERE {_ASKS_ALONE}
  LIMIT ? + 0"""
ATTEMPT_EVENTS = "SELECT * FROM event WHERE attempt_id = ? ORDER BY seq DESC LIMIT ? + 0"
UNREADABLE = """SELECT * FROM unreadable WHERE (table_name, row_key) > (?, ?)
  ORDER BY table_name, row_key LIMIT ? + 0"""
NEEDS_PERSON = "SELECT * FROM attempt WHERE state = 'recovery_required' ORDER BY started_at_us, id LIMIT ? + 0"


class Reads(ReadyReads, AgentReads):
    """Reads of one snapshot; implements `contract.ReadTx`."""

    def work(self, work_id: WorkId) -> Work | None:
        row = self._db.one(WORK, {"work": work_id})
        return None if row is None else rows.work_of_row(row)

    def work_outline(self, work_id: WorkId) -> Work | None:
        """See `ReadTx.work_outline`."""
        row = self._db.one(WORK, {"work": work_id})
        return None if row is None else rows.outline_of_row(row)

    def last_work_number(self) -> int:
        """See `ReadTx.last_work_number`."""
        return int(self._db.value("SELECT value FROM counter WHERE name = 'work'") or 0)

    def works(
        self,
        *,
        states: Sequence[WorkState],
        after: int,
        limit: int,
        to: int | None = None,
        reasons: Collection[Reason] = (),
        scope: str | None = None,
        binding: str | None = None,
    ) -> list[Work]:
        """See `ReadTx.works`."""
        like, params = _like(to, reasons, scope, binding)
        works: list[Work] = []
        while len(works) < limit:
            room = limit - len(works)
            found = self._rows_of(states, like, params | {"after": after}, room)
            works += self._readable(found, rows.work_of_row)
            if len(found) < room:
                break
            after = found[-1]["number"]
        return works

    def _rows_of(self, states: Sequence[WorkState], like: str, params: dict[str, object], limit: int) -> list[Row]:
        """Of each state by itself, so that none is looked for among all the others."""
        params = params | {"limit": limit}
        if not states:
            return self._db.rows(WORKS.format(like=like), params)
        sql = WORKS_OF_STATE.format(like=like)
        found = [row for state in set(states) for row in self._db.rows(sql, params | {"state": state})]
        return sorted(found, key=lambda row: int(row["number"]))[:limit]

    def count_works(self, state: WorkState, *, cap: int) -> int:
        """See `ReadTx.count_works`."""
        return int(self._db.value(COUNT_WORKS, (state, cap)))

    def pending_inputs(self, work_id: WorkId, *, limit: int) -> list[int]:
        """See `ReadTx.pending_inputs`."""
        return [row[0] for row in self._db.rows(PENDING_INPUTS, (work_id, limit))]

    def inputs(self, numbers: Sequence[int]) -> list[Input]:
        found = (self._db.one("SELECT * FROM input WHERE number = ?", (number,)) for number in numbers)
        return [rows.input_of_row(row) for row in found if row is not None]

    def unexcluded(self, work_id: WorkId) -> AttemptId | None:
        """See `ReadTx.unexcluded`."""
        found = self._db.value(UNEXCLUDED_ATTEMPT, (work_id,))
        return None if found is None else AttemptId(found)

    def attempt(self, attempt_id: AttemptId) -> Attempt | None:
        row = self._db.one(ATTEMPT, {"attempt": attempt_id})
        return None if row is None else rows.attempt_of_row(row)

    def attempts(self, work_id: WorkId) -> list[Attempt]:
        """See `ReadTx.attempts`."""
        found = self._db.rows("SELECT * FROM attempt WHERE work_id = ? ORDER BY number", (work_id,))
        return self._readable(found, rows.attempt_of_row)

    def next_attempts(self, work_id: WorkId, *, after: int, limit: int) -> list[Attempt]:
        """See `ReadTx.next_attempts`."""
        listed: list[Attempt] = []
        while len(listed) < limit:
            room = limit - len(listed)
            found = self._db.rows(NEXT_ATTEMPTS, {"work": work_id, "after": after, "limit": room})
            listed += self._readable(found, rows.attempt_of_row)
            if len(found) < room:
                break
            after = found[-1]["number"]
        return listed

    def last_attempts(self, work_id: WorkId, *, before: int | None, limit: int) -> list[Attempt]:
        """See `ReadTx.last_attempts`."""
        params = {"work": work_id, "before": NUMBER_MAX if before is None else before, "limit": limit}
        return self._readable(reversed(self._db.rows(LAST_ATTEMPTS, params)), rows.attempt_of_row)

    def snapshot(self, attempt_id: AttemptId) -> Snapshot | None:
        row = self._db.one("SELECT attempt_id, body FROM snapshot WHERE attempt_id = ?", (attempt_id,))
        return None if row is None else rows.snapshot_of_row(row)

    def segments(self, attempt_id: AttemptId) -> list[Segment]:
        """See `ReadTx.segments`."""
        found = self._db.rows("SELECT * FROM segment WHERE attempt_id = ? ORDER BY epoch", (attempt_id,))
        return self._readable(found, rows.segment_of_row)

    def lease(self, attempt_id: AttemptId) -> Lease | None:
        row = self._db.one("SELECT * FROM lease WHERE attempt_id = ?", (attempt_id,))
        return None if row is None else rows.lease_of_row(row)

    def usage(self) -> Usage:
        """See `ReadTx.usage`."""
        counted = (columns.as_text(row) for row in self._db.rows(USAGE))
        return Usage({(row["pool"], row["scope"]): row["held"] for row in counted})

    def holders(self, *, limit: int) -> list[Attempt]:
        """See `ReadTx.holders`."""
        return self._readable(self._db.rows(HOLDERS, (limit,)), rows.attempt_of_row)

    def config(self, number: int | None = None) -> ConfigGeneration | None:
        """See `ReadTx.config`."""
        if number is None:
            row = self._db.one("SELECT * FROM config ORDER BY number DESC LIMIT 1")
        else:
            row = self._db.one("SELECT * FROM config WHERE number = ?", (number,))
        return None if row is None else host_rows.config_of_row(row)

    def leader(self) -> Leader | None:
        row = self._db.one("SELECT * FROM leader")
        return None if row is None else host_rows.leader_of_row(row)

    def workers(self, *, gone: bool = False) -> list[Worker]:
        """See `ReadTx.workers`."""
        sql = WORKERS if gone else WORKERS_PRESENT
        params = self._clock | {"gone": 1} if gone else self._clock
        return self._readable(self._db.rows(sql, params), host_rows.worker_of_row)

    def assignments(self, owner: Incarnation, *, limit: int) -> list[Assignment]:
        """See `ReadTx.assignments`."""
        found = self._db.rows(ASSIGNMENTS, self._clock | {"owner": owner, "limit": limit})

        def assignment(row: Row) -> Assignment:
            attempt, snapshot = rows.attempt_of_row(row), rows.snapshot_of_row(row)
            key = LeaseKey(attempt.id, attempt.epoch, owner)
            inputs = tuple(self.inputs(snapshot.inputs))
            recovery = attempt.state is AttemptState.RECOVERING
            wake = self.wake(attempt) if attempt.was_resumed else None
            return Assignment(key, attempt, snapshot, recovery, inputs, row["lease_expires_mono_us"], wake)

        return self._readable(found, assignment)

    def held(self, owner: Incarnation) -> list[LeaseKey]:
        """See `ReadTx.held`."""
        found = self._db.rows(HELD, self._clock | {"owner": owner})
        return [LeaseKey(AttemptId(row[0]), row[1], owner) for row in found]

    def recoverable(self, *, after: AttemptId | None, limit: int) -> list[Recoverable]:
        """See `ReadTx.recoverable`."""

        def recoverable(row: Row) -> Recoverable:
            attempt, snapshot = rows.attempt_of_row(row), rows.snapshot_of_row(row)
            out_of_time = budget_left_us(attempt, self._now) == 0
            return Recoverable(attempt, snapshot, row["revoked"], Incarnation(row["last_owner"]), out_of_time)

        listed: list[Recoverable] = []
        while len(listed) < limit:
            room = limit - len(listed)
            found = self._db.rows(RECOVERABLE_ATTEMPTS, self._clock | {"after": after or "", "limit": room})
            listed += self._readable(found, recoverable)
            if len(found) < room:
                break
            after = AttemptId(found[-1]["id"])
        return listed

    def next_due_mono_us(self) -> int | None:
        """See `ReadTx.next_due_mono_us`. What has lapsed or run out already is not due again."""
        dues = [self._db.value(sql, self._clock) for sql in (NEXT_LAPSE, NEXT_OVERDUE)]
        dues.append(self._db.value(NEXT_OUT_OF_TIME, self._clock | {"wall": self._now.wall_us}))
        dues.append(self._next_timer_mono_us())
        return min((due for due in dues if due is not None), default=None)

    def stop_orders(
        self, *, owner: Incarnation | None = None, unassigned: bool = False, limit: int = 64
    ) -> list[StopOrder]:
        """See `ReadTx.stop_orders`."""
        which = ""
        if owner is not None:
            which = f"AND owner = :owner AND {ORDER_LIVE}"
        elif unassigned:
            which = f"AND NOT ({ORDER_LIVE})"
        found = self._db.rows(STOP_ORDERS.format(which=which), self._clock | {"owner": owner, "limit": limit})
        return self._readable(found, lambda row: host_rows.stop_order_of_row(row, self._now))

    def open_stop_order(self, attempt_id: AttemptId) -> StopOrder | None:
        """See `ReadTx.open_stop_order`."""
        found = self._db.rows(OPEN_STOP_ORDER, (attempt_id,))
        return next(iter(self._readable(found, lambda row: host_rows.stop_order_of_row(row, self._now))), None)

    def cancellations(self, work_id: WorkId, *, limit: int = 64) -> list[Cancellation]:
        """See `ReadTx.cancellations`."""
        found = self._db.rows(CANCELLATIONS, (work_id, limit))
        return self._readable(reversed(found), rows.cancellation_of_row)

    def idle_state(self) -> IdleState:
        most = (IDLE_COUNTED_MAX,)
        live, waiting = self._db.value(IDLE_LIVE, most), self._db.value(IDLE_WAITING, most)
        names = dict.fromkeys(row[0] for row in self._db.rows(IDLE_NEEDS_PERSON, most))
        return IdleState(live, waiting, tuple(names))

    def last_pass(self) -> PassRecord | None:
        row = self._db.one("SELECT * FROM pass ORDER BY seq DESC LIMIT 1")
        return None if row is None else host_rows.pass_of_row(row)

    def clock_mark(self) -> ClockMark | None:
        """See `ReadTx.clock_mark`."""
        row = self._db.one("SELECT * FROM clock")
        return None if row is None else host_rows.clock_mark_of_row(row)

    def events(self, *, after: int, limit: int) -> list[Event]:
        """See `ReadTx.events`."""
        found = self._db.rows("SELECT * FROM event WHERE seq > ? ORDER BY seq LIMIT ? + 0", (after, limit))
        return self._readable(found, rows.event_of_row)

    def attempt_events(self, attempt_id: AttemptId, *, limit: int) -> list[Event]:
        """See `ReadTx.attempt_events`."""
        found = self._db.rows(ATTEMPT_EVENTS, (attempt_id, limit))
        return self._readable(reversed(found), rows.event_of_row)

    def unreadable_rows(self, *, after: tuple[str, str] | None, limit: int) -> list[UnreadableRow]:
        """See `ReadTx.unreadable_rows`."""
        found = self._db.rows(UNREADABLE, (*(after or ("", "")), limit))
        return [UnreadableRow(row["table_name"], row["row_key"], row["error"]) for row in found]

    def is_unreadable(self, row: UnreadableRow) -> bool:
        """See `ReadTx.is_unreadable`."""
        return readable.is_unreadable(self._db, row)

    def needs_person(self, *, limit: int) -> list[Attempt]:
        """See `ReadTx.needs_person`."""
        return self._readable(self._db.rows(NEEDS_PERSON, (limit,)), rows.attempt_of_row)

    def attempt_directories(self, attempt_id: AttemptId) -> list[str]:
        """See `ReadTx.attempt_directories`."""
        attempt = self.attempt(attempt_id)
        epochs = 0 if attempt is None else attempt.epoch
        return [attempt_directory(attempt_id, epoch) for epoch in range(epochs, 0, -1)]


def _like(
    to: int | None, reasons: Collection[Reason], scope: str | None, binding: str | None
) -> tuple[str, dict[str, object]]:
    """What else is asked of a Work, as SQL, and its parameters."""
    sql, params = "", dict[str, object]()
    if to is not None:
        sql += " AND number <= :to"
        params["to"] = to
    if reasons:
        named = {f"reason{place}": reason for place, reason in enumerate(sorted(reasons))}
        sql += f" AND reason IN ({', '.join(f':{name}' for name in named)})"
        params |= named
    if scope is not None:
        sql += " AND (scope = :scope OR substr(scope, 1, :length) = :below)"
        params |= {"scope": scope, "below": f"{scope}/", "length": len(scope) + 1}
    if binding is not None:
        sql += " AND binding = :binding"
        params["binding"] = binding
    return sql, params
