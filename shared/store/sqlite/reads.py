"""Every read, as SQL beside the method that runs it. Each is one bounded statement over what is live, or by key."""

from __future__ import annotations

from collections.abc import Sequence

from shared.ids import AttemptId, Incarnation, WorkId, attempt_directory
from shared.model.attempt import Attempt, Lease, LeaseKey, Segment, Snapshot
from shared.model.cancel import Cancellation
from shared.model.host import ClockMark, Leader, PassRecord, StopOrder, Worker
from shared.model.instant import Instant
from shared.model.settings import scope_chain
from shared.model.work import Input, Work, WorkState
from shared.policy.capacity import Usage
from shared.policy.lease import budget_left_us
from shared.policy.steps import is_final_work
from shared.store.contract import Assignment, ConfigGeneration, Event, IdleState, ReadyPage, Recoverable
from shared.store.sqlite import rows
from shared.store.sqlite.connection import Connection
from shared.store.sqlite.fragments import ACCEPT_BY, LIVE, NOT_LIVE, RECOVERABLE, SLOT, UNEXCLUDED

WAITING_COUNTED_MAX = 10_001
READY_LOOK = 2_048
READY_STRIDE = 256

WORK = "SELECT * FROM work WHERE id = :work"
READY_SAME_PRIORITY = """SELECT * FROM work WHERE state = 'ready' AND pool = :pool AND priority = :priority AND ready_seq > :seq
  {skip} ORDER BY ready_seq LIMIT :limit"""
READY_LOWER = """SELECT * FROM work WHERE state = 'ready' AND pool = :pool AND priority < :priority
  {skip} ORDER BY priority DESC, ready_seq LIMIT :limit"""
READY_FIRST = """SELECT * FROM work WHERE state = 'ready' AND pool = :pool
  {skip} ORDER BY priority DESC, ready_seq LIMIT :limit"""
READY_PLACES_FIRST = """SELECT priority, ready_seq, scope FROM work WHERE state = 'ready' AND pool = :pool
  ORDER BY priority DESC, ready_seq LIMIT :limit"""
READY_PLACES_SAME = """SELECT priority, ready_seq, scope FROM work WHERE state = 'ready' AND pool = :pool
  AND priority = :priority AND ready_seq > :seq ORDER BY ready_seq LIMIT :limit"""
READY_PLACES_LOWER = """SELECT priority, ready_seq, scope FROM work WHERE state = 'ready' AND pool = :pool
  AND priority < :priority ORDER BY priority DESC, ready_seq LIMIT :limit"""
READY_AT = "SELECT * FROM work WHERE state = 'ready' AND pool = :pool AND priority = :priority AND ready_seq = :seq"
READY_NEXT_POOL = "SELECT min(pool) FROM work WHERE state = 'ready' AND pool > ?"
READY_COUNTS = """SELECT reason, count(*) FROM
  (SELECT reason FROM work WHERE state = 'ready' AND pool = ? ORDER BY priority DESC, ready_seq LIMIT ?) GROUP BY reason"""
READY_LIMITS = """SELECT reason_limit, count(*) FROM (SELECT reason_limit FROM work WHERE state = 'ready' AND pool = ?
  ORDER BY priority DESC, ready_seq LIMIT ?) WHERE reason_limit IS NOT NULL GROUP BY reason_limit"""
PENDING_INPUTS = "SELECT number FROM input WHERE work_id = ? AND consumed_by IS NULL ORDER BY number LIMIT ?"
UNEXCLUDED_ATTEMPT = f"SELECT id FROM attempt WHERE work_id = ? AND {UNEXCLUDED}"
ATTEMPT = "SELECT * FROM attempt WHERE id = :attempt"
HOLDERS = f"SELECT * FROM attempt WHERE {SLOT} ORDER BY started_at_us, id LIMIT ?"
USAGE = f"SELECT pool, scope, count(*) FROM attempt WHERE {SLOT} GROUP BY pool, scope"
WORKERS = f"""SELECT w.*,
  (SELECT count(*) FROM lease AS l WHERE l.owner = w.id AND {LIVE}) AS in_use,
  EXISTS (SELECT 1 FROM lease AS l WHERE l.owner = w.id AND {LIVE} AND l.accepted_at_us IS NULL AND {ACCEPT_BY} <= :mono)
    AS overdue
  FROM worker AS w WHERE (w.state = 'gone') = :gone ORDER BY w.name, w.number"""
WORKERS_PRESENT = WORKERS.replace("(w.state = 'gone') = :gone", "w.state <> 'gone'")
ASSIGNMENTS = f"""SELECT a.*, l.expires_mono_us AS lease_expires_mono_us, s.body AS snapshot FROM lease AS l
  JOIN attempt AS a ON a.id = l.attempt_id JOIN snapshot AS s ON s.attempt_id = a.id
  WHERE l.owner = :owner AND {LIVE} AND l.accepted_at_us IS NULL AND a.ended_at_us IS NULL
  ORDER BY l.claimed_mono_us, l.attempt_id LIMIT :limit"""
HELD = f"""SELECT l.attempt_id, l.epoch FROM lease AS l WHERE l.owner = :owner AND {LIVE} AND l.accepted_at_us IS NOT NULL
  ORDER BY l.attempt_id"""
RECOVERABLE_ATTEMPTS = f"""SELECT attempt.*, s.body AS snapshot, l.revoked_reason AS revoked, l.owner AS last_owner FROM attempt
  JOIN lease AS l ON l.attempt_id = attempt.id JOIN snapshot AS s ON s.attempt_id = attempt.id
  WHERE attempt.id > :after AND {RECOVERABLE} AND {NOT_LIVE} ORDER BY attempt.id LIMIT :limit"""
BACKOFF_DUE = """SELECT id FROM work WHERE state = 'backoff' AND backoff_boot_id = :boot
  AND backoff_since_mono_us + backoff_us <= :mono ORDER BY backoff_since_mono_us + backoff_us LIMIT :limit"""
NEXT_LAPSE = """SELECT min(expires_mono_us) FROM lease
  WHERE revoked_at_us IS NULL AND boot_id = :boot AND expires_mono_us > :mono"""
NEXT_OVERDUE = f"""SELECT min({ACCEPT_BY}) FROM lease AS l
  WHERE l.accepted_at_us IS NULL AND l.revoked_at_us IS NULL AND l.boot_id = :boot"""
NEXT_BACKOFF = (
    """SELECT min(backoff_since_mono_us + backoff_us) FROM work WHERE state = 'backoff' AND backoff_boot_id = :boot"""
)
NEXT_OUT_OF_TIME = f"""SELECT min(due) FROM (SELECT CASE WHEN budget_boot_id = :boot THEN budget_since_mono_us + budget_us
    ELSE :mono + budget_since_at_us + budget_us - :wall END AS due
  FROM attempt JOIN lease AS l ON l.attempt_id = attempt.id WHERE {RECOVERABLE} AND {NOT_LIVE}) WHERE due > :mono"""
ORDER_LIVE = "boot_id = :boot AND expires_mono_us > :mono"
STOP_ORDERS = "SELECT * FROM stop_order WHERE closed_at_us IS NULL {which} ORDER BY id LIMIT :limit"
CANCELLATIONS = "SELECT * FROM cancellation WHERE work_id = ? ORDER BY id DESC LIMIT ?"
IDLE_LIVE = f"SELECT count(*) FROM attempt WHERE {UNEXCLUDED} AND state <> 'recovery_required'"
IDLE_WAITING = """SELECT count(*) FROM
  (SELECT 1 FROM work WHERE ended_at_us IS NULL AND state IN ('ready', 'backoff') LIMIT ?)"""
IDLE_NEEDS_PERSON = """SELECT id FROM (SELECT id, started_at_us AS at FROM attempt WHERE state = 'recovery_required')
  UNION ALL SELECT id FROM work WHERE state = 'held'"""
ATTEMPT_EVENTS = "SELECT * FROM event WHERE attempt_id = ? ORDER BY seq DESC LIMIT ?"
NEEDS_PERSON = "SELECT * FROM attempt WHERE state = 'recovery_required' ORDER BY started_at_us, id LIMIT ?"


class Reads:
    """Reads of one snapshot; implements `contract.ReadTx`."""

    def __init__(self, connection: Connection, now: Instant) -> None:
        self._db = connection
        self._now = now
        self._clock = {"boot": now.boot_id, "mono": now.mono_us}

    @property
    def now(self) -> Instant:
        """See `ReadTx.now`."""
        return self._now

    def work(self, work_id: WorkId) -> Work | None:
        row = self._db.one(WORK, {"work": work_id})
        return None if row is None else rows.work_of_row(row)

    def last_work_number(self) -> int:
        """See `ReadTx.last_work_number`."""
        return int(self._db.value("SELECT value FROM counter WHERE name = 'work'") or 0)

    def works(self, *, states: Sequence[WorkState], after: int, limit: int) -> list[Work]:
        """See `ReadTx.works`."""
        wanted = f" AND state IN ({', '.join('?' * len(states))})" if states else ""
        if states and not any(is_final_work(state) for state in states):
            wanted += " AND ended_at_us IS NULL"  # lets the index of open Works answer
        sql = f"SELECT * FROM work WHERE number > ?{wanted} ORDER BY number LIMIT ?"
        return [rows.work_of_row(row) for row in self._db.rows(sql, (after, *states, limit))]

    def ready(
        self, pool: str, *, after: tuple[int, int] | None, limit: int, skip_scopes: Sequence[str] = ()
    ) -> list[Work]:
        """See `ReadTx.ready`."""
        params: dict[str, object] = {"pool": pool, "limit": limit}
        skip = ""
        for place, scope in enumerate(skip_scopes):
            skip += f" AND NOT (scope = :skip{place} OR substr(scope, 1, :length{place}) = :below{place})"
            params |= {f"skip{place}": scope, f"below{place}": f"{scope}/", f"length{place}": len(scope) + 1}
        if after is None:
            found = self._db.rows(READY_FIRST.format(skip=skip), params)
        else:
            params |= {"priority": after[0], "seq": after[1]}
            found = self._db.rows(READY_SAME_PRIORITY.format(skip=skip), params)
            if len(found) < limit:
                found += self._db.rows(READY_LOWER.format(skip=skip), params | {"limit": limit - len(found)})
        return [rows.work_of_row(row) for row in found]

    def ready_page(
        self,
        pool: str,
        *,
        after: tuple[int, int] | None,
        limit: int,
        skip_scopes: Sequence[str] = (),
        look: int = READY_LOOK,
    ) -> ReadyPage:
        """See `ReadTx.ready_page`. Walks the index alone, and reads the row of what it gives back."""
        skipped = frozenset(skip_scopes)
        works: list[Work] = []
        looked = 0
        while len(works) < limit and looked < look:
            wanted = min(READY_STRIDE, look - looked)
            places = self._ready_places(pool, after, wanted)
            for priority, seq, scope in places:
                after = (priority, seq)
                looked += 1
                if skipped.isdisjoint(scope_chain(scope)):
                    row = self._db.one(READY_AT, {"pool": pool, "priority": priority, "seq": seq})
                    assert row is not None, "one snapshot"
                    works.append(rows.work_of_row(row))
                    if len(works) == limit:
                        return ReadyPage(tuple(works), after)
            if len(places) < wanted:
                return ReadyPage(tuple(works), None)
        return ReadyPage(tuple(works), after)

    def _ready_places(self, pool: str, after: tuple[int, int] | None, limit: int) -> list[tuple[int, int, str]]:
        params: dict[str, object] = {"pool": pool, "limit": limit}
        if after is None:
            return [tuple(row) for row in self._db.rows(READY_PLACES_FIRST, params)]
        params |= {"priority": after[0], "seq": after[1]}
        found = self._db.rows(READY_PLACES_SAME, params)
        if len(found) < limit:
            found += self._db.rows(READY_PLACES_LOWER, params | {"limit": limit - len(found)})
        return [tuple(row) for row in found]

    def pending_inputs(self, work_id: WorkId, *, limit: int) -> list[int]:
        """See `ReadTx.pending_inputs`."""
        return [row[0] for row in self._db.rows(PENDING_INPUTS, (work_id, limit))]

    def inputs(self, numbers: Sequence[int]) -> list[Input]:
        found = (self._db.one("SELECT number, body FROM input WHERE number = ?", (number,)) for number in numbers)
        return [Input(row["number"], bytes(row["body"])) for row in found if row is not None]

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
        return [rows.attempt_of_row(row) for row in found]

    def snapshot(self, attempt_id: AttemptId) -> Snapshot | None:
        body = self._db.value("SELECT body FROM snapshot WHERE attempt_id = ?", (attempt_id,))
        return None if body is None else Snapshot.from_json(body)

    def segments(self, attempt_id: AttemptId) -> list[Segment]:
        """See `ReadTx.segments`."""
        found = self._db.rows("SELECT * FROM segment WHERE attempt_id = ? ORDER BY epoch", (attempt_id,))
        return [rows.segment_of_row(row) for row in found]

    def lease(self, attempt_id: AttemptId) -> Lease | None:
        row = self._db.one("SELECT * FROM lease WHERE attempt_id = ?", (attempt_id,))
        return None if row is None else rows.lease_of_row(row)

    def usage(self) -> Usage:
        """See `ReadTx.usage`."""
        return Usage({(row[0], row[1]): row[2] for row in self._db.rows(USAGE)})

    def ready_counts(self, *, cap: int) -> dict[tuple[str, str | None], int]:
        """See `ReadTx.ready_counts`."""
        counts: dict[tuple[str, str | None], int] = {}
        pool = self._db.value(READY_NEXT_POOL, ("",))
        while pool is not None:
            counts |= {(pool, row[0]): row[1] for row in self._db.rows(READY_COUNTS, (pool, cap))}
            pool = self._db.value(READY_NEXT_POOL, (pool,))
        return counts

    def ready_limits(self, *, cap: int) -> dict[tuple[str, str], int]:
        """See `ReadTx.ready_limits`."""
        counts: dict[tuple[str, str], int] = {}
        pool = self._db.value(READY_NEXT_POOL, ("",))
        while pool is not None:
            counts |= {(pool, row[0]): row[1] for row in self._db.rows(READY_LIMITS, (pool, cap))}
            pool = self._db.value(READY_NEXT_POOL, (pool,))
        return counts

    def holders(self, *, limit: int) -> list[Attempt]:
        """See `ReadTx.holders`."""
        return [rows.attempt_of_row(row) for row in self._db.rows(HOLDERS, (limit,))]

    def config(self, number: int | None = None) -> ConfigGeneration | None:
        """See `ReadTx.config`."""
        if number is None:
            row = self._db.one("SELECT * FROM config ORDER BY number DESC LIMIT 1")
        else:
            row = self._db.one("SELECT * FROM config WHERE number = ?", (number,))
        return None if row is None else rows.config_of_row(row)

    def leader(self) -> Leader | None:
        row = self._db.one("SELECT * FROM leader")
        return None if row is None else rows.leader_of_row(row)

    def workers(self, *, gone: bool = False) -> list[Worker]:
        """See `ReadTx.workers`."""
        sql = WORKERS if gone else WORKERS_PRESENT
        params = self._clock | {"gone": 1} if gone else self._clock
        return [rows.worker_of_row(row) for row in self._db.rows(sql, params)]

    def assignments(self, owner: Incarnation, *, limit: int) -> list[Assignment]:
        """See `ReadTx.assignments`."""
        found = self._db.rows(ASSIGNMENTS, self._clock | {"owner": owner, "limit": limit})
        assignments = []
        for row in found:
            attempt = rows.attempt_of_row(row)
            snapshot = Snapshot.from_json(row["snapshot"])
            key = LeaseKey(attempt.id, attempt.epoch, owner)
            inputs = tuple(self.inputs(snapshot.inputs))
            expires_mono_us = row["lease_expires_mono_us"]
            assignments.append(Assignment(key, attempt, snapshot, attempt.epoch > 1, inputs, expires_mono_us))
        return assignments

    def held(self, owner: Incarnation) -> list[LeaseKey]:
        """See `ReadTx.held`."""
        found = self._db.rows(HELD, self._clock | {"owner": owner})
        return [LeaseKey(AttemptId(row[0]), row[1], owner) for row in found]

    def recoverable(self, *, after: AttemptId | None, limit: int) -> list[Recoverable]:
        """See `ReadTx.recoverable`."""
        found = self._db.rows(RECOVERABLE_ATTEMPTS, self._clock | {"after": after or "", "limit": limit})
        listed = []
        for row in found:
            attempt = rows.attempt_of_row(row)
            snapshot, last_owner = Snapshot.from_json(row["snapshot"]), Incarnation(row["last_owner"])
            out_of_time = budget_left_us(attempt, self._now) == 0
            listed.append(Recoverable(attempt, snapshot, row["revoked"], last_owner, out_of_time))
        return listed

    def backoff_due(self, *, limit: int) -> list[WorkId]:
        """See `ReadTx.backoff_due`."""
        return [WorkId(row[0]) for row in self._db.rows(BACKOFF_DUE, self._clock | {"limit": limit})]

    def next_due_mono_us(self) -> int | None:
        """See `ReadTx.next_due_mono_us`. What has lapsed or run out already is not due again."""
        dues = [self._db.value(sql, self._clock) for sql in (NEXT_LAPSE, NEXT_OVERDUE, NEXT_BACKOFF)]
        dues.append(self._db.value(NEXT_OUT_OF_TIME, self._clock | {"wall": self._now.wall_us}))
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
        return [rows.stop_order_of_row(row, self._now) for row in found]

    def cancellations(self, work_id: WorkId, *, limit: int = 64) -> list[Cancellation]:
        """See `ReadTx.cancellations`."""
        return [rows.cancellation_of_row(row) for row in reversed(self._db.rows(CANCELLATIONS, (work_id, limit)))]

    def idle_state(self) -> IdleState:
        live = self._db.value(IDLE_LIVE)
        waiting = self._db.value(IDLE_WAITING, (WAITING_COUNTED_MAX,))
        return IdleState(live, waiting, tuple(row[0] for row in self._db.rows(IDLE_NEEDS_PERSON)))

    def last_pass(self) -> PassRecord | None:
        row = self._db.one("SELECT * FROM pass ORDER BY seq DESC LIMIT 1")
        return None if row is None else rows.pass_of_row(row)

    def clock_mark(self) -> ClockMark | None:
        """See `ReadTx.clock_mark`."""
        row = self._db.one("SELECT * FROM clock")
        return None if row is None else rows.clock_mark_of_row(row)

    def events(self, *, after: int, limit: int) -> list[Event]:
        """See `ReadTx.events`."""
        found = self._db.rows("SELECT * FROM event WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))
        return [rows.event_of_row(row) for row in found]

    def attempt_events(self, attempt_id: AttemptId, *, limit: int) -> list[Event]:
        """See `ReadTx.attempt_events`."""
        return [rows.event_of_row(row) for row in reversed(self._db.rows(ATTEMPT_EVENTS, (attempt_id, limit)))]

    def needs_person(self, *, limit: int) -> list[Attempt]:
        """See `ReadTx.needs_person`."""
        return [rows.attempt_of_row(row) for row in self._db.rows(NEEDS_PERSON, (limit,))]

    def attempt_directories(self, attempt_id: AttemptId) -> list[str]:
        """See `ReadTx.attempt_directories`."""
        attempt = self.attempt(attempt_id)
        epochs = 0 if attempt is None else attempt.epoch
        return [attempt_directory(attempt_id, epoch) for epoch in range(epochs, 0, -1)]
