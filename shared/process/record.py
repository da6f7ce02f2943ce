"""Evidence files of an attempt: written whole or not at all, in space taken while there was some.

Standard library only: the shim loads this file.
"""

from __future__ import annotations

import json
import os

from shared import boundary
from shared.boundary import Boundary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    RecordBoundaries = tuple[Boundary, Boundary, Boundary]  # rename, sync of the file, sync of the directory

RECORD_BYTES = 4096
CHILD_AT = (Boundary.CHILD_RENAME, Boundary.CHILD_SYNC, Boundary.CHILD_DIRECTORY_SYNC)
EXIT_AT = (Boundary.EXIT_RENAME, Boundary.EXIT_SYNC, Boundary.EXIT_DIRECTORY_SYNC)


def reserve(directory: int, name: str) -> None:
    """Take the space of a record now: a full disk then fails a launch before its gate, and no end is lost to it later.

    Raises:
        OSError: there is no space.
    """
    fd = os.open(f"{name}.tmp", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        os.posix_fallocate(fd, 0, RECORD_BYTES)
    finally:
        os.close(fd)


def publish(directory: int, name: str, record: dict[str, Any], at: RecordBoundaries) -> None:
    """Make a record visible at once and durable before return; may be repeated after any error.

    Renamed before it is synced, so that on a journalling filesystem both syncs share one commit. A power cut in between can
    leave a torn file, which is read as unreadable, never as absent.
    """
    data = json.dumps(record).encode().ljust(RECORD_BYTES)
    fd = os.open(f"{name}.tmp", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        written = os.pwrite(fd, data, 0)
        if written != len(data):
            raise OSError(f"{name}: only {written} of {len(data)} bytes were written")
        boundary.rename(f"{name}.tmp", name, at[0], src_dir_fd=directory, dst_dir_fd=directory)
        boundary.fsync(fd, at[1])
        boundary.fsync(directory, at[2])
    finally:
        os.close(fd)


def encode(
    *,
    status: int | None,
    ran: bool,
    error: str | None,
    stop: str | None,
    tree_empty: bool,
    oom: bool = False,
    output: str | None = None,
) -> dict[str, Any]:
    """The content of `exit.json`; keys are those of `ExitRecord`."""
    return {
        "status": status,
        "ran": ran,
        "error": error,
        "stop": stop,
        "tree_empty": tree_empty,
        "oom": oom,
        "output": output,
    }
