"""What SQLite itself is told: every COMMIT lies between the two sides of a boundary, and nothing is written outside a transaction.

The linter and the look at the source see our own calls; this sees what sqlite-utils sends too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlite_utils import Migrations

from shared import boundary
from shared.boundary import Boundary, Side
from shared.store.sqlite import connection, migrate
from shared.store.sqlite.adopt import adopt
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.inspect import backup, check
from shared.store.sqlite.place import place_of
from shared.store.sqlite.schema import SCHEMA_VERSION
from shared.store.sqlite.store import SqliteStore, create, open_store
from tests.support.stores import SQLITE, World, ram_folder
from tests.support.transitions import SCENES

Log = list[str | tuple[Boundary, Side]]

CHANGES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER")
KEPT_BY_PRAGMA = ("user_version =", "application_id =")


def stray(log: Log) -> list[str]:
    """Statements that commit without a boundary around them, or change something outside a transaction."""
    found = []
    in_transaction, crossing = False, False
    for entry in log:
        if not isinstance(entry, str):
            crossing = entry[1] is Side.BEFORE
            continue
        words = entry.upper().split()
        if words[0] == "BEGIN":
            in_transaction = True
        elif words[0] in ("COMMIT", "END"):
            if not crossing:
                found.append(entry)
            in_transaction = False
        elif words[0] == "ROLLBACK" and words[1:2] != ["TO"]:
            in_transaction = False
        elif not in_transaction and (words[0] in CHANGES or any(name in entry for name in KEPT_BY_PRAGMA)):
            found.append(entry)
    return found


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    """All that every connection made from here on is told, and the boundaries that are crossed."""
    told: Log = []
    real = sqlite3.connect

    def listening(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = real(*args, **kwargs)
        made.set_trace_callback(lambda sql: told.append(sql) if not sql.startswith("--") else None)
        return made

    monkeypatch.setattr(sqlite3, "connect", listening)
    for opens in (connection.Connection.__init__, SqliteStore.__init__, open_store):
        defaults = opens.__kwdefaults__ or {}
        if "connect" in defaults:  # the library's own, bound when the function was made
            monkeypatch.setitem(defaults, "connect", listening)
    boundary.install(lambda at, side: told.append((at, side)))
    yield told
    boundary.install(None)


@pytest.fixture
def world() -> Iterator[World]:
    with ram_folder() as folder:
        made = World(SQLITE, folder)
        yield made
        made.close()


def commits(log: Log) -> int:
    return sum(isinstance(entry, str) and entry.upper().startswith("COMMIT") for entry in log)


@pytest.mark.req("M03", "E07")
@pytest.mark.parametrize("name", SCENES)
def test_every_transition_commits_within_its_boundary(log: Log, world: World, name: str) -> None:
    transition = SCENES[name](world)
    log.clear()

    world.store.write(transition)

    assert (commits(log), stray(log)) == (1, [])


@pytest.mark.req("M03")
def test_making_copying_adopting_and_migrating_a_store_commits_within_boundaries(log: Log) -> None:
    with ram_folder() as folder:
        made = World(replace(SQLITE, create=create), folder)
        made.submit()
        made.close()
        backup(made.home, folder / "copy.db")
        assert check(made.home) == []
        (folder / "copy.db").replace(made.home / "store.db")
        adopt(made.home, made.clock, place=place_of(made.home))
        migrate.migrate(made.home, made.clock, steps=one_step_more(), version=SCHEMA_VERSION + 1)

    assert stray(log) == []
    assert commits(log) == 4  # one each to make, submit, adopt and migrate


def one_step_more() -> Migrations:
    steps = Migrations("tenure")
    for one in migrate.migrations._migrations:
        steps(name=one.name)(one.fn)

    @steps(name="9999_notes")
    def _notes(db: Any) -> None:
        db["note"].create({"id": int, "text": str}, pk="id")
        db["note"].insert({"id": 1, "text": "by sqlite-utils' own transactions"})
        db["note"].transform(types={"text": str}, not_null={"text"})

    return steps


@pytest.mark.req("M03")
def test_a_commit_past_the_wrapper_would_be_seen(log: Log, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    log.clear()
    monkeypatch.setattr(connection, "commit_at", lambda raw, _: raw.execute("COMMIT"))

    world.submit()

    assert stray(log) == ["COMMIT"]


@pytest.mark.req("M03")
@pytest.mark.parametrize(
    "statement", ["UPDATE counter SET value = value + 1", "PRAGMA user_version = 7", "CREATE TABLE t (a)"]
)
def test_a_write_outside_a_transaction_would_be_seen(log: Log, world: World, statement: str) -> None:
    opened = open_store(world.home, world.clock)
    log.clear()

    opened._db.raw.execute(statement)

    assert stray(log) == [statement]
    opened.close()


def test_reading_writes_nothing(log: Log, world: World) -> None:
    assert isinstance(world.store, SqliteStore)
    log.clear()

    world.everything()

    assert (commits(log), stray(log)) == (0, [])
