"""Taking over a store that was copied, restored or moved: it becomes this home's own, and nothing opened before can write any more.

Rule: design §4 ("a home that was copied, restored or moved").
"""

from __future__ import annotations

from pathlib import Path

from shared.boundary import Boundary
from shared.clock import Clock
from shared.errors import RefusedError, StoreUnavailableError
from shared.home import Home
from shared.store.sqlite import checks
from shared.store.sqlite.ballast import Ballast
from shared.store.sqlite.connection import Connection
from shared.store.sqlite.place import Place, place_of
from shared.store.sqlite.queue import Queue, Queued
from shared.store.sqlite.quiet import require_quiet
from shared.store.sqlite.registration import Registrations

WAIT_S = 5.0
REASON = "store adopted"

SET_IDENTITY = "UPDATE meta SET value = ? WHERE key = ?"
RAISE_INCARNATION = "UPDATE meta SET value = value + 1 WHERE key = 'incarnation' RETURNING value"
END_LEADERSHIP = "UPDATE leader SET expires_mono_us = 0"


def adopt(home: Path, clock: Clock, *, place: Place | None = None) -> int:
    """Make the store this home's own and return its new incarnation: who led or worked before is gone, their leases are revoked.

    Raises:
        RefusedError: it is this home's own already, or somebody still runs here.
        StoreUnavailableError: no store, another schema, damaged, or on a network file system.
        StoreBusyError: its queue was held for too long.
    """
    paths = Home(home)
    place = place or place_of(home)
    if not paths.store.is_file():
        raise StoreUnavailableError("not_a_home", f"{home} has no store", hint="`tenure init` makes one")
    checks.check_place(home, place)
    queue = Queue(paths.queue_lock, wait_s=WAIT_S)
    try:
        with Queued(queue):
            require_quiet(paths, to="adopt the store")
            return _adopt(paths, clock, place)
    finally:
        queue.close()


def _adopt(paths: Home, clock: Clock, place: Place) -> int:
    db = Connection(paths.store, wait_s=WAIT_S)
    try:
        checks.check_identity(db, paths.store)
        checks.check_schema(db)
        checks.check_pages(db)
        if checks.how_moved(db, paths.store, place) is None:
            raise RefusedError(f"{paths.store} is this home's own already: there is nothing to adopt")
        db.rows("PRAGMA journal_mode = WAL")
        db.set_pragmas()
        db.begin(writing=True)
        try:
            incarnation = Adoption(db, clock.now(), Ballast(paths.path), place.time_ns).run(paths.store, place)
            db.commit([Boundary.MIGRATE_COMMIT])
        except BaseException:
            db.rollback()
            raise
    finally:
        db.close()
    Ballast(paths.path).restore()
    return incarnation


class Adoption(Registrations):
    """The one transaction of it."""

    def run(self, store: Path, place: Place) -> int:
        """Write it; the caller commits."""
        for key, value in (("file_inode", store.stat().st_ino), ("machine_id", place.machine_id or "")):
            self._db.rows(SET_IDENTITY, (value, key))
        incarnation = int(self._db.value(RAISE_INCARNATION))
        self._db.rows(END_LEADERSHIP)
        for worker in self.workers():
            self.retire_worker(worker.id, reason=REASON)
        self._event("store.adopted", {"incarnation": incarnation})
        return incarnation
