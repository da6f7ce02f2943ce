"""The end of a job whose evidence cannot be written: not an end until it is, and a question to a person when it never is.

The shim alone is hit, by the kernel's own limit on the size of files, which holds for everybody and is lifted again at will.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.checks import examine
from chaos.harness import Harness
from chaos.witness import Mark
from shared.ids import WorkId
from shared.model.attempt import Attempt, AttemptState
from shared.model.instant import US_PER_S
from shared.process.procfs import start_ticks
from tests.support.trials import Valve, at_work, attempt_of, wait_renewed_for, wait_running

LEASE_US = 2 * US_PER_S
STATUS = 7


def shim_of(attempt: Attempt) -> int:
    assert attempt.pin is not None
    return attempt.pin.shim.pid


def limit_files(pid: int, size: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def has_ended(harness: Harness, work: WorkId) -> bool:
    return any((line.work_id, line.mark) == (work, Mark.END) for line in harness.witness.lines())


@contextmanager
def ended_without_evidence(folder: Path, valve: Valve) -> Iterator[tuple[Harness, WorkId]]:
    """A job that has ended under a shim which cannot write that down; a lease goes by, and it is still held to be running."""
    with at_work(folder, LEASE_US, "worker-1") as (harness, _):
        work = harness.submit(wait=valve.path, status=STATUS)
        wait_running(harness, work)
        limit_files(shim_of(attempt_of(harness, work)), 0)
        valve.open()
        harness.wait(lambda: has_ended(harness, work), "the job has ended")
        wait_renewed_for(harness, work, LEASE_US)
        attempt = attempt_of(harness, work)
        assert (attempt.state, attempt.exit_status) == (AttemptState.RUNNING, None)
        assert not (harness.home.attempts / f"{work}.1.1" / "exit.json").exists()
        yield harness, work


@pytest.mark.req("M05", "M02")
def test_an_end_that_cannot_be_written_down_is_told_once_it_can(tmp_path: Path, valve: Valve) -> None:
    with ended_without_evidence(tmp_path, valve) as (harness, work):
        limit_files(shim_of(attempt_of(harness, work)), resource.RLIM_INFINITY)
        harness.wait_quiet()

        attempt = attempt_of(harness, work)
        assert (attempt.state, attempt.exit_status, attempt.number) == (AttemptState.FAILED, STATUS, 1)
        assert examine(harness.history()) == []


@pytest.mark.req("M05", "M02", "R10")
def test_an_end_that_is_never_written_down_is_left_to_a_person(tmp_path: Path, valve: Valve) -> None:
    """The shim dies over it. That the job ended well or badly is nowhere: no success, no failure, no second run."""
    with ended_without_evidence(tmp_path, valve) as (harness, work):
        shim = shim_of(attempt_of(harness, work))
        assert start_ticks(shim) is not None
        os.kill(shim, signal.SIGKILL)
        harness.wait(lambda: attempt_of(harness, work).state is not AttemptState.RUNNING, "it is not running any more")

        attempt = attempt_of(harness, work)
        assert (attempt.state, attempt.exit_status, attempt.number) == (AttemptState.RECOVERY_REQUIRED, None, 1)
        assert len(harness.history().lines_of(work, Mark.START)) == 1
