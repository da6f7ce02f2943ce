"""Noticing that the wall clock jumped, also while nobody led, and telling it once. Rule: design §5; requirement K02."""

from __future__ import annotations

import logging

from coordinator.leadership import Leadership
from coordinator.notes import Notes
from shared.model.host import ClockMark
from shared.model.instant import US_PER_MS, Instant
from shared.policy.jump import jump_us, offset_us
from shared.store.contract import Store, Tx

log = logging.getLogger(__name__)


class ClockWatch:
    """Compares each look at the clocks with the last pass; the store keeps that mark for the next leader."""

    def __init__(self, store: Store, leadership: Leadership, notes: Notes) -> None:
        self._store = store
        self._leadership = leadership
        self._notes = notes
        self._mark: ClockMark | None = None
        self._is_known = False

    def forget(self) -> None:
        """The mark in the store is the truth again: somebody else led meanwhile, or what was written of it is unknown."""
        self._is_known = False

    def jump(self, now: Instant) -> int | None:
        """How far the wall clock jumped since the last pass; None: it did not. Reads the store only when it has to."""
        if not self._is_known:
            self._mark = self._store.read(lambda tx: tx.clock_mark())
            self._is_known = True
        return jump_us(self._mark, now)

    def record(self, now: Instant, by_us: int) -> None:
        """Tell a jump durably, before anything of the pass that follows from it. Raises LeadershipLostError."""

        def write(tx: Tx) -> None:
            self._leadership.assert_in(tx)
            tx.record_clock_jump(by_us, offset_us=offset_us(now))

        self.forget()
        self._notes.mark_clock(None)  # of before the jump: written after it, it would make the jump new again
        self._store.write(write)
        self.passed(now)
        log.warning("clock.jumped", extra={"by_ms": by_us // US_PER_MS})

    def passed(self, now: Instant) -> None:
        """A pass begins now: the next look compares with this one."""
        self._mark, self._is_known = ClockMark(now.boot_id, offset_us(now)), True
        self._notes.mark_clock(offset_us(now))
