"""Transitions by which workers and coordinators come and go."""

from __future__ import annotations

from shared.boundary import Boundary
from shared.errors import LeadershipLostError
from shared.ids import AttemptId, Incarnation, incarnation
from shared.model.evidence import ProcessIdentity
from shared.model.host import Leader
from shared.store.contract import Registration
from shared.store.sqlite.columns import json_text
from shared.store.sqlite.losses import Losses
from shared.wake import COORDINATOR

INSERT_WORKER = """INSERT INTO worker (id, name, number, pid, start_ticks, boot_id, pid_ns, pidfs_ino, machine_id, lock_device,
    lock_inode, slots, executors, state, beat_mono_us, registered_at_us)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'live', ?, ?)"""
DRAIN_WORKER = "UPDATE worker SET state = 'draining' WHERE id = ? AND state = 'live' RETURNING id"
RETIRE_WORKER = """UPDATE worker SET state = 'gone', gone_at_us = :wall, gone_reason = :reason
  WHERE id = :owner AND state <> 'gone' RETURNING id"""
OWNED_LEASES = "SELECT attempt_id FROM lease WHERE owner = ? AND revoked_at_us IS NULL ORDER BY attempt_id"
GIVE_BACK_ORDERS = """UPDATE stop_order SET owner = NULL, expires_mono_us = 0
  WHERE closed_at_us IS NULL AND owner = ?"""
INSERT_LEADER = """INSERT INTO leader (id, generation, owner, pid, boot_id, expires_mono_us, lock_device, lock_inode, start_ticks,
    pid_ns, pidfs_ino)
  VALUES (1, 1, :owner, :pid, :boot, :expires, :device, :inode, :start_ticks, :pid_ns, :pidfs_ino) RETURNING *"""
TAKE_LEADERSHIP = """UPDATE leader SET generation = generation + 1, owner = :owner, pid = :pid, boot_id = :boot,
    expires_mono_us = :expires, lock_device = :device, lock_inode = :inode, start_ticks = :start_ticks, pid_ns = :pid_ns,
    pidfs_ino = :pidfs_ino
  WHERE generation = :dead OR boot_id <> :boot OR expires_mono_us <= :mono RETURNING *"""
LEADING = """SELECT expires_mono_us FROM leader
  WHERE owner = :owner AND generation = :generation AND boot_id = :boot AND expires_mono_us > :mono"""
RENEW_LEADERSHIP = """UPDATE leader SET expires_mono_us = max(expires_mono_us, :expires)
  WHERE owner = :owner AND generation = :generation AND boot_id = :boot AND expires_mono_us > :mono RETURNING generation"""
RESIGN = """UPDATE leader SET expires_mono_us = 0
  WHERE owner = ? AND generation = ? AND expires_mono_us <> 0 RETURNING generation"""


class Registrations(Losses):
    """See `worker_contract.WorkerTransitions`, `leader_contract.LeaderTransitions`."""

    def next_incarnation(self, name: str) -> Incarnation:
        """See `Tx.next_incarnation`."""
        self._note(Boundary.REGISTER_COMMIT)
        return incarnation(name, self._count(f"incarnation:{name}"))

    def register_worker(self, registration: Registration) -> None:
        """See `Tx.register_worker`."""
        self._require_time_namespace()
        identity = registration.identity
        number = int(registration.id.rpartition(".")[2])
        self._db.rows(
            INSERT_WORKER,
            (
                registration.id,
                registration.name,
                number,
                identity.pid,
                identity.start_ticks,
                identity.boot_id,
                identity.pid_ns,
                identity.pidfs_ino,
                registration.machine_id,
                registration.lock_device,
                registration.lock_inode,
                registration.slots,
                json_text(registration.executors),
                self._now.mono_us,
                self._now.wall_us,
            ),
        )
        self._event("worker.registered", {"worker": registration.id, "pid": identity.pid})
        self._note(Boundary.REGISTER_COMMIT, COORDINATOR)

    def drain_worker(self, owner: Incarnation) -> None:
        """See `Tx.drain_worker`."""
        self._note(Boundary.REGISTER_COMMIT, COORDINATOR)
        if self._db.one(DRAIN_WORKER, (owner,)) is not None:
            self._event("worker.draining", {"worker": owner})

    def retire_worker(self, owner: Incarnation, *, reason: str, died: bool = False) -> int:
        """See `Tx.retire_worker`."""
        self._note(Boundary.REGISTER_COMMIT, COORDINATOR)
        if died:
            self._count_losses(owner)
        if self._db.one(RETIRE_WORKER, {"owner": owner, "wall": self._now.wall_us, "reason": reason}) is not None:
            self._event("worker.gone", {"worker": owner, "reason": reason})
        self._db.rows(GIVE_BACK_ORDERS, (owner,))
        owned = [AttemptId(row[0]) for row in self._db.rows(OWNED_LEASES, (owner,))]
        for attempt_id in owned:
            self._revoke(attempt_id, reason)
        return len(owned)

    def take_leadership(
        self,
        owner: Incarnation,
        *,
        process: ProcessIdentity,
        lock_device: int,
        lock_inode: int,
        duration_us: int,
        proven_dead: int | None,
    ) -> Leader | None:
        """See `Tx.take_leadership`."""
        self._require_time_namespace()
        params = self._clock | {
            "owner": owner,
            "pid": process.pid,
            "start_ticks": process.start_ticks,
            "pid_ns": process.pid_ns,
            "pidfs_ino": process.pidfs_ino,
            "device": lock_device,
            "inode": lock_inode,
            "expires": self._now.mono_us + duration_us,
            "dead": proven_dead,
        }
        before = self.leader()
        row = self._db.one(INSERT_LEADER if before is None else TAKE_LEADERSHIP, params)
        if row is None:
            return before if before is not None and before.owner == owner else None  # it was committed after all
        self._event("leader.taken", {"owner": owner, "generation": row["generation"]})
        self._note(Boundary.LEADER_COMMIT)
        return self.leader()

    def lead(self, owner: Incarnation, generation: int, *, duration_us: int, renew_after_us: int) -> None:
        """See `Tx.lead`."""
        params = self._clock | {"owner": owner, "generation": generation, "expires": self._now.mono_us + duration_us}
        expires = self._db.value(LEADING, params)
        if expires is None:
            raise self._leadership_lost(generation)
        if expires - self._now.mono_us < duration_us - renew_after_us:
            self._note(Boundary.LEADER_COMMIT)
            if self._db.one(RENEW_LEADERSHIP, params) is None:
                raise self._leadership_lost(generation)
        self._leading, self._generation = owner, generation

    def resign(self, owner: Incarnation, generation: int) -> None:
        """See `Tx.resign`."""
        self._note(Boundary.LEADER_COMMIT)
        if self._db.one(RESIGN, (owner, generation)) is not None:
            self._event("leader.resigned", {"owner": owner, "generation": generation})

    def _leadership_lost(self, generation: int) -> LeadershipLostError:
        current = self.leader()
        return LeadershipLostError(generation, None if current is None else current.generation)
