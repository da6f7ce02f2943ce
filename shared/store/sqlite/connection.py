"""One checked connection: pragmas read back, begin and commit, and every error of the library translated here, once.

Rule: design §4, §11; research "store" §5, §9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from shared.boundary import Boundary
from shared.boundary import commit as commit_at
from shared.errors import FenceViolationError, IndeterminateError, StoreBusyError, StoreUnavailableError, TenureError
from shared.store.sqlite.driver import sqlite3

Row = sqlite3.Row


class DamagedRow(sqlite3.Row):
    """A row of an answer in which some text is no text: such a column holds the bytes instead."""


Params = Sequence[object] | dict[str, object]

STATEMENTS_CACHED = 512

PRAGMAS: tuple[tuple[str, int], ...] = (
    ("synchronous", 2),  # FULL: a launch intent must survive power loss
    ("foreign_keys", 1),
    ("recursive_triggers", 1),  # makes OR REPLACE fire the delete triggers
    ("wal_autocheckpoint", 0),  # checkpoints happen under the queue lock only
    ("mmap_size", 0),
    ("trusted_schema", 0),
    ("journal_size_limit", 64 * 1024 * 1024),
)
"""Set at each open and read back."""

# Primary result codes: https://sqlite.org/rescode.html
_BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _CONSTRAINT, _NOTADB = 5, 6, 8, 10, 11, 13, 14, 19, 26
_READONLY_DBMOVED = 1032

_UNAVAILABLE = {
    _READONLY: ("io_error", "the store cannot be written"),
    _IOERR: ("io_error", "the disk refused to read or write the store"),
    _CORRUPT: ("corrupt", "the store is damaged"),
    _FULL: ("disk_full", "the disk of the store is full"),
    _CANTOPEN: ("io_error", "the store cannot be opened"),
    _NOTADB: ("corrupt", "the store is no database"),
}

_KNOWN_AT_COMMIT = (_BUSY, _LOCKED, _FULL, _CONSTRAINT)
"""Errors of COMMIT that say for certain that nothing was committed; a full disk never got the commit's last frame."""


Connect = Callable[..., sqlite3.Connection]
"""Opens the library's connection: its own `connect`, or one that keeps those that are closed for the next who asks."""


class Seam(Protocol):
    """Where faults are put in: told of each point, it may raise an error of the library, or anything else."""

    def at(self, point: str, sql: str) -> None:
        """`point`: `begin`, `statement`, `commit` (before COMMIT is sent) or `committed` (its answer is known)."""


class Connection:
    """A connection that speaks our errors. Used by the thread that opened it.

    Attributes:
        statements, commits: Counted since the open.
        failure: What made it unusable; None while it is fine. A failed connection is closed and opened again.
    """

    def __init__(
        self, path: Path, *, wait_s: float, seam: Seam | None = None, connect: Connect = sqlite3.connect
    ) -> None:
        """Open an existing database; never creates one.

        Args:
            wait_s: How long SQLite itself waits for a lock; the queue comes first.
        """
        self.statements = 0
        self.commits = 0
        self.failure: TenureError | None = None
        self._seam = seam
        try:
            self.raw = connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                timeout=wait_s,
                cached_statements=STATEMENTS_CACHED,
            )
        except sqlite3.Error as error:
            raise translated(error, f"open {path}") from error
        self.raw.row_factory = sqlite3.Row
        self._cursor = self.raw.cursor()  # one for all: a statement is run to its end before the next
        self._accounted = self.raw.total_changes  # rows written so far that went with a commit or were given up

    def set_pragmas(self) -> None:
        """Set what must hold on this connection and read it back. Raises StoreUnavailableError."""
        for name, wanted in PRAGMAS:
            self.rows(f"PRAGMA {name} = {wanted}")
            found = self.value(f"PRAGMA {name}")
            if found != wanted:
                raise StoreUnavailableError("library", f"SQLite keeps {name} at {found}, wanted {wanted}")

    def bound_waits(self, wait_s: float) -> None:
        """Let SQLite wait at most this long for its lock from now on."""
        self.rows(f"PRAGMA busy_timeout = {int(wait_s * 1000)}")

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """Run one statement to its end; its rows."""
        self.statements += 1
        try:
            if self._seam is not None:
                self._seam.at("statement", sql)
            return self._cursor.execute(sql, params).fetchall()
        except sqlite3.Error as error:
            if _is_no_text(error) and sql.lstrip().startswith("SELECT"):
                return self._damaged_rows(sql, params)
            raise self._noted(translated(error, sql)) from error

    def _damaged_rows(self, sql: str, params: Params) -> list[Row]:
        """The same rows once more, with bytes where there is no text: one bad row must not hide all others."""
        with reading_damage(self.raw):
            return self.raw.execute(sql, params).fetchall()

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """The first row, or None."""
        found = self.rows(sql, params)
        return found[0] if found else None

    def value(self, sql: str, params: Params = ()) -> Any:
        """The first column of the first row; None when there is no row."""
        found = self.rows(sql, params)
        return found[0][0] if found else None

    def begin(self, *, writing: bool) -> None:
        """Begin a transaction; a writing one has the write lock from here on.

        Raises:
            FenceViolationError: since the last one something was written outside of any, and so committed without a boundary.
        """
        sql = "BEGIN IMMEDIATE" if writing else "BEGIN"
        if self.raw.total_changes != self._accounted:
            raise FenceViolationError("something was written outside a transaction")
        self.statements += 1
        try:
            if self._seam is not None:
                self._seam.at("begin", sql)
            self._cursor.execute(sql)
        except sqlite3.Error as error:
            raise self._noted(translated(error, sql)) from error

    def commit(self, at: Sequence[Boundary]) -> None:
        """Commit, crossing these boundaries.

        Raises:
            FenceViolationError: something was written and no boundary is named, so no drill could kill there; nothing is kept.
            IndeterminateError: COMMIT was sent and failed in a way that leaves its outcome open; this connection has failed.
        """
        if not at and self.raw.total_changes != self._accounted:
            raise FenceViolationError("a write crosses no boundary: its transition names none")
        self.statements += 1
        try:
            if self._seam is not None:
                self._seam.at("commit", "COMMIT")
            commit_at(self.raw, at)
            if self._seam is not None:
                self._seam.at("committed", "COMMIT")
        except sqlite3.Error as error:
            known = translated(error, "COMMIT")
            if _primary(error) in _KNOWN_AT_COMMIT:
                raise self._noted(known) from error
            self.failure = known
            raise IndeterminateError(f"whether the commit happened is unknown: {error}") from error
        self.commits += 1
        self._accounted = self.raw.total_changes

    def rollback(self) -> None:
        """Give up the open transaction; nothing when SQLite has done so already. What went wrong before it counts, so it never raises."""
        try:
            if self.raw.in_transaction:
                self._cursor.execute("ROLLBACK")
            self._accounted = self.raw.total_changes  # it counts what was given up too
        except sqlite3.Error as error:
            self.failure = self.failure or translated(error, "ROLLBACK")

    def close(self) -> None:
        """Close it; a no-op the second time."""
        self.raw.close()

    def _noted(self, error: TenureError) -> TenureError:
        if error.code in ("io_error", "corrupt", "store_replaced"):
            self.failure = error
        return error


@contextmanager
def reading_damage(raw: sqlite3.Connection) -> Iterator[None]:
    """Meanwhile the rows of this connection are `DamagedRow`s."""
    raw.row_factory, raw.text_factory = DamagedRow, _text_or_bytes
    try:
        yield
    finally:
        raw.row_factory, raw.text_factory = sqlite3.Row, str


def _text_or_bytes(found: bytes) -> str | bytes:
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found


def _is_no_text(error: sqlite3.Error) -> bool:
    """The driver's own complaint, which has no code of the library: what it read is no text."""
    return _primary(error) == 0 and isinstance(error, sqlite3.OperationalError)


def translated(error: sqlite3.Error, sql: str) -> TenureError:
    """Our error for one of the library's. A statement that the database refuses for any other reason is our own bug."""
    code = _primary(error)
    if code in (_BUSY, _LOCKED):
        return StoreBusyError("another program holds the store's write lock")
    if getattr(error, "sqlite_errorcode", 0) == _READONLY_DBMOVED:
        return StoreUnavailableError("store_replaced", "the store's file was moved or deleted while open")
    if _is_no_text(error):
        code = _CORRUPT
    if code in _UNAVAILABLE:
        kind, message = _UNAVAILABLE[code]
        return StoreUnavailableError(kind, f"{message} ({error})", hint=_HINTS.get(kind))
    return FenceViolationError(f"the store refused a statement of ours: {error}: {' '.join(sql.split())[:200]}")


_HINTS = {
    "corrupt": "keep the file as it is, run `tenure store check`, and restore a backup",
    "disk_full": "free some space; nothing was written",
}


def _primary(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
