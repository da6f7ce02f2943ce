"""What a pass leaves behind for people: its record, and why ready Works wait.

Both ride on the next commit the coordinator makes anyway, and are written on their own at the latest one poll later, so that
they cost a busy system nothing and an idle one almost nothing. Rule: requirements C04, K05; design §13.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

from coordinator.leadership import Leadership
from shared.clock import Clock
from shared.ids import WorkId
from shared.model.host import PASSES_KEPT, PassRecord
from shared.model.instant import US_PER_S
from shared.policy.capacity import Wait
from shared.store.contract import Store, Tx, UnreadableRow

DELAY_US = US_PER_S
PASSES_MAX = 256


class Notes:
    """Notes not yet written."""

    def __init__(self, store: Store, clock: Clock, leadership: Leadership) -> None:
        self._store = store
        self._clock = clock
        self._leadership = leadership
        self._waits: dict[WorkId, Wait] = {}
        self._passes: deque[PassRecord] = deque(
            maxlen=PASSES_KEPT
        )  # a store that is busy for long keeps no more either
        self._offset_us: int | None = None
        self._unreadable: dict[UnreadableRow, bool] = {}
        self._due_us: int | None = None

    def add(self, waits: Sequence[Wait]) -> None:
        """Keep for the next commit why these wait."""
        self._waits.update((wait.work_id, wait) for wait in waits)
        self._set_due()

    def add_pass(self, record: PassRecord) -> None:
        """Keep a pass for the next commit."""
        self._passes.append(record)
        self._set_due()

    def mark_clock(self, offset_us: int | None) -> None:
        """Keep for the next commit how the clocks lay to each other when a pass began, a jump before it having been told.
        None: forget that.
        """
        self._offset_us = offset_us

    def mark_unreadable(self, row: UnreadableRow) -> None:
        """Mark a row with the next commit."""
        self._unreadable[row] = True
        self._set_due()

    def unmark_readable(self, row: UnreadableRow) -> None:
        """Take a row's mark off with the next commit."""
        self._unreadable[row] = False
        self._set_due()

    def _set_due(self) -> None:
        if self._due_us is None and (self._waits or self._passes or self._unreadable):
            self._due_us = self._clock.now().mono_us + DELAY_US

    def started(self, work_ids: Collection[WorkId]) -> None:
        """Drop why these waited: they start."""
        for work_id in work_ids:
            self._waits.pop(work_id, None)

    @property
    def due_us(self) -> int | None:
        """Monotonic instant at which they are written on their own; None when there are none."""
        return self._due_us

    def write_into(self, tx: Tx) -> None:
        """Write them into a transaction in which leadership was asserted; call `written` once it is committed."""
        if self._waits:
            tx.hold_back(list(self._waits.values()))
        for record in self._passes:
            tx.record_pass(record)
        if self._unreadable:
            tx.mark_unreadable([row for row, is_marked in self._unreadable.items() if is_marked])
            tx.unmark_readable([row for row, is_marked in self._unreadable.items() if not is_marked])
        if self._offset_us is not None:
            tx.mark_clock(offset_us=self._offset_us)

    def written(self) -> None:
        """Forget what was just committed."""
        self._waits.clear()
        self._passes.clear()
        self._offset_us = None
        self._unreadable.clear()
        self._due_us = None

    def flush_if_due(self) -> None:
        """Write them alone when they waited long enough. Raises LeadershipLostError."""
        if self._due_us is not None and (self._clock.now().mono_us >= self._due_us or len(self._passes) >= PASSES_MAX):
            self.flush()

    def flush(self) -> None:
        """Write them alone. Raises LeadershipLostError."""

        def write(tx: Tx) -> None:
            self._leadership.assert_in(tx)
            self.write_into(tx)

        if self._due_us is not None:
            self._store.write(write)
            self.written()
