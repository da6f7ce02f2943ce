"""The queue in front of the store's write lock, within one process; its cases with processes are in tests/contract."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shared.errors import StoreBusyError, StoreUnavailableError
from shared.ids import AttemptId, Incarnation
from shared.model.attempt import Lease
from shared.model.instant import Instant
from shared.model.work import SET_ASIDE, Reason
from shared.policy.lease import accept_timeout_us, is_live
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.fragments import ACCEPT_BY, LIVE, NOT_LIVE, QUEUED
from shared.store.sqlite.fragments import SET_ASIDE as SET_ASIDE_SQL
from shared.store.sqlite.queue import Queue
from shared.store.sqlite.store import open_store
from tests.support.stores import SQLITE, World, ram_folder
from tests.support.waiting import wait_until


@contextmanager
def held(path: Path) -> Iterator[int]:
    """The lock, held by another open file."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield fd
    finally:
        os.close(fd)


def is_free(path: Path) -> bool:
    fd = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def test_a_free_queue_is_taken_and_given_back(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "queue.lock", wait_s=0)
    for _ in range(3):
        queue.acquire()
        assert not is_free(tmp_path / "queue.lock")
        queue.release()
        assert is_free(tmp_path / "queue.lock")
    queue.close()
    queue.close()


def test_without_a_wait_a_held_queue_is_busy_at_once_and_starts_no_thread(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "queue.lock", wait_s=0)
    before = threading.active_count()
    with held(tmp_path / "queue.lock"), pytest.raises(StoreBusyError):
        queue.acquire()

    assert threading.active_count() == before
    queue.acquire()


def test_a_wait_ends_when_the_holder_lets_go(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "queue.lock", wait_s=30)
    with held(tmp_path / "queue.lock") as fd:
        let_go = threading.Timer(0.01, lambda: fcntl.flock(fd, fcntl.LOCK_UN))
        let_go.start()
        queue.acquire()
        let_go.join()
    assert not is_free(tmp_path / "queue.lock")
    queue.release()
    assert is_free(tmp_path / "queue.lock")


def test_a_wait_that_was_given_up_leaves_the_queue_to_others_and_may_be_taken_up_again(tmp_path: Path) -> None:
    """The one helper goes on waiting: it hands over to whoever waits by then, or lets go at once."""
    path = tmp_path / "queue.lock"
    queue = Queue(path, wait_s=0.01)
    before = threading.active_count()
    with held(path):
        for _ in range(3):
            with pytest.raises(StoreBusyError, match=f"process {os.getpid()} "):
                queue.acquire()
        assert threading.active_count() == before + 1
    wait_until(lambda: threading.active_count() == before, "the helper is through")
    assert is_free(path)

    queue.acquire()

    assert not is_free(path)
    queue.release()
    queue.close()


def test_waits_are_bounded_anew_for_queue_and_database_but_never_beyond_the_first_bound() -> None:
    with ram_folder() as folder:
        world = World(SQLITE, folder)
        store = open_store(world.home, world.clock, wait_s=2.0)

        bounds = []
        for wait_us in (10_000_000, 500_000, 1_000_000):
            store.bound_waits(wait_us)
            bounds.append((store._queue.wait_s, store._db.value("PRAGMA busy_timeout")))

        store.close()
        world.close()
    assert bounds == [(2.0, 2000), (0.5, 500), (1.0, 1000)]


def test_a_queue_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "queue.lock").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StoreUnavailableError, match=r"queue.lock cannot be opened"):
        Queue(tmp_path / "queue.lock", wait_s=0)


def _lease_columns(lease: Lease, claimed_mono_us: int) -> str:
    revoked = "NULL" if lease.revoked_at_us is None else lease.revoked_at_us
    return (
        f"(SELECT '{lease.boot_id}' AS boot_id, {lease.expires_mono_us} AS expires_mono_us,"
        f" {claimed_mono_us} AS claimed_mono_us, {revoked} AS revoked_at_us) AS l"
    )


def _lease(**changes: object) -> Lease:
    fields: dict[str, object] = {
        "attempt_id": AttemptId("w1.1"),
        "epoch": 1,
        "owner": Incarnation("worker-1.1"),
        "boot_id": "b",
        "expires_mono_us": 100,
        "accepted_at_us": None,
        "revoked_at_us": None,
        "revoked_reason": None,
    }
    return Lease(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.req("R07")
@pytest.mark.parametrize("boot", ["b", "other"])
@pytest.mark.parametrize("revoked", [None, 5])
@pytest.mark.parametrize("expires", [99, 100, 101])
def test_the_fence_in_sql_is_the_fence_of_the_policy_and_recovery_its_exact_negation(
    boot: str, revoked: int | None, expires: int
) -> None:
    lease = _lease(boot_id=boot, revoked_at_us=revoked, expires_mono_us=expires)
    connection = sqlite3.connect(":memory:")

    live, not_live = connection.execute(
        f"SELECT {LIVE}, {NOT_LIVE} FROM {_lease_columns(lease, 0)}", {"boot": "b", "mono": 100}
    ).fetchone()

    connection.close()
    assert (bool(live), bool(not_live)) == (
        is_live(lease, Instant(0, 100, "b")),
        not is_live(lease, Instant(0, 100, "b")),
    )


@pytest.mark.parametrize("lease_us", [3_000_000, 15_000_000, 15_000_001, 60_000_000])
def test_the_accept_timeout_in_sql_is_the_one_of_the_policy(lease_us: int) -> None:
    connection = sqlite3.connect(":memory:")

    (due,) = connection.execute(
        f"SELECT {ACCEPT_BY} FROM {_lease_columns(_lease(expires_mono_us=7 + lease_us), 7)}"
    ).fetchone()

    connection.close()
    assert due == 7 + accept_timeout_us(lease_us)


@pytest.mark.parametrize("reason", [None, *Reason])
def test_the_reasons_outside_the_queue_are_those_of_the_model(reason: Reason | None) -> None:
    connection = sqlite3.connect(":memory:")

    queued, aside = connection.execute(
        f"SELECT {QUEUED}, {SET_ASIDE_SQL} FROM (SELECT ? AS reason)", (reason,)
    ).fetchone()

    connection.close()
    assert (bool(queued), bool(aside)) == (reason not in SET_ASIDE, reason in SET_ASIDE)
