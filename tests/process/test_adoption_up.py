"""`kill -9` of `tenure up` and everything it started, while jobs run: nothing of them is lost, and nothing runs twice."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.checks import examine
from chaos.harness import DRILL_ID, Harness
from chaos.history import History
from chaos.witness import OUTPUT, Mark
from shared.boundary import Boundary, Side
from shared.ids import WorkId
from shared.model.attempt import Attempt, AttemptState
from shared.model.instant import US_PER_S
from shared.model.settings import Settings
from shared.process import procfs
from tests.support.checkout import tool
from tests.support.processes import Reaper

SETTINGS = Settings(job_concurrency=8, lease_us=6 * US_PER_S)
CONFIG = '[settings]\njob_concurrency = 8\nlease = "6s"\n'


class Up:
    """`tenure up` on a harness's home, killed with all its processes and started again."""

    def __init__(self, reaper: Reaper, harness: Harness) -> None:
        self._reaper = reaper
        self._harness = harness
        self.process: subprocess.Popen[bytes]

    def start(self, *, arm: str | None = None) -> None:
        """Start it; with `arm`, every process of it is to die there."""
        armed = {} if arm is None else {"TENURE_ARM": arm, "TENURE_DRILL": DRILL_ID}
        words: list[str | Path] = [tool("tenure"), "--home", self._harness.home.path, "up"]
        log = self._harness.home.path.parent / "up.log"
        with log.open("ab") as stderr:
            self.process = self._reaper.start(words, env={**os.environ, **armed}, stdout=stderr, stderr=stderr)

    def kill_everything(self) -> None:
        """Kill -9 the parent and all below it but shims and jobs, which are in sessions of their own and outlive it.

        All of them are stopped before: who is looked for one by one has just started another meanwhile.
        """
        below: set[int] = set()
        while found := {self.process.pid, *_processes_of_tenure(self.process.pid)} - below:
            _signal(found, signal.SIGSTOP)
            below |= found
        _signal(below, signal.SIGKILL)
        self.process.wait()
        self._harness.wait(lambda: all(_is_gone(pid) for pid in below), "every process of tenure up is dead")

    def end(self) -> None:
        """Kill everything, also the zygote of a worker that died by itself, which may be on its way out still."""
        self.kill_everything()
        self._reaper.kill_all()


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    (tmp_path / "drill").mkdir()
    (tmp_path / "drill" / "tenure.toml").write_text(CONFIG)
    with Harness(tmp_path / "drill", SETTINGS) as harness:
        yield harness


@pytest.fixture
def up(reaper: Reaper, harness: Harness) -> Up:
    return Up(reaper, harness)


@pytest.mark.req("R02", "R04", "E16", "K04")
def test_jobs_outlive_the_death_of_everything(harness: Harness, up: Up, tmp_path: Path) -> None:
    """One job runs through it all, one ends while nobody is alive; both are adopted and told truly."""
    valves = [tmp_path / name for name in ("lasting", "meanwhile")]
    for valve in valves:
        os.mkfifo(valve)
    holds = [os.open(valve, os.O_RDWR) for valve in valves]
    up.start()
    lasting, meanwhile = (
        harness.submit(wait=valve, status=status) for valve, status in zip(valves, (7, 5), strict=True)
    )
    harness.wait(lambda: _all_run(harness), "both jobs run")
    pid = next(line.pid for line in harness.witness.lines() if line.work_id == lasting)
    began = procfs.start_ticks(pid)

    up.kill_everything()
    os.write(holds[1], b"\n")
    record = harness.home.attempts / f"{meanwhile}.1.1" / "exit.json"
    harness.wait(
        lambda: record.exists() and record.stat().st_size > 0, "the job has ended and nobody was there to see it"
    )
    assert _attempt(harness, meanwhile).state is AttemptState.RUNNING
    up.start()
    harness.wait(lambda: _attempt(harness, lasting).epoch == 2, "the running job was taken over")
    harness.wait(lambda: _attempt(harness, lasting).state is AttemptState.RUNNING, "it was adopted")

    assert procfs.start_ticks(pid) == began
    os.write(holds[0], b"\n")
    harness.wait_quiet()
    history = harness.history()
    for hold in holds:
        os.close(hold)
    assert examine(history) == []
    assert _told(history, lasting) == (1, 2, 7, OUTPUT)
    assert _told(history, meanwhile) == (1, 2, 5, OUTPUT)
    up.kill_everything()


@pytest.mark.req("R03", "E16")
@pytest.mark.parametrize("boundary", [Boundary.ACCEPT_COMMIT, Boundary.SHIM_SPAWN, Boundary.PIN_COMMIT])
def test_a_job_lost_before_its_launch_is_relaunched_and_no_retry_spent(
    harness: Harness, up: Up, boundary: Boundary
) -> None:
    up.start(arm=f"{boundary}:{Side.AFTER}:KILL")
    work_id = harness.submit(status=3)
    harness.wait(harness.reached, "a worker died before it launched the job")
    up.kill_everything()
    assert harness.witness.lines() == []

    up.start()
    harness.wait_quiet()

    history = harness.history()
    attempt, epoch, status, output = _told(history, work_id)
    assert examine(history) == []
    assert (attempt, status, output) == (1, 3, OUTPUT)
    assert epoch > 1
    assert history.segments[history.attempts_of(work_id)[0].id][-1].relaunched
    up.end()


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # a zygote ends by itself once its worker is dead
            os.kill(pid, number)


def _all_run(harness: Harness) -> bool:
    started = [line for line in harness.witness.lines() if line.mark is Mark.START]
    return len(started) == len(harness.jobs) and set(harness.attempt_states().values()) == {AttemptState.RUNNING}


def _attempt(harness: Harness, work_id: WorkId) -> Attempt:
    return harness.read(lambda tx: tx.attempts(work_id))[-1]


def _told(history: History, work_id: WorkId) -> tuple[int, int, int | None, str]:
    """How often it was tried, under which epoch and with what status it ended, and what it printed."""
    attempts = history.attempts_of(work_id)
    last = attempts[-1]
    return len(attempts), last.epoch, last.exit_status, history.outputs[last.id]


def _processes_of_tenure(root: int) -> list[int]:
    """Children of `up` and their zygotes: what is below it, shims and jobs apart, which are nobody's children there."""
    return [pid for pid in procfs.descendants(root) if _name(pid) not in {"tenure-shim", "sh"}]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _is_gone(pid: int) -> bool:
    try:
        return procfs.is_ended(pid, procfs.stat_fields(pid))
    except ProcessLookupError:
        return True
