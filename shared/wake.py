"""Doorbells: a datagram that says "look at the store", sent after a commit. A hint: losing one costs a bounded poll.

The sockets lie in the home's `run/` folder and are bound and dialled through `/proc/self/fd`, so the home may be as deep as it
likes (AF_UNIX paths end at 107 bytes). Rule: requirement K03; design §4, §13.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Iterable
from pathlib import Path

COORDINATOR = "coordinator"
"""Name under which the leading coordinator listens."""


class Bell:
    """A listening doorbell; a `Wake`. Also rung from within the process by `ring`, from any thread."""

    def __init__(self, run_dir: Path, name: str) -> None:
        self._folder = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._file = f"{name}.bell"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._file, dir_fd=self._folder)
        os.fchmod(self._socket.fileno(), 0o600)  # what a bind makes has its socket's mode
        self._socket.bind(f"/proc/self/fd/{self._folder}/{self._file}")
        self._inode = os.stat(self._file, dir_fd=self._folder).st_ino
        self._mine, self._inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._poll = select.epoll()
        for end in (self._socket, self._mine):
            self._poll.register(end, select.EPOLLIN)

    def fileno(self) -> int:
        """Readable when rung."""
        return self._poll.fileno()

    def drain(self) -> None:
        """Forget every ring so far."""
        for end in (self._socket, self._mine):
            with contextlib.suppress(BlockingIOError):
                while end.recv(16):
                    pass

    def ring(self) -> None:
        """Wake whoever waits on this bell in this process; safe from any thread and from a signal handler."""
        with contextlib.suppress(BlockingIOError, OSError):
            self._inner.send(b"1")

    def also_as(self, name: str) -> None:
        """Answer to another name too, taking it from whoever had it (a leader answers to `COORDINATOR`)."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{name}.bell", dir_fd=self._folder)
        os.symlink(self._file, f"{name}.bell", dir_fd=self._folder)

    def close(self) -> None:
        """Stop listening and remove the socket file, unless another process has bound it since."""
        with contextlib.suppress(FileNotFoundError):
            if os.stat(self._file, dir_fd=self._folder).st_ino == self._inode:
                os.unlink(self._file, dir_fd=self._folder)
        self._poll.close()
        for end in (self._socket, self._mine, self._inner):
            end.close()
        os.close(self._folder)


class Ringer:
    """Rings other processes' bells by name; never blocks, never raises.

    Attributes:
        lost: Rings that reached nobody (nobody listens, or its queue is full).
    """

    def __init__(self, run_dir: Path) -> None:
        self._folder = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self.lost = 0

    def __call__(self, names: Iterable[str]) -> None:
        """Ring each name once."""
        for name in names:
            try:
                self._socket.sendto(b"1", f"/proc/self/fd/{self._folder}/{name}.bell")
            except OSError:
                self.lost += 1

    def close(self) -> None:
        """Give the descriptors back."""
        self._socket.close()
        os.close(self._folder)
