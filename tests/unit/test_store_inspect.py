"""Checking a store and backing it up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.errors import RefusedError, StoreUnavailableError
from shared.ids import work_of
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.inspect import INVARIANTS, backup, check
from tests.support.stores import BACKED_OFF, EXHAUSTED, FAILED, SQLITE, UNPROVEN, World, ram_folder


@pytest.fixture
def world() -> Iterator[World]:
    with ram_folder() as folder:
        made = World(SQLITE, folder)
        owner = made.worker()
        made.running(owner)
        made.ended(owner, UNPROVEN, EXHAUSTED)
        made.ended(owner, FAILED, BACKED_OFF)
        uncertain = made.running(owner)
        made.store.write(lambda tx: tx.require_recovery(uncertain, why="?", proof=None))
        made.submit()
        stopped = made.running(owner)
        made.store.write(lambda tx: tx.cancel_attempt(stopped.attempt_id, by="t", reason="t", change=EXHAUSTED))
        made.confirm(stopped)
        made.parked(owner)
        ended = made.awaiting(owner)
        made.store.write(lambda tx: tx.cancel_work(work_of(ended.attempt_id), by="t", reason="t"))
        made.put_off(made.resuming(owner))
        yield made
        made.close()


# For each rule: what breaks it behind the schema's back. w1.1 runs, w2.1 is unproven, w3 is in backoff, w4.1 waits for a person, w6.1 was stopped,
# w7.1 is parked and woken, w8 waited and was cancelled, the resume of w9.1 is put off.
BREAKS = (
    "DELETE FROM lease WHERE attempt_id = 'w1.1'",
    "UPDATE lease SET revoked_at_us = NULL, revoked_reason = NULL WHERE attempt_id = 'w4.1'",
    "UPDATE stop_order SET closed_at_us = 1, closed_by = 'x' WHERE attempt_id = 'w2.1'",
    (
        "UPDATE work SET state = 'running', backoff_us = NULL, backoff_boot_id = NULL, backoff_since_mono_us = NULL,"
        " backoff_since_at_us = NULL WHERE id = 'w3'"
    ),
    "UPDATE work SET state = 'running' WHERE id = 'w7'",
    "UPDATE attempt SET state = 'recovery_required' WHERE id = 'w7.1'",
    "UPDATE timer SET state = 'armed', closed_at_us = NULL WHERE work_id = 'w8'",
    "UPDATE work SET state = 'ready' WHERE id = 'w1'",
    "DELETE FROM snapshot WHERE attempt_id = 'w3.1'",
    "UPDATE segment SET ended_at_us = 1, active_us = 1 WHERE attempt_id = 'w1.1'",
    "UPDATE cancellation SET settled_at_us = NULL, result = NULL WHERE work_id = 'w6'",
    "UPDATE segment SET ended_at_us = NULL, active_us = NULL WHERE attempt_id = 'w3.1'",
    "UPDATE timer SET state = 'cancelled', closed_at_us = 1 WHERE work_id = 'w3'",
    (
        "UPDATE work SET state = 'ready', backoff_us = NULL, backoff_boot_id = NULL, backoff_since_mono_us = NULL,"
        " backoff_since_at_us = NULL WHERE id = 'w3'"
    ),
    "UPDATE timer SET state = 'cancelled', closed_at_us = 1 WHERE work_id = 'w9' AND state = 'armed'",
)


def break_(home: Path, statement: str) -> None:
    """Write past the second defence: without triggers, without foreign keys."""
    connection = sqlite3.connect(home / "store.db", isolation_level=None)
    triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    changed = connection.execute(statement).rowcount
    for _, sql in triggers:
        connection.execute(sql)
    connection.execute("COMMIT")
    connection.close()
    assert changed == 1


@pytest.mark.req("V04")
def test_a_sound_store_has_no_problem(world: World) -> None:
    assert check(world.home) == []


@pytest.mark.req("V04")
@pytest.mark.parametrize(("rule", "statement"), list(zip((rule for rule, _ in INVARIANTS), BREAKS, strict=True)))
def test_each_rule_is_missed_when_it_is_broken(world: World, rule: str, statement: str) -> None:
    break_(world.home, statement)

    assert rule in " ".join(check(world.home))


@pytest.mark.req("V04")
def test_a_dangling_reference_an_altered_schema_and_damage_are_found(world: World) -> None:
    connection = sqlite3.connect(world.home / "store.db", isolation_level=None)
    connection.execute("UPDATE input SET consumed_by = 'w9.9' WHERE number = 1")
    connection.execute("DROP TRIGGER lease_live")
    connection.close()

    problems = " | ".join(check(world.home))

    assert "reference: input" in problems
    assert "schema: trigger lease_live is not as it was made" in problems
    world.close()
    path = world.home / "store.db"
    with path.open("r+b") as file:
        file.seek(0)
        file.write(bytes(96))
    assert check(world.home)[0].startswith("integrity: ")


@pytest.mark.req("V04")
def test_a_backup_is_private_whole_and_verified(world: World, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"

    backup(world.home, target)

    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]
    copy = sqlite3.connect(target)
    assert copy.execute("SELECT count(*) FROM work").fetchone() == (9,)
    copy.close()


def test_a_backup_replaces_nothing(world: World, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("mine")

    with pytest.raises(RefusedError, match="exists already"):
        backup(world.home, target)

    assert target.read_text() == "mine"
    with pytest.raises(RefusedError, match="cannot be made"):
        backup(world.home, tmp_path / "missing" / "copy.db")


def test_a_failed_backup_leaves_no_file(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shared.store.sqlite import inspect

    def fail(*_: object) -> None:
        raise StoreUnavailableError("disk_full", "full")

    monkeypatch.setattr(inspect, "_copy", fail)

    with pytest.raises(StoreUnavailableError):
        backup(world.home, tmp_path / "copy.db")

    assert list(tmp_path.iterdir()) == []


def test_there_must_be_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="no store"):
        check(tmp_path)
