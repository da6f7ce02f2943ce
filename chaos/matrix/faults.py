"""Faults of store and disk, made to a running process from outside: a queue that is held, system calls that fail.

System calls are made to fail by `strace`, so what meets the fault is the production process and library. Where it is not
installed, or may not trace, such a cell is skipped and counted. Rule: design §9; research "store" §5; requirement M05.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

from chaos.harness import Harness
from chaos.matrix.cell import Harm
from shared.boundary import Boundary, flock

MET_BOUND_S = 20.0
GIVEN_S = 1.0  # somebody who runs has the queue for some milliseconds at most
STAYS_S = 0.3  # after it was met, so that what is tried again at once meets it too
_TRACE_BOUND_S = 10.0
_INJECTED = "(INJECTED)"


_CALLS = {
    Harm.FULL: ("pwrite64,fallocate,mkdir,mkdirat", "ENOSPC"),
    Harm.BROKEN: ("fsync,fdatasync", "EIO"),
}


class QueueHold:
    """The store's queue in the hands of a process of the home that hangs."""

    def __init__(self, harness: Harness) -> None:
        """Ask for it; it is given at once, or whoever has it stands still with it."""
        self._harness = harness
        self._fd = os.open(harness.home.queue_lock, os.O_RDWR | os.O_CLOEXEC)
        self._asking = threading.Thread(target=flock, args=(self._fd, fcntl.LOCK_EX, Boundary.QUEUE_LOCK), daemon=True)
        self._asking.start()
        self._asking.join(GIVEN_S)

    @property
    def is_held(self) -> bool:
        """It was given to us."""
        return not self._asking.is_alive()

    def end(self) -> None:
        """Give it back, once it was given."""
        self._harness.wait(lambda: self.is_held, "the queue was given to us")
        os.close(self._fd)


class Tampering:
    """System calls of one process that fail for as long as this is open."""

    def __init__(self, harm: Harm, trace: Path, path: Path | None, *, pid: int) -> None:
        """Attach, and return once every thread is attached.

        Args:
            trace: Where strace writes what it did.
            path: Only calls on this file; None: on any.
        """
        self._trace = trace
        self._strace = subprocess.Popen(
            [*_words(harm, trace, path), "-p", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert self._strace.stderr is not None
        told = self._strace.stderr.readline().decode()
        assert "attached" in told, f"strace did not attach: {told}"

    @property
    def met(self) -> bool:
        """A call failed by it."""
        return was_met(self._trace)

    def end(self) -> None:
        """Detach. May be repeated; the process goes on as it was, stopped or not."""
        if self._strace.poll() is None:
            self._strace.send_signal(signal.SIGINT)
            try:
                self._strace.wait(_TRACE_BOUND_S)
            except subprocess.TimeoutExpired:
                self._strace.kill()
                self._strace.wait()
        if self._strace.stderr is not None:
            self._strace.stderr.close()


def was_met(trace: Path) -> bool:
    """Whether a call was made to fail, by strace's own words."""
    return _INJECTED in trace.read_text(encoding="utf-8", errors="replace")


def tampered(harm: Harm, trace: Path, path: Path | None) -> list[str]:
    """The words to put before a command whose system calls are to fail, from its start to its end."""
    return _words(harm, trace, path)


def _words(harm: Harm, trace: Path, path: Path | None) -> list[str]:
    calls, error = _CALLS[harm]
    only = [] if path is None else ["-P", str(path)]
    inject = ["-e", f"trace={calls}", "-e", f"inject={calls}:error={error}"]
    return ["strace", "-f", "-o", str(trace), *inject, *only]


@cache
def why_no_tampering() -> str:
    """Why system calls of a running process cannot be made to fail here; empty when they can. Tried once."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    program = "import os; os.read(0, 1); os.mkdir('/dev/null/x')"
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.Popen(
            [sys.executable, "-S", "-c", program], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            tampering = Tampering(Harm.FULL, Path(folder, "trace"), None, pid=tried.pid)
            tried.communicate(b"\n")
            met = tampering.met
            tampering.end()
        except AssertionError as error:
            return str(error)
        finally:
            tried.kill()
            tried.wait()
    return "" if met else "strace cannot make system calls fail here"


def pause_while_met() -> None:
    """Let a fault that was met stay for a moment."""
    time.sleep(STAYS_S)
