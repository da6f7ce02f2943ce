"""The simulated queue in front of the store, and the faults put in at its seam."""

from __future__ import annotations

from collections.abc import Callable

from chaos.simulation.baton import Baton, Signal
from chaos.simulation.processes import Process
from shared.boundary import Boundary, Side, reached
from shared.errors import StoreBusyError
from shared.model.instant import US_PER_S
from shared.store.sqlite.driver import sqlite3

BUSY, IO_ERROR, FULL = 5, 10, 13


class QueueFile:
    """The queue's lock file: who holds it, and who waits."""

    def __init__(self, baton: Baton) -> None:
        self.holder: Process | None = None
        self.freed = Signal(baton)

    def free(self, process: Process) -> None:
        """Let go, if that one holds it."""
        if self.holder is process:
            self.holder = None
            self.freed.notify()


class SimulatedQueue:
    """Implements `shared.store.sqlite.queue.QueueLock`: only tries; a held lock is waited for in virtual time."""

    def __init__(self, baton: Baton, file: QueueFile, process: Process, *, wait_s: float) -> None:
        self._baton = baton
        self._file = file
        self._process = process
        self.wait_s = wait_s
        process.at_end.append(lambda: file.free(process))

    def acquire(self) -> None:
        """See `QueueLock.acquire`."""
        reached(Boundary.QUEUE_LOCK, Side.BEFORE)
        until_us = self._baton.mono_us + int(self.wait_s * US_PER_S)
        while self._file.holder is not None:
            if self._baton.mono_us >= until_us:
                raise StoreBusyError(f"the store's queue was not free within {self.wait_s:.2g} s; nothing was written")
            self._file.freed.wait(until_us)
        self._file.holder = self._process
        reached(Boundary.QUEUE_LOCK, Side.AFTER)

    def release(self) -> None:
        """See `Queue.release`."""
        reached(Boundary.QUEUE_LOCK, Side.BEFORE)
        self._file.free(self._process)
        reached(Boundary.QUEUE_LOCK, Side.AFTER)

    def close(self) -> None:
        """See `QueueLock.close`."""


class FaultSeam:
    """Implements `shared.store.sqlite.connection.Seam`: hands the baton over before each transaction, and fails as told.

    Attributes:
        fault: Asked at each point; the primary result code that the library is to give there, or None.
    """

    def __init__(self, baton: Baton, process: Process, fault: Callable[[Process, str], int | None]) -> None:
        self._baton = baton
        self._process = process
        self.fault = fault

    def at(self, point: str, sql: str) -> None:
        """See `Seam.at`."""
        if point == "statement":
            return
        if point == "begin":
            self._baton.hand_over()
        code = self.fault(self._process, f"{point} {sql}")
        if code is not None:
            error = sqlite3.OperationalError("injected")
            error.sqlite_errorcode = code
            raise error
