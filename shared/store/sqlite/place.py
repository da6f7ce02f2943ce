"""Where a store lies: its file system, its machine, its time namespace. Facts that decide whether it may be opened here."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

NETWORK_FILESYSTEMS = {
    0x6969: "NFS",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB",
    0x65735546: "FUSE",
    0x01021997: "9P",
    0x00C36400: "Ceph",
    0x0BD00BD0: "Lustre",
    0x47504653: "GPFS",
    0x7461636F: "OCFS2",
    0x01161970: "GFS2",
    0x5346414F: "AFS",
}
"""`statfs` types on which another host may write the same file: SQLite's locks and its shared memory fail there."""

_STATFS_BYTES = 256  # more than any `struct statfs`


@dataclass(frozen=True, slots=True)
class Place:
    """What is true of the folder a store lies in, and of this process.

    Attributes:
        filesystem: `f_type` of `statfs`.
        machine_id: None when the host has none.
        time_ns: Inode of this process's time namespace; monotonic time means nothing in another one.
    """

    filesystem: int
    machine_id: str | None
    time_ns: int


def place_of(folder: Path) -> Place:
    """Look. Raises OSError when the folder cannot be looked at."""
    return Place(_filesystem_type(folder), _machine_id(), _time_namespace())


def is_read_only(folder: Path) -> bool:
    """Whether nothing can be written where it lies, whoever asks."""
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def _filesystem_type(folder: Path) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if libc.statfs(os.fsencode(folder), buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))
    return ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF


def _machine_id() -> str | None:
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _time_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/time").st_ino
    except OSError:
        return 0  # a kernel without time namespaces has one time
