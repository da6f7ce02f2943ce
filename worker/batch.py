"""Changes that one step commits together, each with what to do once it is known to have happened, or not.

One refused change never undoes the others: it is taken out and the rest is written again. After an unknown COMMIT nothing is
assumed: each change is looked up by its own key. Rule: design §4 (IndeterminateError), §7 step 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shared.errors import IndeterminateError, NotWrittenError, RefusedError
from shared.store.contract import ReadTx, Store, Tx

Undone = RefusedError | NotWrittenError
"""Why nothing of a change was written: the state says no, or its commit never came to the store, which says nothing of the state."""


@dataclass(frozen=True, slots=True)
class Change:
    """One fenced transition and its consequences.

    Attributes:
        apply: The transition; may run more than once.
        done: Called once, after the commit that holds it.
        undone: Called once instead, when the store refused it, or its commit did not reach the store: nothing of it was written.
        happened: After an unknown commit: whether the store holds it and it is still in force.
    """

    apply: Callable[[Tx], None]
    done: Callable[[], None]
    undone: Callable[[Undone], None]
    happened: Callable[[ReadTx], bool]


class Batch:
    """Collects changes and commits them together.

    Changes whose commit is unknown and cannot be looked up wait here and are looked up again by the next `commit`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pending: list[Change] = []
        self._unknown: list[Change] = []

    def add(self, change: Change) -> None:
        """Queue a change for the next commit."""
        self._pending.append(change)

    def __bool__(self) -> bool:
        return bool(self._pending or self._unknown)

    def commit(self) -> None:
        """Write everything queued in one transaction, and settle what became of it.

        Raises:
            StoreBusyError, StoreUnavailableError: nothing was written; the changes stay queued.
        """
        self._look_up()
        while self._pending:
            writing = _Writing(self._pending)
            try:
                self._store.write(writing)
            except RefusedError as error:
                self._pending = writing.without_reached()
                writing.reached.undone(error)
            except IndeterminateError:
                self._unknown, self._pending = writing.changes, []
                self._look_up()
            else:
                self._pending = []
                for change in writing.changes:
                    change.done()

    def _look_up(self) -> None:
        while self._unknown:
            change = self._unknown[0]
            if self._store.read(change.happened):
                change.done()
            else:
                change.undone(NotWrittenError("its commit did not reach the store"))
            self._unknown.pop(0)


class _Writing:
    """One transaction over several changes, which remembers the one it had come to."""

    def __init__(self, changes: list[Change]) -> None:
        self.changes = changes
        self._reached = 0

    def __call__(self, tx: Tx) -> None:
        for index, change in enumerate(self.changes):
            self._reached = index
            change.apply(tx)

    @property
    def reached(self) -> Change:
        return self.changes[self._reached]

    def without_reached(self) -> list[Change]:
        return self.changes[: self._reached] + self.changes[self._reached + 1 :]
