"""The part of a pass that looks after the ready Works outside the queue: no free slot lets them start, so the start pass meets none of them.

They are looked at again when another configuration is in force, each once, and put back into the queue when their binding has left
its quarantine; a bounded number in each pass. Rule: requirements S01, F03, E02.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from coordinator.leadership import Leadership
from coordinator.marks import Marks
from shared.ids import WorkId
from shared.policy.binding import set_aside_for
from shared.policy.capacity import POOL_AGENTS, POOL_JOBS, Wait
from shared.store.active import ActiveConfig
from shared.store.contract import ReadTx, Store, Tx

BOUND = 256
"""Works put back, and Works looked at, in one run."""

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Look:
    """What a look has found.

    Attributes:
        back: Works to be put back into the queue; those that cannot be read too, which are told from there.
        waits: Works that stay outside, for another reason than they say.
        left: By pool, where the next look goes on; pools that were looked at to their end are not in it.
    """

    back: tuple[WorkId, ...]
    waits: tuple[Wait, ...]
    left: dict[str, Place | None]
    more: bool


class Aside:
    """What lies outside the queue, as one leader knows it."""

    def __init__(self, store: Store, leadership: Leadership, marks: Marks) -> None:
        self._store = store
        self._leadership = leadership
        self._marks = marks
        self._looked_under: ActiveConfig | None = None
        self._left: dict[str, Place | None] = {}

    def forget(self) -> None:
        """Somebody else led meanwhile: each is looked at again."""
        self._looked_under = None

    def run(self, active: ActiveConfig) -> bool:
        """Put back what may start again; True when the bound cut it short."""
        if active is not self._looked_under:
            self._looked_under, self._left = active, {POOL_JOBS: None, POOL_AGENTS: None}
        look = self._store.read(partial(self._look, active=active))
        if look.back or look.waits:
            self._store.write(partial(self._write, look=look))
        self._left = look.left
        return look.more

    def _look(self, tx: ReadTx, *, active: ActiveConfig) -> Look:
        back = tx.out_of_quarantine(limit=BOUND)
        is_full = len(back) == BOUND
        if active.fault is not None:  # of what cannot be read nobody knows what it binds
            return Look(tuple(back), (), self._left, more=is_full)
        waits: list[Wait] = []
        left: dict[str, Place | None] = {}
        room, quarantined = BOUND, tx.quarantined()
        for pool, after in self._left.items():
            if room == 0:
                left[pool] = after
                continue
            page = tx.set_aside(pool, after=after, limit=room)
            room -= len(page.ids)
            if page.end is not None:
                left[pool] = page.end
            stays = {work.id: set_aside_for(work, active.config, quarantined) for work in page.works}
            back += [work_id for work_id in page.ids if stays.get(work_id) is None]
            noted = {work.id: (work.reason, work.reason_limit) for work in page.works}
            waits += [Wait(work_id, *why) for work_id, why in stays.items() if why not in (None, noted[work_id])]
        self._marks.note(tx.skipped)
        return Look(tuple(back), tuple(waits), left, more=is_full or bool(left))

    def _write(self, tx: Tx, *, look: Look) -> None:
        self._leadership.assert_in(tx)
        tx.requeue(look.back)
        tx.hold_back(look.waits)
