"""Looking at a store from outside the hot path: check it, back it up. Writes nothing into it.

Rule: design §4, §12 (`store check`, `store backup`).
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from sqlite_utils import Database

from shared.errors import RefusedError, StoreUnavailableError
from shared.home import Home
from shared.store.sqlite.connection import Connection, translated
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.fingerprint import schema_differences, schema_text
from shared.store.sqlite.readable import holds_more, unreadable
from shared.store.values import UnreadableRow

WAIT_S = 5.0
_PROBLEMS_MAX = 100

INVARIANTS = (
    (
        "an unfinished attempt has a lease",
        "SELECT id FROM attempt WHERE ended_at_us IS NULL AND id NOT IN (SELECT attempt_id FROM lease)",
    ),
    (
        "the lease of an ended, parked or uncertain attempt is revoked",
        """SELECT a.id FROM attempt AS a JOIN lease AS l ON l.attempt_id = a.id WHERE l.revoked_at_us IS NULL
           AND (a.ended_at_us IS NOT NULL OR a.state IN ('parked', 'recovery_required'))""",
    ),
    (
        "an attempt that ended without proof has an open stop order",
        """SELECT id FROM attempt WHERE ended_at_us IS NOT NULL AND exclusion = 'held'
           AND id NOT IN (SELECT attempt_id FROM stop_order WHERE closed_at_us IS NULL)""",
    ),
    (
        "a running Work has an unfinished attempt",
        """SELECT id FROM work WHERE state = 'running'
           AND id NOT IN (SELECT work_id FROM attempt WHERE ended_at_us IS NULL)""",
    ),
    (
        "a Work waits exactly while it has an open wait",
        """SELECT id FROM work WHERE (state = 'waiting') <> (id IN
           (SELECT work_id FROM wait WHERE state IN ('registered', 'satisfied')))""",
    ),
    (
        "an attempt is parked exactly while it has an open wait to resume from",
        """SELECT id FROM attempt AS a WHERE (a.state = 'parked') <> EXISTS (SELECT 1 FROM wait AS w WHERE w.attempt_id = a.id
           AND w.epoch = a.epoch AND w.resume = 1 AND w.state IN ('registered', 'satisfied'))""",
    ),
    (
        "what is waited for no longer has no armed timer",
        """SELECT work_id FROM timer AS t WHERE t.state = 'armed' AND t.kind = 'wait' AND NOT EXISTS
           (SELECT 1 FROM wait AS w WHERE w.attempt_id = t.attempt_id AND w.epoch = t.epoch AND w.state = 'registered')""",
    ),
    (
        "an unfinished attempt belongs to a running or waiting Work",
        """SELECT a.id FROM attempt AS a JOIN work AS w ON w.id = a.work_id
           WHERE a.ended_at_us IS NULL AND w.state NOT IN ('running', 'waiting')""",
    ),
    ("every attempt has its snapshot", "SELECT id FROM attempt WHERE id NOT IN (SELECT attempt_id FROM snapshot)"),
    (
        "an attempt has one open segment while it holds a lease, of its epoch",
        """SELECT a.id FROM attempt AS a WHERE a.ended_at_us IS NULL AND a.state NOT IN ('parked', 'recovery_required')
           AND NOT EXISTS (SELECT 1 FROM segment AS s WHERE s.attempt_id = a.id AND s.epoch = a.epoch AND s.ended_at_us IS NULL)""",
    ),
    (
        "a cancellation that is not settled waits for an open stop order",
        """SELECT work_id FROM cancellation WHERE settled_at_us IS NULL
           AND attempt_id NOT IN (SELECT attempt_id FROM stop_order WHERE closed_at_us IS NULL)""",
    ),
    (
        "no segment of an ended attempt is open",
        """SELECT s.attempt_id FROM segment AS s JOIN attempt AS a ON a.id = s.attempt_id
           WHERE a.ended_at_us IS NOT NULL AND s.ended_at_us IS NULL""",
    ),
    (
        "a Work in backoff has an armed timer",
        """SELECT id FROM work WHERE state = 'backoff'
           AND id NOT IN (SELECT work_id FROM timer WHERE state = 'armed')""",
    ),
    (
        "a timer that asks for a retry is armed only while its Work is in backoff",
        """SELECT t.work_id FROM timer AS t JOIN work AS w ON w.id = t.work_id
           WHERE t.state = 'armed' AND t.kind IN ('retry', 'hint', 'admission') AND w.state <> 'backoff'""",
    ),
    (
        "a resume is put off exactly while its timer is armed",
        """SELECT attempt_id FROM wait WHERE (state = 'satisfied' AND due_seq IS NULL) <> EXISTS (SELECT 1 FROM timer AS t
           WHERE t.attempt_id = wait.attempt_id AND t.epoch = wait.epoch AND t.kind = 'resume' AND t.state = 'armed')""",
    ),
)
"""What transitions keep and no constraint can say: the rule, and a query for those who break it."""


def unreadable_rows(home: Path) -> list[UnreadableRow]:
    """Every row of the store that cannot be read, at most 100; reads all of it.

    Raises:
        StoreUnavailableError: it cannot even be looked at.
    """
    return newest_unreadable_rows(home, newest=None)[0]


def newest_unreadable_rows(home: Path, *, newest: int | None) -> tuple[list[UnreadableRow], list[str]]:
    """As `unreadable_rows`, of so many rows of each table that were written last; and the tables that hold more than that.

    Raises:
        StoreUnavailableError: it cannot even be looked at.
    """
    connection = _connect(home)
    try:
        found = list(islice(unreadable(connection, newest=newest), _PROBLEMS_MAX))
        return found, [] if newest is None else holds_more(connection, newest)
    except sqlite3.Error as error:
        raise translated(error, "read every row") from error
    finally:
        connection.close()


def check(home: Path) -> list[str]:
    """Look at every page, reference and rule; the problems found, one sentence each, at most 100. Not at what rows say:
    that is `unreadable_rows`.

    Raises:
        StoreUnavailableError: it cannot even be looked at.
    """
    connection = _open(home)
    try:
        database = Database(connection)
        problems = [f"integrity: {row[0]}" for row in database.execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
        problems += [
            f"reference: {row[0]} row {row[1]} names a missing {row[2]}"
            for row in database.execute("PRAGMA foreign_key_check")
        ]
        remembered = database.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        found = schema_text(lambda sql: connection.execute(sql).fetchall())
        problems += [f"schema: {name} is not as it was made" for name in schema_differences(remembered[0], found)]
        for rule, query in INVARIANTS:
            problems += [f"{row[0]}: {rule}" for row in database.execute(f"{query} LIMIT {_PROBLEMS_MAX}")]
    except sqlite3.Error as error:
        return [f"integrity: {translated(error, 'check')}"]
    else:
        return problems[:_PROBLEMS_MAX]
    finally:
        connection.close()


def backup(home: Path, target: Path) -> None:
    """Write a whole copy of the store to a new file of mode 0600, and verify it.

    The copy is one moment of the store, taken through the library, never by copying files. It is refused as a home's store until
    it is adopted there.

    Raises:
        RefusedError: `target` exists, or its folder does not.
        StoreUnavailableError: the store cannot be read, or the copy not be written.
    """
    source = _open(home)
    try:
        try:
            os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            raise RefusedError(f"{target} exists already", hint="name a file that does not exist yet") from None
        except OSError as error:
            raise RefusedError(f"{target} cannot be made: {error.strerror}") from error
        try:
            _copy(source, target)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    finally:
        source.close()


def _copy(source: sqlite3.Connection, target: Path) -> None:
    copy = sqlite3.connect(target, isolation_level=None)
    try:
        source.backup(copy)  # in one step: by steps, each commit of another process would start it over
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
        found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        raise translated(error, "backup") from error
    finally:
        copy.close()
    if found != "ok":
        raise StoreUnavailableError("corrupt", f"the copy is damaged, and so is the store: {found}")


def _open(home: Path) -> sqlite3.Connection:
    return _connect(home).raw


def _connect(home: Path) -> Connection:
    store = Home(home).store
    if not store.is_file():
        raise StoreUnavailableError("not_a_home", f"{home} has no store", hint="`tenure init` makes one")
    return Connection(store, wait_s=WAIT_S)
