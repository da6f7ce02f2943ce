"""What a job has written so far: its output files only grow, so a follower reads on by offset.

Of a capped output the head is a hole (`shared/process/ring.py`): offsets stay what they were, and what was dropped is known.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

OUT = "out"
"""Name of a job's standard output in the directory of its launch."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of an output.

    Attributes:
        offset: Where `data` begins; what lies between there and the offset asked for was dropped.
    """

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        """Where to read on."""
        return self.offset + len(self.data)


def read_from(path: Path, offset: int, limit: int) -> Piece:
    """At most `limit` bytes from `offset` on, or from the first that is kept; no data at the end, and while there is no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Piece(offset, b"")
    try:
        return read_open(fd, offset, limit)
    finally:
        os.close(fd)


def read_open(fd: int, offset: int, limit: int) -> Piece:
    """The same for a file that is open."""
    while True:
        kept = first_kept(fd, offset)
        data = os.pread(fd, limit, kept)
        # The head may be dropped while it is read: zeros are a job's own only where the file still has them.
        if not data or first_kept(fd, kept) == kept:
            return Piece(kept, data)


def first_kept(fd: int, offset: int) -> int:
    """The first offset from `offset` on that was not dropped; `offset` itself at the end of the file."""
    try:
        return os.lseek(fd, offset, os.SEEK_DATA)
    except OSError as fault:
        if fault.errno in {errno.ENXIO, errno.EINVAL}:  # nothing there yet; no such question for this file system
            return offset
        raise
