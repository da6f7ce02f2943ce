"""The fair queue in front of the write lock: `flock` on one file, waited for with a bound.

SQLite's own busy handler starves: a process that commits and begins again nearly always wins. `flock` queues in the kernel, belongs
to the open file (so no other close drops it) and ends with its holder. Rule: research "store" §2; design §4.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import Protocol

from shared.boundary import Boundary, flock
from shared.errors import StoreBusyError, StoreUnavailableError


class QueueLock(Protocol):
    """What a store needs of its queue: `Queue`, or a simulation's.

    Attributes:
        wait_s: Longest wait; 0 only tries.
    """

    wait_s: float

    def acquire(self) -> None:
        """Take the lock. Raises StoreBusyError when it was held for all of `wait_s`."""

    def release(self) -> None: ...
    def close(self) -> None: ...


class Queue:
    """This process's place in the queue. Used by one thread; a helper thread waits for it when the lock is held.

    Args:
        wait_s: Longest wait; 0 only tries.
    """

    def __init__(self, path: Path, *, wait_s: float) -> None:
        self._path = path
        self.wait_s = wait_s
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StoreUnavailableError("io_error", f"{path} cannot be opened: {error.strerror}") from error
        self._changed = threading.Condition()
        self._waiting = False  # the owner waits for the helper
        self._helping = False  # a helper is on its way to the lock
        self._granted = False  # the helper got it and hands it over
        self._closed = False

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            StoreBusyError: it was held for all of `wait_s`; names the process that holds it when the kernel tells.
        """
        with self._changed:
            if not self._helping:
                if self._try():
                    return
                if self.wait_s <= 0:
                    raise self._busy()
                self._helping = True
                threading.Thread(target=self._help, name="store-queue", daemon=True).start()
            self._waiting = True
            handed_over = self._changed.wait_for(lambda: self._granted, self.wait_s)
            self._waiting = False
            if not handed_over:
                raise self._busy()
            self._granted = False

    def release(self) -> None:
        """Give the lock to whoever waits longest."""
        flock(self._fd, fcntl.LOCK_UN, Boundary.QUEUE_LOCK)

    def close(self) -> None:
        """Leave the queue, once; a helper that still waits keeps the file open until this process ends."""
        with self._changed:
            if not self._helping and not self._closed:
                self._closed = True
                os.close(self._fd)

    def _try(self) -> bool:
        try:
            flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, Boundary.QUEUE_LOCK)
        except BlockingIOError:
            return False
        return True

    def _help(self) -> None:
        flock(self._fd, fcntl.LOCK_EX, Boundary.QUEUE_LOCK)
        with self._changed:
            self._helping = False
            if self._waiting:
                self._granted = True
                self._changed.notify()
            else:
                self.release()  # nobody waits any more

    def _busy(self) -> StoreBusyError:
        holder = _holder(os.fstat(self._fd).st_ino)
        told = f"process {holder}" if holder is not None else "another process"
        return StoreBusyError(
            f"the store's queue was not free within {self.wait_s:.2g} s, {told} holds it now; nothing was written",
            hint=None if holder is None else f"see whether process {holder} is stopped or stuck",
        )


class Queued:
    """Holds the queue lock for a `with` block."""

    def __init__(self, queue: QueueLock) -> None:
        self._queue = queue

    def __enter__(self) -> None:
        self._queue.acquire()

    def __exit__(self, *_: object) -> None:
        self._queue.release()


def _holder(inode: int) -> int | None:
    """The pid that holds the lock by `/proc/locks`; None when the kernel does not say (another pid namespace)."""
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(inode):
            return int(fields[4]) if int(fields[4]) > 0 else None
    return None
