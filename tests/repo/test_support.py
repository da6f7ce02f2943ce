"""The tools of the tests keep their own promises: a lost process is found, a wait has an end."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from tests.support.processes import Reaper
from tests.support.waiting import wait_until

SLEEP = [sys.executable, "-I", "-c", "import signal; signal.pause()"]
# Starts a grandchild in a session of its own, prints its pid, and ends: the grandchild is an orphan.
ORPHAN = [
    sys.executable,
    "-I",
    "-c",
    f"import subprocess; print(subprocess.Popen({SLEEP!r}, start_new_session=True, stdout=subprocess.DEVNULL).pid)",
]


def start_orphan(reaper: Reaper) -> int:
    parent = reaper.start(ORPHAN, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.read())
    parent.wait(timeout=30)
    return pid


def test_started_process_is_killed_quietly() -> None:
    with Reaper() as reaper:
        process = reaper.start(SLEEP)

    assert process.returncode == -signal.SIGKILL


def test_orphan_is_killed_and_named() -> None:
    pid = 0

    def lose_one() -> None:
        nonlocal pid
        with Reaper() as reaper:
            pid = start_orphan(reaper)

    with pytest.raises(AssertionError, match=r"left behind by this test, and killed now: \d+ "):
        lose_one()
    assert not psutil.pid_exists(pid)


def test_orphan_that_was_told_of_is_killed_quietly() -> None:
    with Reaper() as reaper:
        pid = start_orphan(reaper)
        reaper.tell(pid)

    assert not psutil.pid_exists(pid)


def test_test_that_means_to_leave_processes_kills_them_itself(reaper: Reaper) -> None:
    pid = start_orphan(reaper)

    reaper.kill_all()

    assert not psutil.pid_exists(pid)


def test_ended_orphan_is_collected_and_a_started_one_is_not(reaper: Reaper) -> None:
    orphan = psutil.Process(start_orphan(reaper))
    mine = reaper.start([sys.executable, "-I", "-c", "raise SystemExit(3)"])
    wait_until(lambda: psutil.Process(mine.pid).status() == psutil.STATUS_ZOMBIE, "my process ended")

    orphan.send_signal(signal.SIGTERM)
    wait_until(lambda: orphan.status() == psutil.STATUS_ZOMBIE, "the orphan ended")
    reaper.collect()

    assert not psutil.pid_exists(orphan.pid)
    assert mine.wait(timeout=30) == 3


def test_wait_returns_the_first_true_answer() -> None:
    answers = iter([0, "", None, 42])

    assert wait_until(lambda: next(answers), "an answer") == 42


def test_wait_ends_and_says_what_it_waited_for() -> None:
    with pytest.raises(AssertionError, match=r"not within 0 s: the moon \(last answer: None\)"):
        wait_until(lambda: None, "the moon", seconds=0)


def test_wait_over_the_bound_is_refused() -> None:
    with pytest.raises(AssertionError, match="30 s at most"):
        wait_until(lambda: True, "anything", seconds=31)
