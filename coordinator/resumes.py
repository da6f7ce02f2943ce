"""The part of a pass that resumes parked attempts whose wait is over. They come before new starts: they have begun already.

A resume needs a slot like a start. Until it gets one its Work stays `waiting`, and says what holds it back. Rule: O08, C01, C04.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from coordinator.leadership import Leadership
from coordinator.notes import Notes
from shared.ids import Incarnation, WorkId
from shared.model.evidence import LockState
from shared.model.host import Worker
from shared.model.work import Permit, Reason, Work
from shared.policy.capacity import ReadyWork, Start, Wait, choose_starts, refusal_in
from shared.policy.limits import limits_of
from shared.policy.workers import eligible
from shared.store.active import ActiveConfig
from shared.store.contract import Claimed, ResumeRequest, Store, Tx, Woken

log = logging.getLogger(__name__)

BOUND = 256
"""Woken attempts looked at in a pass, the longest woken first."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """What one run did. `raced`: something had changed since it was read, and the next pass must follow at once."""

    resumed: int
    raced: bool


class Resumes:
    """One pass's resumes, under one configuration."""

    def __init__(self, store: Store, leadership: Leadership, notes: Notes, active: ActiveConfig) -> None:
        self._store = store
        self._leadership = leadership
        self._notes = notes
        self._config = active.config
        self._budgets = () if active.fault is not None else active.config.budgets
        self._limits = limits_of(active.config)

    def run(self, workers: Sequence[Worker], locks: Mapping[Incarnation, LockState]) -> Resumed:
        """Resume what may be resumed; one transaction, and none when nothing is."""
        woken = self._store.read(lambda tx: tx.woken(limit=BOUND))
        if not woken:
            return Resumed(0, raced=False)
        now, usage = self._store.read(lambda tx: (tx.now, tx.usage()))
        held = {worker for worker, state in locks.items() if state is LockState.HELD}
        slots = eligible(workers, now, lease_us=self._config.settings.lease_us, held_locks=held)
        waits = [wait for one in woken if (wait := _held(one.work)) is not None]
        free = [one for one in woken if _held(one.work) is None]
        choice = choose_starts([_as_ready(one) for one in free], usage, self._limits, slots)
        by_work = {one.work.id: one for one in free}
        refused: list[Wait] = []
        raced = False
        if choice.starts:
            refused, raced = self._store.write(partial(self._claim, starts=choice.starts, woken=by_work))
        known = {one.work.id: one.work.reason for one in woken}
        self._notes.started({start.work_id for start in choice.starts} - {wait.work_id for wait in refused})
        told = [*waits, *choice.waits, *refused]
        self._notes.add([wait for wait in told if known.get(wait.work_id) is not wait.reason])
        return Resumed(len(choice.starts) - len(refused), raced=raced)

    def _claim(self, tx: Tx, *, starts: Sequence[Start], woken: Mapping[WorkId, Woken]) -> tuple[list[Wait], bool]:
        self._leadership.assert_in(tx)
        refused: list[Wait] = []
        raced = False
        for start in starts:
            one = woken[start.work_id]
            request = ResumeRequest(
                one.attempt.id,
                one.attempt.epoch,
                start.worker,
                self._config.settings.lease_us,
                partial(refusal_in, _as_ready(one), limits=self._limits),
                self._budgets,
            )
            answer = tx.claim_resume(request)
            if isinstance(answer, Claimed):
                log.info("attempt.woken", extra={"attempt": one.attempt.id, "worker": start.worker})
            elif answer.reason is not None:
                refused.append(Wait(start.work_id, answer.reason, answer.limit))
            else:
                raced = True
        return refused, raced


def _held(work: Work) -> Wait | None:
    """Who holds it although what it waited for has come: a person, or a budget until a person lets it go; None: nobody."""
    if work.hold is not None:
        return Wait(work.id, Reason.HOLD, None)
    if work.reason is Reason.OVER_BUDGET and Permit.BUDGET not in work.permits:
        return Wait(work.id, Reason.OVER_BUDGET, work.reason_limit)
    return None


def _as_ready(one: Woken) -> ReadyWork:
    """The parked attempt as a start would be looked at: by what it pinned, never by what is configured now. Rule: E09."""
    attempt, snapshot = one.attempt, one.snapshot
    return ReadyWork(
        one.work.id,
        one.work.revision,
        attempt.scope,
        attempt.pool,
        snapshot.registration,
        unexcluded=False,
        resolved=True,
    )
