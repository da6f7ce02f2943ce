"""Locks that prove life: `flock` on a file, released by the kernel at death, whatever the death.

Rule: design §6 (a probe is LOCK_SH|LOCK_NB on the recorded inode, every taker of a probed lock retries for 1 s).
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from shared import boundary
from shared.boundary import Boundary
from shared.errors import RefusedError
from shared.model.evidence import LockState

TAKE_BOUND_S = 1.0  # a prober holds the lock shared, for an instant only
TAKE_PAUSE_S = 0.01


class IncarnationLock:
    """The lock file of one process incarnation, held for its whole life; it names the process's pid, for whoever finds it held.

    Attributes:
        device, inode: What a prober has to find at the path for its answer to mean anything.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        found = os.fstat(fd)
        self.device = found.st_dev
        self.inode = found.st_ino

    @classmethod
    def take(cls, path: Path) -> Self:
        """Make the file if need be and lock it.

        Blocks: at most 1 s.

        Raises:
            RefusedError: another process holds it (`lock_held`).
            OSError: the file cannot be made or locked.
        """
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        deadline = time.monotonic() + TAKE_BOUND_S
        try:
            while True:
                try:
                    boundary.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, Boundary.INCARNATION_LOCK)
                    _name_holder(fd)
                    return cls(fd)
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise RefusedError(f"{path} is locked by another process", code="lock_held") from None
                time.sleep(TAKE_PAUSE_S)
        except BaseException:
            os.close(fd)
            raise

    def release(self) -> None:
        """Let go of the lock; may be repeated."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _name_holder(fd: int) -> None:
    try:
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        pass  # a full disk: the lock is what counts


def holders(folder: Path, name: str) -> list[int]:
    """Pids of the processes that live and hold an incarnation lock of that name, lead or not, as they wrote them.

    Each means something in its holder's pid namespace only.
    """
    found = []
    for path in folder.glob(f"{name}.*.lock"):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            written = os.read(fd, 32)
            if probe_open(fd) is LockState.HELD and written.strip().isdigit():
                found.append(int(written))
        except OSError:
            continue
        finally:
            os.close(fd)
    return sorted(found)


def probe(path: Path, device: int, inode: int) -> LockState:
    """Tell whether the process that recorded this lock file still holds it; another file at the path proves nothing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return LockState.UNPROVEN
    try:
        found = os.fstat(fd)
        if (found.st_dev, found.st_ino) != (device, inode):
            return LockState.UNPROVEN
        return probe_open(fd)
    except OSError:
        return LockState.UNPROVEN
    finally:
        os.close(fd)


def probe_open(fd: int) -> LockState:
    """The same for a file that is open and was compared; closing it is the caller's."""
    try:
        boundary.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, Boundary.LOCK_PROBE)
    except BlockingIOError:
        return LockState.HELD
    except OSError:
        return LockState.UNPROVEN
    return LockState.FREE
