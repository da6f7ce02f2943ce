"""Cases of recovery and of what is alive in which other systems went wrong, tried with real workers, shims and jobs."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from chaos.checks import examine
from chaos.harness import COORDINATOR, Arm, Harness
from chaos.witness import Mark
from shared.boundary import Boundary, Side
from shared.ids import WorkId
from shared.model.attempt import AttemptState
from shared.model.instant import US_PER_S
from shared.model.settings import Settings
from shared.process import procfs
from tests.support.trials import Valve, at_work, attempt_of, wait_renewed_for, wait_running
from tests.support.up_sites import UpSite, alive
from tests.support.waiting import wait_until

LEASE_US = 2 * US_PER_S
STATUSES = (0, 3, -9)


def pids_of(harness: Harness, work_id: WorkId) -> tuple[int, int]:
    """Its shim and its job."""
    pin = attempt_of(harness, work_id).pin
    assert pin is not None
    [job] = [line.pid for line in harness.witness.lines() if (line.work_id, line.mark) == (work_id, Mark.START)]
    return pin.shim.pid, job


# --- ADOPT


@pytest.mark.req("R02", "R04", "E16")
@pytest.mark.parametrize(
    ("boundary", "side", "told"),
    [
        (Boundary.CHILD_REAP, Side.AFTER, False),
        (Boundary.EXIT_RENAME, Side.BEFORE, False),
        (Boundary.EXIT_RENAME, Side.AFTER, True),
    ],
)
def test_exit_record_is_absent_or_whole_wherever_its_writer_dies(
    tmp_path: Path, boundary: Boundary, side: Side, told: bool
) -> None:
    """C026: and absent means that nobody knows: no success, and no second run."""
    with Harness(tmp_path / "drill", Settings(job_concurrency=8, lease_us=LEASE_US)) as harness:
        harness.start(COORDINATOR)
        at_rest = {AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.RECOVERY_REQUIRED}

        def all_rest(count: int) -> bool:
            states = harness.attempt_states()
            return len(states) == count and set(states.values()) <= at_rest

        works: list[WorkId] = []
        for status in STATUSES:  # an order hits one shim of its worker
            worker = harness.start("worker-1", arm=Arm(f"{boundary}:{side}:KILL"))
            works.append(harness.submit(status=status))
            harness.wait(lambda: all_rest(len(works)), "its end is known, or known to be unknown")
            harness.kill(worker)
        assert len(harness.reached()) == len(works)
        attempts = [attempt_of(harness, work) for work in works]
        if told:
            assert [attempt.exit_status for attempt in attempts] == list(STATUSES)
        else:
            assert {attempt.state for attempt in attempts} == {AttemptState.RECOVERY_REQUIRED}
            assert not any((harness.home.attempts / f"{work}.1.1" / "exit.json").exists() for work in works)
        assert len([line for line in harness.witness.lines() if line.mark is Mark.START]) == len(works)


@pytest.mark.req("R02", "R04", "E16")
@pytest.mark.parametrize("with_worker", [False, True], ids=["shim", "shim_and_worker"])
def test_job_that_lost_its_shim_is_kept(tmp_path: Path, valve: Valve, with_worker: bool) -> None:
    """C028: its process is the same throughout, and how it ends is what the kernel still tells, or a question to a person."""
    with at_work(tmp_path, LEASE_US, "worker-1") as (harness, [_, worker]):
        work = harness.submit(wait=valve.path, status=7)
        wait_running(harness, work)
        shim, job = pids_of(harness, work)
        began = procfs.start_ticks(job)
        os.kill(shim, signal.SIGKILL)
        if with_worker:
            harness.kill(worker)
            harness.start("worker-1")
            harness.wait(lambda: attempt_of(harness, work).epoch == 2, "it was taken over")
            harness.wait(lambda: attempt_of(harness, work).state is AttemptState.RUNNING, "it was adopted")
        wait_renewed_for(harness, work, US_PER_S)
        assert attempt_of(harness, work).state is AttemptState.RUNNING
        assert procfs.start_ticks(job) == began

        valve.open()
        harness.wait(lambda: attempt_of(harness, work).state is not AttemptState.RUNNING, "its end was seen")

        attempt = attempt_of(harness, work)
        assert (attempt.state, attempt.exit_status) in {
            (AttemptState.FAILED, 7),
            (AttemptState.RECOVERY_REQUIRED, None),  # kernels before 6.15
        }
        assert len(harness.history().lines_of(work, Mark.START)) == 1


@pytest.mark.req("R09", "X05")
def test_ctrl_c_in_the_workers_terminal_does_not_reach_the_job(tmp_path: Path, valve: Valve) -> None:
    """C028: the first one drains, the second one leaves at once; the job lives on and is adopted."""
    with at_work(tmp_path, LEASE_US, "worker-1") as (harness, [_, worker]):
        work = harness.submit(wait=valve.path, status=7)
        wait_running(harness, work)
        os.killpg(worker.pid, signal.SIGINT)
        harness.wait(lambda: harness.read(lambda tx: tx.workers())[0].state == "draining", "it drains")
        os.killpg(worker.pid, signal.SIGINT)
        assert worker.process.wait(timeout=30) == 0
        assert alive(pids_of(harness, work)[1])

        harness.start("worker-1")
        harness.wait(lambda: attempt_of(harness, work).epoch == 2, "it was taken over")
        valve.open()
        harness.wait_quiet()

        assert examine(harness.history()) == []
        assert attempt_of(harness, work).exit_status == 7


@pytest.mark.req("R02", "R04", "E16")
def test_what_ended_is_never_run_again(tmp_path: Path) -> None:
    """C029: everything is killed right after the last job's end, and starts again and again."""
    with at_work(tmp_path, LEASE_US, "worker-1") as (harness, first):
        for _ in range(12):
            harness.submit()
        last = harness.submit(status=3)
        harness.wait(lambda: any(line.work_id == last for line in harness.witness.lines()), "the last one is at it")
        for each in first:
            harness.kill(each)
        for _ in range(2):
            again = [harness.start(name) for name in (COORDINATOR, "worker-1")]
            harness.submit()
            harness.wait_quiet()
            for each in again:
                harness.kill(each)

        assert examine(harness.history()) == []


@pytest.mark.req("R02", "R12")
def test_silence_and_old_files_say_nothing_about_life(tmp_path: Path, valve: Valve) -> None:
    """C031: files of yesterday, a shim that sleeps, a job that says nothing: it runs."""
    with at_work(tmp_path, LEASE_US, "worker-1") as (harness, _):
        work = harness.submit(wait=valve.path)
        wait_running(harness, work)
        yesterday = time.time() - 86_400
        folder = harness.home.attempts / f"{work}.1.1"
        for path in (*folder.iterdir(), folder):
            os.utime(path, (yesterday, yesterday))
        shim, _ = pids_of(harness, work)
        os.kill(shim, signal.SIGSTOP)
        wait_renewed_for(harness, work, US_PER_S)
        assert (attempt_of(harness, work).state, attempt_of(harness, work).epoch) == (AttemptState.RUNNING, 1)

        os.kill(shim, signal.SIGCONT)
        valve.open()
        harness.wait_quiet()
        assert examine(harness.history()) == []


# --- STOP, PID

CONFIG = """\
[settings]
job_concurrency = 4
lease = "2s"

[binding.storm]
command = ["sh", "storm.sh"]
grace = "1s"
"""
STORM = """\
trap 'sleep 4141.5 & sleep 4141.5 &' TERM
level() { trap 'sleep 4141.5 &' TERM; while :; do sleep 4141.5 & sleep 0.005; done; }
level & level &
echo begun
while :; do sleep 4141.5 & sleep 0.005; done
"""
STEP = """\
import os
import time

_real = time.time_ns


def time_ns():
    with open(os.environ["STEPPED"]) as file:
        return _real() + int(file.read()) * 10**9


time.time_ns = time_ns
"""


@pytest.mark.req("R12", "X01")
def test_children_born_while_they_are_swept_away_are_found(tmp_path: Path) -> None:
    """C035: two levels that fork without end, and once more when they are asked to stop."""
    site = UpSite(tmp_path, CONFIG)
    (tmp_path / "storm.sh").write_text(STORM)
    site.configure(CONFIG.replace("storm.sh", str(tmp_path / "storm.sh")))
    with site.up("--workers", "1"):
        for _ in range(2):
            work = site.submit("storm")
            site.await_printed(work, b"begun\n")
            said = site.json("work", "cancel", work, "--wait", "30s")

            assert said["exclusion"] == "released"
            assert sleepers() == []


def sleepers() -> list[int]:
    """Living processes of the storm."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", b"4141.5"] and alive(int(path.parent.name)):
            found.append(int(path.parent.name))
    return found


@pytest.mark.req("R12", "X01")
def test_zombie_is_dead_on_every_surface(tmp_path: Path) -> None:
    """C040: a job whose shim cannot reap it, and one whose child nobody reaps: cancelled at once, nothing is waited for."""
    site = UpSite(tmp_path, CONFIG)
    negligent = "import os, time\nif os.fork() == 0: os._exit(0)\nprint('x', flush=True)\ntime.sleep(300)"
    with site.up("--workers", "1"):
        unreaped, parent = site.submit("--", "sleep", "300"), site.submit("--", "python3", "-c", negligent)
        site.await_printed(parent, b"x\n")
        record = site.home / "attempts" / f"{unreaped}.1.1" / "child.json"
        wait_until(record.exists, "the job runs")
        told = json.loads(record.read_text())
        os.kill(told["shim"]["pid"], signal.SIGSTOP)
        os.kill(told["child"]["pid"], signal.SIGKILL)
        wait_until(lambda: not alive(told["child"]["pid"]), "the job is a zombie")

        for work in (unreaped, parent):
            said = site.json("work", "cancel", work, "--wait", "30s")
            assert (said["state"], said["exclusion"]) == ("cancelled", "released")
            shown = site.json("work", "show", work)
            listed = next(item for item in site.json("work", "list")["items"] if item["id"] == work)
            attempt = site.json("attempt", "show", f"{work}.1")
            assert {shown["state"], listed["state"], attempt["state"]} == {"cancelled"}
        assert not alive(told["shim"]["pid"])


@pytest.mark.req("K01", "R12")
def test_wall_clock_that_leaps_changes_no_identity(tmp_path: Path) -> None:
    """C038: three hours ahead, then a day back, for every process of tenure; the job is adopted, and stopped with proof."""
    site = UpSite(tmp_path, CONFIG)
    (tmp_path / "sitecustomize.py").write_text(STEP)
    stepped = tmp_path / "stepped"
    stepped.write_text("0")
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "STEPPED": str(stepped)}
    with site.up("--workers", "1", env=env):
        work = site.submit("--", "sleep", "300")
        wait_until(lambda: site.state(work) == "running", "it runs")
        wait_until(lambda: site.json("attempt", "show", f"{work}.1")["state"] == "running", "its attempt does")
        stepped.write_text(str(3 * 3600))
        worker = next(each for each in site.json("status")["workers"] if each["state"] == "live")
        os.kill(worker["pid"], signal.SIGKILL)
        wait_until(lambda: site.json("attempt", "show", f"{work}.1")["epoch"] == 2, "it was taken over")
        wait_until(lambda: site.json("attempt", "show", f"{work}.1")["state"] == "running", "it was adopted")
        first, second = site.json("attempt", "show", f"{work}.1")["segments"]
        began = [datetime.fromisoformat(each["began_at"]) for each in (first, second)]
        assert began[1] - began[0] > timedelta(hours=2), "control: the clock leapt for them"
        stepped.write_text(str(-86_400))
        said = site.json("work", "cancel", work, "--wait", "30s")

        assert (said["exclusion"], said["cancellation"]["result"]) == ("released", "stopped S1")
