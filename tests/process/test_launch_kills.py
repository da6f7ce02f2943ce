"""The kill-point table with real processes: whoever is killed wherever, the job runs once and its end is true."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.points import ADDED, TABLE, KillPoint, Outcome
from shared.boundary import Victims
from shared.ids import AttemptId
from shared.model.evidence import Evidence, LockState
from shared.policy.recovery import Decision, LaunchFacts, decide
from shared.process.filelock import probe
from shared.process.identity import is_alive
from tests.process import launch_drill
from tests.process.launch_drill import RESTS, Trial
from tests.process.launch_host import Host
from tests.support.waiting import wait_until

TAKEOVERS = 3
KILLED = signal.SIGKILL
ENDS = {
    Outcome.RAN: ("finished:7", 1),
    Outcome.KILLED: ("finished:-9", 0),
    Outcome.HELD: ("recovery_required:None", 1),
}


@pytest.fixture
def trial(host: Host, tmp_path: Path) -> Trial:
    return Trial(tmp_path, host.attempts, AttemptId("w1.1"), host.launcher)


def test_the_table_is_complete() -> None:
    assert len(TABLE) == len(set(TABLE)) == 37
    assert not set(TABLE) & set(ADDED)


@pytest.mark.req("R02", "R03", "R04", "M01")
@pytest.mark.parametrize("point", [*TABLE, *ADDED], ids=str)
def test_three_takeovers_after_a_kill(trial: Trial, point: KillPoint) -> None:
    play(trial, point)


@pytest.mark.parametrize("point", [point for point in TABLE if point.victims is Victims.BOTH], ids=str)
def test_the_same_with_exec_ed_shims(host: Host, trial: Trial, point: KillPoint) -> None:
    host.forbid_zygote()

    play(trial, point)


def test_the_same_steps_without_a_kill_run_the_job_once(trial: Trial) -> None:
    worker = trial.start_worker(None)

    assert stage(trial, worker, 1) is None

    assert (trial.ended(), trial.starts(), trial.reached()) == ("finished:7", 1, [])


def test_a_decision_that_overlooks_the_child_record_is_caught(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without that one guard, a job that ran would be run again."""

    def overlooking(facts: LaunchFacts, evidence: Evidence | None) -> Decision:
        return decide(replace(facts, child_record_seen=False), evidence and replace(evidence, child=None))

    monkeypatch.setattr(launch_drill, "decide", overlooking)
    point = next(point for point in TABLE if str(point) == "exit_rename-before-both")

    with pytest.raises(AssertionError, match="relaunch of what ran"):
        play(trial, point)


def play(trial: Trial, point: KillPoint) -> None:
    """Launch, be hit at the point, be taken over three times; the first two takers are hit there too, or as they adopt."""
    hit(trial, point)
    for epoch in range(2, TAKEOVERS + 2):
        is_last = epoch == TAKEOVERS + 1
        came_by = len(trial.reached())
        worker = trial.start_worker(None if is_last else point.order)
        status = stage(trial, worker, epoch, until_adopted=not is_last)
        if point.is_launch and not is_last and trial.trail(epoch) == ["relaunch"]:
            assert len(trial.reached()) == came_by + 1, "a relaunch did not come past the armed point"
            assert_died(trial, point, status)
    every_lock_is_free(trial)

    assert (trial.ended(), trial.starts()) == ENDS[point.outcome]
    decided = [word for epoch in range(1, TAKEOVERS + 2) for word in trial.trail(epoch) if word != RESTS]
    assert decided[0] in point.first, decided
    assert set(decided) <= point.later, decided


def hit(trial: Trial, point: KillPoint) -> None:
    """Launch under the order, and see whoever it names die where it says."""
    status = stage(trial, trial.start_worker(point.order), 1)
    assert len(trial.reached()) == 1, f"{point} was not reached"
    assert_died(trial, point, status)


def assert_died(trial: Trial, point: KillPoint, worker_status: int | None) -> None:
    """The process that noted the point is dead unless it was told to kill the worker only; the worker, if it was told so."""
    noted = trial.reached()[-1]
    if point.victims is not Victims.WORKER:
        wait_until(lambda: not is_alive(noted), f"the process that reached {point} died there")
    if point.kills_worker:
        assert worker_status is not None
        assert os.WTERMSIG(worker_status) == KILLED
    else:
        assert worker_status is None, "the worker outlives its shim"


def stage(trial: Trial, worker: int, epoch: int, *, until_adopted: bool = False) -> int | None:
    """See a worker to its end, its rest, or as far as asked; then it is killed. Its wait status, None if it had to be."""

    def done() -> tuple[int | None] | None:
        pid, status = os.waitpid(worker, os.WNOHANG)
        if pid != 0:
            return (status,)
        trail = trial.trail(epoch)
        if RESTS in trail or (until_adopted and any(word != "relaunch" for word in trail)):
            return (None,)
        return None

    ended = wait_until(done, f"worker {epoch} has come to its end, or to rest")
    assert ended is not None
    status = ended[0]
    if status is None:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
    crash = trial.folder / "crash"
    assert not crash.exists(), crash.read_text()
    return status


def every_lock_is_free(trial: Trial) -> None:
    """Wait for held shims whose worker was killed to see their gates shut."""
    locks = [(path, path.stat()) for path in trial.attempts.glob("*/lock")]
    wait_until(
        lambda: all(probe(path, found.st_dev, found.st_ino) is LockState.FREE for path, found in locks),
        "every shim is gone",
    )
