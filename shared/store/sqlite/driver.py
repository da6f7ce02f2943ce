"""The one SQLite library of this process; nobody else imports one.

Two SQLite libraries in one process drop each other's locks and lose committed rows, so this takes the very module that
sqlite-utils takes (a test compares the two), without paying for importing sqlite-utils. Rule: research "store" §0, findings 1–3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
else:
    try:
        import pysqlite3 as sqlite3
    except ImportError:
        import sqlite3

__all__ = ["VERSION_MIN", "has_wal_reset_race", "library_version", "sqlite3"]

VERSION_MIN = (3, 37, 0)
"""STRICT tables; RETURNING is older."""

_RACE_FIXED = ((3, 44, 6), (3, 50, 7), (3, 51, 3))


def library_version() -> tuple[int, int, int]:
    """Version of the library in use."""
    major, minor, patch = sqlite3.sqlite_version_info[:3]
    return major, minor, patch


def has_wal_reset_race(version: tuple[int, int, int]) -> bool:
    """True when a checkpoint that overlaps a commit may lose it; then only the queue's order of checkpoints protects.

    Fixed in 3.51.3, and in the maintained lines 3.50.7 and 3.44.6.
    """
    for fixed in _RACE_FIXED[:-1]:
        if version[:2] == fixed[:2]:
            return version < fixed
    return version < _RACE_FIXED[-1]
