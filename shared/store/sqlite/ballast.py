"""A preallocated file that is given up when the disk is full, so that ends and holds can still be written.

On a full disk SQLite can write nothing, not even a DELETE. Claims stay off until the file is there again. Rule: design §4.
"""

from __future__ import annotations

import os
from pathlib import Path

from shared.boundary import Boundary, rename, unlink

BALLAST_BYTES = 1024 * 1024
OPENING_BYTES = 64 * 1024
_SPARE_FACTOR = 4  # restore only when that many times the ballast is free, else the next write gives it up again


def is_full(folder: Path) -> bool:
    """Whether its disk has too little left for a store to be opened (its shared index takes 32 KiB)."""
    free = os.statvfs(folder)
    return free.f_bavail * free.f_frsize < OPENING_BYTES


class Ballast:
    """The file `ballast` of a home."""

    def __init__(self, home: Path) -> None:
        self._path = home / "ballast"
        self._part = home / "ballast.part"

    def is_there(self) -> bool:
        """Whether claims may be made."""
        return self._path.exists()

    def free(self) -> bool:
        """Give its space up, and that of one that was never finished; False when there is nothing (more) to give."""
        given = False
        for path in (self._path, self._part):
            try:
                unlink(path, Boundary.BALLAST_FREE)
            except FileNotFoundError:
                continue
            given = True
        return given

    def restore(self) -> bool:
        """Make it again when there is space enough; True when it is there."""
        if self.is_there():
            return True
        free = os.statvfs(self._path.parent)
        if free.f_bavail * free.f_frsize < BALLAST_BYTES * _SPARE_FACTOR:
            return False
        try:
            self._make()
        except OSError:
            return self.is_there()  # another process made it, or the space is gone again
        return True

    def _make(self) -> None:
        """Renamed when it is whole, never linked: under a second name its space would outlive the giving up."""
        fd = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, BALLAST_BYTES)
            rename(self._part, self._path, Boundary.BALLAST_RENAME)
        except OSError:
            self._part.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)
