"""Trials of real coordinators and workers: jobs that wait until a test lets them go on, and facts to wait for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.harness import COORDINATOR, Harness, Running
from chaos.witness import Mark
from shared.ids import WorkId
from shared.model.attempt import Attempt, AttemptState
from shared.model.settings import Settings


class Valve:
    """A FIFO from which jobs read one line each; `path` goes to `Harness.submit(wait=…)`."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._fd = os.open(path, os.O_RDWR)

    def open(self, jobs: int = 1) -> None:
        """Let so many jobs go on."""
        os.write(self._fd, b"\n" * jobs)

    def close(self) -> None:
        os.close(self._fd)


@contextmanager
def at_work(folder: Path, lease_us: int, *workers: str) -> Iterator[tuple[Harness, list[Running]]]:
    """A coordinator and these workers."""
    with Harness(folder / "drill", Settings(job_concurrency=8, lease_us=lease_us)) as harness:
        yield harness, [harness.start(name) for name in (COORDINATOR, *workers)]


def attempt_of(harness: Harness, work_id: WorkId) -> Attempt:
    """Its last attempt."""
    return harness.read(lambda tx: tx.attempts(work_id))[-1]


def lease_until(harness: Harness, work_id: WorkId) -> int:
    """Until when the lease of its last attempt was given, monotonic."""
    attempt_id = attempt_of(harness, work_id).id
    lease = harness.read(lambda tx: tx.lease(attempt_id))
    return 0 if lease is None else lease.expires_mono_us


def wait_running(harness: Harness, *works: WorkId) -> None:
    """Wait until these jobs have said that they started, and the store knows."""

    def all_run() -> bool:
        said = {line.work_id for line in harness.witness.lines() if line.mark is Mark.START}
        return said >= set(works) and all(attempt_of(harness, work).state is AttemptState.RUNNING for work in works)

    harness.wait(all_run, f"{', '.join(works)} run")


def wait_logged(harness: Harness, running: Running, event: str) -> None:
    """Wait for words in a process's log."""
    harness.wait(lambda: event in running.log.read_text(), f"{running.name} logs {event}")


def wait_renewed_for(harness: Harness, work_id: WorkId, duration_us: int) -> None:
    """Wait until the lease was kept for so much longer than it was given for."""
    first = lease_until(harness, work_id)
    harness.wait(lambda: lease_until(harness, work_id) > first + duration_us, "the lease was renewed and renewed")
