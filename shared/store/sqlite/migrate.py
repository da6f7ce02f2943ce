"""Making a store, and bringing one to the present schema. The only place in the hot rooms' store that imports sqlite-utils.

All of it happens inside one `BEGIN IMMEDIATE` of ours: sqlite-utils' own transactions nest in it as savepoints, so a half made
schema is never seen. Triggers are created anew at the end, because a table transformation drops them. Rule: research "store" §1.
"""

from __future__ import annotations

from typing import Any

from sqlite_utils import Database, Migrations

from shared.boundary import Boundary, commit
from shared.model.instant import Instant
from shared.store.sqlite.connection import PRAGMAS
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.fingerprint import schema_text
from shared.store.sqlite.place import Place
from shared.store.sqlite.schema import APPLICATION_ID, INDEXES, SCHEMA_VERSION, TABLES, TRIGGERS
from shared.store.sqlite.writing import time_namespace

migrations = Migrations("tenure")


@migrations(name="0001_first")
def _first(db: Database) -> None:
    for statement in (*TABLES, *INDEXES):
        db.execute(statement)


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


def _create_triggers(connection: sqlite3.Connection) -> None:
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')
    for statement in TRIGGERS:
        connection.execute(statement)
