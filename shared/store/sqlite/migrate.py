"""Making a store, and bringing one to the present schema. The only place in the hot rooms' store that imports sqlite-utils.

All of it happens inside one `BEGIN IMMEDIATE` of ours: sqlite-utils' own transactions nest in it as savepoints, so a half made
schema is never seen. Triggers are created anew at the end, because a table transformation drops them. Rule: research "store" §1.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlite_utils import Database, Migrations

from shared.boundary import Boundary, commit
from shared.clock import Clock
from shared.errors import RefusedError, StoreUnavailableError
from shared.home import Home
from shared.model.instant import Instant
from shared.model.usage import NO_USAGE, Usage, usage_of
from shared.store.sqlite import checks
from shared.store.sqlite.columns import json_text
from shared.store.sqlite.connection import PRAGMAS, Connection, translated
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.fingerprint import schema_text
from shared.store.sqlite.place import Place
from shared.store.sqlite.queue import Queue, Queued
from shared.store.sqlite.quiet import require_quiet
from shared.store.sqlite.schema import APPLICATION_ID, INDEXES, SCHEMA_VERSION, TABLES, TRIGGERS
from shared.store.sqlite.writing import EVENT, time_namespace

WAIT_S = 5.0

ARM_BACKOFFS = """INSERT INTO timer
    (work_id, kind, state, attempt_id, epoch, since_mono_us, boot_id, since_at_us, after_us, armed_seq, why)
  SELECT w.id, 'admission', 'armed', a.id, a.epoch, w.backoff_since_mono_us, w.backoff_boot_id, w.backoff_since_at_us,
    w.backoff_us, (SELECT coalesce(max(seq), 0) FROM event), 'nothing ran'
  FROM work AS w JOIN attempt AS a ON a.work_id = w.id AND a.number = w.attempts_used
  WHERE w.state = 'backoff' AND w.id NOT IN (SELECT work_id FROM timer WHERE state = 'armed')"""
"""Until version 2 a Work backed off without a timer, and only after launches that came to nothing."""

USAGE_OF_THE_LIVE = """SELECT d.attempt_id, d.body FROM declaration AS d JOIN attempt AS a ON a.id = d.attempt_id
  WHERE d.kind = 'usage' AND a.ended_at_us IS NULL ORDER BY d.attempt_id, d.seq"""

migrations = Migrations("tenure")


@migrations(name="0001_first")
def _first(db: Database) -> None:
    """Of a new store: the present schema, so that the steps below find nothing to do."""
    for statement in (*TABLES, *INDEXES):
        db.execute(statement)


@migrations(name="0002_hardening")
def _second(db: Database) -> None:
    _bring(db, "pass", cut_short="0")
    _bring(db, "clock")
    _bring(db, "unreadable")
    _bring(db, "work", kind="'run_once'", failures_used="0")
    _bring(db, "attempt")
    for table in (
        *("timer", "submission", "routine", "budget", "ledger", "usage_pending", "budget_notice", "gate_settlement"),
        *("declaration", "correlation", "published", "wait"),
    ):
        _bring(db, table)
    for table in ("stream", "intent"):
        _bring(db, table)
    db.execute(ARM_BACKOFFS)


@migrations(name="0003_chains")
def _third(db: Database) -> None:
    """Also takes `attempt.stream_offset` away: what was read of a program is told by `stream`."""
    for table in ("input", "attempt", "timer", "published", "waking", "chain_refusal", "report", "leader"):
        _bring(db, table)
    pool = "(SELECT pool FROM attempt WHERE attempt.id = attempt_id)"
    _bring(db, "wait", pool=pool, due_seq="CASE WHEN state = 'satisfied' THEN wake_seq END")
    _add_reports(db)
    _index(db)


def _add_reports(db: Database) -> None:
    """Until version 3 the usage that a program declared was added up at its end; what was wrong in it was refused there."""
    reported: dict[str, Usage] = {}
    for name, body in db.execute(USAGE_OF_THE_LIVE).fetchall():
        with suppress(RefusedError):
            reported[name] = reported.get(name, NO_USAGE).plus(usage_of(json.loads(body)["units"]))
    for name, usage in reported.items():
        db.execute("INSERT INTO report (attempt_id, usage) VALUES (?, ?)", (name, json_text(usage.to_plain())))


def make_schema(connection: sqlite3.Connection, place: Place, now: Instant, file_inode: int) -> None:
    """Give an empty database its schema and its identity, in one commit.

    Args:
        connection: In autocommit mode (`isolation_level=None`), on an empty file.
    """
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only before the first table
    connection.execute("PRAGMA journal_mode = WAL")
    for name, value in PRAGMAS:
        connection.execute(f"PRAGMA {name} = {value}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        migrations.apply(Database(connection))
        _create_triggers(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        identity: dict[str, Any] = {
            "incarnation": 1,
            "machine_id": place.machine_id or "",
            "file_inode": file_inode,
            "time_namespace": time_namespace(now.boot_id, place.time_ns),
            "created_at_us": now.wall_us,
            "schema": schema_text(lambda sql: connection.execute(sql).fetchall()),
        }
        connection.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", list(identity.items()))
        commit(connection, [Boundary.MIGRATE_COMMIT])
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def migrate(home: Path, clock: Clock, *, steps: Migrations = migrations, version: int = SCHEMA_VERSION) -> list[str]:
    """Bring an older store to the present schema, in one commit: it is the old one, or the new one, never between.

    Raises the store's incarnation, so that whatever opened it before writes no more.

    Args:
        steps, version: Those of this version of tenure; a test gives others.

    Returns: The steps taken, by name; [] when it has the present schema.

    Raises:
        RefusedError: somebody still runs here.
        StoreUnavailableError: no store of ours, or a newer one than this version knows.
        StoreBusyError: its queue, or the write lock, was held for too long.
    """
    paths = Home(home)
    if not paths.store.is_file():
        raise StoreUnavailableError("not_a_home", f"{home} has no store", hint="`tenure init` makes one")
    queue = Queue(paths.queue_lock, wait_s=WAIT_S)
    try:
        with Queued(queue):
            return _migrate(paths, clock, steps, version)
    finally:
        queue.close()


def _migrate(paths: Home, clock: Clock, steps: Migrations, version: int) -> list[str]:
    db = Connection(paths.store, wait_s=WAIT_S)
    try:
        before = checks.check_ours(db, paths.store, version)
        if before == version:
            return []
        require_quiet(paths, to="migrate the store")
        db.begin(writing=True)
        try:
            database = Database(db.raw)
            taken = [step.name for step in steps.pending(database)]
            _drop_triggers(db.raw)  # a step may move what they keep others from moving
            steps.apply(database)
            _create_triggers(db.raw)
            _require_whole(db)
            db.rows(f"PRAGMA user_version = {version}")
            db.rows("UPDATE meta SET value = ? WHERE key = 'schema'", (schema_text(db.rows),))
            db.rows("UPDATE meta SET value = value + 1 WHERE key = 'incarnation'")
            facts = json_text({"from": before, "to": version, "steps": taken})
            db.rows(EVENT, (clock.now().wall_us, "store.migrated", None, None, None, facts))
            db.commit([Boundary.MIGRATE_COMMIT])
        except sqlite3.Error as error:
            db.rollback()
            raise translated(error, "migrate") from error
        except BaseException:
            db.rollback()
            raise
        return taken
    finally:
        db.close()


def _bring(db: Database, table: str, **fill: str) -> None:
    """Give a table, and the indexes on it, the present form; its rows are kept. Nothing is done when it has that form.

    Args:
        fill: SQL for the columns that the form before lacks and that may not be null.
    """
    [present] = [statement for statement in TABLES if statement.startswith(f"CREATE TABLE {table} ")]
    found = db.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchone()
    if found is not None and found[0] == present:
        return
    if found is not None:
        db.execute("PRAGMA legacy_alter_table = ON")  # else what refers to the table would follow its old form
        db.execute(f"ALTER TABLE {table} RENAME TO {table}_before")
        db.execute("PRAGMA legacy_alter_table = OFF")
    db.execute(present)
    if found is not None:
        before = _columns(db, f"{table}_before")
        kept = [column for column in _columns(db, table) if column in before]
        into, values = ", ".join([*kept, *fill]), ", ".join([*kept, *fill.values()])
        db.execute(f"INSERT INTO {table} ({into}) SELECT {values} FROM {table}_before")
        db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))  # numbers given out are not given out again
        db.execute("UPDATE sqlite_sequence SET name = ? WHERE name = ?", (table, f"{table}_before"))
        db.execute(f"DROP TABLE {table}_before")
    for statement in INDEXES:
        if f" ON {table} (" in statement:
            db.execute(statement)


def _index(db: Database) -> None:
    """Have exactly the present indexes."""
    found = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    for name, sql in db.execute(found).fetchall():
        if sql not in INDEXES:
            db.execute(f'DROP INDEX "{name}"')
    kept = {sql for _, sql in db.execute(found).fetchall()}
    for statement in INDEXES:
        if statement not in kept:
            db.execute(statement)


def _columns(db: Database, table: str) -> list[str]:
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})").fetchall()]


def _create_triggers(connection: sqlite3.Connection) -> None:
    _drop_triggers(connection)
    for statement in TRIGGERS:
        connection.execute(statement)


def _drop_triggers(connection: sqlite3.Connection) -> None:
    for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{row[0]}"')


def _require_whole(db: Connection) -> None:
    """Foreign keys are off meanwhile, so that steps may move tables; in the end every reference has to name something."""
    broken = db.rows("PRAGMA foreign_key_check")
    if broken:
        raise StoreUnavailableError(
            "corrupt",
            f"after the migration {len(broken)} references name nothing, the first in {broken[0][0]}; nothing was changed",
            hint="keep the store as it is, and run `tenure store check` with the version that wrote it",
        )
