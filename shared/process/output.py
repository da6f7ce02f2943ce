"""What a job has written so far: its output files only grow, so a follower reads on by offset."""

from __future__ import annotations

import os
from pathlib import Path


def read_from(path: Path, offset: int, limit: int) -> bytes:
    """At most `limit` bytes from `offset` on; empty at the end, and while there is no file yet."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(fd, limit, offset)
    finally:
        os.close(fd)
