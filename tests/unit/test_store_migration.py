"""Stores of earlier versions, as those versions wrote them, brought to the present schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from shared.clock import VirtualClock
from shared.home import Home, create_home
from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.declaration import outcome_of
from shared.model.event import TURN_EVENT
from shared.model.host import PassRecord
from shared.model.timer import TimerKind
from shared.model.work import WorkKind, WorkState
from shared.store.contract import Tx
from shared.store.sqlite.ballast import Ballast
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.fingerprint import schema_text
from shared.store.sqlite.inspect import check
from shared.store.sqlite.migrate import migrate
from shared.store.sqlite.place import place_of
from shared.store.sqlite.store import create, open_store
from tests.support.declarations import TICK
from tests.support.stores import COMPLETED, LEADERSHIP_US, SUCCEEDED, identity, new_work, ram_folder

SUPPORT = Path(__file__).parents[1] / "support"
VERSION_1 = SUPPORT / "store_version_1.sql"
"""A store as version 1 wrote it, in the middle of things: jobs running, recovered, in backoff, left to a person, cancelled."""
VERSION_2 = SUPPORT / "store_version_2.sql"
"""A store as version 2 wrote it: with what version 1 knew, and timers, budgets, gates, declarations, waits, streams, intents, keys."""

STEPS = {1: ["0002_hardening", "0003_chains"], 2: ["0003_chains"]}
DROPPED = {"attempt": {"stream_offset"}}
"""Columns that the present schema has no more."""

of_each_version = pytest.mark.parametrize(("version", "text"), [(1, VERSION_1), (2, VERSION_2)], ids=["1", "2"])


@pytest.fixture
def folder() -> Iterator[Path]:
    with ram_folder() as folder:
        yield folder


def old_home(folder: Path, text: str) -> Path:
    """A home with the store that this text makes."""
    home = folder / "old"
    create_home(home)
    store = Home(home).store
    connection = sqlite3.connect(store, isolation_level=None)
    connection.executescript(text)
    connection.execute("PRAGMA journal_mode = WAL")
    identity = {
        "file_inode": store.stat().st_ino,
        "machine_id": place_of(home).machine_id or "",
        "time_namespace": f"boot-1:{place_of(home).time_ns}",
    }
    for key, value in identity.items():
        connection.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
    connection.close()
    store.chmod(0o600)
    Ballast(home).restore()
    return home


def contents(home: Path) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table of ours, by column; rows in the order of their keys."""
    connection = sqlite3.connect(Home(home).store)
    connection.row_factory = sqlite3.Row
    tables = [
        row[0]
        for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        if row[0] not in ("_sqlite_migrations", "sqlite_stat1")
    ]
    found = {
        table: [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2")] for table in tables
    }
    connection.close()
    return found


def schema_of(home: Path) -> dict[str, str]:
    """Every table, index and trigger, by name."""
    connection = sqlite3.connect(Home(home).store)
    text = schema_text(lambda sql: connection.execute(sql).fetchall())
    connection.close()
    return dict(part.split(": ", 1) for part in text.split("\n;\n"))


@of_each_version
def test_the_old_store_is_refused_until_it_is_migrated(folder: Path, version: int, text: Path) -> None:
    home = old_home(folder, text.read_text())
    with pytest.raises(Exception, match=f"the store has schema {version}"):
        open_store(home, VirtualClock())

    assert migrate(home, VirtualClock()) == STEPS[version]

    open_store(home, VirtualClock(), check=True).close()
    assert migrate(home, VirtualClock()) == []


@of_each_version
def test_a_migrated_store_has_the_schema_of_a_new_one(folder: Path, version: int, text: Path) -> None:
    home = old_home(folder, text.read_text())
    old = schema_of(home)
    create_home(folder / "new")
    create(folder / "new", VirtualClock())

    migrate(home, VirtualClock())

    assert schema_of(home) == schema_of(folder / "new")
    assert old != schema_of(home), f"the control: in version {version} it was another one"


@of_each_version
def test_every_row_is_kept_in_every_column(folder: Path, version: int, text: Path) -> None:
    home = old_home(folder, text.read_text())
    before = contents(home)
    filled = ["work", "attempt", "lease", "stop_order", "cancellation", "pass"]
    if version > 1:
        filled += ["input", "timer", "submission", "budget", "ledger", "gate_settlement", "declaration", "published"]
        filled += ["wait", "stream", "intent"]
        assert any(row["stream_offset"] is not None for row in before["attempt"])
    assert [table for table in filled if not before[table]] == []

    migrate(home, VirtualClock())

    after = contents(home)
    assert after["event"].pop()["kind"] == "store.migrated"
    for table in ("meta", "sqlite_sequence"):
        changed = {tuple(row.values()) for row in after.pop(table)} ^ {tuple(row.values()) for row in before.pop(table)}
        assert {row[0] for row in changed} <= {"incarnation", "schema", "event", "timer"}, table
    for table, rows in before.items():
        kept = [{column: row[column] for column in row if column not in DROPPED.get(table, set())} for row in rows]
        assert [{column: row[column] for column in old} for row, old in zip(after[table], kept, strict=True)] == kept, (
            table
        )
    if version == 1:
        backing_off = [row["id"] for row in before["work"] if row["state"] == "backoff"]
        assert [row["work_id"] for row in after.pop("timer")] == backing_off, "until version 2 a backoff had no timer"
    assert {row["depth"] for table in ("input", "attempt", "published") for row in after[table]} == {0}
    assert {table for table in after if after[table] and table not in before} == set(), "nothing is made up"


def test_life_goes_on_in_a_migrated_store(folder: Path) -> None:
    """What ran is finished, what is left to a person is still left to one, a pass of the past is read with what it knew."""
    home = old_home(folder, VERSION_1.read_text())
    migrate(home, VirtualClock())
    clock = VirtualClock()
    store = open_store(home, clock, check=True)

    [held] = [key for key in store.read(lambda tx: tx.held(Incarnation("worker-1.1"))) if key.attempt_id == "w1.1"]
    store.write(lambda tx: tx.finish(held, SUCCEEDED, COMPLETED))

    states = {str(work.id): work.state for work in store.read(lambda tx: tx.works(states=(), after=0, limit=100))}
    last = store.read(lambda tx: tx.last_pass())
    store.close()
    assert (states["w1"], states["w4"], states["w5"]) == (WorkState.COMPLETED, WorkState.READY, WorkState.BACKOFF)
    assert last == PassRecord(
        generation=1,
        trigger="wake",
        due_at_us=1_800_000_000_000_002,
        started_at_us=1_800_000_000_000_102,
        duration_us=302,
        planned=None,
        claimed=2,
        dispatched=None,
        recovered=1,
        revoked=2,
        waiting_jobs=3,
        waiting_agents=4,
        cut_short=False,
        clock_jump_us=None,
        error=None,
    )
    assert check(home) == []


def test_life_goes_on_in_a_store_of_version_2(folder: Path) -> None:
    """What was parked is woken, what was declared is applied, what a key accepted is known."""
    home = old_home(folder, VERSION_2.read_text())
    migrate(home, VirtualClock())
    store = open_store(home, VirtualClock(), check=True)
    held = {key.attempt_id: key for key in store.read(lambda tx: tx.held(Incarnation("worker-1.1")))}
    outcome = outcome_of(store.read(lambda tx: tx.declarations(AttemptId("w12.1"), unapplied=True)))

    seq = store.write(lambda tx: tx.publish(TICK))
    store.write(lambda tx: tx.finish(held[AttemptId("w12.1")], SUCCEEDED, COMPLETED, outcome=outcome))
    again = store.write(lambda tx: tx.submit(new_work(), "jobs", key="k"))

    woken = store.read(lambda tx: tx.woken("jobs", limit=9).woken)
    turns = [event for event in store.read(lambda tx: tx.events(after=seq, limit=99)) if event.kind == TURN_EVENT]
    states = {str(work.id): work.state for work in store.read(lambda tx: tx.works(states=(), after=0, limit=100))}
    store.close()
    assert [(one.awaited.attempt_id, one.awaited.wake_seq) for one in woken] == [("w11.1", seq)]
    assert [event.attempt_id for event in turns] == ["w12.1"]
    assert (again, states["w12"], states["w17"]) == ("w9", WorkState.COMPLETED, WorkState.READY)
    assert check(home) == []


@pytest.mark.req("B03")
def test_what_a_running_program_had_reported_until_version_2_is_charged_with_its_end(folder: Path) -> None:
    """It was added up at the end, and what was wrong in it refused there; since then it is added up when it is said."""
    rows = [("u-1", {"usd": "0.5"}), ("u-2", {"usd": "0.25", "tokens": "3"}), ("u-3", {"turns": "1"})]
    added = [
        f"INSERT INTO declaration VALUES('w12.1','{key}','usage','{json.dumps({'units': units})}',{200 + at},1,1,NULL);"
        for at, (key, units) in enumerate(rows)
    ]
    home = old_home(folder, VERSION_2.read_text() + "\n".join(added))
    migrate(home, VirtualClock())
    store = open_store(home, VirtualClock(), check=True)
    name = AttemptId("w12.1")
    assert store.read(lambda tx: tx.reported(name)).to_plain() == {"tokens": "3", "usd": "0.75"}
    [key] = [one for one in store.read(lambda tx: tx.held(Incarnation("worker-1.1"))) if one.attempt_id == name]

    store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))

    attempt = store.read(lambda tx: tx.attempt(name))
    store.close()
    assert attempt is not None
    assert attempt.usage.amount("usd") == Decimal("0.75")
    assert attempt.usage.amount("tokens") == 3


@pytest.mark.req("F02")
def test_what_backed_off_is_fired_by_its_timer(folder: Path) -> None:
    home = old_home(folder, VERSION_1.read_text())
    migrate(home, VirtualClock())
    clock = VirtualClock()
    store = open_store(home, clock)
    timer = store.read(lambda tx: tx.timer(WorkId("w5")))
    assert timer is not None
    assert (timer.kind, timer.attempt_id) == (TimerKind.ADMISSION, "w5.1")
    clock.advance(timer.after_us + timer.since.mono_us + LEADERSHIP_US)
    owner = store.write(lambda tx: tx.next_incarnation("coordinator"))
    leader = store.write(
        lambda tx: tx.take_leadership(
            owner, process=identity(1), lock_device=1, lock_inode=1, duration_us=LEADERSHIP_US, proven_dead=None
        )
    )
    assert leader is not None

    def fire(tx: Tx) -> None:
        tx.lead(owner, leader.generation, duration_us=LEADERSHIP_US, renew_after_us=1)
        tx.fire_timer(timer.id)

    store.write(fire)

    work = store.read(lambda tx: tx.work(WorkId("w5")))
    store.close()
    assert work is not None
    assert (work.state, work.kind, work.failures_used) == (WorkState.READY, WorkKind.RUN_ONCE, 0)
