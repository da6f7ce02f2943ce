"""A store through several handles used in turn, whose writes may meet a fault: what every caller then has to do is done here.

A write that nothing is known to be kept of is done again. One whose COMMIT was not answered is looked up first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import pytest

from shared.errors import IndeterminateError, StoreBusyError, StoreUnavailableError
from shared.store.contract import ReadTx, Tx
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.store import SqliteStore, WriteTx
from tests.support import contract
from tests.support.stores import World
from tests.support.transitions import contents

R = TypeVar("R")

BUSY, IOERR, FULL = 5, 10, 13
TRANSITIONS = contract.TRANSITIONS - contract.TRANSITIONS_OF_AGENTS


@dataclass
class Fault:
    """One error of the library at the n-th point of that name, once."""

    point: str
    code: int
    countdown: int = 0
    spent: bool = False

    def at(self, point: str, sql: str) -> None:
        """See `Seam.at`."""
        if point != self.point or self.spent:
            return
        if self.countdown > 0:
            self.countdown -= 1
            return
        self.spent = True
        error = sqlite3.OperationalError(f"injected at {point}: {sql[:60]}")
        error.sqlite_errorcode = self.code
        raise error


class _InterruptedError(Exception):
    """Whoever wrote gave up in the middle."""


class RoughStore:
    """Stands where a `Store` is expected.

    Attributes:
        fault: What the next write meets; None: nothing.
        met: Faults that were met, by point and whether the caller was told for certain.
        done: Transitions that were committed, by name.
    """

    def __init__(self, world: World, handles: int) -> None:
        self._world = world
        self._handles = [self._open() for _ in range(handles)]
        self._turn = 0
        self.fault: Fault | None = None
        self.met: Counter[str] = Counter()
        self.done: Counter[str] = Counter()

    def write(self, fn: Callable[[Tx], R]) -> R:
        """See `Store.write`; faults are met, looked up, tried again."""
        fault, self.fault = self.fault, None
        self._turn += 1
        if fault is None:
            return self._write(fn, [])
        before = contents(self._world)
        ran: list[tuple[WriteTx, R]] = []
        self._handle._seam = self._handle._db._seam = fault
        try:
            result = self._write(fn, ran)
        except IndeterminateError:
            return self._look_up(fn, fault, ran[-1], before)
        except (StoreBusyError, StoreUnavailableError):
            if not fault.spent:
                raise
            self.met[f"{fault.point}: known"] += 1
            assert contents(self._world) == before, "what is told to have failed was kept"
        else:
            if fault.spent:  # the ballast's space was used, and nobody had to be told
                self.met["ballast given up"] += 1
                assert not self._handle.ballast.is_there(), "a success was told though the write had failed"
            return result
        finally:
            self._handle._seam = self._handle._db._seam = None
        return self._write(fn, [])

    def _look_up(
        self, fn: Callable[[Tx], R], fault: Fault, last: tuple[WriteTx, R], before: dict[str, list[tuple[object, ...]]]
    ) -> R:
        self._handle._seam = self._handle._db._seam = None
        self._turn += 1  # by another handle than the one that does not know
        reached = fault.point == "committed"
        tx, result = last
        seq = tx.notes.last_seq
        if seq:
            assert bool(self.read(lambda tx: tx.events(after=seq - 1, limit=1))) == reached
        if not reached:
            assert contents(self._world) == before
            self.met["commit: unknown, was not"] += 1
            return self._write(fn, [])
        self.met["commit: unknown, was"] += 1
        return result

    def _write(self, fn: Callable[[Tx], R], ran: list[tuple[WriteTx, R]]) -> R:
        calls: list[str] = []

        def noted(tx: Tx) -> R:
            calls.clear()
            result = fn(cast(Tx, _Noting(tx, calls)))
            assert isinstance(tx, WriteTx)
            ran.append((tx, result))
            return result

        result = self._handle.write(noted)
        self.done.update(calls)
        return result

    def interrupt(self, fn: Callable[[Tx], object]) -> None:
        """Run `fn` in a transaction whose writer gives up at the end: nothing is kept."""
        before = contents(self._world)

        def interrupted(tx: Tx) -> None:
            fn(tx)
            raise _InterruptedError

        with pytest.raises(_InterruptedError):
            self._handle.write(interrupted)
        assert contents(self._world) == before

    def contend(self, fn: Callable[[Tx], R]) -> R:
        """Write while each of the other handles tries to, in the middle of it: they are refused."""

        def contended(tx: Tx) -> R:
            result = fn(tx)
            for other in self._handles:
                if other is not self._handle:
                    with pytest.raises(StoreBusyError):
                        other.write(lambda tx: tx.next_incarnation("worker-0"))
            return result

        return self._write(contended, [])

    def reopen(self) -> None:
        """Close the handle whose turn it is, and open another."""
        self._handle.close()
        self._handles[self._turn % len(self._handles)] = self._open()

    def read(self, fn: Callable[[ReadTx], R]) -> R:
        """See `Store.read`."""
        return self._handle.read(fn)

    def rows(self, sql: str) -> list[Any]:
        """What a query finds."""
        return self._handle._db.rows(sql)

    @property
    def _handle(self) -> SqliteStore:
        return self._handles[self._turn % len(self._handles)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)

    def _open(self) -> SqliteStore:
        opened = self._world.open()
        assert isinstance(opened, SqliteStore)
        return opened


class _Noting:
    """A transaction that notes which transitions came to their end."""

    def __init__(self, tx: Tx, calls: list[str]) -> None:
        self._tx = tx
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tx, name)
        if name not in TRANSITIONS:
            return found

        def noted(*args: Any, **kwargs: Any) -> Any:
            result = found(*args, **kwargs)
            self._calls.append(name)
            return result

        return noted
