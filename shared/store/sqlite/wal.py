"""How full the write-ahead log is, read from its file.

Its size does not tell: the file stays allocated and is written again from the start. A frame belongs to the present round when it
carries the header's salts, and those come first, so the count is a binary search. Opening the log's file is safe; opening the
shared-memory file beside it would drop this process's locks. Rule: research "store" §0 (8), §2; https://sqlite.org/fileformat2.html#walformat
"""

from __future__ import annotations

import os
from pathlib import Path

_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24


def size_of(path: Path) -> int:
    """Bytes of the log's file; 0 when there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def frames_in(path: Path) -> tuple[bytes, int]:
    """The salts of the present round (empty when there is none) and the number of pages written in it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b"", 0
    try:
        header = os.pread(fd, _HEADER_BYTES, 0)
        if len(header) < _HEADER_BYTES:
            return b"", 0
        frame_bytes = int.from_bytes(header[8:12], "big") + _FRAME_HEADER_BYTES
        salts = header[16:24]
        low, high = 0, (os.fstat(fd).st_size - _HEADER_BYTES) // frame_bytes
        while low < high:
            middle = (low + high) // 2
            if os.pread(fd, 8, _HEADER_BYTES + middle * frame_bytes + 8) == salts:
                low = middle + 1
            else:
                high = middle
        return salts, low
    finally:
        os.close(fd)
