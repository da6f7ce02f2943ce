"""Real processes in tests: started, told of, and reaped on every path.

The test process is made a subreaper, so a process whose parent was killed becomes *its* child and nothing escapes. That is also
why an ended orphan stays a zombie until `Reaper.collect` is called: nobody else will.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import psutil

from tests.support.waiting import wait_until

PR_SET_CHILD_SUBREAPER = 36

Stream = int | IO[bytes] | None


def become_subreaper() -> None:
    """Make orphans below this process its own children."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class Reaper:
    """Owns the processes of one test.

    At the end everything below the test process that was not there at the start is killed. What was started here, or told of,
    goes quietly, with the tree below it. Anything else fails the test and is named: somebody lost it.
    """

    def __init__(self) -> None:
        become_subreaper()
        self._before = set(_below())
        self._started: list[subprocess.Popen[bytes]] = []
        self._told: set[psutil.Process] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lost = self._lost()
        self.kill_all()
        assert not lost, f"left behind by this test, and killed now: {'; '.join(lost)}"

    def start(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: Stream = subprocess.DEVNULL,
        stdout: Stream = None,
        stderr: Stream = None,
    ) -> subprocess.Popen[bytes]:
        """Start a process in a session of its own and own it.

        Args:
            env: The whole environment; None inherits ours.
        """
        process = subprocess.Popen(
            [str(word) for word in argv],
            env=env,
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def tell(self, pid: int) -> None:
        """Own a process that something else started, so that it may still run at the end; one that is gone is ignored."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._told.add(psutil.Process(pid))

    def collect(self) -> None:
        """Take the exit status of ended orphans, as init would; never one that a `Popen` or `Process` object waits for."""
        owned = {process.pid for process in self._started} | {child.pid for child in multiprocessing.active_children()}
        for process in psutil.Process().children():
            if process.pid not in owned and process not in self._before and _is_zombie(process):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)

    def kill_all(self) -> None:
        """Kill and reap everything that this test brought about; for tests that mean to leave processes behind."""

        def nothing_left() -> bool:
            left = self._left()
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
            for started in self._started:
                started.poll()
            self.collect()
            return not left

        wait_until(nothing_left, "every process of the test is gone")
        for started in self._started:
            started.wait(timeout=10)
            for pipe in (started.stdin, started.stdout, started.stderr):
                if pipe is not None:
                    pipe.close()

    def _left(self) -> list[psutil.Process]:
        return [process for process in _below() if process not in self._before and not _is_tracker(process)]

    def _lost(self) -> list[str]:
        started = {process.pid for process in self._started}
        owned = self._told | {process for process in _below() if process.pid in started}
        lost = []
        for process in self._left():
            with contextlib.suppress(psutil.NoSuchProcess):
                line = {process, *process.parents()}
                words = process.cmdline()  # one that is ending has none any more, a moment before it is a zombie
                if words and not line & owned:
                    lost.append(f"{process.pid} {' '.join(words)}")
        return lost


def _below() -> list[psutil.Process]:
    """List the processes below this one; psutil compares them by pid and start, so a reused pid is another one."""
    return psutil.Process().children(recursive=True)


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _is_tracker(process: psutil.Process) -> bool:
    """Tell multiprocessing's resource tracker, which lives as long as the test run."""
    try:
        return "multiprocessing.resource_tracker" in " ".join(process.cmdline())
    except psutil.Error:
        return False
