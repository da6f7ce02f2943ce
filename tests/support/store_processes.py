"""What the processes of the multi-process cases do. Run as `python -m tests.support.store_processes ROLE HOME …`.

Each prints what it did as one JSON line at its end. They use the host's own clock.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from shared.clock import SystemClock
from shared.errors import LeadershipLostError, StoreBusyError
from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import LeaseKey
from shared.model.instant import US_PER_S
from shared.model.work import Work, WorkState
from shared.policy.capacity import Limits, ReadyWork, refusal_in
from shared.store.contract import Claimed, ClaimRequest, Store, Tx
from tests.support.stores import BACKENDS, EXHAUSTED, FAILED, LEASE_US, identity, new_work, snapshot_for

LIMITS = Limits({"jobs": 3}, {})
POLL_S = 0.002  # between looks at the store; decides nothing


def schedule(store: Store, home: Path) -> list[str]:
    """A coordinator that snatches the lead whenever it can, and claims what is ready up to the limit."""
    me = store.write(lambda tx: tx.next_incarnation("coordinator"))
    claimed: list[str] = []
    while True:
        open_works = store.read(lambda tx: tx.works(states=(WorkState.READY, WorkState.RUNNING), after=0, limit=1))
        if not open_works:
            return claimed

        def snatch(tx: Tx) -> Sequence[str]:
            leader = tx.leader()
            dead = None if leader is None else leader.generation
            taken = tx.take_leadership(
                me, process=identity(1), lock_device=1, lock_inode=1, duration_us=US_PER_S, proven_dead=dead
            )
            return [] if taken is None else _claim_some(tx, me, taken.generation)

        try:
            claimed += store.write(snatch)
        except (LeadershipLostError, StoreBusyError):
            continue
        time.sleep(POLL_S)


def _claim_some(tx: Tx, me: Incarnation, generation: int) -> Sequence[str]:
    tx.lead(me, generation, duration_us=US_PER_S, renew_after_us=0)
    workers = [worker.id for worker in tx.workers()]
    answers = [
        tx.claim(_request(tx, work, workers[work.number % len(workers)]))
        for work in tx.ready("jobs", after=None, limit=4)
    ]
    return [answer.attempt_id for answer in answers if isinstance(answer, Claimed)]


def _request(tx: Tx, work: Work, worker: Incarnation) -> ClaimRequest:
    ready = ReadyWork(work.id, work.revision, work.scope, "jobs", "shell", unexcluded=False, resolved=True)
    snapshot = snapshot_for(work, tuple(tx.pending_inputs(work.id, limit=9)))
    return ClaimRequest(
        work.id, work.revision, worker, snapshot, LEASE_US, lambda usage: refusal_in(ready, usage, LIMITS)
    )


def work(store: Store, home: Path, owner: str) -> list[str]:
    """A worker that accepts and ends what it is given, until nothing is open."""
    me = Incarnation(owner)
    ended: list[str] = []
    while store.read(lambda tx: tx.works(states=(WorkState.READY, WorkState.RUNNING), after=0, limit=1)):
        for assignment in store.read(lambda tx: tx.assignments(me, limit=16)):
            _run(store, assignment.key)
            ended.append(assignment.key.attempt_id)
        time.sleep(POLL_S)
    return ended


def _run(store: Store, key: LeaseKey) -> None:
    store.write(lambda tx: tx.accept(key, invoke_isolated=True))
    store.write(lambda tx: tx.finish(key, FAILED, EXHAUSTED))


def adopt(store: Store, home: Path, attempt: str, owner: str) -> list[int | None]:
    """Try to take one attempt over at epoch 1, once everybody is there."""
    _meet(home, owner)
    epoch = store.write(lambda tx: _adopt(tx, AttemptId(attempt), Incarnation(owner)))
    return [epoch]


def _adopt(tx: Tx, attempt_id: AttemptId, owner: Incarnation) -> int | None:
    leader = tx.leader()
    assert leader is not None
    tx.lead(leader.owner, leader.generation, duration_us=60 * US_PER_S, renew_after_us=0)
    return tx.claim_recovery(attempt_id, epoch_seen=1, worker=owner, lease_us=LEASE_US)


def submit(store: Store, home: Path, name: str, total: str) -> list[str]:
    """Submit as fast as it goes until there are `total` Works; the ids of this process's own."""
    _meet(home, name)
    mine: list[str] = []
    while True:
        work_id = store.write(lambda tx: tx.submit(new_work(), "jobs"))
        if int(work_id[1:]) > int(total):
            return mine
        mine.append(work_id)


def insist(store: Store, home: Path, name: str, count: str) -> list[str]:
    """Submit as fast as it goes; say when `count` are made, and go on until told that it is enough. The ids of its own."""
    _meet(home, name)
    mine: list[str] = []
    while not (home / "enough").exists():
        mine.append(store.write(lambda tx: tx.submit(new_work(), "jobs")))
        if len(mine) == int(count):
            (home / f"made-{name}").touch()
    return mine


def hold(store: Store, home: Path) -> list[str]:
    """Stop in the middle of a transaction, holding queue and write lock, until killed."""

    def forever(tx: Tx) -> WorkId:
        work_id = tx.submit(new_work(), "jobs")
        (home / "held").touch()
        while True:
            time.sleep(1)
            assert work_id

    return [store.write(forever)]


def _meet(home: Path, name: str) -> None:
    """Say that this process is ready, and wait for the word to begin."""
    (home / f"ready-{name}").touch()
    while not (home / "go").exists():
        time.sleep(POLL_S)


ROLES = {"schedule": schedule, "work": work, "adopt": adopt, "submit": submit, "insist": insist, "hold": hold}

if __name__ == "__main__":
    role, backend_name, folder, *rest = sys.argv[1:]
    backend = next(backend for backend in BACKENDS if backend.name == backend_name)
    opened: Store = backend.open(Path(folder), SystemClock(), wait_s=20.0)
    print(json.dumps(ROLES[role](opened, Path(folder), *rest)))  # type: ignore[operator]
    opened.close()
