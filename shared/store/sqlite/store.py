"""The embedded store: one door for one thread of one process.

A write is: queue, BEGIN IMMEDIATE, the store's incarnation, one Instant, the transitions, COMMIT across their boundaries, queue
released, bells. Rule: design §4; `shared.store.contract.Store`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from shared.boundary import Boundary, fsync, link
from shared.clock import Clock
from shared.errors import RefusedError, StoreUnavailableError
from shared.home import Home
from shared.model.instant import US_PER_S
from shared.store.contract import ReadTx, Tx
from shared.store.sqlite import checks, wal
from shared.store.sqlite.agents import Agents
from shared.store.sqlite.ballast import Ballast, is_full
from shared.store.sqlite.connection import Connect, Connection, Seam
from shared.store.sqlite.controls import Controls
from shared.store.sqlite.coordination import Coordination
from shared.store.sqlite.declares import Declares
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.holding import Holding
from shared.store.sqlite.place import Place, is_read_only, place_of
from shared.store.sqlite.queue import Queue, Queued, QueueLock
from shared.store.sqlite.reads import Reads
from shared.store.sqlite.registration import Registrations
from shared.store.sqlite.stops import Stops

R = TypeVar("R")
Ring = Callable[[Iterable[str]], None]

CHECKPOINT_PAGES = 1_000
WAL_BYTES_MAX = 64 * 1024 * 1024
"""Over this size any writer checkpoints: the coordinator has not for long."""

PRESENT = """SELECT (SELECT value FROM meta WHERE key = 'incarnation'), last.seq,
  (SELECT at_us FROM event WHERE seq = last.seq), (SELECT at_us FROM event WHERE seq = :seen)
  FROM (SELECT max(seq) AS seq FROM sqlite_sequence WHERE name = 'event') AS last"""
"""Which store it is, how far its changefeed has come and when, and when the event was written that was the last one seen."""


class WriteTx(Agents, Controls, Registrations, Coordination, Declares, Holding, Stops):
    """All transitions; implements `contract.Tx`."""

    def __init__(self, connection: Connection, store: SqliteStore) -> None:
        super().__init__(connection, store.clock.now(), store.ballast, store.place.time_ns)
        self._store = store

    def checkpoint_due(self) -> bool:
        """See `Tx.checkpoint_due`."""
        return self._store.checkpoint_due()


class SqliteStore:
    """Implements `contract.Store`. Made by `open_store`.

    Attributes:
        clock, place, ballast: What it was opened with.
        statements, commits: Counted since the open.
    """

    def __init__(
        self,
        home: Home,
        clock: Clock,
        place: Place,
        *,
        ring: Ring,
        wait_s: float,
        seam: Seam | None,
        queue: QueueLock | None,
        connect: Connect,
        check: bool,
    ) -> None:
        self.clock = clock
        self.place = place
        self.ballast = Ballast(home.path)
        self._path = home.store
        self._wal = home.store.with_name(f"{home.store.name}-wal")
        self._ring = ring
        self._wait_s = wait_s
        self._bound_s = wait_s
        self._seam = seam
        self._connect = connect
        self._counted = (0, 0)
        self._incarnation: int | None = None
        self._data_version: int | None = None
        self._checkpointed: tuple[bytes, int] = (b"", 0)
        self._seen = (0, 0)
        self._db = self._open(check=check)
        self._queue: QueueLock = queue or Queue(home.queue_lock, wait_s=wait_s)

    @property
    def statements(self) -> int:
        return self._counted[0] + self._db.statements

    @property
    def commits(self) -> int:
        return self._counted[1] + self._db.commits

    def write(self, fn: Callable[[Tx], R]) -> R:
        """See `Store.write`. On a full disk a transaction with an end or a hold gives the ballast up, once, and runs again."""
        tx = None
        try:
            with Queued(self._queue):
                db = self._usable()
                db.begin(writing=True)
                try:
                    self._require_same(db)
                    tx = WriteTx(db, self)
                    result = fn(tx)
                    db.commit(tx.notes.boundaries)
                    if tx.notes.last_seq:
                        self._seen = (tx.notes.last_seq, tx.now.wall_us)
                except BaseException:
                    db.rollback()
                    raise
                self._relieve(db)
        except StoreUnavailableError as error:
            ending = tx is not None and tx.notes.holds_or_ends
            if error.code == "disk_full" and ending and self.ballast.free():
                return self.write(fn)
            raise
        if tx.notes.bells:
            self._ring(tx.notes.bells)
        if tx.notes.restore_ballast:
            self.ballast.restore()
        return result

    def read(self, fn: Callable[[ReadTx], R]) -> R:
        """See `Store.read`."""
        db = self._usable()
        db.begin(writing=False)
        try:
            return fn(Reads(db, self.clock.now()))
        finally:
            db.rollback()

    def bound_waits(self, wait_us: int) -> None:
        """See `Store.bound_waits`. Holds for SQLite's own lock too, which only another program can hold."""
        self._bound_s = min(self._wait_s, wait_us / US_PER_S)
        self._queue.wait_s = self._bound_s
        self._usable().bound_waits(self._bound_s)

    def changed(self) -> bool:
        """See `Store.changed`."""
        version = self._usable().value("PRAGMA data_version")
        before, self._data_version = self._data_version, version
        return bool(version != before)

    def check_file(self) -> None:
        """See `Store.check_file`."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._file:
            raise StoreUnavailableError(
                "store_replaced",
                f"{self._path} was deleted or replaced while open",
                hint="nothing is claimed, launched or renewed any more; running jobs live on",
            )

    def checkpoint_due(self) -> bool:
        """Whether so many pages wait in the log that a checkpoint is worth while."""
        if wal.size_of(self._wal) < CHECKPOINT_PAGES * 4096:
            return False
        salts, pages = wal.frames_in(self._wal)
        return pages >= CHECKPOINT_PAGES and (salts, pages) != self._checkpointed

    def checkpoint(self) -> None:
        """See `Store.checkpoint`. Also makes the ballast again when there is space."""
        self.ballast.restore()
        if not self.checkpoint_due():
            return
        with Queued(self._queue):
            self._checkpoint(self._usable())

    def close(self) -> None:
        """See `Store.close`."""
        self._db.close()
        self._queue.close()

    def _relieve(self, db: Connection) -> None:
        if wal.size_of(self._wal) > WAL_BYTES_MAX and wal.frames_in(self._wal)[1] * 4096 > WAL_BYTES_MAX:
            self._checkpoint(db)

    def _checkpoint(self, db: Connection) -> None:
        """Under the queue lock: no commit of ours overlaps, so an old library's WAL-reset race has no window."""
        db.rows("PRAGMA wal_checkpoint(PASSIVE)")
        self._checkpointed = wal.frames_in(self._wal)

    def _usable(self) -> Connection:
        """The connection; after a failure a new one, once every page has been looked at."""
        if self._db.failure is not None:
            self._counted = (self.statements, self.commits)
            self._db.close()
            self._db.statements = self._db.commits = 0
            self._db = self._open(check=True)
        return self._db

    def _open(self, *, check: bool) -> Connection:
        db = Connection(self._path, wait_s=self._bound_s, seam=self._seam, connect=self._connect)
        try:
            checks.check_identity(db, self._path)
            db.set_pragmas()
            checks.check_schema(db)
            incarnation = checks.check_home(db, self._path, self.place, self.clock.now())
            if self._incarnation is not None and incarnation != self._incarnation:
                raise _replaced(self._incarnation, incarnation)
            if check:
                checks.check_pages(db)
        except BaseException:
            db.close()
            raise
        self._incarnation = incarnation
        found = os.stat(self._path)
        self._file = (found.st_dev, found.st_ino)
        return db

    def _require_same(self, db: Connection) -> None:
        """Refuse another store than the one opened, and one in which what this process has last seen of its changefeed is missing.

        An older copy may have gone on since, so that it is longer again: the event of that number is another one then, written at
        another time. One that retention took away tells nothing.
        """
        seen_seq, seen_at_us = self._seen
        incarnation, seq, at_us, found_at_us = db.rows(PRESENT, {"seen": seen_seq})[0]
        if incarnation != self._incarnation:
            raise _replaced(self._incarnation, incarnation)
        if (seq or 0) < seen_seq or (found_at_us is not None and found_at_us != seen_at_us):
            raise StoreUnavailableError(
                "store_regressed",
                f"the store went back in time: its last event is {seq or 0}, this process has seen {seen_seq}"
                + ("" if (seq or 0) < seen_seq else ", which is another one now"),
                hint="an older copy was put in its place; see `tenure doctor`",
            )
        self._seen = (seq or 0, at_us or 0)


def open_store(
    home: Path,
    clock: Clock,
    *,
    ring: Ring = lambda _names: None,
    wait_s: float = 5.0,
    check: bool = False,
    place: Place | None = None,
    seam: Seam | None = None,
    queue: QueueLock | None = None,
    connect: Connect = sqlite3.connect,
) -> SqliteStore:
    """Open the store of a home, after the checks.

    Args:
        ring: Called after each commit with the names to wake.
        wait_s: Bound of every wait for the queue.
        check: Also read every page (`quick_check`); for the coordinator, at its start.
        place: Where the home lies; looked up unless given.
        seam: Where a test puts faults in.
        queue: Stands in front of the write lock; the home's own queue file unless given.
        connect: Opens the library's connection.

    Raises:
        StoreUnavailableError: each of its codes but `disk_full`, `io_error` says what was found.
    """
    paths = Home(home)
    if not paths.store.is_file():
        raise StoreUnavailableError("not_a_home", f"{home} has no store", hint="`tenure init` makes one")
    place = place or place_of(home)
    checks.check_place(home, place)

    def opened() -> SqliteStore:
        return SqliteStore(
            paths, clock, place, ring=ring, wait_s=wait_s, seam=seam, queue=queue, connect=connect, check=check
        )

    try:
        return opened()
    except StoreUnavailableError as error:
        if error.code == "io_error" and is_read_only(home):
            message = (
                f"{home} lies on a file system that is mounted read-only; even a look at the store writes beside it"
            )
            raise StoreUnavailableError("io_error", message, hint="mount it writable") from error
        if error.code not in ("io_error", "disk_full") or not is_full(home):
            raise
        if Ballast(home).free():
            return opened()
        raise StoreUnavailableError("disk_full", f"the disk of {home} is full", hint="free some space") from error


def create(home: Path, clock: Clock, *, place: Place | None = None) -> None:
    """Make the store of a home; it is there completely, or not at all.

    Raises:
        RefusedError: there is one already.
        StoreUnavailableError: the home lies where no store can.
    """
    from shared.store.sqlite.migrate import make_schema  # imports sqlite-utils, which opening must not

    paths = Home(home)
    place = place or place_of(home)
    checks.check_place(home, place)
    queue = Queue(paths.queue_lock, wait_s=5.0)
    part = paths.store.with_name("store.part")
    try:
        with Queued(queue):
            if paths.store.exists():
                raise RefusedError(f"{home} has a store already")
            for leftover in (part, *(part.with_name(f"{part.name}-{end}") for end in ("wal", "shm"))):
                leftover.unlink(missing_ok=True)  # of a creation that was interrupted
            os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            connection = sqlite3.connect(part, isolation_level=None)
            try:
                make_schema(connection, place, clock.now(), part.stat().st_ino)
            finally:
                connection.close()  # the last one: moves the log into the file and removes it
            Ballast(home).restore()
            link(part, paths.store, Boundary.STORE_LINK)
            part.unlink()
            _sync_folder(home)
    finally:
        queue.close()


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fsync(fd, Boundary.HOME_SYNC)
    finally:
        os.close(fd)


def _replaced(opened: int | None, found: object) -> StoreUnavailableError:
    return StoreUnavailableError(
        "store_replaced",
        f"the store was taken over meanwhile (incarnation {found}, opened at {opened})",
        hint="start this process again",
    )
