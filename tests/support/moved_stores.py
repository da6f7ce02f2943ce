"""Stores that were copied, and a later version of tenure, which has one more step."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sqlite_utils import Database, Migrations

from shared.clock import VirtualClock
from shared.errors import StoreUnavailableError
from shared.store.sqlite import checks, schema
from shared.store.sqlite.migrate import migrations
from shared.store.sqlite.store import open_store
from tests.support.stores import World

LATER = schema.SCHEMA_VERSION + 1


def moved(world: World) -> Path:
    """A copy of the home, as somebody makes one: another file."""
    world.close()
    copy = world.home.with_name("copy")
    shutil.copytree(world.home, copy)
    return copy


def refused_to_open(home: Path, clock: VirtualClock) -> StoreUnavailableError:
    with pytest.raises(StoreUnavailableError) as caught:
        open_store(home, clock)
    return caught.value


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
