"""What ties a running process to one launch, whatever it did to get away.

Each mark proves by itself that the process came from the job, so that it may be killed for it; only `name` does not (an
environment that names the attempt, and no home). Whoever shows none is looked for by `shared/process/orphans.py`.

Rule: research "process truth" §4.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from shared import boundary
from shared.boundary import Boundary
from shared.ids import AttemptId
from shared.model.evidence import Leaf, LockState, ProcessIdentity
from shared.process import cgroup, identity, procfs
from shared.process.snapshot import Key, Process, Snapshot

SHIM, CHILD, NAME = "shim", "child", "name"
UNKILLED = frozenset({SHIM, NAME})
"""Marks that are no reason to kill: the shim goes last, and a name is none."""
ENVIRONMENT, TREE_LOCK = "environment", "tree.lock"


@dataclass(frozen=True, slots=True)
class Launch:
    """The launch whose processes are looked for.

    Attributes:
        home: The home it belongs to; the same attempt of another home is another attempt.
        shim, child: Who they are; None when unknown, or when their pids mean nothing here.
        tree_lock: Device and inode of its `tree.lock`; None when there is none.
    """

    attempt_id: AttemptId
    home: Path
    shim: ProcessIdentity | None
    child: ProcessIdentity | None
    leaf: Leaf | None
    tree_lock: tuple[int, int] | None

    def may_include(self, process: Process) -> bool:
        """False for what started before it."""
        oldest = self.shim or self.child
        return oldest is None or process.start_ticks >= oldest.start_ticks


class Marks:
    """Looks for the marks of one launch on processes; counts the environments that it was not shown.

    Attributes:
        unreadable: Pids whose environment could not be read, which is not an absence.
    """

    def __init__(self, launch: Launch, spared: Collection[Key] = ()) -> None:
        """Take the launch, and who is left out though it may bear marks: this process, and whoever else is accounted for."""
        self._launch = launch
        self._spared = frozenset(spared)
        self.unreadable: set[int] = set()

    def of(self, snapshot: Snapshot, *, known: Collection[Key] = ()) -> dict[int, tuple[str, ...]]:
        """Every living process with its marks, by pid; those without any, and those known already, are left out."""
        members = self.members()
        shim, child = (each is not None and identity.is_it(each) for each in (self._launch.shim, self._launch.child))
        found = {}
        for process in snapshot.table.values():
            if process.ended or self.is_spared(process, known):
                continue
            marks = self._by_place(process, snapshot, (shim, child))
            if process.pid in members:
                marks.append("cgroup")
            environment = self._by_environment(process.pid)
            if environment is not None:
                marks.append(environment)
            if self._holds_tree_lock(process.pid):
                marks.append(TREE_LOCK)
            if marks:
                found[process.pid] = tuple(marks)
        return found

    def is_carried(self, pid: int) -> bool:
        """Whether the process carries what only this launch can have given it, in its environment or its open files."""
        return self._by_environment(pid) == ENVIRONMENT or self._holds_tree_lock(pid)

    def is_spared(self, process: Process, more: Collection[Key]) -> bool:
        """Whether it is left out, here or by `more`, or is too old to be of the launch."""
        return process.key in self._spared or process.key in more or not self._launch.may_include(process)

    def members(self) -> set[int]:
        """Who is in its cgroup."""
        leaf = self._launch.leaf
        if leaf is None or cgroup.is_empty(leaf.path, leaf.inode) is not False:
            return set()
        return set(cgroup.members(leaf.path))

    def _by_place(self, process: Process, snapshot: Snapshot, present: tuple[bool, bool]) -> list[str]:
        """Marks by who it is, who is above it, and which session and group it is in.

        Args:
            present: Whether the pids of shim and child still name them.
        """
        marks = []
        for name, who, is_present in zip((SHIM, CHILD), (self._launch.shim, self._launch.child), present, strict=True):
            if who is None or not is_present:
                continue
            if process.is_it(who):
                marks.append(name)
            elif snapshot.is_below(process, who):
                marks.append(f"below {name}")
        child = self._launch.child
        if child is None or process.start_ticks < child.start_ticks or CHILD in marks:
            return marks
        if child.pid in snapshot.table and not present[1]:
            return marks  # the number belongs to another process now, and so does what is called by it
        if process.session == child.pid:
            marks.append("session")
        if process.group == child.pid:
            marks.append("group")
        return marks

    def _by_environment(self, pid: int) -> str | None:
        """The mark of its environment: of this attempt and home, or of the attempt's name alone."""
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                words = file.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return None
        except OSError:
            self.unreadable.add(pid)
            return None
        if b"TENURE_ATTEMPT=" + self._launch.attempt_id.encode() not in words:
            return None
        named = next((word[len(_HOME) :] for word in words if word.startswith(_HOME)), None)
        if named is None:
            return NAME
        return ENVIRONMENT if os.path.realpath(named) == os.path.realpath(os.fsencode(self._launch.home)) else None

    def _holds_tree_lock(self, pid: int) -> bool:
        """Whether an open file of the process is the lock that the job inherited; a reader of the file does not hold it."""
        if self._launch.tree_lock is None:
            return False
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                found = os.stat(f"/proc/{pid}/fd/{fd}")
                if (found.st_dev, found.st_ino) == self._launch.tree_lock and _is_locked_shared(pid, fd):
                    return True
        except OSError:
            return False  # gone, or not shown to us: that somebody holds the lock is known without
        return False


_HOME = b"TENURE_HOME="


def _is_locked_shared(pid: int, fd: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{fd}", "rb") as file:
        return any(line.startswith(b"lock:") and b"FLOCK" in line and b"READ" in line for line in file)


def probe_tree_lock(directory: int) -> tuple[LockState, tuple[int, int] | None]:
    """Whether a process that inherited the job's descriptors lives, and which file the lock is."""
    try:
        fd = os.open(TREE_LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
    except FileNotFoundError:
        return LockState.FREE, None  # the child makes it before it becomes the job
    except OSError:
        return LockState.UNPROVEN, None
    try:
        found = os.fstat(fd)
        file = (found.st_dev, found.st_ino)
        try:
            boundary.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, Boundary.LOCK_PROBE)
        except BlockingIOError:
            return LockState.HELD, file
        except OSError:
            return LockState.UNPROVEN, file
        return LockState.FREE, file
    finally:
        os.close(fd)


def waits_in(pid: int) -> str | None:
    """Where in the kernel a process waits; None when it does not, or the kernel does not tell."""
    try:
        with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
            return file.read().strip().removeprefix("0") or None
    except (OSError, UnicodeDecodeError):
        return None


def is_named(pid: int, name: str) -> bool:
    """Whether the kernel calls the process by this name."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n") == name
    except OSError:
        return False


def key_of(process: ProcessIdentity) -> Key | None:
    """An identity as the key of a table; None when its pid means nothing on this boot and in this pid namespace."""
    here = (procfs.boot_id(), procfs.pid_namespace())
    return (process.pid, process.start_ticks) if (process.boot_id, process.pid_ns) == here else None
