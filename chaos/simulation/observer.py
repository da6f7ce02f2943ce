"""A look at the store from outside: no process of the history, so it crosses no boundary and meets no harm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from shared.clock import Clock
from shared.store.contract import ReadTx
from shared.store.sqlite.connection import Connect, Connection
from shared.store.sqlite.reads import Reads

R = TypeVar("R")

LAST_SEQ = "SELECT seq FROM sqlite_sequence WHERE name = 'event'"


class Observer:
    """Reads; see `shared.store.contract.Store.read`."""

    def __init__(self, home: Path, clock: Clock, connect: Connect) -> None:
        self._clock = clock
        self._db = Connection(home / "store.db", wait_s=0, connect=connect)

    def read(self, see: Callable[[ReadTx], R]) -> R:
        """Read one snapshot: it needs no transaction, as everything stands still meanwhile."""
        return see(Reads(self._db, self._clock.now()))

    def last_seq(self) -> int:
        """The last event that is committed; 0: none yet."""
        return int(self._db.value(LAST_SEQ) or 0)

    def close(self) -> None:
        """Give the connection back."""
        self._db.close()
