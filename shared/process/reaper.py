"""The shim after the fork: reap everything below, stop it when asked, write the exit record when nothing is left.

Standard library only: the shim loads this file.
"""

from __future__ import annotations

import os
import signal
import time

from shared import boundary
from shared.boundary import Boundary, Side
from shared.process import cgroup, tree
from shared.process.record import EXIT_AT, RECORD_BYTES, encode, publish
from shared.process.ring import Ring

KILL_INTERVAL_S = 0.05
NEVER = float("inf")
RETRY_FIRST_S = 0.1
RETRY_MAX_S = 5.0
SIGNALS = (signal.SIGTERM, signal.SIGCHLD, signal.SIGIO)  # blocked since before the fork, taken here


class Reaper:
    """Waits for one child and all its descendants.

    A stop is asked for by SIGTERM, or follows by itself when the child has ended and left stragglers: TERM to all, and
    after `grace_s` freeze and KILL until the kernel says that no child is left. The status is always the child's.
    """

    def __init__(
        self,
        child: int,
        directory: int,
        errors: int,
        *,
        grace_s: float,
        is_subreaper: bool,
        leaf: str | None,
        output_max: int | None,
        out_max: int | None,
        out_counts: bool,
    ) -> None:
        self._child = child
        self._directory = directory
        self._errors = errors
        self._grace_s = grace_s
        self._is_subreaper = is_subreaper
        self._leaf = leaf
        self._out_counts = out_counts
        caps = {"out": out_max, "err": output_max}
        self._ring = Ring(directory, caps) if any(cap is not None for cap in caps.values()) else None
        self._look_at = time.monotonic()
        self._status: int | None = None
        self._stop: str | None = None
        self._kill_at: float | None = None

    def run(self) -> None:
        """Reap until ECHILD, then publish the exit record; keeps trying for as long as the directory exists.

        The leaf goes last: an adopter that finds it gone knows that nothing was left in it.
        """
        while not self._reap():
            if self._status is not None and self._stop is None:
                self._begin_stop("stragglers")
            if self._wait() == signal.SIGTERM and self._stop is None:
                self._begin_stop("request")
        self._publish()
        if self._leaf is not None:
            cgroup.remove(self._leaf)

    def _reap(self) -> bool:
        """Take every ended child; True when none is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._child:
                self._status = status
                boundary.reached(Boundary.CHILD_REAP, Side.AFTER)

    def _begin_stop(self, why: str) -> None:
        self._stop = why
        self._kill_at = time.monotonic() + self._grace_s
        if self._status is None:  # unreaped, so the group is still its own
            try:
                boundary.kill_group(self._child, signal.SIGTERM, Boundary.TREE_SIGNAL)
            except (ProcessLookupError, PermissionError):
                pass  # it has not made its session yet, or runs as another user
        tree.terminate(os.getpid())

    def _wait(self) -> int | None:
        """Wait for a signal, and only for as long as the next kill or the next look at the output is away."""
        remaining = self._until_look()
        if self._kill_at is not None:
            until_kill = self._kill_at - time.monotonic()
            if until_kill <= 0:
                self._kill()
                until_kill = KILL_INTERVAL_S
            remaining = until_kill if remaining is None else min(remaining, until_kill)
        if remaining is None:
            number = signal.sigwaitinfo(SIGNALS).si_signo
        else:
            info = signal.sigtimedwait(SIGNALS, remaining)
            number = 0 if info is None else info.si_signo
        if number == signal.SIGIO:
            self._look_at = time.monotonic()
        return number

    def _until_look(self) -> float | None:
        """Look at the output when that is due; how long until the next time. None: a signal will say."""
        if self._ring is None:
            return None
        now = time.monotonic()
        if self._look_at > now:
            return None if self._look_at == NEVER else self._look_at - now
        seconds = self._ring.look()
        self._look_at = NEVER if seconds is None else now + seconds
        return seconds

    def _kill(self) -> None:
        if self._leaf is not None:
            cgroup.kill(self._leaf, Boundary.TREE_SIGNAL, tree.kill_one)
        tree.kill(os.getpid())

    def _publish(self) -> None:
        record = self._record()
        if record["error"] is not None and self._exists("exit.json", if_unknown=False):
            return  # by the child, whose exec failed
        delay_s = RETRY_FIRST_S
        while True:
            try:
                if self._out_counts:
                    self._sync_output()
                publish(self._directory, "exit.json", record, EXIT_AT)
                return
            except (OSError, MemoryError):
                if os.fstat(self._directory).st_nlink == 0:
                    return  # the directory was removed: nobody can ever read it
            time.sleep(delay_s)
            delay_s = min(RETRY_MAX_S, 2 * delay_s)

    def _sync_output(self) -> None:
        """Nothing writes any more. Raises OSError: it is tried again with the record."""
        try:
            fd = os.open("out", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._directory)
        except FileNotFoundError:
            return  # the child died before it had one
        try:
            boundary.fsync(fd, Boundary.OUTPUT_SYNC)
        finally:
            os.close(fd)

    def _record(self) -> dict[str, object]:
        error = os.read(self._errors, RECORD_BYTES).decode("utf-8", "replace") or None
        # Where `child.json` cannot be looked for, claim less: it may have run.
        ran = error is None and self._exists("child.json", if_unknown=True)
        status = os.waitstatus_to_exitcode(self._status) if ran and self._status is not None else None
        return encode(
            status=status,
            ran=ran,
            error=error,
            stop=self._stop,
            tree_empty=self._is_subreaper,
            oom=bool(self._leaf is not None and cgroup.oom_kills(self._leaf)),
            output=None if self._ring is None else self._ring.settle(),
        )

    def _exists(self, name: str, *, if_unknown: bool) -> bool:
        try:
            os.stat(name, dir_fd=self._directory)
        except FileNotFoundError:
            return False
        except OSError:
            return if_unknown
        return True
