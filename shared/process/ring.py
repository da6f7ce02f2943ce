"""What is kept of a job's output: the tail, up to a cap, with a hole where the head was.

The job writes its files itself, so nothing is lost when the shim dies and no pipe can break. The head is punched out behind it,
which keeps every logical offset valid for who reads along. A quiet job costs no wake-up: the kernel tells of its next write.

Standard library only: the shim loads this file. Rule: research "process truth" §6.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import time

UNCAPPED = "uncapped"
BLOCK_BYTES = 4096
SLACK_BYTES = 64 * 1024
LEAST_S = 0.002
FIRST_S = 0.01
MOST_S = 1.0
QUIET_S = 5.0
HASTE = 4  # a job may write this many times as fast from now on before the cap is overrun by more than the slack

_PUNCH_HOLE_KEEP_SIZE = 0x02 | 0x01
_NEVER = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM, errno.EINVAL}  # what the file system cannot; any other may pass
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


class Ring:
    """The outputs of one job, each kept to its cap, rounded up to a block.

    Attributes:
        is_capped: False once the file system has refused to punch: the files then just grow.
    """

    def __init__(self, directory: int, caps: dict[str, int | None]) -> None:
        """Args: caps: Bytes kept of each file, by its name; None: all."""
        self._caps = {name: cap for name, cap in caps.items() if cap is not None}
        # A description of our own: a notice belongs to it, and the one we were given is the worker's too.
        self._folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        self._streams: dict[str, _Stream] = {}
        self._looked_s = time.monotonic()
        self.is_capped = True

    def look(self) -> float | None:
        """Drop what is over the cap; in how many seconds to look again. None: not before SIGIO says that something was written.

        SIGIO must be blocked.
        """
        now = time.monotonic()
        took, self._looked_s = now - self._looked_s, now
        due = [self._look_at(stream, took) for stream in self._open_streams() if self.is_capped]
        growing = [seconds for seconds in due if seconds is not None]
        if not self.is_capped:
            return None
        return min(growing) if growing else self._await_write()

    def settle(self) -> str | None:
        """Drop to the cap now that nothing is written any more; `uncapped` where the file system cannot."""
        for stream in self._open_streams():
            self._punch(stream, os.fstat(stream.fd).st_size)
        return None if self.is_capped else UNCAPPED

    def _open_streams(self) -> list[_Stream]:
        for name, cap in self._caps.items():
            if name not in self._streams:
                try:
                    self._streams[name] = _Stream(os.open(name, os.O_RDWR | os.O_CLOEXEC, dir_fd=self._folder), cap)
                except OSError:
                    continue  # the child has not made it yet
        return list(self._streams.values())

    def _look_at(self, stream: _Stream, took_s: float) -> float | None:
        """In how many seconds the stream may be over its slack; None when it has not grown."""
        size = os.fstat(stream.fd).st_size
        grown, stream.size = size - stream.size, size
        if size - stream.dropped > stream.max_bytes + stream.slack_bytes:
            self._punch(stream, size)
        if grown <= 0:
            return None
        if took_s > MOST_S:
            return FIRST_S  # it was quiet until just now: how fast it is shows only next time
        room = stream.dropped + stream.max_bytes + stream.slack_bytes - size
        return min(MOST_S, max(LEAST_S, room * took_s / (grown * HASTE)))

    def _punch(self, stream: _Stream, size: int) -> None:
        stream.dropped = min(stream.dropped, size)  # the job may have cut its output itself
        block = max(BLOCK_BYTES, os.fstat(stream.fd).st_blksize)
        end = max(0, size - stream.max_bytes) // block * block
        if not self.is_capped or end <= stream.dropped:
            return
        if _libc.fallocate(stream.fd, _PUNCH_HOLE_KEEP_SIZE, 0, end) == 0:
            stream.dropped = end
        elif ctypes.get_errno() in _NEVER:
            self.is_capped = False

    def _await_write(self) -> float | None:
        """Ask for SIGIO at the next write below the directory; a look now and then where the kernel has no such notice."""
        try:
            fcntl.fcntl(self._folder, fcntl.F_NOTIFY, fcntl.DN_MODIFY)
        except OSError:
            return QUIET_S
        has_grown = any(os.fstat(stream.fd).st_size != stream.size for stream in self._streams.values())
        return FIRST_S if has_grown else None


class _Stream:
    """One file: what is kept of it, how much of it was dropped, and how long it was when last looked at."""

    def __init__(self, fd: int, max_bytes: int) -> None:
        self.fd = fd
        self.max_bytes = max_bytes
        self.slack_bytes = max(SLACK_BYTES, max_bytes // 8)
        self.dropped = 0
        self.size = 0
