"""One home in one process: its store, who leads, one worker, and jobs that are moved by hand through their transitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from chaos.crowd.population import FREE_SLOTS, FULL_SCOPES, Population
from coordinator.coordinator import Coordinator
from coordinator.gates import ApprovalGate, Gates
from coordinator.leadership import Candidate, Leadership
from shared.clock import Clock
from shared.home import create_home
from shared.ids import AttemptId, Incarnation, WorkId, attempt_directory, work_of
from shared.model.attempt import AttemptState, Ending, FailureClass, LeaseKey
from shared.model.budget import Budget, Per, Period
from shared.model.declaration import Declaration, outcome_of
from shared.model.evidence import LockState, Pin, ProcessIdentity
from shared.model.instant import US_PER_S
from shared.model.intent import Delivered
from shared.model.settings import Binding, Config, ScopeConfig, Settings
from shared.model.stream import Place, Stretch, Took
from shared.model.timer import TimerKind
from shared.model.work import NewWork, WorkChange, WorkState
from shared.policy.binding import resolve
from shared.policy.capacity import Usage
from shared.store.contract import Claimed, ClaimRefused, ClaimRequest, ReadTx, Registration, Tx
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.store import SqliteStore, create, open_store
from shared.store.values import ClaimHeld

R = TypeVar("R")

DAY_US = 86_400 * US_PER_S
LEASE_US = DAY_US
APPROVED = "approved"
FAILING = "failing"
"""A binding in quarantine, and the scope that all those lie in that take it from there."""
SUCCEEDED = Ending(AttemptState.SUCCEEDED, 0, None, None, "S1", "ended")
FAILED = Ending(AttemptState.FAILED, 7, FailureClass.KNOWN, "exit status 7", "S1", "ended")
COMPLETED = WorkChange(WorkState.COMPLETED, None, None, 0)


def config_for(population: Population) -> Config:
    """What is configured: full scopes, room for a few more jobs, a binding that a person approves, budgets."""
    scopes = [ScopeConfig(f"full/{number}", 1) for number in range(FULL_SCOPES)]
    scopes.append(ScopeConfig(FAILING, binding=FAILING))
    budgets = [Budget(unit, Decimal(10**9), Per.ALL, Period.DAY) for unit in ("turns", "attempts", "usd")]
    for number in range(population.budgets - len(budgets)):
        scopes.append(ScopeConfig(f"quiet/{number}"))
        budgets.append(Budget("turns", Decimal(10), Per.SCOPE, Period.DAY, f"quiet/{number}"))
    return Config(
        Settings(job_concurrency=FULL_SCOPES + FREE_SLOTS, lease_us=LEASE_US),
        tuple(scopes),
        (Binding(APPROVED, ("true",), approval=True), Binding(FAILING, ("false",))),
        tuple(budgets),
    )


class Site:
    """A home with a coordinator and a worker that are moved by hand.

    Attributes:
        raw: The library's own connection of `store`, to count on.
        worker: The worker's incarnation; its lock counts as held.
        coordinator: Leads.
    """

    def __init__(self, home: Path, clock: Clock, config: Config) -> None:
        create_home(home)
        create(home, clock)
        self.home = home
        self.clock = clock
        self._config = config
        self.raw: sqlite3.Connection
        self.store = self._open()
        self._pids = itertools.count(500)
        self.store.write(lambda tx: tx.activate_config(config.to_json(), config.digest, str(home / "tenure.toml")))
        self.store.write(lambda tx: tx.quarantine_binding(FAILING, by="uid 1000", reason="it fails"))
        self.worker = self._register()
        me = self.store.write(lambda tx: tx.next_incarnation("coordinator"))
        self._leadership = Leadership(
            self.store, clock, Candidate(me, self._process(1), 1, 1), self._probe, self, lambda: None, lease_us=LEASE_US
        )
        self.coordinator = Coordinator(self.store, clock, self._leadership, self._probe, self, Gates([ApprovalGate()]))

    def _open(self) -> SqliteStore:
        def connect(*args: Any, **options: Any) -> sqlite3.Connection:
            self.raw = sqlite3.connect(*args, **options)
            return self.raw

        return open_store(self.home, self.clock, connect=connect)

    def _register(self) -> Incarnation:
        store = self.store
        me = store.write(lambda tx: tx.next_incarnation("worker-1"))
        registration = Registration(me, "worker-1", self._process(100), "machine", 1, 1, 64, ("shell@1",))
        store.write(lambda tx: tx.register_worker(registration))
        return me

    def _process(self, pid: int) -> ProcessIdentity:
        return ProcessIdentity(pid, pid * 10, self.clock.now().boot_id, 4026531836, None)

    def _probe(self, _who: str, _device: int, _inode: int) -> LockState:
        return LockState.HELD

    def watch(self, _key: str, _identity: ProcessIdentity) -> bool:
        """See `DeathWatcher.watch`: nobody dies here."""
        return True

    def unwatch(self, _key: str) -> None:
        """See `DeathWatcher.unwatch`."""

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def settle(self) -> int:
        """Let the coordinator step until it would wait, with a beat of the worker before; how many passes that took."""
        self.store.write(lambda tx: tx.beat(self.worker))
        for steps in itertools.count(1):
            if self.coordinator.step() > self.clock.now().mono_us:
                return steps
        raise AssertionError("it counts without end")

    def led(self, fn: Callable[[Tx], R]) -> R:
        """One transaction of the leader's."""

        def leading(tx: Tx) -> R:
            self._leadership.assert_in(tx)
            return fn(tx)

        if not self.coordinator.leads:
            self._leadership.seek()
        return self.store.write(leading)

    # --- the life of a job

    def submit(self, scope: str = "", *, binding: str | None = None, priority: int = 0) -> WorkId:
        """One Work that runs `true`."""
        command = ("true",) if binding is None else None
        work = NewWork(scope, binding, command, (), "/", None, "uid 1000", priority)
        return self.store.write(lambda tx: tx.submit(work, "jobs"))

    def submit_inheriting(self, scope: str) -> WorkId:
        """One Work that runs what its scope names."""
        work = NewWork(scope, None, None, (), "/", None, "uid 1000")
        return self.store.write(lambda tx: tx.submit(work, "jobs"))

    def request(self, work_id: WorkId) -> ClaimRequest:
        """A claim, decided on what is true now."""

        def decide(tx: ReadTx) -> ClaimRequest:
            work, active = tx.work(work_id), tx.config()
            assert work is not None
            assert active is not None
            snapshot = resolve(
                work,
                self._config,
                generation=active.number,
                folder="/",
                inputs=tuple(tx.pending_inputs(work_id, limit=64)),
                trigger_before=None,
            )
            assert snapshot is not None
            return ClaimRequest(
                work_id, work.revision, self.worker, snapshot, LEASE_US, _no_refusal, self._config.budgets
            )

        return self.store.read(decide)

    def claim(self, request: ClaimRequest) -> LeaseKey:
        """Claim it."""
        answer: Claimed | ClaimHeld | ClaimRefused = self.led(lambda tx: tx.claim(request))
        assert isinstance(answer, Claimed), answer
        return LeaseKey(answer.attempt_id, 1, self.worker)

    def run(self, work_id: WorkId) -> LeaseKey:
        """Claimed, accepted, pinned: running."""
        return self.launch(self.claim(self.request(work_id)))

    def launch(self, key: LeaseKey) -> LeaseKey:
        """A claim, accepted and pinned."""
        self.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
        pid = next(self._pids)
        pin = Pin(key.epoch, attempt_directory(key.attempt_id, key.epoch), self._process(pid), 11, 12)
        self.store.write(lambda tx: tx.pin(key, pin))
        return key

    def tell(self, key: LeaseKey, body: bytes) -> None:
        """Hand its program a further input, which it takes."""
        store = self.store
        intent = store.write(lambda tx: tx.inject(work_of(key.attempt_id), body, by="uid 1000"))
        token = store.write(lambda tx: tx.dispatch(key, intent.number))
        assert token is not None
        assert intent.input is not None
        store.write(lambda tx: tx.acknowledge(key, intent.number, token=token, result=Delivered.ACCEPTED))
        said = Stretch(Place(), Place(10, 1), (Took(1, (intent.input,)),))
        store.write(lambda tx: tx.follow(key, key.epoch, said))

    def finish(self, key: LeaseKey, ending: Ending = SUCCEEDED, change: WorkChange = COMPLETED) -> LeaseKey:
        """End it."""
        self.store.write(lambda tx: tx.finish(key, ending, change))
        return key

    def back_off(self, key: LeaseKey, after_us: int) -> None:
        """Fail it; it is tried again after so long."""
        change = WorkChange(
            WorkState.BACKOFF, None, after_us, 0, failures_used=1, timer=TimerKind.RETRY, why="tried again"
        )
        self.finish(key, FAILED, change)

    def park(self, key: LeaseKey, declarations: Sequence[Declaration]) -> None:
        """Park it on what it declares."""
        self.store.write(lambda tx: tx.declare(key, declarations))
        outcome = outcome_of(self.store.read(lambda tx: tx.declarations(key.attempt_id, unapplied=True)))
        self.store.write(lambda tx: tx.park(key, outcome, proof="S1"))

    def state(self, work_id: WorkId) -> WorkState:
        """Of a Work, now."""
        work = self.store.read(lambda tx: tx.work(work_id))
        assert work is not None
        return work.state

    def running(self) -> list[AttemptId]:
        """What runs now."""
        return [attempt.id for attempt in self.store.read(lambda tx: tx.holders(limit=64))]


def _no_refusal(_usage: Usage) -> None:
    return None
