"""Adopting a store that was copied, restored or moved; each refusal with its control."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import RefusedError, StoreUnavailableError
from shared.home import Home
from shared.process.filelock import IncarnationLock
from shared.store.sqlite import adopt as adopt_module
from shared.store.sqlite.adopt import adopt
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.inspect import backup, check
from shared.store.sqlite.migrate import migrate
from shared.store.sqlite.place import place_of
from shared.store.sqlite.store import open_store
from tests.support.moved_stores import LATER, moved, older, refused_to_open
from tests.support.stores import SQLITE, World, new_work, ram_folder


@pytest.fixture
def world() -> Iterator[World]:
    with ram_folder() as folder:
        made = World(SQLITE, folder)
        yield made
        made.close()


def meta(home: Path, key: str) -> object:
    connection = sqlite3.connect(home / "store.db")
    value = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0]
    connection.close()
    return value


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
