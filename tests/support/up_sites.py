"""A home with a real `tenure up` on it, and the commands as a user calls them."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared.process import procfs
from tests.support.checkout import tool
from tests.support.processes import Reaper
from tests.support.waiting import wait_until


class UpSite:
    """A home and its commands; `up` keeps coordinator and workers on it.

    Attributes:
        folder: Where the commands are called; what a test notes goes there.
    """

    def __init__(self, folder: Path, config: str, *, home: Path | None = None) -> None:
        self.home = home or folder / "home"
        self.folder = folder
        assert self.call("init").returncode == 0
        self.configure(config)

    def configure(self, config: str) -> None:
        """Activate this configuration."""
        (self.home / "tenure.toml").write_text(config)
        said = self.call("apply")
        assert said.returncode == 0, said.stderr

    @contextmanager
    def up(self, *options: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """`tenure up`; at the end what is open is cancelled, and it goes."""
        with Reaper() as reaper, self.log.open("ab") as log:
            up = reaper.start(self.argv("up", *options), stdout=log, stderr=log, env=env)
            try:
                yield up
            finally:
                for work in self.json("work", "list", "--state", "ready", "--state", "running")["items"]:
                    self.call("work", "cancel", work["id"], "--wait", "20s")
                up.send_signal(signal.SIGTERM)
                up.wait(timeout=30)

    @property
    def log(self) -> Path:
        """What `up` says."""
        return self.folder / "up.log"

    def argv(self, *words: str) -> list[str]:
        return [str(tool("tenure")), "--home", str(self.home), *words]

    def call(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.argv(*words), cwd=self.folder, capture_output=True, timeout=60, check=False)

    def json(self, *words: str) -> Any:
        said = self.call(*words, "--json")
        assert said.returncode == 0, said.stderr
        return json.loads(said.stdout)

    def submit(self, *words: str) -> str:
        said = self.call("submit", *words)
        assert said.returncode == 0, said.stderr
        return said.stdout.decode().strip()

    def state(self, work: str) -> str:
        return str(self.json("work", "show", work)["state"])

    def await_state(self, work: str, *states: str) -> str:
        wait_until(lambda: self.state(work) in states, f"{work} is {' or '.join(states)}")
        return self.state(work)

    def printed(self, work: str) -> bytes:
        return self.call("work", "logs", work).stdout

    def await_printed(self, work: str, data: bytes) -> None:
        wait_until(lambda: self.printed(work) == data, f"{work} has printed {data!r}")

    def pool(self) -> dict[str, Any]:
        """The pool of jobs, once its counts and its holders are known to agree."""
        said = self.json("capacity")
        pool: dict[str, Any] = said["pools"][0]
        holders = [each["attempt"] for each in said["holders"] if each["pool"] == "jobs"]
        assert pool["in_use"] == len(holders) <= pool["limit"]
        return pool | {"holders": holders}


def alive(pid: int) -> bool:
    """Whether a process with this number runs; a zombie does not."""
    try:
        return not procfs.is_ended(pid, procfs.stat_fields(pid))
    except ProcessLookupError:
        return False
