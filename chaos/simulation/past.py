"""Earlier commits of the store: the log is cut behind one of them, as a disk that lied about its syncs, or a restored copy, shows it.

What is left is opened by SQLite itself, which finds the last whole commit. A log that a checkpoint has copied into the database is
not cut before that, as no such set of files was ever there. Rule: design §9; https://sqlite.org/walformat.html.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from shared.store.sqlite.driver import sqlite3

_HEADER_BYTES = 32
_FRAME_BYTES = 4096 + 24
_INDEX_BYTES = 100
Mark = tuple[bytes, int]
"""The round of the log, by its salts, and how many pages were committed in it."""


class Past:
    """Knows where each commit of one history ended in the log."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._wal = store.with_name(f"{store.name}-wal")
        self._index = store.with_name(f"{store.name}-shm")
        self._marks: list[Mark] = [self._now()[0]]

    def note(self) -> bool:
        """Whether something was committed since the last time this was asked."""
        mark, _ = self._now()
        if mark == self._marks[-1]:
            return False
        self._marks.append(mark)
        return True

    @contextmanager
    def without_last(self, commits: int) -> Iterator[sqlite3.Connection | None]:
        """The store without so many of its last commits, or as few as it can lack beyond that; None when there is nothing to lack."""
        self.note()
        (salts, last), copied = self._now()
        ends = [pages for round_, pages in self._marks if round_ == salts and copied <= pages < last]
        if not ends:
            yield None
            return
        with (
            tempfile.TemporaryDirectory(dir=self._store.parent.parent) as folder,
            closing(self._cut(Path(folder) / "cut.db", ends[-commits:][0])) as older,
        ):
            yield older

    def forget(self) -> None:
        """The store is another one: what was noted is none of its commits."""
        self._marks = [self._now()[0]]

    def _cut(self, target: Path, pages: int) -> sqlite3.Connection:
        shutil.copyfile(self._store, target)
        shutil.copyfile(self._wal, target.with_name(f"{target.name}-wal"))
        os.truncate(target.with_name(f"{target.name}-wal"), _HEADER_BYTES + pages * _FRAME_BYTES)
        return sqlite3.connect(target, isolation_level=None)

    def _now(self) -> tuple[Mark, int]:
        """The last commit, and how many pages of the log a checkpoint has copied."""
        with self._index.open("rb") as file:
            index = file.read(_INDEX_BYTES)
        committed, copied = struct.unpack_from("=I", index, 16)[0], struct.unpack_from("=I", index, 96)[0]
        return (index[32:40], committed), copied
