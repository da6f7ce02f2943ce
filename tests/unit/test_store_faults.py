"""Faults at every point of a transaction: what the caller is told, what is kept, and that the next one works."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.clock import VirtualClock
from shared.errors import (
    FenceViolationError,
    IndeterminateError,
    StoreBusyError,
    StoreUnavailableError,
    TenureError,
)
from shared.model.instant import Instant
from shared.model.work import Reason, WorkState
from shared.store.contract import ClaimRefused, Tx
from shared.store.sqlite import store as store_module
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.store import SqliteStore, open_store
from tests.support.passes import pass_record
from tests.support.stores import COMPLETED, LEASE_US, SQLITE, SUCCEEDED, World, new_work, ram_folder

BUSY, IOERR, CORRUPT, FULL, CONSTRAINT, NOTADB = 5, 10, 11, 13, 19, 26


class Plan:
    """A fault plan: raises one error of the library at one point, once."""

    def __init__(self, point: str, code: int, *, word: str = "", times: int = 1) -> None:
        self.point = point
        self.code = code
        self.word = word
        self.times = times

    def at(self, point: str, sql: str) -> None:
        if point == self.point and self.word in sql and self.times > 0:
            self.times -= 1
            error = sqlite3.OperationalError("injected")
            error.sqlite_errorcode = self.code
            raise error


@pytest.fixture
def world() -> Iterator[World]:
    with ram_folder() as folder:
        made = World(SQLITE, folder)
        yield made
        made.close()


def opened(world: World, plan: Plan | None = None) -> SqliteStore:
    store = open_store(world.home, world.clock, wait_s=0)
    store._seam = plan
    store._db._seam = plan
    return store


def works(world: World) -> int:
    return len(world.store.read(lambda tx: tx.works(states=(), after=0, limit=99)))


def submit(tx: Tx) -> str:
    return tx.submit(new_work(), "jobs")


@pytest.mark.req("M05")
@pytest.mark.parametrize(
    ("point", "code", "told", "word"),
    [
        ("begin", BUSY, StoreBusyError, "store_busy"),
        ("begin", IOERR, StoreUnavailableError, "io_error"),
        ("statement", FULL, StoreUnavailableError, "disk_full"),
        ("statement", IOERR, StoreUnavailableError, "io_error"),
        ("statement", CORRUPT, StoreUnavailableError, "corrupt"),
        ("statement", NOTADB, StoreUnavailableError, "corrupt"),
        ("statement", CONSTRAINT, FenceViolationError, "fence_violation"),
        ("commit", BUSY, StoreBusyError, "store_busy"),
        ("commit", FULL, StoreUnavailableError, "disk_full"),
        ("commit", CONSTRAINT, FenceViolationError, "fence_violation"),
        ("commit", IOERR, IndeterminateError, "indeterminate"),
    ],
)
def test_a_fault_before_the_commit_keeps_nothing_and_the_next_write_works(
    world: World, point: str, code: int, told: type[TenureError], word: str
) -> None:
    store = opened(world, Plan(point, code, word="INSERT INTO work" if point == "statement" else ""))

    with pytest.raises(told) as caught:
        store.write(submit)

    assert caught.value.code == word
    assert works(world) == 0
    assert store.write(submit) == "w1"
    assert works(world) == 1
    store.close()


@pytest.mark.req("M05")
def test_a_commit_whose_answer_is_lost_is_indeterminate_and_read_again_by_its_key(world: World) -> None:
    key = world.running(world.worker())
    store = opened(world, Plan("committed", IOERR))

    with pytest.raises(IndeterminateError):
        store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))

    attempt = store.read(lambda tx: tx.attempt(key.attempt_id))
    assert attempt is not None
    assert attempt.state == "succeeded"
    store.close()


def test_after_an_indeterminate_commit_the_connection_is_opened_anew_and_checked(world: World) -> None:
    store = opened(world, Plan("commit", IOERR))
    before = store._db
    with pytest.raises(IndeterminateError):
        store.write(submit)
    counted = store.statements, store.commits

    store.write(submit)

    assert store._db is not before
    assert (store.statements > counted[0], store.commits) == (True, counted[1] + 1)
    store.close()


@pytest.mark.req("M05")
def test_after_a_failed_sync_a_damaged_store_is_told_and_not_written(world: World) -> None:
    """The control of the above: the look at every page finds what the failing disk left."""
    for number in range(40):
        world.submit(input_=bytes([number]) * 9_000)
    world.store._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[attr-defined]
    store = opened(world, Plan("commit", IOERR))
    with pytest.raises(IndeterminateError):
        store.write(submit)
    with (world.home / "store.db").open("r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(b"\xff" * 4096)

    for _ in range(2):
        with pytest.raises(StoreUnavailableError) as caught:
            store.write(submit)
        assert caught.value.code == "corrupt"
    store.close()


def test_bells_do_not_ring_for_what_was_not_committed(world: World) -> None:
    rung: list[str] = []
    store = open_store(world.home, world.clock, ring=rung.extend, wait_s=0, seam=Plan("commit", FULL))

    with pytest.raises(StoreUnavailableError):
        store.write(submit)

    assert rung == []
    store.write(submit)
    assert rung == ["coordinator"]
    store.close()


def test_a_foreign_program_that_holds_the_write_lock_makes_it_busy(world: World) -> None:
    foreign = sqlite3.connect(world.home / "store.db", isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreBusyError, match="another program"):
        world.submit()

    foreign.execute("ROLLBACK")
    foreign.close()
    assert world.submit() == "w1"


@pytest.mark.req("M05")
def test_on_a_full_disk_an_end_gives_the_ballast_up_and_is_written(world: World) -> None:
    key = world.running(world.worker())
    store = opened(world, Plan("commit", FULL))

    store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))

    assert world.attempt(key.attempt_id).state == "succeeded"
    assert not (world.home / "ballast").exists()
    store.close()


@pytest.mark.req("M05")
@pytest.mark.parametrize("what", ["cancel", "require_recovery", "confirm", "renew", "register"])
def test_holds_and_stops_may_use_the_ballast_too(world: World, what: str) -> None:
    key = world.running(world.worker())
    work_id = world.attempt(key.attempt_id).work_id
    if what == "confirm":
        world.store.write(lambda tx: tx.cancel_work(work_id, by="t", reason="t"))
    store = opened(world, Plan("commit", FULL))
    transitions = {
        "cancel": lambda tx: tx.cancel_work(work_id, by="t", reason="t"),
        "require_recovery": lambda tx: tx.require_recovery(key, why="?", proof=None),
        "confirm": lambda tx: tx.confirm_stopped(key.attempt_id, expected_epoch=1, proof="S1", by="t"),
        "renew": lambda tx: tx.renew(key.owner, lease_us=LEASE_US),
        "register": lambda tx: tx.next_incarnation("worker-9"),
    }

    store.write(transitions[what])

    assert not (world.home / "ballast").exists()
    store.close()


@pytest.mark.req("M05")
def test_on_a_full_disk_nothing_that_begins_gives_the_ballast_up(world: World) -> None:
    owner = world.worker()
    key = world.claimed(owner)
    plan = Plan("commit", FULL, times=99)
    store = opened(world, plan)
    for transition in (
        submit,
        lambda tx: tx.accept(key, invoke_isolated=True),
    ):
        with pytest.raises(StoreUnavailableError) as caught:
            store.write(transition)
        assert caught.value.code == "disk_full"

    assert (world.home / "ballast").exists()
    store.close()


@pytest.mark.req("M05")
def test_a_disk_that_stays_full_is_told_after_one_more_try(world: World) -> None:
    key = world.running(world.worker())
    plan = Plan("commit", FULL, times=99)
    store = opened(world, plan)

    for tries in (2, 1):
        plan.times = 99
        with pytest.raises(StoreUnavailableError) as caught:
            store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))
        assert (caught.value.code, plan.times) == ("disk_full", 99 - tries)
    store.close()


@pytest.mark.req("M05", "C04")
def test_claims_stop_without_the_ballast_and_resume_by_themselves(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, work_id = world.worker(), world.submit()
    (world.home / "ballast").unlink()
    full = os.statvfs_result((4096, 4096, 1000, 10, 10, 0, 0, 0, 0, 255))
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda _: full)
        world.store.checkpoint()

        assert world.try_claim(work_id, owner) == ClaimRefused(None, Reason.DISK_FULL, None)

    world.store.checkpoint()
    assert world.claimed(owner, work_id).epoch == 1


@pytest.mark.req("M05")
def test_a_recorded_pass_restores_the_ballast(world: World) -> None:
    (world.home / "ballast").unlink()

    world.as_leader(lambda tx: tx.record_pass(pass_record()))

    assert (world.home / "ballast").stat().st_size == 1024 * 1024


@pytest.mark.req("M05")
def test_a_really_full_file_system(world: World) -> None:
    """The library's own report of a full disk, by a limit on the file's pages; an end is written with the ballast's space."""
    key = world.running(world.worker())
    pages = world.store._db.value("PRAGMA page_count")  # type: ignore[attr-defined]
    world.store._db.rows(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]
    with pytest.raises(StoreUnavailableError) as caught:
        world.submit(input_=bytes(1_000_000))
    assert caught.value.code == "disk_full"

    world.store._db.rows("PRAGMA max_page_count = 1000000")  # type: ignore[attr-defined]

    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))
    assert world.work(world.attempt(key.attempt_id).work_id).state is WorkState.COMPLETED


def test_a_read_only_store_is_told(world: World) -> None:
    world.store._db.rows("PRAGMA query_only = 1")  # type: ignore[attr-defined]

    with pytest.raises(StoreUnavailableError) as caught:
        world.submit()

    assert caught.value.code == "io_error"
    assert world.submit() == "w1", "a failed connection is opened anew"


def test_a_large_log_is_moved_by_the_leader_and_by_any_writer_at_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", 50)
    assert not world.store.write(lambda tx: tx.checkpoint_due())
    while not world.store.write(lambda tx: tx.checkpoint_due()):
        world.submit(input_=bytes(4096))
    size = (world.home / "store.db-wal").stat().st_size

    world.store.checkpoint()

    assert not world.store.write(lambda tx: tx.checkpoint_due()), "what was moved is not due again"
    for _ in range(3):
        world.submit()
    assert (world.home / "store.db-wal").stat().st_size == size, "the log is written again from its start"
    monkeypatch.setattr(store_module, "WAL_BYTES_MAX", 60 * 4096)
    for _ in range(300):
        world.submit()
    assert (world.home / "store.db-wal").stat().st_size < 120 * 4096


@pytest.mark.req("E07")
def test_nothing_committed_is_lost_when_a_writer_is_killed(world: World) -> None:
    """The process dies at once after its last commit, without closing anything."""
    program = (
        "import os, sys; from pathlib import Path; from shared.clock import VirtualClock;"
        "from shared.store.sqlite.store import open_store; from tests.support.stores import new_work;"
        "store = open_store(Path(sys.argv[1]), VirtualClock());"
        "[store.write(lambda tx: tx.submit(new_work(), 'jobs')) for _ in range(7)];"
        "os.kill(os.getpid(), 9)"
    )
    died = subprocess.run([sys.executable, "-c", program, world.home], cwd=Path(__file__).parents[2], check=False)

    assert died.returncode == -9
    assert works(world) == 7
    open_store(world.home, world.clock, check=True).close()


def test_time_is_read_after_the_lock(world: World) -> None:
    """A writer that queued must not decide on the time before it queued."""

    order: list[str] = []

    class Watching:
        def at(self, point: str, sql: str) -> None:
            order.append(point)

    class Noting(VirtualClock):
        def now(self) -> Instant:
            order.append("now")
            return super().now()

    store = open_store(world.home, Noting(), wait_s=0, seam=Watching())
    order.clear()

    store.write(lambda tx: tx.next_incarnation("worker-1"))

    assert order[:3] == ["begin", "statement", "now"]
    assert order.count("now") == 1
    store.close()
