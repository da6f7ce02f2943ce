"""A real `tenure up` of one test, with the children of `up_children`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from shared import presence
from shared.up import LEFTOVERS_BOUND_US
from tests.support import up_children
from tests.support.processes import Reaper
from tests.support.waiting import wait_until

SCRIPT = Path(up_children.__file__)


class UpRun:
    """One `tenure up`, its home and what it wrote."""

    def __init__(self, reaper: Reaper, folder: Path, name: str = "up") -> None:
        self.home = folder / "home"
        self.run_dir = self.home / "run"
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self._log = folder / f"{name}.log"
        self._reaper = reaper
        self.process: subprocess.Popen[bytes]

    def start(
        self,
        plans: dict[str, str],
        *options: str,
        cwd: Path | None = None,
        invalid: bool = False,
        leftovers_bound_us: int = LEFTOVERS_BOUND_US,
    ) -> UpRun:
        """Start it.

        Args:
            plans: Names of children, and the function of `up_children` that each of them is.
            options: Its command line.
            invalid: Its configuration is.
        """
        given = {
            "home": str(self.home),
            "plans": plans,
            "options": options,
            "invalid": invalid,
            "leftovers_bound_us": leftovers_bound_us,
        }
        with self._log.open("wb") as log:
            self.process = self._reaper.start([sys.executable, SCRIPT, json.dumps(given)], stderr=log, cwd=cwd)
        return self

    def wait_ready(self, count: int) -> UpRun:
        """Wait until so many children said that they are ready, over all restarts."""
        self.wait_line("child.ready", count)
        return self

    def wait_line(self, text: str, count: int = 1) -> None:
        wait_until(lambda: self.log.count(text) >= count, f"{count} × {text!r} in the log")

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def lines(self) -> list[str]:
        return self.log.splitlines()

    def events(self, name: str) -> list[dict[str, Any]]:
        """Events of that name, with `--log-json`."""
        return [event for event in map(json.loads, self.lines) if event["event"] == name]

    def children(self) -> dict[str, int]:
        """Pids of the children that are there, by name."""
        return {each.name: each.pid for each in presence.children(self.run_dir)}

    def interrupt(self) -> None:
        """Ctrl-C, as a terminal sends it: to the whole group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def wait_exit(self) -> int:
        """The exit code; nothing of it is left then, but for children of one that was killed."""
        return self.process.wait(timeout=30)

    def wait_no_children(self) -> None:
        wait_until(lambda: not self.children(), "all children are gone")
