"""A fault at every point of every transition: nothing of it is kept or all of it, the caller is told which, and the next try works.

The points of a write are its begin, each of its statements, and COMMIT before and after it took effect. The list of transitions is
the contract's own, so a new one without a scene fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.boundary import Boundary
from shared.errors import FenceViolationError, IndeterminateError, StoreBusyError, StoreUnavailableError, TenureError
from shared.store.contract import Tx
from shared.store.sqlite.connection import Connection
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.store import SqliteStore, WriteTx, open_store
from shared.store.sqlite.writing import Writing
from tests.support.contract import TRANSITIONS
from tests.support.scenes import Transition
from tests.support.stores import SQLITE, World, ram_folder
from tests.support.transitions import READS, SCENES, contents, transition_of

BUSY, LOCKED, IOERR, FULL = 5, 6, 10, 13
TOLD = {BUSY: "store_busy", LOCKED: "store_busy", IOERR: "io_error", FULL: "disk_full"}
KEPT_BY_BALLAST = "the ballast's space"

REPEATS = {
    "submit": "a second Work: only a key says that it is the same",
    "next_incarnation": "a number nobody uses",
    "dispatch": "the same intent under a later token, under which alone it then counts",
    "publish": "a second event: what it means twice, its reader says",
    "record_pass": "a pass recorded twice, which decides nothing",
    "note_refusal": "a refusal counted once more, in a list that is read by people",
}
"""Transitions that write again what an unanswered COMMIT had kept; every other is refused, or finds its work done."""


def test_every_transition_of_the_contract_has_its_scene() -> None:
    assert {transition_of(name) for name in SCENES} == TRANSITIONS - READS


# --- each write crosses a boundary


@pytest.mark.req("M03")
@pytest.mark.parametrize("name", SCENES)
def test_every_transition_names_the_boundary_that_its_commit_crosses(world: World, name: str) -> None:
    transition = SCENES[name](world)
    before = contents(world)
    crossed: list[Boundary] = []

    def written(tx: Tx) -> None:
        transition(tx)
        assert isinstance(tx, WriteTx)
        crossed.extend(tx.notes.boundaries)

    world.store.write(written)

    assert contents(world) != before, "the scene lets it write"
    assert crossed


@pytest.mark.req("M03")
def test_a_write_without_a_boundary_is_refused_and_not_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(world)
    with monkeypatch.context() as patch:
        patch.setattr(Writing, "_note", lambda *_: None)
        with pytest.raises(FenceViolationError, match="no boundary"):
            world.submit()

    assert contents(world) == before
    assert world.submit() == "w1", "the control"


@pytest.mark.req("M03")
def test_a_write_outside_any_transaction_is_found_by_the_next_one(world: World) -> None:
    assert isinstance(world.store, SqliteStore)
    world.submit()
    world.store._db.rows("UPDATE counter SET value = value + 1")

    with pytest.raises(FenceViolationError, match="outside a transaction"):
        world.submit()


# --- faults


class Fault:
    """Raises one error of the library at the n-th point, once; notes every point it is told of."""

    def __init__(self, index: int = -1, code: int = 0) -> None:
        self.points: list[str] = []
        self._index = index
        self._code = code

    def at(self, point: str, sql: str) -> None:
        self.points.append(point)
        if len(self.points) - 1 == self._index:
            error = sqlite3.OperationalError(f"injected at {point}: {sql[:60]}")
            error.sqlite_errorcode = self._code
            raise error


class Stage:
    """A home on which one write is tried again and again, each time from the same store."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.transition: Transition = SCENES[name](world)
        world.store.close()  # the last one: the log is in the file
        self._file = world.home / "store.db"
        self._bytes = self._file.read_bytes()
        self.before = contents(world)
        self.points, self.after = self._without_fault()

    def _without_fault(self) -> tuple[list[str], object]:
        watch = Fault()
        with self.store(watch) as store:
            store.write(self.transition)
        return watch.points, contents(self.world)

    def store(self, fault: Fault) -> _Opened:
        """The store as it was at first, opened anew; told of its points from here on."""
        for end in ("-wal", "-shm"):
            self._file.with_name(f"{self._file.name}{end}").unlink(missing_ok=True)
        self._file.write_bytes(self._bytes)
        store = open_store(self.world.home, self.world.clock, wait_s=0)
        assert store.ballast.restore()
        store._seam = store._db._seam = fault
        return _Opened(store)

    def kept(self) -> str:
        """What is in the store: `nothing`, `everything`, or what should never be: `something else`."""
        found = contents(self.world)
        return "nothing" if found == self.before else "everything" if found == self.after else "something else"


class _Opened:
    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def __enter__(self) -> SqliteStore:
        return self._store

    def __exit__(self, *_: object) -> None:
        self._store.close()


def faults(points: list[str]) -> Iterator[tuple[int, int]]:
    """Each point with each error that it can meet; one whose effect is there can only lose its answer."""
    for index, point in enumerate(points):
        for code in (IOERR,) if point == "committed" else TOLD:
            yield index, code


def expected(point: str, code: int, *, ends: bool) -> tuple[str, str]:
    """What the caller is told, and what is kept."""
    if code == FULL and ends:
        return KEPT_BY_BALLAST, "everything"
    if code == IOERR and point in ("commit", "committed"):
        return IndeterminateError("").code, "everything" if point == "committed" else "nothing"
    return TOLD[code], "nothing"


def try_with(stage: Stage, index: int, code: int) -> tuple[str, str, bool]:
    """What the caller was told, what was kept, and whether the write had an end or a hold in it when it failed."""
    noted: list[WriteTx] = []

    def written(tx: Tx) -> object:
        assert isinstance(tx, WriteTx)
        noted.append(tx)
        return stage.transition(tx)

    with stage.store(Fault(index, code)) as store:
        try:
            store.write(written)
            told = KEPT_BY_BALLAST if not store.ballast.is_there() else "nothing"
        except (StoreBusyError, StoreUnavailableError, IndeterminateError) as error:
            told = error.code
        kept = stage.kept()
        if kept == "nothing":
            store.write(stage.transition)
            assert stage.kept() == "everything", "a try after the fault does what one without it does"
        elif told == IndeterminateError("").code:
            retry_after_commit(stage, store)
    return told, kept, bool(noted) and noted[0].notes.holds_or_ends


def retry_after_commit(stage: Stage, store: SqliteStore) -> None:
    """What was kept, written again by somebody who did not look it up."""
    try:
        store.write(stage.transition)
    except TenureError:
        pass
    assert (stage.kept() == "something else") == (stage.name in REPEATS)


@pytest.mark.req("M05", "E07", "D02")
@pytest.mark.parametrize("name", SCENES)
def test_a_fault_at_any_point_keeps_nothing_or_all_and_says_which(name: str) -> None:
    with ram_folder() as folder:
        stage = Stage(World(SQLITE, folder), name)
        assert (stage.points[0], stage.points[-2:]) == ("begin", ["commit", "committed"])
        for index, code in faults(stage.points):
            told, kept, ends = try_with(stage, index, code)

            assert (told, kept) == expected(stage.points[index], code, ends=ends), (stage.points[index], index, code)


@pytest.mark.req("M05")
def test_a_store_that_kept_half_of_a_write_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what a fault interrupts is committed instead of given up."""

    def keep(self: Connection) -> None:
        if self.raw.in_transaction:
            self.raw.execute("PRAGMA defer_foreign_keys = 0")
            self.raw.execute("COMMIT")
        self._accounted = self.raw.total_changes

    with ram_folder() as folder:
        stage = Stage(World(SQLITE, folder), "submit")
        monkeypatch.setattr(Connection, "rollback", keep)
        last = max(index for index, point in enumerate(stage.points) if point == "statement")

        with stage.store(Fault(last, IOERR)) as store, pytest.raises(StoreUnavailableError):
            store.write(stage.transition)
        assert stage.kept() == "something else"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ram_folder() as folder:
        made = World(SQLITE, folder)
        yield made
        made.close()
