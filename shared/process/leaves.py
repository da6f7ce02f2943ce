"""Where the jobs of a home get their cgroups: tried at the start of a worker by doing it once."""

from __future__ import annotations

import os
import subprocess
from typing import Self

from shared.process import cgroup

PREFIX = "tenure-"
PROBE = "tenure.probe-"  # not with the prefix: another worker that starts now must not sweep it away
PROBE_BOUND_S = 5.0


class Leaves:
    """A folder of the cgroup v2 hierarchy in which this process may make groups and move its own processes there.

    Attributes:
        parent: The folder: this process's own group, which its supervisor delegated to it, or which is root's.
    """

    def __init__(self, parent: str, home_key: str) -> None:
        self.parent = parent
        self._prefix = f"{PREFIX}{home_key}-"

    @classmethod
    def find(cls, attempts: int) -> Self | None:
        """The folder for the home whose `attempts` directory this is; None when jobs cannot have groups of their own here.

        Empty groups that somebody left behind are removed.
        """
        parent = cgroup.own_directory()
        if parent is None:
            return None
        found = os.fstat(attempts)
        leaves = cls(parent, f"{found.st_dev:x}.{found.st_ino:x}")
        if not _can_move(f"{parent}/{PROBE}{os.getpid()}"):
            return None
        leaves.sweep()
        return leaves

    def path(self, directory: str) -> str:
        """The group of one launch, by the name of its directory."""
        return f"{self.parent}/{self._prefix}{directory}"

    def sweep(self) -> None:
        """Remove what is empty, of whichever home: a shim that was killed could not, and a home may be gone for good."""
        try:
            names = os.listdir(self.parent)
        except OSError:
            return
        for name in names:
            if name.startswith(PREFIX) or _is_left_probe(name):
                leaf = f"{self.parent}/{name}"
                if "populated 0" in _events(leaf):
                    cgroup.remove(leaf)


def _is_left_probe(name: str) -> bool:
    """A probe of a worker that was killed over it."""
    return name.startswith(PROBE) and not os.path.exists(f"/proc/{name.removeprefix(PROBE)}")


def _can_move(leaf: str) -> bool:
    """Make a group, move a process of ours in, and remove it."""
    cgroup.remove(leaf)  # of a worker that had our pid and was killed here
    try:
        os.mkdir(leaf)
        guinea_pig = subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        cgroup.remove(leaf)
        return False
    try:
        cgroup.write(f"{leaf}/cgroup.procs", str(guinea_pig.pid).encode())
        has_moved = guinea_pig.pid in cgroup.members(leaf)
    except OSError:
        has_moved = False
    finally:
        guinea_pig.communicate(timeout=PROBE_BOUND_S)
        is_removed = cgroup.remove(leaf)
    return has_moved and is_removed


def _events(leaf: str) -> str:
    try:
        with open(f"{leaf}/cgroup.events", encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""
