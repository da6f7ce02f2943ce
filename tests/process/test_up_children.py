"""`tenure up` keeps its children running, and ends with them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.processes import Reaper
from tests.support.up_runs import UpRun
from tests.support.waiting import wait_until

PAIR = {"coordinator": "steady", "worker-1": "steady"}


@pytest.fixture
def up(reaper: Reaper, tmp_path: Path) -> UpRun:
    return UpRun(reaper, tmp_path)


def test_ctrl_c_drains_and_exits_0(up: UpRun) -> None:
    up.start(PAIR).wait_ready(2)

    up.interrupt()

    assert up.wait_exit() == 0
    assert up.log.count("child.ends why=SIGTERM drain_s=10.0") == 2
    assert not up.children()
    assert "Traceback" not in up.log


def test_sigterm_drains_for_the_time_given(up: UpRun) -> None:
    up.start(PAIR, "--drain", "3s").wait_ready(2)

    up.process.terminate()

    assert up.wait_exit() == 0
    assert up.log.count("drain_s=3.0") == 2


def test_it_says_what_it_started_and_how_to_stop(up: UpRun) -> None:
    up.start(PAIR).wait_ready(2)

    said = up.log

    children = up.children()
    for line in (
        f"home         {up.home}",
        f"pid          {up.process.pid}",
        f"coordinator  pid {children['coordinator']}",
        f"worker-1     pid {children['worker-1']}",
        "stop         Ctrl-C",
    ):
        assert line in said


def test_second_ctrl_c_takes_the_drain_away(up: UpRun) -> None:
    up.start({"coordinator": "steady", "worker-1": "draining"}, "--drain", "3600s").wait_ready(2)
    up.interrupt()
    up.wait_line("child.asked drain_s=3600.0")

    up.interrupt()

    assert up.wait_exit() == 0
    assert "child.asked drain_s=0.0" in up.log


def test_a_drain_that_is_over_is_taken_away_by_itself(up: UpRun) -> None:
    up.start({"worker-1": "draining"}, "--drain", "200ms").wait_ready(1)

    up.interrupt()

    assert up.wait_exit() == 0
    assert "child.asked drain_s=0.0" in up.log


def test_a_child_that_will_not_end_is_killed_and_that_is_no_clean_end(up: UpRun) -> None:
    up.start({"coordinator": "steady", "worker-1": "stubborn"}, "--drain", "0s").wait_ready(2)

    up.interrupt()

    assert up.wait_exit() == 1
    assert "worker-1 did not end in time: killing it" in up.log
    assert "worker-1 did not end cleanly (signal 9)" in up.log
    assert "coordinator did not end" not in up.log


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_child_that_dies_is_started_again(up: UpRun, number: signal.Signals) -> None:
    up.start(PAIR).wait_ready(2)
    first = up.children()

    os.kill(first["worker-1"], number)

    up.wait_ready(3)
    assert f"worker-1 died (signal {number:d}), starting it again\n" in up.log
    second = up.children()
    assert second["worker-1"] != first["worker-1"]
    assert second["coordinator"] == first["coordinator"]
    up.interrupt()
    assert up.wait_exit() == 0


def test_a_child_that_keeps_failing_is_started_ever_more_slowly_with_its_reason(up: UpRun) -> None:
    up.start({"coordinator": "steady", "worker-1": "failing"})

    up.wait_line("died", 4)

    said = up.log
    assert "worker-1 died (exit code 1), starting it again\n" in said
    for delay in ("0.2", "0.4", "0.8"):
        assert f"worker-1 died (exit code 1), starting it again in {delay} s" in said
    assert "worker-1    process.failed\n    Traceback" in said
    assert "ZeroDivisionError: a bug" in said
    up.interrupt()
    assert up.wait_exit() == 0


def test_a_child_that_refuses_for_good_ends_up_with_its_code_and_reason(up: UpRun) -> None:
    up.start({"coordinator": "refusing", "worker-1": "steady"})

    assert up.wait_exit() == 3
    assert 'process.refused code=corrupt error="the store is damaged"' in up.log
    assert "coordinator refused to run 3 times (exit code 3)" in up.log
    assert not up.children()


def test_children_end_when_up_is_killed_and_the_next_one_names_them(up: UpRun, reaper: Reaper, tmp_path: Path) -> None:
    up.start({"coordinator": "steady", "worker-1": "stubborn", "worker-2": "flooding"}).wait_ready(3)
    pids = up.children()
    for pid in pids.values():
        reaper.tell(pid)
    os.kill(pids["worker-1"], signal.SIGSTOP)  # so that there surely is a leftover

    up.process.kill()
    up.wait_exit()

    wait_until(lambda: up.children().keys() == {"worker-1"}, "the others have ended")
    following = UpRun(reaper, tmp_path, "following").start(PAIR)
    following.wait_line(f"worker-1 (pid {pids['worker-1']}) of an earlier tenure up is still ending")
    assert "tenure up\n" not in following.log
    os.kill(pids["worker-1"], signal.SIGCONT)
    following.wait_ready(2)
    assert set(following.children()) == set(PAIR)
    following.interrupt()
    assert following.wait_exit() == 0
    assert "Traceback" not in up.log
    assert "leaked semaphore" not in up.log


def test_leftovers_that_stay_are_started_beside(up: UpRun, reaper: Reaper, tmp_path: Path) -> None:
    up.start({"worker-1": "stubborn"}).wait_ready(1)
    stopped = up.children()["worker-1"]
    reaper.tell(stopped)
    os.kill(stopped, signal.SIGSTOP)
    up.process.kill()
    up.wait_exit()

    following = UpRun(reaper, tmp_path, "following").start(PAIR, leftovers_bound_us=300_000).wait_ready(2)

    assert f"starting beside worker-1 (pid {stopped})" in following.log
    following.interrupt()
    assert following.wait_exit() == 0


def test_ctrl_c_is_heard_while_it_waits_for_leftovers(up: UpRun, reaper: Reaper, tmp_path: Path) -> None:
    up.start({"worker-1": "stubborn"}).wait_ready(1)
    stopped = up.children()["worker-1"]
    reaper.tell(stopped)
    os.kill(stopped, signal.SIGSTOP)
    up.process.kill()
    up.wait_exit()
    following = UpRun(reaper, tmp_path, "following").start(PAIR)
    following.wait_line("of an earlier tenure up")

    following.interrupt()

    assert following.wait_exit() == 0
    assert "child.ready" not in following.log


def test_a_second_up_on_the_same_home_is_refused(up: UpRun, reaper: Reaper, tmp_path: Path) -> None:
    up.start(PAIR).wait_ready(2)

    second = UpRun(reaper, tmp_path, "second").start(PAIR)

    assert second.wait_exit() == 1
    assert f"has its tenure up already (pid {up.process.pid})" in second.log
    assert len(up.children()) == 2
    up.interrupt()
    assert up.wait_exit() == 0


def test_an_up_after_a_finished_one_is_not_refused(up: UpRun, reaper: Reaper, tmp_path: Path) -> None:
    up.start(PAIR).wait_ready(2).interrupt()
    assert up.wait_exit() == 0

    second = UpRun(reaper, tmp_path, "second").start(PAIR).wait_ready(2)

    assert "earlier tenure up" not in second.log
    second.interrupt()
    assert second.wait_exit() == 0


def test_an_invalid_configuration_stops_it_before_anything_is_started(up: UpRun) -> None:
    up.start(PAIR, invalid=True)

    assert up.wait_exit() == 2
    assert up.lines == ["tenure: tenure.toml:3: lease has no unit"]
    assert not (up.run_dir / "up").exists()


def test_it_works_in_a_folder_that_holds_namesakes(up: UpRun, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for place in (folder, up.home):  # the home, too, is a working directory of its children
        (place / "shared").mkdir(parents=True)
        for module in ("socket.py", "logging.py", "worker.py", "shared/__init__.py"):
            (place / module).write_text("raise SystemExit('a namesake was imported')\n")

    up.start(PAIR, cwd=folder).wait_ready(2)

    os.kill(up.children()["worker-1"], signal.SIGKILL)
    up.wait_ready(3)
    up.interrupt()
    assert up.wait_exit() == 0
    assert "namesake" not in up.log


def test_it_does_not_need_the_folder_it_was_started_in(up: UpRun, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    up.start(PAIR, cwd=folder).wait_ready(2)
    folder.rmdir()

    os.kill(up.children()["worker-1"], signal.SIGKILL)

    up.wait_ready(3)
    up.interrupt()
    assert up.wait_exit() == 0


def test_until_idle_ends_once_nothing_is_live_or_waiting(up: UpRun) -> None:
    (up.home / "idle.json").write_text('{"live": 1, "waiting": 0, "needs_person": []}')
    up.start(PAIR, "--until-idle").wait_ready(2)
    assert up.process.poll() is None

    (up.home / "idle.json").write_text('{"live": 0, "waiting": 0, "needs_person": []}')

    assert up.wait_exit() == 0
    assert "nothing is live or waiting" in up.log


def test_until_idle_names_what_waits_for_a_person(up: UpRun) -> None:
    (up.home / "idle.json").write_text('{"live": 0, "waiting": 0, "needs_person": ["w3.1", "w7"]}')
    up.start(PAIR, "--until-idle")

    assert up.wait_exit() == 1
    assert "waiting for a person: w3.1, w7" in up.log


def test_an_idle_up_never_wakes(up: UpRun) -> None:
    up.start(PAIR).wait_ready(2)
    tasks = Path(f"/proc/{up.process.pid}/task")

    def wakes() -> int:
        status = "".join(path.read_text() for path in tasks.glob("*/status"))
        return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("voluntary_ctxt_switches"))

    def settled() -> bool:
        return "S" in (tasks / str(up.process.pid) / "stat").read_text().rpartition(")")[2].split()[0]

    wait_until(settled, "up waits")
    before, until = wakes(), time.monotonic() + 3

    wait_until(lambda: time.monotonic() > until, "three seconds are over")

    assert wakes() - before <= 3
    up.interrupt()
    assert up.wait_exit() == 0


def test_log_json_is_json_throughout(up: UpRun) -> None:
    up.start(PAIR, "--log-json").wait_ready(2)
    os.kill(up.children()["worker-1"], signal.SIGKILL)
    up.wait_ready(3)
    up.interrupt()

    assert up.wait_exit() == 0
    (started,) = up.events("up.started")
    assert started["pid"] == up.process.pid
    (died,) = up.events("child.died")
    assert (died["child"], died["signal"], died["pid"]) == ("worker-1", 9, started["children"]["worker-1"])
    assert {event["process"] for event in up.events("child.ready")} == set(PAIR)
