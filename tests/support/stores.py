"""Homes with a store in them, on any backend, and the few steps that every case of a store begins with."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from shared.clock import Clock, VirtualClock
from shared.home import create_home
from shared.ids import AttemptId, Incarnation, WorkId, attempt_directory
from shared.model.attempt import Attempt, AttemptState, Ending, FailureClass, LeaseKey, Snapshot
from shared.model.budget import Budget
from shared.model.declaration import Declaration, outcome_of
from shared.model.evidence import Pin, ProcessIdentity
from shared.model.instant import US_PER_S
from shared.model.outcome import Outcome
from shared.model.settings import Config, Settings
from shared.model.timer import TimerKind
from shared.model.work import NewWork, Reason, Work, WorkChange, WorkKind, WorkState
from shared.policy.capacity import Usage
from shared.policy.retry import Arm
from shared.store.contract import (
    Claimed,
    ClaimRefused,
    ClaimRequest,
    Recoverable,
    Registration,
    ResumeRequest,
    Store,
    Tx,
)
from shared.store.sqlite.ballast import Ballast
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.store import create, open_store
from shared.store.values import ClaimHeld
from tests.support.declarations import HANDED_OFF, TICK, WAIT, WAIT_TO_RESUME, WAITS

R = TypeVar("R")

LEASE_US = 60 * US_PER_S
ACCEPT_US = 5 * US_PER_S
LEADERSHIP_US = 15 * US_PER_S
TIMEOUT_US = 3600 * US_PER_S

SUCCEEDED = Ending(AttemptState.SUCCEEDED, 0, None, None, "S1", "ended")
FAILED = Ending(AttemptState.FAILED, 7, FailureClass.KNOWN, "exit status 7", "S1", "ended")
UNPROVEN = Ending(AttemptState.FAILED, 7, FailureClass.KNOWN, "exit status 7", None, "its tree may live")
NOTHING_RAN = Ending(AttemptState.FAILED, None, FailureClass.ADMISSION, "spec: no space left", "S0", "launch failed")
AGAIN = Arm(TimerKind.RESUME, US_PER_S, "nothing ran, 1 in a row")
COMPLETED = WorkChange(WorkState.COMPLETED, None, None, 0)
EXHAUSTED = WorkChange(WorkState.FAILED, Reason.EXHAUSTED, None, 0)
BACKED_OFF = WorkChange(WorkState.BACKOFF, None, US_PER_S, 1)
RETURNED = WorkChange(WorkState.READY, None, None, 0)


@dataclass(frozen=True)
class Backend:
    """One way to store. No case looks at its name; what a case needs beyond the contract it declares as a capability."""

    name: str
    capabilities: frozenset[str]
    create: Callable[[Path, Clock], None]
    open: Callable[..., Store]


@contextmanager
def ram_folder() -> Iterator[Path]:
    """A folder of its own, in memory where there is such a place: what a sync costs decides nothing here."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="tenure-test-", dir=memory if memory.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@cache
def _template() -> bytes:
    with ram_folder() as folder:
        create_home(folder / "home")
        create(folder / "home", VirtualClock())
        return (folder / "home" / "store.db").read_bytes()


def _create_from_template(home: Path, clock: Clock) -> None:
    """A new store for thousands of short lives: a copy of one, told that it was made here. `create` has tests of its own."""
    if not isinstance(clock, VirtualClock):
        create(home, clock)
        return
    path = home / "store.db"
    path.write_bytes(_template())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'file_inode'", (path.stat().st_ino,))
    connection.close()
    Ballast(home).restore()


SQLITE = Backend("sqlite", frozenset({"queue_file", "file"}), _create_from_template, open_store)
BACKENDS = (SQLITE,)


def identity(pid: int = 100, boot_id: str = "boot-1") -> ProcessIdentity:
    """Some process."""
    return ProcessIdentity(pid, pid * 10, boot_id, 4026531836, None)


def new_work(
    *, scope: str = "", input_: bytes | None = None, priority: int = 0, kind: WorkKind = WorkKind.RUN_ONCE
) -> NewWork:
    """Work that runs `true`."""
    return NewWork(scope, None, ("true",), (), "/", input_, "test", priority, kind=kind)


def snapshot_for(work: Work, inputs: tuple[int, ...], generation: int | None = None) -> Snapshot:
    """What a claim of that Work pins."""
    return Snapshot(
        generation,
        None,
        work.scope,
        work.pool,
        "shell",
        True,
        ("true",),
        (),
        "/",
        TIMEOUT_US,
        10 * US_PER_S,
        (),
        "never",
        inputs,
    )


def no_refusal(_usage: Usage) -> tuple[Reason, str | None] | None:
    """No limit."""
    return None


class World:
    """A home, its store, a virtual clock, a leading coordinator and workers at hand.

    Attributes:
        rung: Names whose bell was rung, in order.
    """

    def __init__(self, backend: Backend, folder: Path, clock: Clock | None = None) -> None:
        self.backend = backend
        self.home = folder / "home"
        create_home(self.home)
        self.clock: Any = clock or VirtualClock()  # cases move it; with real processes it is the host's
        self.rung: list[str] = []
        backend.create(self.home, self.clock)
        self._stores: list[Store] = []
        self.store = self.open()
        self.leader: Incarnation | None = None
        self.generation = 0
        self._inode = itertools.count(1000)

    def open(self, **options: Any) -> Store:
        """Another door to the same store, as another process has one."""
        store = self.backend.open(self.home, self.clock, ring=self._ring, wait_s=0, **options)
        self._stores.append(store)
        return store

    @contextmanager
    def outsider(self) -> Iterator[sqlite3.Connection]:
        """Another program's way into the same file, past everything that a store of ours keeps to."""
        with closing(sqlite3.connect(self.home / "store.db", isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA synchronous = OFF")
            yield connection

    def close(self) -> None:
        for store in self._stores:
            store.close()

    def _ring(self, names: Iterable[str]) -> None:
        self.rung += names

    # --- who takes part

    def worker(
        self, name: str = "worker-1", *, slots: int = 64, pid: int = 100, executors: tuple[str, ...] = ("shell@1",)
    ) -> Incarnation:
        """Register a worker."""
        owner = self.store.write(lambda tx: tx.next_incarnation(name))
        who = identity(pid, self.clock.now().boot_id)
        registration = Registration(owner, name, who, "machine", 1, next(self._inode), slots, executors)
        self.store.write(lambda tx: tx.register_worker(registration))
        return owner

    def take_lead(self, *, proven_dead: int | None = None) -> Incarnation:
        """Become the leading coordinator."""
        owner = self.store.write(lambda tx: tx.next_incarnation("coordinator"))
        leader = self.store.write(
            lambda tx: tx.take_leadership(
                owner,
                process=identity(1),
                lock_device=1,
                lock_inode=next(self._inode),
                duration_us=LEADERSHIP_US,
                proven_dead=proven_dead,
            )
        )
        assert leader is not None, "somebody else leads"
        self.leader, self.generation = owner, leader.generation
        return owner

    def as_leader(self, fn: Callable[[Tx], R]) -> R:
        """Run `fn` in one transaction as the leader, taking the lead (again) when that is needed."""
        return self.store.write(self.led(fn))

    def led(self, fn: Callable[[Tx], R]) -> Callable[[Tx], R]:
        """`fn` as the leader runs it, for a transaction of the caller's; takes the lead now when that is needed."""
        stored = self.store.read(lambda tx: tx.leader())
        now = self.clock.now()
        live = stored is not None and stored.boot_id == now.boot_id and stored.expires_mono_us > now.mono_us
        if self.leader is None or not live:
            self.take_lead()
        leader, generation = self.leader, self.generation
        assert leader is not None

        def leading(tx: Tx) -> R:
            tx.lead(leader, generation, duration_us=LEADERSHIP_US, renew_after_us=LEADERSHIP_US // 3)
            return fn(tx)

        return leading

    # --- the life of a job

    def configure(self, *budgets: Budget, **settings: Any) -> int:
        """Activate a configuration with these budgets; its generation."""
        config = Config(Settings(**settings), budgets=budgets)
        return self.store.write(lambda tx: tx.activate_config(config.to_json(), config.digest, "/tenure.toml"))

    def submit(self, *, pool: str = "jobs", **what: Any) -> WorkId:
        return self.store.write(lambda tx: tx.submit(new_work(**what), pool))

    def request(self, work_id: WorkId, worker: Incarnation, **changes: Any) -> ClaimRequest:
        """A claim that is decided on what is true now."""

        def decide(tx: Any) -> ClaimRequest:
            work = tx.work(work_id)
            active = tx.config()
            inputs = tuple(tx.pending_inputs(work_id, limit=10))
            snapshot = snapshot_for(work, inputs, None if active is None else active.number)
            budgets = () if active is None or active.body == "{}" else Config.from_json(active.body).budgets
            return ClaimRequest(work_id, work.revision, worker, snapshot, LEASE_US, no_refusal, budgets)

        return replace(self.store.read(decide), **changes)

    def try_claim(self, work_id: WorkId, worker: Incarnation, **changes: Any) -> Claimed | ClaimHeld | ClaimRefused:
        request = self.request(work_id, worker, **changes)
        return self.as_leader(lambda tx: tx.claim(request))

    def claimed(self, worker: Incarnation, work_id: WorkId | None = None) -> LeaseKey:
        """A claim that nobody accepted yet."""
        answer = self.try_claim(work_id or self.submit(), worker)
        assert isinstance(answer, Claimed), answer
        return LeaseKey(answer.attempt_id, 1, worker)

    def accepted(self, worker: Incarnation, work_id: WorkId | None = None) -> LeaseKey:
        """Accepted, its executor called."""
        key = self.claimed(worker, work_id)
        self.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
        return key

    def running(self, worker: Incarnation, work_id: WorkId | None = None) -> LeaseKey:
        """Pinned, running."""
        key = self.accepted(worker, work_id)
        self.store.write(lambda tx: tx.pin(key, self.pin(key)))
        return key

    def ended(self, worker: Incarnation, ending: Ending = SUCCEEDED, change: WorkChange = COMPLETED) -> LeaseKey:
        """Run to its end."""
        key = self.running(worker)
        self.store.write(lambda tx: tx.finish(key, ending, change))
        return key

    # --- what programs declare

    def declared(
        self, worker: Incarnation, declarations: Sequence[Declaration], work_id: WorkId | None = None
    ) -> LeaseKey:
        """Running, having declared that."""
        key = self.running(worker, work_id)
        self.store.write(lambda tx: tx.declare(key, declarations))
        return key

    def outcome(self, key: LeaseKey) -> Outcome:
        """What the attempt declared and was not applied yet."""
        return outcome_of(self.store.read(lambda tx: tx.declarations(key.attempt_id, unapplied=True)))

    def parked(
        self, worker: Incarnation, declaration: Declaration = WAIT_TO_RESUME, work_id: WorkId | None = None
    ) -> LeaseKey:
        """Parked, on that wait."""
        key = self.declared(worker, [declaration], work_id)
        outcome = self.outcome(key)
        self.store.write(lambda tx: tx.park(key, outcome, proof="S1"))
        return key

    def awaiting(self, worker: Incarnation, declaration: Declaration = WAIT) -> LeaseKey:
        """Ended, its Work waiting for the next attempt."""
        key = self.declared(worker, [declaration])
        outcome = self.outcome(key)
        self.store.write(lambda tx: tx.finish(key, HANDED_OFF, WAITS, outcome=outcome))
        return key

    def resume_request(self, attempt_id: AttemptId, worker: Incarnation) -> ResumeRequest:
        return ResumeRequest(attempt_id, self.attempt(attempt_id).epoch, worker, LEASE_US, no_refusal)

    def resumed(self, key: LeaseKey, worker: Incarnation) -> LeaseKey:
        """A parked attempt that was woken, claimed for a worker; not accepted yet."""
        request = self.resume_request(key.attempt_id, worker)
        answer = self.as_leader(lambda tx: tx.claim_resume(request))
        assert isinstance(answer, Claimed), answer
        return LeaseKey(key.attempt_id, key.epoch + 1, worker)

    def resuming(self, worker: Incarnation) -> LeaseKey:
        """Parked, woken, claimed again and accepted: nothing of its resume has run yet."""
        key = self.parked(worker)
        self.store.write(lambda tx: tx.publish(TICK))
        again = self.resumed(key, worker)
        self.store.write(lambda tx: tx.accept(again, invoke_isolated=True))
        return again

    def put_off(self, key: LeaseKey) -> LeaseKey:
        """A resume that came to nothing: its attempt is parked again."""
        self.store.write(lambda tx: tx.put_off(key, NOTHING_RAN, proof="S0", again=AGAIN))
        return key

    def take_over(self, old: LeaseKey, worker: Incarnation) -> LeaseKey:
        """Recover an attempt whose lease is not live; not accepted yet."""
        epoch = self.as_leader(
            lambda tx: tx.claim_recovery(old.attempt_id, epoch_seen=old.epoch, worker=worker, lease_us=LEASE_US)
        )
        assert epoch == old.epoch + 1, epoch
        return LeaseKey(old.attempt_id, epoch, worker)

    def recovering(self, worker: Incarnation, *, pinned: bool) -> LeaseKey:
        """An attempt whose first holder released it, taken over and accepted by `worker`."""
        first = self.running(worker) if pinned else self.accepted(worker)
        self.store.write(lambda tx: tx.release(first, reason="released"))
        key = self.take_over(first, worker)
        self.store.write(lambda tx: tx.accept(key, invoke_isolated=None))
        return key

    def pin(self, key: LeaseKey, pid: int = 500) -> Pin:
        """The pin of that epoch's launch."""
        boot = self.clock.now().boot_id
        return Pin(key.epoch, attempt_directory(key.attempt_id, key.epoch), identity(pid, boot), 11, 12)

    def release(self, key: LeaseKey) -> None:
        self.store.write(lambda tx: tx.release(key, reason="released"))

    def confirm(self, key: LeaseKey, *, epoch: int | None = None, proof: str = "S1") -> None:
        expected = key.epoch if epoch is None else epoch
        self.store.write(lambda tx: tx.confirm_stopped(key.attempt_id, expected_epoch=expected, proof=proof, by="test"))

    def fire(self, work_id: WorkId) -> None:
        """Fire the timer that the Work's last failure armed, whatever has become of it."""

        def asked(tx: Tx) -> None:
            timer = tx.last_timer(work_id)
            assert timer is not None, f"nothing ever armed a timer for {work_id}"
            tx.fire_timer(timer.id)

        self.as_leader(asked)

    # --- what is stored

    def due(self) -> list[WorkId]:
        """Works whose timer is due."""
        return [timer.work_id for timer in self.store.read(lambda tx: tx.timers_due(limit=9))]

    def ready(self, *, after: tuple[int, int] | None = None, limit: int = 64, pool: str = "jobs") -> list[Work]:
        return self.store.read(lambda tx: tx.ready(pool, after=after, limit=limit))

    def recoverable(self, *, after: AttemptId | None = None, limit: int = 64) -> list[Recoverable]:
        return self.store.read(lambda tx: tx.recoverable(after=after, limit=limit))

    def attempt(self, attempt_id: AttemptId) -> Attempt:
        found = self.store.read(lambda tx: tx.attempt(attempt_id))
        assert found is not None
        return found

    def work(self, work_id: WorkId) -> Work:
        found = self.store.read(lambda tx: tx.work(work_id))
        assert found is not None
        return found

    def everything(self) -> tuple[object, ...]:
        """What a refused transition must leave as it was."""
        return self.store.read(
            lambda tx: (
                tx.works(states=(), after=0, limit=100),
                [
                    (attempt, tx.lease(attempt.id), tx.segments(attempt.id))
                    for work in tx.works(states=(), after=0, limit=100)
                    for attempt in tx.attempts(work.id)
                ],
                tx.stop_orders(),
                [tx.cancellations(work.id) for work in tx.works(states=(), after=0, limit=100)],
                [tx.intents(work.id) for work in tx.works(states=(), after=0, limit=100)],
                [
                    tx.stream(attempt.id)
                    for work in tx.works(states=(), after=0, limit=100)
                    for attempt in tx.attempts(work.id)
                ],
                tx.workers(gone=True),
                tx.workers(),
                tx.leader(),
                tx.usage(),
                tx.events(after=0, limit=10_000),
            )
        )
