"""Which `tenure up` and which of its children are there, by locks in the home's `run/` folder.

One `up` at a time holds `up.lock`, which names its pid. Each of its children holds a file of its own, `up/NAME.PID`, for its
whole life, so a new `up` can name what a killed one left behind: the lock is the proof, the pid in the name only tells a person
where to look. Descriptors are close-on-exec, so nothing that a child launches keeps them.

Rule: design §6 ("A new `up` that finds leftovers …") and "every taker of a probed lock retries for 1 s".
"""

from __future__ import annotations

import fcntl
import os
import re
from dataclasses import dataclass
from pathlib import Path

from shared import boundary
from shared.boundary import Boundary
from shared.clock import Clock
from shared.model.instant import US_PER_MS, US_PER_S

TAKE_BOUND_US = US_PER_S  # a prober holds a lock for an instant only
TAKE_PAUSE_US = 20 * US_PER_MS

_UP_LOCK = "up.lock"
_CHILDREN = "up"
_CHILD_FILE = re.compile(r"([a-z][a-z0-9-]*)\.([1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Presence:
    """A child of some `tenure up` that still runs. `pid` means something in the pid namespace it was started in."""

    name: str
    pid: int


def hold_up(run_dir: Path, clock: Clock) -> int | None:
    """Become the one `tenure up` of this home, until the returned descriptor is closed; None when another is.

    Blocks: at most `TAKE_BOUND_US`.

    Raises:
        OSError: the file cannot be made.
    """
    fd = os.open(run_dir / _UP_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _take(fd, clock):
        os.close(fd)
        return None
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        pass  # a full disk: the lock is what counts
    return fd


def up_pid(run_dir: Path) -> int | None:
    """The pid that the last `tenure up` wrote; None when it wrote none (yet). Says nothing about whether it lives."""
    try:
        return int((run_dir / _UP_LOCK).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def running_up(run_dir: Path) -> int | None:
    """Pid of the `tenure up` that holds this home now, proven by its lock; None when none does."""
    try:
        fd = os.open(run_dir / _UP_LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        boundary.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, Boundary.LOCK_PROBE)
    except BlockingIOError:
        return up_pid(run_dir)
    finally:
        os.close(fd)
    return None


def hold_child(run_dir: Path, name: str, clock: Clock) -> int:
    """Be visible as a running child, until this process ends; returns the descriptor that must stay open.

    Blocks: at most `TAKE_BOUND_US`.

    Raises:
        OSError: the file cannot be made, or its lock is held (BlockingIOError).
    """
    folder = run_dir / _CHILDREN
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{name}.{os.getpid()}"
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _take(fd, clock):
            os.close(fd)
            raise BlockingIOError(f"{path} is locked")
        if _is_still(path, fd):
            return fd
        os.close(fd)  # a new `up` found the file free, in the instant before the lock, and removed it


def forget_child(run_dir: Path, name: str, pid: int) -> None:
    """Remove the file of a child that was reaped."""
    (run_dir / _CHILDREN / f"{name}.{pid}").unlink(missing_ok=True)


def children(run_dir: Path) -> list[Presence]:
    """Children that are there, by name; removes the files of those that are gone. For the holder of `up.lock`, and readers."""
    folder = run_dir / _CHILDREN
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.iterdir()):
        match = _CHILD_FILE.fullmatch(path.name)
        if match is not None and not _remove_if_free(path):
            found.append(Presence(match[1], int(match[2])))
    return found


def _take(fd: int, clock: Clock) -> bool:
    until = clock.now().mono_us + TAKE_BOUND_US
    while True:
        try:
            boundary.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, Boundary.INCARNATION_LOCK)
        except BlockingIOError:
            now = clock.now().mono_us
            if now >= until:
                return False
            clock.wait(min(until, now + TAKE_PAUSE_US), None)
        else:
            return True


def _is_still(path: Path, fd: int) -> bool:
    mine = os.fstat(fd)
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)


def _remove_if_free(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        boundary.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, Boundary.LOCK_PROBE)
        path.unlink(missing_ok=True)  # under the lock: whoever comes between sees another file, and makes its own
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True
