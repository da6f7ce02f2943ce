"""Statements are compiled once for a connection, not once for each time they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shared.ids import Incarnation, WorkId
from shared.store.contract import ReadTx
from shared.store.sqlite.store import SqliteStore
from tests.support.stores import SQLITE, World, ram_folder

OWNER = Incarnation("worker-1.1")
WORK = WorkId("w1")

READS: dict[str, Callable[[ReadTx], object]] = {
    "works": lambda tx: tx.works(states=(), after=0, limit=10),
    "ready": lambda tx: tx.ready("jobs", after=None, limit=10),
    "ready behind": lambda tx: tx.ready("jobs", after=(0, 1), limit=10),
    "ready_page": lambda tx: tx.ready_page("jobs", after=None, limit=10),
    "pending_inputs": lambda tx: tx.pending_inputs(WORK, limit=10),
    "holders": lambda tx: tx.holders(limit=10),
    "ready_counts": lambda tx: tx.ready_counts(cap=10),
    "ready_limits": lambda tx: tx.ready_limits(cap=10),
    "assignments": lambda tx: tx.assignments(OWNER, limit=10),
    "recoverable": lambda tx: tx.recoverable(after=None, limit=10),
    "timers_due": lambda tx: tx.timers_due(limit=10),
    "routines": lambda tx: tx.routines(limit=10),
    "stop_orders": lambda tx: tx.stop_orders(unassigned=True, limit=10),
    "cancellations": lambda tx: tx.cancellations(WORK, limit=10),
    "idle_state": lambda tx: tx.idle_state(),
    "events": lambda tx: tx.events(after=0, limit=10),
    "needs_person": lambda tx: tx.needs_person(limit=10),
    "next_due_mono_us": lambda tx: tx.next_due_mono_us(),
    "workers": lambda tx: tx.workers(),
    "usage": lambda tx: tx.usage(),
}


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    with ram_folder() as folder:
        world = World(SQLITE, Path(folder))
        world.submit()
        opened = world.open()
        assert isinstance(opened, SqliteStore)
        yield opened
        world.close()


def compiled(store: SqliteStore, act: Callable[[], object]) -> int:
    """How often the library asked, while that ran, whether a statement being compiled is allowed."""
    asked: list[object] = []
    raw = store._db.raw

    def allow(*what: object) -> int:
        asked.append(what)
        return 0

    raw.set_authorizer(allow)
    try:
        act()  # to set it makes every statement be compiled once more
        asked.clear()
        act()
        return len(asked)
    finally:
        raw.set_authorizer(None)


@pytest.mark.parametrize("name", READS)
def test_a_read_is_compiled_once(store: SqliteStore, name: str) -> None:
    assert compiled(store, lambda: store.read(READS[name])) == 0


def test_a_statement_that_is_compiled_again_would_be_seen(store: SqliteStore) -> None:
    """The control: a statement that was never met before."""
    sqls = iter(["SELECT 1 FROM meta WHERE 1 = 1", "SELECT 1 FROM meta WHERE 2 = 2"])

    assert compiled(store, lambda: store._db.rows(next(sqls))) > 0
