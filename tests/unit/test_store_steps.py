"""Migrating a store: in one commit, or not at all; each refusal with its control."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from sqlite_utils import Migrations

from shared.errors import StoreBusyError, StoreUnavailableError
from shared.store.sqlite import schema
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.inspect import check
from shared.store.sqlite.migrate import migrate, migrations
from shared.store.sqlite.store import open_store
from tests.support.checkout import ROOT
from tests.support.moved_stores import LATER, next_version, older, refused_to_open
from tests.support.stores import COMPLETED, SQLITE, World, ram_folder


@pytest.fixture
def world() -> Iterator[World]:
    with ram_folder() as folder:
        made = World(SQLITE, folder)
        yield made
        made.close()


def test_a_store_is_migrated_in_one_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    key = world.running(world.worker())
    world.store.write(lambda tx: tx.cancel_attempt(key.attempt_id, by="t", reason="t", change=COMPLETED))
    steps, version = older(world.home)

    assert migrate(world.home, world.clock, steps=steps, version=version) == ["9999_notes"]

    with pytest.raises(StoreUnavailableError, match="taken over meanwhile"):
        world.submit()
    assert refused_to_open(world.home, world.clock).code == "schema_newer"
    next_version(monkeypatch)
    store = open_store(world.home, world.clock, check=True)
    assert store._db.value("SELECT text FROM note") == "migrated"
    last = store.read(lambda tx: tx.events(after=0, limit=1_000))[-1]
    assert (last.kind, last.data) == (
        "store.migrated",
        {"from": schema.SCHEMA_VERSION, "to": LATER, "steps": ["9999_notes"]},
    )
    triggers = {row[0] for row in store._db.rows("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    assert triggers == {trigger.split()[2] for trigger in schema.TRIGGERS}
    store.close()
    assert migrate(world.home, world.clock, steps=steps, version=version) == [], "there is nothing more to do"


def test_a_store_of_the_present_schema_is_left_alone(world: World) -> None:
    before = (world.home / "store.db").read_bytes()

    assert migrate(world.home, world.clock) == []

    assert (world.home / "store.db").read_bytes() == before
    world.submit()


def test_a_newer_store_or_another_program_s_is_not_migrated(world: World) -> None:
    world.close()
    for pragma, code in (("user_version = 9", "schema_newer"), ("application_id = 7", "not_a_home")):
        connection = sqlite3.connect(world.home / "store.db", isolation_level=None)
        connection.execute(f"PRAGMA {pragma}")
        connection.close()
        with pytest.raises(StoreUnavailableError) as caught:
            migrate(world.home, world.clock)
        assert caught.value.code == code
    (world.home / "store.db").unlink()
    with pytest.raises(StoreUnavailableError, match="has no store"):
        migrate(world.home, world.clock)


def test_a_step_that_fails_or_breaks_a_reference_leaves_the_old_store(world: World) -> None:
    world.ended(world.worker())
    for statement, told in (
        ("INSERT INTO nowhere VALUES (1)", "no such table"),
        ("UPDATE attempt SET work_id = 'w99'", "references name nothing"),
    ):
        steps = Migrations("tenure")
        for one in migrations._migrations:
            steps(name=one.name)(one.fn)
        steps(name="9999_broken")(lambda db, sql=statement: db.execute(sql))

        with pytest.raises(Exception, match=told):
            migrate(world.home, world.clock, steps=steps, version=LATER)

        assert check(world.home) == []
    world.submit()


def test_migrating_waits_for_the_queue_with_a_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.store.sqlite.migrate.WAIT_S", 0)
    steps, version = older(world.home)

    def meanwhile(tx: object) -> None:
        with pytest.raises(StoreBusyError):
            migrate(world.home, world.clock, steps=steps, version=version)

    world.store.write(meanwhile)
    world.submit()


KILLED = """
import os, signal, sys
from pathlib import Path
from shared import boundary
from shared.boundary import Boundary, Side
from shared.clock import VirtualClock
from shared.store.sqlite.migrate import migrate
from tests.support.moved_stores import older
home, where = Path(sys.argv[1]), sys.argv[2]
steps, version = older(home)
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if where == "step":
    steps(name="0003_killed")(kill)
else:
    boundary.install(lambda at, side: kill() if at is Boundary.MIGRATE_COMMIT and side == where else None)
migrate(home, VirtualClock(), steps=steps, version=version)
"""


@pytest.mark.parametrize(("where", "migrated"), [("step", False), ("before", False), ("after", True)])
def test_killed_in_the_middle_it_is_the_old_store_or_the_new_one(
    world: World, monkeypatch: pytest.MonkeyPatch, where: str, migrated: bool
) -> None:
    world.running(world.worker())
    before = world.everything()
    world.close()

    died = subprocess.run([sys.executable, "-c", KILLED, world.home, where], cwd=ROOT, check=False)

    assert died.returncode == -9
    if migrated:
        next_version(monkeypatch)
    store = open_store(world.home, world.clock, check=True)
    tables = {row[0] for row in store._db.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert ("note" in tables) is migrated
    events = store.read(lambda tx: tx.events(after=0, limit=1_000))
    assert (events[-1].kind == "store.migrated") is migrated
    assert [event for event in events if event.kind != "store.migrated"] == before[-1]
    store.close()
    if not migrated:
        steps, version = older(world.home)
        assert migrate(world.home, world.clock, steps=steps, version=version) == ["9999_notes"]
