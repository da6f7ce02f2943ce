"""Who is up on a home right now: the rows of the store, checked against the locks that a death lets go of at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shared.model.evidence import LockState
from shared.model.host import Leader, Worker
from shared.model.instant import US_PER_S, Instant
from shared.process.filelock import probe
from shared.store.contract import ReadTx, Store

SILENCE_US = 60 * US_PER_S
"""A worker whose lock cannot be probed counts as there while its last sign of life is younger than this."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """Who is there.

    Attributes:
        leader: The leading coordinator; None when nobody leads, or the row is of a dead one.
        workers: Those that live, by name; `draining` ones too.
    """

    leader: Leader | None
    workers: tuple[Worker, ...]

    def missing(self) -> str | None:
        """What has to be started before anything can run, in words; None when nothing is missing."""
        if self.leader is None and not self.workers:
            return "nothing is up"
        if self.leader is None:
            return "no coordinator is up"
        return None if self.workers else "no worker is up"


@dataclass(frozen=True, slots=True)
class Rows:
    """What the store says about it, read in one snapshot."""

    leader: Leader | None
    workers: tuple[Worker, ...]
    now: Instant


def read_rows(tx: ReadTx) -> Rows:
    """Read in the caller's snapshot."""
    return Rows(tx.leader(), tuple(tx.workers()), tx.now)


def judge(rows: Rows, run_dir: Path) -> Attendance:
    """Probe the locks of those the store names."""
    leader = rows.leader
    if leader is not None and not _leads(leader, rows.now, run_dir):
        leader = None
    return Attendance(leader, tuple(worker for worker in rows.workers if _is_there(worker, rows.now, run_dir)))


def attendance(store: Store, run_dir: Path) -> Attendance:
    """Read and probe. Raises what `Store.read` raises."""
    return judge(store.read(read_rows), run_dir)


def _leads(leader: Leader, now: Instant, run_dir: Path) -> bool:
    if leader.boot_id != now.boot_id or leader.expires_mono_us <= now.mono_us:
        return False
    return probe(run_dir / f"{leader.owner}.lock", leader.lock_device, leader.lock_inode) is not LockState.FREE


def _is_there(worker: Worker, now: Instant, run_dir: Path) -> bool:
    if worker.identity.boot_id != now.boot_id:
        return False
    lock = probe(run_dir / f"{worker.id}.lock", worker.lock_device, worker.lock_inode)
    if lock is LockState.UNPROVEN:
        return now.mono_us - worker.beat_mono_us < SILENCE_US
    return lock is LockState.HELD
