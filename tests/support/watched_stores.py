"""A real store whose commits are written down, and which fails when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from shared.errors import IndeterminateError, StoreBusyError
from shared.store.contract import ReadTx, Store, Tx
from tests.support import contract

R = TypeVar("R")

TRANSITIONS = contract.TRANSITIONS - contract.TRANSITIONS_OF_AGENTS
Journal = list[tuple[str, str]]


class _LostBeforeCommitError(Exception):
    """Undoes a transaction whose COMMIT, as its caller sees it, was not answered."""


class _Recorder:
    """A transaction that notes which transitions were called."""

    def __init__(self, tx: Tx, calls: list[str]) -> None:
        self._tx = tx
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        if name in TRANSITIONS:
            self._calls.append(name)
        return getattr(self._tx, name)


class WatchedStore:
    """A store that journals its commits, and fails when told.

    Attributes:
        journal: (who, transition) of every commit, in order; shared by a site.
        unanswered: The next commit that holds this transition is not answered; the flag says whether it reached the store.
        busy_writes: How many of the next writes find the store busy.
        busy_look_ups: How many reads find it busy, counted from the next commit that is not answered.
        afterwards: By transition, what happens once, right after the commit that holds it.
    """

    def __init__(self, store: Store, who: str, journal: Journal) -> None:
        self._store = store
        self._who = who
        self.journal = journal
        self.afterwards: dict[str, Callable[[], object]] = {}
        self.heal()

    def heal(self) -> None:
        """No more failures."""
        self.unanswered: tuple[str, bool] | None = None
        self.busy_writes = 0
        self.busy_look_ups = 0

    def write(self, fn: Callable[[Tx], R]) -> R:
        """See `Store.write`."""
        if self.busy_writes:
            self.busy_writes -= 1
            raise StoreBusyError("busy, as told")
        calls: list[str] = []

        def recorded(tx: Tx) -> R:
            calls.clear()
            result = fn(cast(Tx, _Recorder(tx, calls)))
            if self._is_unanswered(calls, reached=False):
                raise _LostBeforeCommitError
            return result

        try:
            result = self._store.write(recorded)
        except _LostBeforeCommitError:
            self.unanswered = None
            raise IndeterminateError("not answered, as told") from None
        self.journal += [(self._who, call) for call in calls]
        for call in calls:
            self.afterwards.pop(call, lambda: None)()
        if self._is_unanswered(calls, reached=True):
            self.unanswered = None
            raise IndeterminateError("not answered, as told")
        return result

    def _is_unanswered(self, calls: list[str], *, reached: bool) -> bool:
        return self.unanswered is not None and self.unanswered[0] in calls and self.unanswered[1] is reached

    def read(self, fn: Callable[[ReadTx], R]) -> R:
        """See `Store.read`."""
        if self.busy_look_ups and self.unanswered is None:
            self.busy_look_ups -= 1
            raise StoreBusyError("busy, as told")
        return self._store.read(fn)

    def bound_waits(self, wait_us: int) -> None:
        """See `Store.bound_waits`."""
        self._store.bound_waits(wait_us)

    def changed(self) -> bool:
        """See `Store.changed`."""
        return self._store.changed()

    def check_file(self) -> None:
        """See `Store.check_file`."""
        self._store.check_file()

    def checkpoint(self) -> None:
        """See `Store.checkpoint`."""
        self._store.checkpoint()

    def close(self) -> None:
        """See `Store.close`."""
        self._store.close()
