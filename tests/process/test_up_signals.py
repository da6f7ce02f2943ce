"""What a signal means to a process of tenure that runs alone, and to one under `tenure up`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import Reaper
from tests.support.up_children import ROOT, have_said
from tests.support.up_runs import UpRun
from tests.support.waiting import wait_until

ALONE = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from shared import child
told, tell = os.pipe()
options = child.ChildOptions(home="/", name="worker", drain_s=5.0)
options.stop.on_ask(lambda: os.write(tell, b"1"))
child.listen(options)
print("ready", flush=True)
while options.stop.drain_s != 0.0:
    os.read(told, 1)
    print(options.stop.why, options.stop.drain_s, flush=True)
"""


class Alone:
    """A process on its own, and what it printed."""

    def __init__(self, reaper: Reaper, folder: Path, prefix: str = "") -> None:
        self._out = folder / "out"
        with self._out.open("wb") as out:
            argv = [sys.executable, "-c", ALONE]
            if prefix:
                argv = ["sh", "-c", f'{prefix}; exec "$@"', "sh", *argv]
            self.process: subprocess.Popen[bytes] = reaper.start(argv, stdout=out)
        self.wait_line("ready")

    def wait_line(self, text: str) -> None:
        wait_until(lambda: text in self.lines, f"it printed {text!r}")

    @property
    def lines(self) -> list[str]:
        return self._out.read_text().splitlines()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_alone_the_first_signal_drains_and_the_second_ends(
    reaper: Reaper, tmp_path: Path, number: signal.Signals
) -> None:
    alone = Alone(reaper, tmp_path)

    alone.process.send_signal(number)
    alone.wait_line(f"{number.name} 5.0")
    alone.process.send_signal(number)

    assert alone.process.wait(30) == 0
    assert alone.lines[-1] == f"{number.name} 0.0"


def test_alone_a_hang_up_that_nohup_ignores_stays_ignored(reaper: Reaper, tmp_path: Path) -> None:
    alone = Alone(reaper, tmp_path, "trap '' HUP")

    alone.process.send_signal(signal.SIGHUP)
    alone.process.send_signal(signal.SIGTERM)

    alone.wait_line("SIGTERM 5.0")
    alone.process.send_signal(signal.SIGTERM)
    assert alone.process.wait(30) == 0
    assert not any("SIGHUP" in line for line in alone.lines)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_child_of_up_leaves_the_terminals_signals_to_it(
    reaper: Reaper, tmp_path: Path, number: signal.Signals
) -> None:
    up = UpRun(reaper, tmp_path).start({"worker-1": "steady", "worker-2": "chatty"}).wait_ready(2)
    pids = up.children()

    for pid in pids.values():
        os.kill(pid, number)
    have_said(up.home, "worker-2")

    up.wait_line("chat.said number=1")
    assert up.children() == pids
    assert "child.ends" not in up.log
    up.process.terminate()
    assert up.wait_exit() == 0


def test_what_a_child_execs_ignores_no_signal(reaper: Reaper, tmp_path: Path) -> None:
    up = UpRun(reaper, tmp_path).start({"worker-1": "launching"})

    up.wait_line("launch.ignores")

    line = next(line for line in up.lines if "launch.ignores" in line)
    ignored = int(line.rpartition("=")[2], 16)
    assert not ignored & sum(1 << (number - 1) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    up.process.terminate()
    assert up.wait_exit() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_one_signal_to_the_whole_group_leaves_the_drain_its_time(
    reaper: Reaper, tmp_path: Path, number: signal.Signals
) -> None:
    up = UpRun(reaper, tmp_path).start({"worker-1": "draining"}, "--drain", "3600s").wait_ready(1)

    os.killpg(up.process.pid, number)

    up.wait_line("ending: running jobs get their drain")
    up.wait_line("child.asked drain_s=3600.0")
    assert "drain_s=0.0" not in up.log
    os.kill(up.process.pid, number)
    assert up.wait_exit() == 0
    assert "child.asked drain_s=0.0" in up.log


def test_ctrl_c_while_children_start_is_neither_lost_nor_deadly(reaper: Reaper, tmp_path: Path) -> None:
    up = UpRun(reaper, tmp_path).start({f"worker-{number}": "steady" for number in range(1, 5)})
    up.wait_line("tenure up")

    up.interrupt()

    assert up.wait_exit() == 0
    assert "KeyboardInterrupt" not in up.log
    assert "did not end cleanly" not in up.log
