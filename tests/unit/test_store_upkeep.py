"""Adopting, migrating, and noticing a store that went back in time; each refusal with its control."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlite_utils import Database, Migrations

from shared.clock import VirtualClock
from shared.errors import RefusedError, StoreBusyError, StoreUnavailableError
from shared.home import Home
from shared.process.filelock import IncarnationLock
from shared.store.regress import check_regressed, names_in
from shared.store.sqlite import adopt as adopt_module
from shared.store.sqlite import checks, schema
from shared.store.sqlite.adopt import adopt
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.inspect import backup, check
from shared.store.sqlite.migrate import migrate, migrations
from shared.store.sqlite.place import place_of
from shared.store.sqlite.store import open_store
from tests.support.stores import COMPLETED, LEASE_US, SQLITE, SUCCEEDED, World, new_work, ram_folder

ROOT = Path(__file__).parents[2]
LATER = schema.SCHEMA_VERSION + 1


@pytest.fixture
def world() -> Iterator[World]:
    with ram_folder() as folder:
        made = World(SQLITE, folder)
        yield made
        made.close()


def moved(world: World) -> Path:
    """A copy of the home, as somebody makes one: another file."""
    world.close()
    copy = world.home.with_name("copy")
    shutil.copytree(world.home, copy)
    return copy


def meta(home: Path, key: str) -> object:
    connection = sqlite3.connect(home / "store.db")
    value = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0]
    connection.close()
    return value


def refused_to_open(home: Path, clock: VirtualClock) -> StoreUnavailableError:
    with pytest.raises(StoreUnavailableError) as caught:
        open_store(home, clock)
    return caught.value


# --- adopt


@pytest.mark.req("L03")
def test_an_adopted_copy_opens_and_what_it_held_is_recoverable_at_once(world: World) -> None:
    owner = world.worker()
    key = world.running(owner)
    copy = moved(world)
    assert refused_to_open(copy, world.clock).code == "home_moved"

    assert adopt(copy, world.clock) == 2

    store = open_store(copy, world.clock, check=True)
    assert store.read(lambda tx: tx.workers()) == []
    [found] = store.read(lambda tx: tx.recoverable(after=None, limit=9))
    assert (found.attempt.id, found.revoked) == (key.attempt_id, "store adopted")
    leader = store.read(lambda tx: tx.leader())
    assert leader is not None
    assert leader.expires_mono_us == 0
    last = store.read(lambda tx: tx.events(after=0, limit=1_000))[-1]
    assert (last.kind, last.data["incarnation"]) == ("store.adopted", 2)
    store.close()
    assert check(copy) == []
    assert (meta(copy, "file_inode"), meta(world.home, "incarnation")) == ((copy / "store.db").stat().st_ino, 1)


@pytest.mark.req("L03")
def test_a_backup_that_was_put_back_is_adopted(world: World) -> None:
    """Both ways: as another file, and over the old one."""
    world.submit()
    world.store.checkpoint()
    target = world.home.parent / "backup.db"
    backup(world.home, target)
    world.submit()
    world.close()
    for leftover in world.home.glob("store.db-*"):
        leftover.unlink()
    for over in (False, True):
        if not over:
            (world.home / "store.db").unlink()
        shutil.copyfile(target, world.home / "store.db")
        error = refused_to_open(world.home, world.clock)
        assert (error.code, "tenure store adopt" in (error.hint or "")) == ("home_moved", True)

        assert adopt(world.home, world.clock) == 2

        store = open_store(world.home, world.clock)
        assert store.write(lambda tx: tx.submit(new_work(), "jobs")) == "w2"
        store.close()
        for leftover in world.home.glob("store.db-*"):
            leftover.unlink()


def test_a_home_of_another_machine_is_adopted(world: World) -> None:
    world.close()
    place = replace(place_of(world.home), machine_id="another")
    with pytest.raises(StoreUnavailableError, match="another machine"):
        open_store(world.home, world.clock, place=place)

    adopt(world.home, world.clock, place=place)

    open_store(world.home, world.clock, place=place).close()
    assert meta(world.home, "machine_id") == "another"


def test_what_was_open_before_the_adoption_writes_no_more(world: World) -> None:
    world.submit()
    place = replace(place_of(world.home), machine_id="another")

    adopt(world.home, world.clock, place=place)

    with pytest.raises(StoreUnavailableError) as caught:
        world.submit()
    assert caught.value.code == "store_replaced"


def test_adopting_ones_own_store_is_refused(world: World) -> None:
    before = (world.home / "store.db").read_bytes()

    with pytest.raises(RefusedError, match="own already"):
        adopt(world.home, world.clock)

    assert (world.home / "store.db").read_bytes() == before


@pytest.mark.req("L01")
@pytest.mark.parametrize("name", ["coordinator.7", "worker-1.3"])
def test_adopting_and_migrating_wait_for_nobody_and_name_who_is_there(world: World, name: str) -> None:
    copy = moved(world)
    before = (copy / "store.db").read_bytes()
    steps, _ = older(copy)
    with IncarnationLock.take(Home(copy).run / f"{name}.lock"):
        with pytest.raises(RefusedError, match=f"^{name} still run here; to migrate"):
            migrate(copy, world.clock, steps=steps, version=LATER)
        with pytest.raises(RefusedError, match=f"^{name} still run here; to adopt"):
            adopt(copy, world.clock)
    assert (copy / "store.db").read_bytes() == before

    assert migrate(copy, world.clock, steps=steps, version=LATER) == ["9999_notes"]


def test_adopting_what_is_no_store_or_damaged_is_refused(world: World) -> None:
    copy = moved(world)
    whole = (copy / "store.db").read_bytes()
    (copy / "store.db").write_bytes(whole.replace(b"CREATE TRIGGER lease_live ", b"CREATE TRIGGER lease_lost "))
    with pytest.raises(StoreUnavailableError) as caught:
        adopt(copy, world.clock)
    assert caught.value.code == "corrupt"
    (copy / "store.db").unlink()
    with pytest.raises(StoreUnavailableError, match="has no store"):
        adopt(copy, world.clock)
    (copy / "store.db").write_bytes(whole)

    adopt(copy, world.clock)


def test_an_interrupted_adoption_changed_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.running(world.worker())
    copy = moved(world)
    with monkeypatch.context() as patch:
        patch.setattr(adopt_module.Adoption, "retire_worker", lambda *_, **__: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            adopt(copy, world.clock)
    assert refused_to_open(copy, world.clock).code == "home_moved"

    assert adopt(copy, world.clock) == 2


# --- migrate: a later version of tenure is played by one more step


def older(_home: Path) -> tuple[Migrations, int]:
    """The steps of the version after this one, for which every store of today is an older one."""
    steps = Migrations("tenure")
    for one in migrations._migrations:
        steps(name=one.name)(one.fn)

    @steps(name="9999_notes")
    def _notes(db: Database) -> None:
        db.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")
        db.execute("DELETE FROM stop_order")  # what a trigger keeps everybody else from
        db.execute("INSERT INTO note (text) VALUES ('migrated')")

    return steps, LATER


def next_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(checks, "SCHEMA_VERSION", LATER)


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
from tests.unit.test_store_upkeep import older
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


# --- a store that went back in time


def launched(world: World, *names: str) -> Path:
    attempts = Home(world.home).attempts
    for name in names:
        (attempts / name).mkdir()
    return attempts


def test_a_store_that_knows_its_directories_has_not_gone_back(world: World) -> None:
    owner = world.worker()
    key = world.running(owner)
    world.release(key)
    key = world.take_over(key, owner)
    world.ended(owner)
    attempts = launched(world, "w1.1.1", "w1.1.2", "w2.1.1", "lost+found", "w1.1", "w0.1.1")

    assert check_regressed(world.store, names_in(attempts)) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("w1.1.3", "w1.1 has a directory of epoch 3, the store knows it at epoch 1"),
        ("w1.2.1", "w1.2 has a directory, the last attempt that the store knows of w1 is 1"),
        ("w2.1.1", "w2 has a directory, the last Work that the store gave out is w1"),
    ],
)
def test_a_directory_that_the_store_cannot_know_is_told(world: World, name: str, told: str) -> None:
    world.running(world.worker())
    attempts = launched(world, "w1.1.1")
    assert check_regressed(world.store, names_in(attempts)) == []

    launched(world, name)

    assert check_regressed(world.store, names_in(attempts)) == [told]


def test_what_retention_took_away_is_no_sign_of_the_past(world: World) -> None:
    """The control of the above: the row is gone, the counter is not."""
    key = world.ended(world.worker())
    attempts = launched(world, f"{key.attempt_id}.1")
    with world.outsider() as outsider:
        for statement in (
            "DELETE FROM lease",
            "DELETE FROM segment",
            "DELETE FROM snapshot",
            "UPDATE input SET consumed_by = NULL",
            "DELETE FROM attempt",
        ):
            outsider.execute(statement)
        assert check_regressed(world.store, names_in(attempts)) == []
        outsider.execute("DELETE FROM input")
        outsider.execute("DELETE FROM work")

    assert check_regressed(world.store, names_in(attempts)) == []


def test_findings_are_bounded(world: World) -> None:
    attempts = launched(world, *(f"w{number}.1.1" for number in range(1, 60)))

    assert len(check_regressed(world.store, names_in(attempts))) == 20
    newest = check_regressed(world.store, names_in(attempts), most=3)
    assert [told.split()[0] for told in newest] == ["w59", "w58", "w57"]


def test_a_store_with_fewer_events_than_were_seen_is_refused(world: World) -> None:
    """Somebody wrote an older copy into the file while it was open; the incarnation alone does not tell."""
    key = world.running(world.worker())
    other = world.open()
    other.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))
    world.store.write(lambda tx: tx.renew(key.owner, lease_us=LEASE_US))
    with world.outsider() as outsider:
        outsider.execute("UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'event'")

    for store in (world.store, other):
        with pytest.raises(StoreUnavailableError) as caught:
            store.write(lambda tx: tx.submit(new_work(), "jobs"))
        assert (caught.value.code, caught.value.hint is not None) == ("store_regressed", True)

    open_store(world.home, world.clock).close()


def test_an_older_store_that_has_gone_on_since_is_refused(world: World) -> None:
    """It has as many events as were seen; the last one that was seen is another one in it."""
    key = world.running(world.worker())
    other = world.open()
    other.write(lambda tx: tx.renew(key.owner, lease_us=LEASE_US))
    world.store.write(lambda tx: tx.submit(new_work(), "jobs"))
    other.write(lambda tx: tx.renew(key.owner, lease_us=LEASE_US))
    with world.outsider() as outsider:
        seq, at_us = outsider.execute("SELECT seq, at_us FROM event ORDER BY seq DESC LIMIT 1").fetchone()
        outsider.execute("DELETE FROM event WHERE seq = ?", (seq,))
        outsider.execute(
            "INSERT INTO event (seq, at_us, kind, data) VALUES (?, ?, 'work.submitted', '{}')", (seq, at_us + 1)
        )

    for store in (world.store, other):
        with pytest.raises(StoreUnavailableError, match="which is another one now") as caught:
            store.write(lambda tx: tx.submit(new_work(), "jobs"))
        assert caught.value.code == "store_regressed"


def test_an_event_that_retention_took_away_is_no_sign_of_the_past(world: World) -> None:
    """The control of the above."""
    key = world.running(world.worker())
    with world.outsider() as outsider:
        outsider.execute("DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)")

    world.store.write(lambda tx: tx.renew(key.owner, lease_us=LEASE_US))
    world.store.write(lambda tx: tx.submit(new_work(), "jobs"))


def test_a_transaction_that_was_not_kept_counts_for_nothing_seen(world: World) -> None:
    """The control: after a rollback the store has fewer events than the transaction had written."""
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            world.store.write(lambda tx: (tx.submit(new_work(), "jobs"), 1 // 0))

    assert world.submit() == "w1"
