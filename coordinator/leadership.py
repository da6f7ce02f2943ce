"""Leadership: who coordinates. The generation alone is authority; the lock file only makes a death visible at once, and the watch on
the leader's process only says when to look at that.

Rule: design §5; requirement L01.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from shared.clock import Clock
from shared.errors import LeadershipLostError
from shared.ids import Incarnation
from shared.model.evidence import LockState, ProcessIdentity
from shared.model.host import Leader
from shared.model.instant import Instant
from shared.policy.lease import LEADER_LEASE_US
from shared.store.contract import Store, Tx

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A coordinator incarnation that may lead; its lock file is held before it asks."""

    id: Incarnation
    process: ProcessIdentity
    lock_device: int
    lock_inode: int


class DeathWatcher(Protocol):
    """Wakes the coordinator when a process ends that somebody here watches. A wake is a hint: each may be lost."""

    def watch(self, key: str, identity: ProcessIdentity) -> bool: ...
    def unwatch(self, key: str) -> None: ...


class Leadership:
    """Takes, renews, checks and gives up the leader row for one candidate."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        candidate: Candidate,
        probe: Callable[[str, int, int], LockState],
        watcher: DeathWatcher,
        on_lead: Callable[[], None],
        *,
        lease_us: int = LEADER_LEASE_US,
    ) -> None:
        """Take the doors.

        Args:
            probe: Probes an incarnation's lock file by (incarnation, device, inode).
            watcher: While this one stands by, it watches the process of the leader.
            on_lead: Called each time leadership was taken.
            lease_us: How long it lasts unless renewed; renewed each third.
        """
        self._store = store
        self._clock = clock
        self._candidate = candidate
        self._probe = probe
        self._watcher = watcher
        self._watched: Incarnation | None = None
        self._on_lead = on_lead
        self._lease_us = lease_us
        self._announced: int | None = None
        self.generation: int | None = None
        self.renewal_due_us = 0

    def seek(self) -> bool:
        """Lead if nobody else does: a row that is not live, or whose own lock file is proven free. True: leading now.

        Commits: one transaction, when there is a chance.
        """
        row = self._store.read(lambda tx: tx.leader())
        proven_dead = None
        if row is not None and self._is_live(row, self._clock.now()):
            # First: whoever dies from here on wakes this one, and whoever died before has let its lock go.
            self._watch(row)
            if self._probe(row.owner, row.lock_device, row.lock_inode) is not LockState.FREE:
                self._stand_by(row)
                return False
            proven_dead = row.generation
        me = self._candidate
        leader = self._store.write(
            lambda tx: tx.take_leadership(
                me.id,
                process=me.process,
                lock_device=me.lock_device,
                lock_inode=me.lock_inode,
                duration_us=self._lease_us,
                proven_dead=proven_dead,
            )
        )
        if leader is None:
            return False
        self._unwatch()
        self.generation = leader.generation
        self.renewal_due_us = self._clock.now().mono_us + self._lease_us // 3
        self._on_lead()
        log.info("leader.taken", extra={"coordinator": me.id, "generation": leader.generation})
        return True

    def assert_in(self, tx: Tx) -> None:
        """First call of every transaction of a leader. Raises LeadershipLostError."""
        if self.generation is None:
            raise LeadershipLostError(0, None)
        tx.lead(self._candidate.id, self.generation, duration_us=self._lease_us, renew_after_us=self._lease_us // 3)

    def renew_if_due(self, now: Instant) -> None:
        """Renew in a transaction of its own when a third of the lease has passed. Raises LeadershipLostError."""
        if now.mono_us >= self.renewal_due_us:
            self._store.write(self.assert_in)
            self.renewal_due_us = now.mono_us + self._lease_us // 3

    def lost(self, error: LeadershipLostError) -> None:
        """Stop writing and stand by; workers' leases are untouched."""
        log.warning("leader.lost", extra={"coordinator": self._candidate.id, "why": str(error)})
        self.generation = None

    def resign(self) -> None:
        """Give the row back at a graceful end."""
        generation, self.generation = self.generation, None
        if generation is not None:
            self._store.write(lambda tx: tx.resign(self._candidate.id, generation))

    def _is_live(self, row: Leader, now: Instant) -> bool:
        return row.boot_id == now.boot_id and row.expires_mono_us > now.mono_us

    def _watch(self, row: Leader) -> None:
        if row.owner in (self._watched, self._candidate.id):
            return
        self._unwatch()
        if row.process is not None and self._watcher.watch(row.owner, row.process):
            self._watched = row.owner

    def _unwatch(self) -> None:
        if self._watched is not None:
            self._watcher.unwatch(self._watched)
            self._watched = None

    def _stand_by(self, row: Leader) -> None:
        if self._announced != row.generation:
            self._announced = row.generation
            log.info("leader.standby", extra={"leader": row.owner, "pid": row.pid, "generation": row.generation})
