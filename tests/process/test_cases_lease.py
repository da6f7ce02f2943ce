"""Cases of leases and leadership in which other systems went wrong, tried with real coordinators, workers and jobs."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from chaos.checks import examine
from chaos.harness import Harness
from chaos.matrix.faults import QueueHold
from chaos.matrix.stage import is_stopped
from shared.model.attempt import AttemptState
from shared.model.host import Leader
from shared.model.instant import US_PER_S
from shared.store.sqlite.driver import sqlite3  # never two libraries in one process
from tests.support.processes import Reaper
from tests.support.trials import Valve, at_work, attempt_of, lease_until, wait_logged, wait_renewed_for, wait_running

LEASE_US = 2 * US_PER_S
SHORT_LEASE_US = US_PER_S


@pytest.mark.req("E05")
def test_job_may_outlast_its_lease(tmp_path: Path, valve: Valve) -> None:
    """C020: the lease is renewed; nobody else is handed the job."""
    with at_work(tmp_path, LEASE_US, "worker-1", "worker-2") as (harness, _):
        work = harness.submit(wait=valve.path)
        wait_running(harness, work)
        wait_renewed_for(harness, work, LEASE_US)
        valve.open()
        harness.wait_quiet()

        assert examine(harness.history()) == []
        assert attempt_of(harness, work).epoch == 1


@pytest.mark.req("E05")
def test_output_does_not_starve_renewal(tmp_path: Path) -> None:
    """C021: what a job prints never passes through the one who renews."""
    with at_work(tmp_path, LEASE_US, "worker-1", "worker-2") as (harness, _):
        work = harness.submit_command(["head", "-c", "300000000", "/dev/zero"])
        harness.wait_quiet()

        attempt = attempt_of(harness, work)
        assert (attempt.state, attempt.epoch) == (AttemptState.SUCCEEDED, 1)


@pytest.mark.req("R02", "R08", "E16")
@pytest.mark.parametrize("status", [0, 4])
def test_worker_that_slept_finds_its_job_in_other_hands(tmp_path: Path, valve: Valve, status: int) -> None:
    """C021: its lease lapses, another adopts the very process, and what the sleeper says afterwards counts no more."""
    with at_work(tmp_path, SHORT_LEASE_US, "worker-1") as (harness, [_, sleeper]):
        work = harness.submit(wait=valve.path, status=status)
        wait_running(harness, work)
        harness.start("worker-2")
        os.kill(sleeper.pid, signal.SIGSTOP)

        def adopted() -> bool:
            attempt = attempt_of(harness, work)
            return attempt.epoch > 1 and attempt.state is AttemptState.RUNNING

        harness.wait(adopted, "the other worker adopted it")
        os.kill(sleeper.pid, signal.SIGCONT)
        wait_logged(harness, sleeper, "lease.lost")
        valve.open()
        harness.wait_quiet()

        assert examine(harness.history()) == []
        assert attempt_of(harness, work).exit_status == status


@contextmanager
def queue_held(harness: Harness) -> Iterator[None]:
    fd = os.open(harness.home.queue_lock, os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)


@contextmanager
def write_lock_held(harness: Harness) -> Iterator[None]:
    """As a program does that knows nothing of the queue."""
    with closing(sqlite3.connect(harness.home.store, isolation_level=None, timeout=10)) as outsider:
        outsider.execute("BEGIN IMMEDIATE")
        yield
        outsider.execute("ROLLBACK")


@pytest.mark.req("S01", "R02")
@pytest.mark.parametrize("held", [queue_held, write_lock_held])
def test_lapse_behind_a_held_store_runs_nothing_twice(
    tmp_path: Path, valve: Valve, held: Callable[[Harness], AbstractContextManager[None]]
) -> None:
    """C021, C047: nobody can write for longer than a lease; one job ends meanwhile, another goes on."""
    lasting_valve = Valve(tmp_path / "lasting")
    with at_work(tmp_path, SHORT_LEASE_US, "worker-1", "worker-2") as (harness, _), closing(lasting_valve):
        ended, lasting = harness.submit(wait=valve.path, status=5), harness.submit(wait=lasting_valve.path)
        wait_running(harness, ended, lasting)
        with held(harness):
            valve.open()
            until = max(lease_until(harness, ended), lease_until(harness, lasting))
            harness.wait(lambda: harness.clock.now().mono_us > until, "both leases lapsed")
        harness.wait(lambda: attempt_of(harness, ended).ended_at_us, "the end that nobody could write is written")
        lasting_valve.open()
        harness.wait_quiet()

        assert examine(harness.history()) == []
        assert [attempt_of(harness, work).exit_status for work in (ended, lasting)] == [5, 0]


def leader(harness: Harness) -> Leader | None:
    return harness.read(lambda tx: tx.leader())


@pytest.mark.req("L01")
def test_second_coordinator_stands_by_and_a_sleeping_leader_is_replaced(tmp_path: Path, reaper: Reaper) -> None:
    """C023: also when it comes by another path; the sleeper is refused at its next write and stands by."""
    with at_work(tmp_path, LEASE_US, "worker-1") as (harness, [first, _]):
        harness.wait(lambda: leader(harness), "one leads")
        link = tmp_path / "link"
        link.symlink_to(harness.home.path)
        log = tmp_path / "second.log"
        with log.open("wb") as stderr:
            reaper.start([sys.executable, "-P", "-m", "shared.cli", "--home", link, "coordinator"], stderr=stderr)
        harness.wait(lambda: f"leader.standby leader=coordinator.1 pid={first.pid}" in log.read_text(), "it stands by")
        for _ in range(4):
            harness.submit()
        harness.wait_quiet()

        hold = QueueHold(harness)
        harness.wait(lambda: hold.is_held, "the queue was given to us: nobody is inside a transaction")
        os.kill(first.pid, signal.SIGSTOP)
        harness.wait(lambda: is_stopped(first.pid), "it stands still")
        hold.end()
        for _ in range(4):
            harness.submit()
        harness.wait(lambda: (found := leader(harness)) and found.generation == 2, "the second leads")
        harness.wait_quiet()
        os.kill(first.pid, signal.SIGCONT)
        wait_logged(harness, first, "leader.standby leader=coordinator.2")
        for _ in range(4):
            harness.submit()
        harness.wait_quiet()

        assert "leader.lost" in first.log.read_text()
        assert examine(harness.history()) == []
        reaper.kill_all()


@pytest.mark.req("X05", "E05")
def test_lease_is_renewed_through_the_drain(tmp_path: Path, valve: Valve) -> None:
    """C075: a worker that was asked to go keeps what it holds until it ended; nobody adopts it meanwhile."""
    with at_work(tmp_path, LEASE_US, "worker-1") as (harness, [_, worker]):
        work = harness.submit(wait=valve.path)
        wait_running(harness, work)
        harness.start("worker-2")
        os.kill(worker.pid, signal.SIGTERM)
        wait_renewed_for(harness, work, LEASE_US)
        valve.open()
        harness.wait_quiet()

        assert worker.process.wait(timeout=30) == 0
        history = harness.history()
        assert examine(history) == []
        kinds = [event.kind for event in history.events if event.attempt_id == f"{work}.1"]
        assert kinds.count("attempt.succeeded") == 1
        assert "attempt.taken_over" not in kinds
