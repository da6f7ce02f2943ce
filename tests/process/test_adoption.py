"""A hundred running jobs outlive the only worker that holds them: each is adopted, none is touched."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from chaos.checks import examine
from chaos.harness import COORDINATOR, Harness
from chaos.witness import Mark
from shared.ids import AttemptId
from shared.model.attempt import Attempt, AttemptState
from shared.model.settings import Settings
from shared.process import procfs
from shared.store.contract import ReadTx

JOBS = 100
SETTINGS = Settings(job_concurrency=0, slots=2 * JOBS)


@pytest.mark.req("R02", "R04", "R15", "E06")
def test_100_running_jobs_are_adopted_from_a_killed_worker(tmp_path: Path) -> None:
    valve = tmp_path / "valve"
    os.mkfifo(valve)
    hold = os.open(valve, os.O_RDWR)  # no reader waits for a writer, and none meets end-of-file
    with Harness(tmp_path / "drill", SETTINGS) as harness:
        harness.start(COORDINATOR)
        first = harness.start("worker-1")
        for number in range(JOBS):
            harness.submit(wait=valve, status=number % 3)
        harness.wait(lambda: len(harness.witness.lines()) == JOBS, "every job has started")
        harness.wait(lambda: _in_state(harness, AttemptState.RUNNING, epoch=1), "every job is running")
        pids = {line.attempt_id: line.pid for line in harness.witness.lines()}
        ticks = {attempt_id: procfs.start_ticks(pid) for attempt_id, pid in pids.items()}
        pins = {attempt.id: attempt.pin for attempt in _attempts(harness)}

        harness.kill(first)
        harness.start("worker-1")
        harness.wait(lambda: _in_state(harness, AttemptState.RUNNING, epoch=2), "every job was adopted")

        assert {name: procfs.start_ticks(pid) for name, pid in pids.items()} == ticks
        assert {attempt.id: attempt.pin for attempt in _attempts(harness)} == pins
        assert Counter(line.mark for line in harness.witness.lines()) == {Mark.START: JOBS}
        assert _owners(harness) == {"worker-1.2"}

        os.write(hold, b"\n" * JOBS)
        harness.wait_quiet()
        history = harness.history()
    os.close(hold)
    assert examine(history) == []
    assert {line.attempt_id: line.pid for line in history.lines if line.mark is Mark.END} == pids
    assert all(
        [(segment.recovered, segment.relaunched) for segment in segments] == [(False, False), (True, False)]
        for segments in history.segments.values()
    )


def _attempts(harness: Harness) -> list[Attempt]:
    return harness.read(lambda tx: [attempt for job in harness.jobs for attempt in tx.attempts(job.work_id)])


def _in_state(harness: Harness, state: AttemptState, *, epoch: int) -> bool:
    attempts = _attempts(harness)
    return len(attempts) == JOBS and all((each.state, each.epoch) == (state, epoch) for each in attempts)


def _owners(harness: Harness) -> set[str]:
    def read(tx: ReadTx) -> set[str]:
        leases = [tx.lease(AttemptId(f"{job.work_id}.1")) for job in harness.jobs]
        return {lease.owner for lease in leases if lease is not None}

    return harness.read(read)
