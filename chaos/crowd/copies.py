"""Many rows like one: what a Work and its attempt left in every table, copied by SQL, with a name and numbers of its own.

Every constraint and trigger of the schema watches: an attempt begins as they demand, and is moved to what the pattern has come to.
Only what a commit costs is left out.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from shared.home import Home
from shared.ids import AttemptId, WorkId, attempt_id, work_of
from shared.store.sqlite.connection import PRAGMAS
from shared.store.sqlite.driver import sqlite3

Columns = dict[str, str]
"""SQL by column, in terms of `:first`, `n.i` and the row that is copied, `t`."""

NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)"
WORK = "'w' || (:first + n.i)"
ATTEMPT = f"{WORK} || '.1'"
BEGINNING: Columns = {
    "state": "'launching'",
    "epoch": "1",
    "launch_epoch": "1",
    "recovered_from": "NULL",
    "exclusion": "'held'",
    "exclusion_proof": "NULL",
    "ended_at_us": "NULL",
    "pin_epoch": "NULL",
    "pin_directory": "NULL",
    "pin_pid": "NULL",
    "pin_start_ticks": "NULL",
    "pin_boot_id": "NULL",
    "pin_pid_ns": "NULL",
    "pin_pidfs_ino": "NULL",
    "pin_directory_ino": "NULL",
    "pin_lock_ino": "NULL",
}
"""An attempt as the trigger `attempt_number` lets one in."""
INPUT = """:input + (n.i - 1) * :inputs
  + (SELECT count(*) FROM input AS earlier WHERE earlier.work_id = :like AND earlier.number <= {})"""
"""The copy's own number for that input of the pattern."""
OF_ATTEMPT = ("lease", "snapshot", "segment", "wait", "declaration", "stream")
EVENT_KINDS = ("attempt.claimed", "attempt.accepted", "attempt.pinned", "attempt.succeeded", "work.completed")


class Copies:
    """A way into a store's file, past the store, for adding many rows."""

    def __init__(self, home: Path) -> None:
        self._db = sqlite3.connect(Home(home).store, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        for name, value in PRAGMAS:
            self._db.execute(f"PRAGMA {name} = {value}")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("PRAGMA cache_size = -400000")

    def close(self) -> None:
        """Move what was written into the file, and close."""
        with closing(self._db) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def works(
        self,
        like: WorkId,
        count: int,
        *,
        work: Columns | None = None,
        wait: Columns | None = None,
        intents: bool = True,
    ) -> int:
        """So many Works with everything that belongs to that one; the number before the first of them.

        Args:
            work, wait: What differs between them, in those tables.
            intents: With what its program was told while it ran.
        """
        if count <= 0:
            return self._next("work")
        first = self._next("work")
        params = {"first": first, "count": count, "like": like, "attempt": f"{like}.1"}
        place = "(SELECT value FROM counter WHERE name = 'ready') + n.i"
        names = {"id": WORK, "number": ":first + n.i", "ready_seq": place, **(work or {})}
        self._copy("work", "t.id = :like", names, params)
        last, own = "SELECT coalesce(max(number), 0) FROM input", "SELECT count(*) FROM input WHERE work_id = ?"
        params |= {"input": self._value(last), "inputs": self._value(own, like)}
        if self._value("SELECT count(*) FROM attempt WHERE id = ?", f"{like}.1"):
            self._attempts(params, wait or {})
        consumer = f"CASE WHEN t.consumed_by IS NOT NULL THEN {ATTEMPT} END"
        names = {"number": INPUT.format("t.number"), "work_id": WORK, "consumed_by": consumer}
        self._copy("input", "t.work_id = :like", names, params)
        if intents:
            names = {"number": "NULL", "work_id": WORK, "attempt_id": ATTEMPT, "input": INPUT.format("t.input")}
            self._copy("intent", "t.work_id = :like", names, params)
        self._db.execute("UPDATE counter SET value = value + :count WHERE name IN ('work', 'ready')", {"count": count})
        return first

    def _attempts(self, params: dict[str, object], wait: Columns) -> None:
        names = {"id": ATTEMPT, "work_id": WORK}
        self._copy("attempt", "t.id = :attempt", names | BEGINNING, params)
        kept = ", ".join(BEGINNING)
        self._db.execute(
            f"UPDATE attempt SET ({kept}) = (SELECT {kept} FROM attempt WHERE id = :attempt)"
            " WHERE work_id IN (SELECT id FROM work WHERE number > :first)",
            params,
        )
        first = INPUT.format("t.body ->> '$.inputs[0]'")
        inputs = f"json_set(t.body, '$.inputs', json_array({first}))"
        for table in OF_ATTEMPT:
            names = {"attempt_id": ATTEMPT}
            if table == "snapshot":
                names["body"] = inputs
            if table == "wait":
                names |= {"work_id": WORK, **wait}
            self._copy(table, "t.attempt_id = :attempt", names, params)
        self._copy("timer", "t.work_id = :like", {"id": "NULL", "work_id": WORK, "attempt_id": ATTEMPT}, params)

    def attempts(self, like: AttemptId, count: int) -> None:
        """So many more attempts of a Work, each like that first one of it, one after the other, as the schema lets them in."""
        params: dict[str, object] = {"first": 0, "count": 1, "attempt": like}
        work = work_of(like)
        last = self._value("SELECT attempts_used FROM work WHERE id = ?", work)
        kept = ", ".join(BEGINNING)
        self._db.execute("BEGIN")
        for number in range(last + 1, last + count + 1):
            name = {"id": f"'{attempt_id(work, number)}'", "number": str(number)}
            self._copy("attempt", "t.id = :attempt", name | BEGINNING, params)
            self._db.execute(
                f"UPDATE attempt SET ({kept}) = (SELECT {kept} FROM attempt WHERE id = :attempt) WHERE id = {name['id']}",
                params,
            )
            for table in ("lease", "snapshot", "segment"):
                self._copy(table, "t.attempt_id = :attempt", {"attempt_id": name["id"]}, params)
        self._db.execute(
            "UPDATE work SET attempts_used = ?, revision = revision + 1 WHERE id = ?", (last + count, work)
        )
        self._db.execute("COMMIT")

    def events(self, count: int, *, works: int, first: int) -> None:
        """So many entries of the changefeed about those Works; every hundredth was published."""
        kind = "CASE n.i % 5 " + " ".join(f"WHEN {at} THEN '{kind}'" for at, kind in enumerate(EVENT_KINDS)) + " END"
        work = "'w' || (:first + 1 + n.i % :works)"
        params = {"count": count, "first": first, "works": works}
        before = self._value("SELECT coalesce(max(seq), 0) FROM event")
        self._db.execute(
            f"""{NUMBERS} INSERT INTO event (at_us, kind, work_id, attempt_id, epoch, data)
            SELECT :at + n.i, CASE WHEN n.i % 100 = 0 THEN 'event.published' ELSE {kind} END,
              CASE WHEN n.i % 100 <> 0 THEN {work} END, CASE WHEN n.i % 100 <> 0 THEN {work} || '.1' END,
              CASE WHEN n.i % 100 <> 0 THEN 1 END,
              CASE WHEN n.i % 100 = 0 THEN '{{"type":"past","correlate":null,"data":"1","by":"uid 1000"}}' ELSE '{{"to":"running"}}' END
            FROM n""",
            params | {"at": 1_600_000_000_000_000},
        )
        self._db.execute(
            """INSERT INTO published (seq, type, correlate, work_id)
            SELECT seq, 'past', NULL, NULL FROM event WHERE kind = 'event.published' AND seq > ?""",
            (before,),
        )

    def ledgers(self, count: int) -> None:
        """So many ledgers of a budget for each Work's life."""
        self._db.execute(
            f"""{NUMBERS} INSERT INTO ledger (unit, per, period, scope, subject, window_at_us, used)
            SELECT 'usd', 'work', 'life', '', 'w' || n.i, 0, '1.5' FROM n""",
            {"count": count},
        )

    def _copy(self, table: str, where: str, names: Columns, params: dict[str, object]) -> None:
        columns = [row[1] for row in self._db.execute(f"PRAGMA table_info({table})")]
        values = ", ".join(names.get(column, f"t.{column}") for column in columns)
        self._db.execute(
            f"{NUMBERS} INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} AS t, n WHERE {where}",
            params,
        )

    def _next(self, name: str) -> int:
        return self._value("SELECT value FROM counter WHERE name = ?", name)

    def _value(self, sql: str, *params: object) -> int:
        return int(self._db.execute(sql, params).fetchone()[0])
