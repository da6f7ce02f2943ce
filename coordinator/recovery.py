"""The recovery part of a pass: revoke what has no holder any more, and hand unfinished attempts to workers.

A worker's death is believed only on its own lock; without that proof its leases lapse by themselves. Nothing here touches a
process: the new holder reads the evidence and decides. Rule: design §5, §7; requirements R02, R15.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coordinator.leadership import Leadership
from coordinator.marks import Marks
from shared.ids import Incarnation
from shared.model.evidence import LockState
from shared.model.host import Worker
from shared.policy.lease import accept_timeout_us
from shared.policy.losses import is_suspect
from shared.policy.settle import OUT_OF_TIME
from shared.policy.workers import choose_recoverer, is_responsive
from shared.store.contract import ReadTx, Recoverable, Store, Tx
from shared.store.settling import change_after

log = logging.getLogger(__name__)

BOUND = 64
WINDOWS_MAX = 16
NOT_ACCEPTED = "not_accepted"


@dataclass(frozen=True, slots=True)
class Recovered:
    """What one run did.

    Attributes:
        taken: Attempts taken back; `handed`: those of them that a worker took over.
        other_boots: Something that another boot left is left still.
        more: Its bound cut it short.
    """

    buried: int
    revoked: int
    taken: int
    handed: int
    other_boots: bool
    more: bool


class Recovery:
    """One pass's recovery."""

    def __init__(self, store: Store, leadership: Leadership, marks: Marks, lease_us: int) -> None:
        self._store = store
        self._leadership = leadership
        self._marks = marks
        self._lease_us = lease_us

    def run(self, workers: Sequence[Worker], locks: Mapping[Incarnation, LockState], *, other_boots: bool) -> Recovered:
        """Revoke, then claim recoveries; one transaction, and none when there is nothing to do.

        Args:
            workers: Those not known to be gone.
            locks: What probing each one's lock proved.
            other_boots: Leases and timers of other boots are looked for too; in the first pass of a leader, and in those that follow
                while there are some.
        """
        dead = [worker for worker in workers if locks[worker.id] is LockState.FREE]
        live = [worker for worker in workers if locks[worker.id] is not LockState.FREE]
        if not (other_boots or dead) and not self._store.read(self._has_work):
            return Recovered(0, 0, 0, 0, other_boots=False, more=False)
        return self._store.write(lambda tx: self._recover(tx, dead, live, locks, other_boots=other_boots))

    def _has_work(self, tx: ReadTx) -> bool:
        is_found = bool(tx.recoverable(after=None, limit=1) or any(w.overdue for w in tx.workers()))
        self._marks.note(tx.skipped)
        return is_found

    def _recover(
        self,
        tx: Tx,
        dead: Sequence[Worker],
        live: Sequence[Worker],
        locks: Mapping[Incarnation, LockState],
        *,
        other_boots: bool,
    ) -> Recovered:
        self._leadership.assert_in(tx)
        revoked = 0
        if other_boots:
            revoked = tx.revoke_foreign_boots()
            other_boots = tx.carry_timers(limit=BOUND) == BOUND
        for worker in dead:
            revoked += tx.retire_worker(worker.id, reason="worker died", died=worker.identity.boot_id == tx.now.boot_id)
            log.warning("worker.died", extra={"worker": worker.id, "pid": worker.identity.pid})
        revoked += len(tx.revoke_unaccepted(accept_timeout_us=accept_timeout_us(self._lease_us)))
        held = {worker for worker, state in locks.items() if state is LockState.HELD}
        responsive = [w for w in live if is_responsive(w, tx.now, lease_us=self._lease_us, held_locks=held)]
        load = {worker.id: worker.in_use for worker in responsive}
        taken, handed = self._claim_some(tx, responsive, load)
        self._marks.note(tx.skipped)
        more = other_boots or taken >= BOUND
        return Recovered(len(dead), revoked, taken, handed, other_boots=other_boots, more=more)

    def _claim_some(self, tx: Tx, responsive: Sequence[Worker], load: dict[Incarnation, int]) -> tuple[int, int]:
        """Claim recoveries until the bound is reached; attempts that nobody here can take do not hide those behind them.

        Returns: How many were taken back, and how many of them went to a worker.
        """
        taken, handed, after = 0, 0, None
        for _ in range(WINDOWS_MAX):
            lapsed = tx.recoverable(after=after, limit=BOUND)
            for item in lapsed:
                is_taken = self._time_out(tx, item) if item.out_of_time else self._claim(tx, item, responsive, load)
                taken += is_taken
                handed += is_taken and not item.out_of_time
            if len(lapsed) < BOUND or taken >= BOUND:
                break
            after = lapsed[-1].attempt.id
        return taken, handed

    def _time_out(self, tx: Tx, item: Recoverable) -> bool:
        """End an attempt that is both lapsed and out of time, here and now: no worker is needed for that. Rule: E14, R06."""
        change = change_after(tx, item.attempt.id, OUT_OF_TIME, item.snapshot)
        return tx.time_out_lapsed(item.attempt.id, epoch_seen=item.attempt.epoch, why=OUT_OF_TIME.why, change=change)

    def _claim(self, tx: Tx, item: Recoverable, responsive: Sequence[Worker], load: dict[Incarnation, int]) -> bool:
        avoid = item.last_owner if item.revoked == NOT_ACCEPTED else None
        registration = item.snapshot.registration
        barred = tx.suspects_launching() if is_suspect(item.attempt, item.snapshot) else frozenset()
        worker = choose_recoverer(
            responsive, item.attempt.pin, load, registration=registration, avoid=avoid, barred=barred
        )
        if worker is None:
            return False
        epoch = tx.claim_recovery(
            item.attempt.id, epoch_seen=item.attempt.epoch, worker=worker, lease_us=self._lease_us
        )
        return epoch is not None
