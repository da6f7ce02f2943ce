"""Signals to a tree of processes whose root keeps it together as subreaper.

Standard library only: the shim loads this file. Every descendant is signalled through a pidfd that was opened before its
place in the tree was checked again, so a pid that changed hands in between is left alone.
"""

from __future__ import annotations

import os
import signal

from shared import boundary
from shared.boundary import Boundary
from shared.process import procfs

FREEZE_ROUNDS = 50


def terminate(root: int) -> None:
    """Ask every descendant to end; a stopped one is continued so that it can hear it."""
    for pid, parent in procfs.descendants(root).items():
        _signal(pid, parent, signal.SIGTERM)
        _signal(pid, parent, signal.SIGCONT)


def kill(root: int) -> None:
    """Stop descendants until no new one shows up twice, then kill them all; the root is left alone.

    Stopping first is what beats a program that forks faster than it is killed. Call again until the root says ECHILD.
    """
    stopped: set[int] = set()
    quiet = 0
    for _ in range(FREEZE_ROUNDS):
        fresh = {pid: parent for pid, parent in procfs.descendants(root).items() if pid not in stopped}
        for pid, parent in fresh.items():
            _signal(pid, parent, signal.SIGSTOP)
        stopped.update(fresh)
        quiet = 0 if fresh else quiet + 1
        if quiet >= 2:
            break
    for pid, parent in procfs.descendants(root).items():
        _signal(pid, parent, signal.SIGKILL)


def kill_one(pid: int, at: Boundary = Boundary.TREE_SIGNAL) -> None:
    """Kill a member of a frozen cgroup: it can neither end nor fork, so its number cannot change hands."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        boundary.pidfd_kill(fd, signal.SIGKILL, at)
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        os.close(fd)


def _signal(pid: int, parent: int, number: int) -> None:
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return  # gone
    try:
        if int(procfs.stat_fields(pid)[procfs.PPID]) == parent:
            boundary.pidfd_kill(fd, number, Boundary.TREE_SIGNAL)
    except (ProcessLookupError, PermissionError):
        pass  # gone, or of another user: ECHILD alone says whether the tree is empty
    finally:
        os.close(fd)
