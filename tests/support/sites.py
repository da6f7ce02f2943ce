"""Coordinators and workers as the bootstraps build them, around a real store, a virtual clock and a simulated host.

Nothing moves by itself: a test steps one of them, lets slow tasks finish, or lets time pass.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from coordinator.coordinator import Coordinator
from coordinator.leadership import Candidate, Leadership
from shared.clock import VirtualClock
from shared.errors import IndeterminateError, StoreBusyError
from shared.ids import AttemptId, Incarnation, WorkId, work_of
from shared.model.attempt import Attempt, LeaseKey
from shared.model.evidence import LockState, ProcessIdentity
from shared.model.host import Worker as StoredWorker
from shared.model.instant import US_PER_S
from shared.model.settings import Config
from shared.model.work import Work
from shared.store.contract import ReadTx, Store, Tx
from tests.support.hosts import Shim, SimulatedHost
from tests.support.stores import SQLITE, World, ram_folder
from worker.batch import Batch
from worker.executors.contract import registry
from worker.executors.shell import ShellExecutor
from worker.pool import Completion
from worker.ports import Ports
from worker.worker import Worker

R = TypeVar("R")

TRANSITIONS = frozenset(name for name in vars(Tx) if not name.startswith("_"))
Journal = list[tuple[str, str]]


class _LostBeforeCommitError(Exception):
    """Undoes a transaction whose COMMIT, as its caller sees it, was not answered."""


class _Recorder:
    """A transaction that notes which transitions were called."""

    def __init__(self, tx: Tx, calls: list[str]) -> None:
        self._tx = tx
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        if name in TRANSITIONS:
            self._calls.append(name)
        return getattr(self._tx, name)


class WatchedStore:
    """A store that journals its commits, and fails when told.

    Attributes:
        journal: (who, transition) of every commit, in order; shared by a site.
        unanswered: The next commit that holds this transition is not answered; the flag says whether it reached the store.
        busy_writes: How many of the next writes find the store busy.
        busy_look_ups: How many reads find it busy, counted from the next commit that is not answered.
        afterwards: By transition, what happens once, right after the commit that holds it.
    """

    def __init__(self, store: Store, who: str, journal: Journal) -> None:
        self._store = store
        self._who = who
        self.journal = journal
        self.afterwards: dict[str, Callable[[], object]] = {}
        self.heal()

    def heal(self) -> None:
        """No more failures."""
        self.unanswered: tuple[str, bool] | None = None
        self.busy_writes = 0
        self.busy_look_ups = 0

    def write(self, fn: Callable[[Tx], R]) -> R:
        """See `Store.write`."""
        if self.busy_writes:
            self.busy_writes -= 1
            raise StoreBusyError("busy, as told")
        calls: list[str] = []

        def recorded(tx: Tx) -> R:
            calls.clear()
            result = fn(cast(Tx, _Recorder(tx, calls)))
            if self._is_unanswered(calls, reached=False):
                raise _LostBeforeCommitError
            return result

        try:
            result = self._store.write(recorded)
        except _LostBeforeCommitError:
            self.unanswered = None
            raise IndeterminateError("not answered, as told") from None
        self.journal += [(self._who, call) for call in calls]
        for call in calls:
            self.afterwards.pop(call, lambda: None)()
        if self._is_unanswered(calls, reached=True):
            self.unanswered = None
            raise IndeterminateError("not answered, as told")
        return result

    def _is_unanswered(self, calls: list[str], *, reached: bool) -> bool:
        return self.unanswered is not None and self.unanswered[0] in calls and self.unanswered[1] is reached

    def read(self, fn: Callable[[ReadTx], R]) -> R:
        """See `Store.read`."""
        if self.busy_look_ups and self.unanswered is None:
            self.busy_look_ups -= 1
            raise StoreBusyError("busy, as told")
        return self._store.read(fn)

    def bound_waits(self, wait_us: int) -> None:
        """See `Store.bound_waits`."""
        self._store.bound_waits(wait_us)

    def changed(self) -> bool:
        """See `Store.changed`."""
        return self._store.changed()

    def check_file(self) -> None:
        """See `Store.check_file`."""
        self._store.check_file()

    def checkpoint(self) -> None:
        """See `Store.checkpoint`."""
        self._store.checkpoint()

    def close(self) -> None:
        """See `Store.close`."""
        self._store.close()


class ManualPool:
    """A pool whose tasks run when a test says so."""

    def __init__(self, completed: Callable[[Completion], None]) -> None:
        self._completed = completed
        self.tasks: list[tuple[Hashable, Callable[[], object]]] = []

    def submit(self, key: Hashable, task: Callable[[], object]) -> None:
        """See `worker.ports.Pool`."""
        self.tasks.append((key, task))

    def run(self) -> int:
        """Run what is queued; returns how many."""
        tasks, self.tasks = self.tasks, []
        for key, task in tasks:
            try:
                self._completed(Completion(key, task(), None))
            except Exception as error:  # noqa: BLE001 - as the real pool does
                self._completed(Completion(key, None, error))
        return len(tasks)


class Bench:
    """One worker, registered."""

    def __init__(self, site: Site, name: str, *, slots: int = 64) -> None:
        world = site.world
        self.me = world.worker(name, slots=slots)
        site.locks[self.me] = LockState.HELD
        self.store = WatchedStore(world.open(), self.me, site.journal)
        self.completions: queue.SimpleQueue[Completion] = queue.SimpleQueue()
        self.launches = ManualPool(self.completions.put)
        self.stops = ManualPool(self.completions.put)
        self.watcher = site.host.watcher(lambda key: self.completions.put(Completion(key, None, None)))
        self.ports = Ports(
            me=self.me,
            store=self.store,
            clock=world.clock,
            launcher=site.host,
            host=site.host,
            watcher=self.watcher,
            launches=self.launches,
            stops=self.stops,
            executors=registry([ShellExecutor({"PATH": "/bin"})]),
            environment_layer=lambda _snapshot: {},
            batch=Batch(self.store),
        )
        self.worker = Worker(self.ports, self.completions)

    def step(self) -> int:
        """One step, nothing else."""
        return self.worker.step()

    def settle(self) -> None:
        """Step and let slow tasks finish until there is nothing more to do at this instant."""
        for _ in range(50):
            self.step()
            if not (self.launches.run() + self.stops.run()) and self.completions.empty():
                return
        raise AssertionError("a worker never came to rest")


class Head:
    """One coordinator that may lead."""

    def __init__(self, site: Site) -> None:
        world = site.world
        self.me = world.store.write(lambda tx: tx.next_incarnation("coordinator"))
        site.locks[self.me] = LockState.HELD
        self.store = WatchedStore(world.open(), self.me, site.journal)
        self.led = 0
        self.watched: dict[str, ProcessIdentity] = {}
        candidate = Candidate(self.me, 1, 1, 1)
        self.leadership = Leadership(self.store, world.clock, candidate, site.probe, self._lead)
        self.coordinator = Coordinator(self.store, world.clock, self.leadership, site.probe, self)

    def step(self) -> int:
        """One step."""
        return self.coordinator.step()

    def settle(self) -> None:
        """Step until it would wait."""
        for _ in range(50):
            if self.step() > self.leadership._clock.now().mono_us:
                return
        raise AssertionError("a coordinator never came to rest")

    def watch(self, key: str, identity: ProcessIdentity) -> bool:
        """See `DeathWatcher.watch`."""
        self.watched[key] = identity
        return True

    def unwatch(self, key: str) -> None:
        """See `DeathWatcher.unwatch`."""
        del self.watched[key]

    def _lead(self) -> None:
        self.led += 1


class Site:
    """A home on a simulated host, and whoever works there.

    Attributes:
        journal: (who, what) of every commit and of every gate that opened, in order.
        locks: What probing an incarnation's lock says; a test sets it free for a death.
        heads, benches: Who is alive; a test takes one out to kill or stall it.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock: VirtualClock = world.clock
        self.host = SimulatedHost(world.clock)
        self.host.before_go = self._check_pin
        self.journal: Journal = []
        self.locks: dict[str, LockState] = {}
        self.heads: list[Head] = []
        self.benches: list[Bench] = []

    def bench(self, name: str = "worker-1", *, slots: int = 64) -> Bench:
        """Start a worker."""
        self.benches.append(Bench(self, name, slots=slots))
        return self.benches[-1]

    def head(self) -> Head:
        """Start a coordinator."""
        self.heads.append(Head(self))
        return self.heads[-1]

    def kill(self, one: Bench | Head) -> None:
        """It is gone, and its lock says so."""
        self.stall(one)
        self.locks[one.me] = LockState.FREE

    def stall(self, one: Bench | Head) -> None:
        """It does nothing any more; nobody can tell that it does not live."""
        if isinstance(one, Bench):
            self.benches.remove(one)
        else:
            self.heads.remove(one)

    def stores(self) -> list[WatchedStore]:
        """The doors of everybody alive."""
        return [head.store for head in self.heads] + [bench.store for bench in self.benches]

    def probe(self, owner: str, _device: int, _inode: int) -> LockState:
        """Probe an incarnation's lock file."""
        return self.locks.get(owner, LockState.UNPROVEN)

    def settle(self) -> None:
        """Let everybody act until nothing changes at this instant."""
        before = -1
        while before != (before := self._last_event()):  # everybody acted, and nothing came of it
            for head in self.heads:
                head.settle()
            for bench in self.benches:
                bench.settle()

    def elapse(self, seconds: float, *, poll_s: float = 1) -> None:
        """Let time pass, everybody polling; every bell is lost."""
        until_us = self.clock.now().mono_us + round(seconds * US_PER_S)
        while (left_us := until_us - self.clock.now().mono_us) > 0:
            self.clock.advance(min(left_us, round(poll_s * US_PER_S)))
            self.settle()

    def configure(self, config: Config) -> None:
        """Activate a configuration."""
        self.world.store.write(
            lambda tx: tx.activate_config(config.to_json(), config.digest, "/etc/tenure/tenure.toml")
        )

    def claim(self, bench: Bench) -> LeaseKey:
        """Submit a Work and claim it for a worker; not accepted yet."""
        return self.world.claimed(bench.me)

    def running(self, bench: Bench) -> tuple[LeaseKey, Shim]:
        """A job that runs under that worker."""
        key = self.claim(bench)
        bench.settle()
        shim = self.host.shim(key.attempt_id)
        assert shim.ran
        return key, shim

    def cancel(self, key: LeaseKey) -> None:
        """A person cancels the Work of that attempt."""
        self.world.store.write(lambda tx: tx.cancel_work(work_of(key.attempt_id), by="a test", reason="wrong branch"))

    def attempt(self, attempt_id: AttemptId | str) -> Attempt:
        """The stored attempt."""
        return self.world.attempt(AttemptId(attempt_id))

    def work(self, work_id: WorkId | str) -> Work:
        """The stored Work."""
        return self.world.work(WorkId(work_id))

    def workers(self) -> list[StoredWorker]:
        """Those not gone."""
        return self.world.store.read(lambda tx: tx.workers())

    def lease_is_live(self, key: LeaseKey) -> bool:
        """Whether exactly that lease gives authority now."""
        return key in self.world.store.read(lambda tx: tx.held(key.owner))

    def done(self, who: Incarnation | str, *names: str) -> list[str]:
        """What that one committed, in order; only these transitions when any are named."""
        return [what for by, what in self.journal if by == who and (not names or what in names)]

    def _last_event(self) -> int:
        events = self.world.store.read(lambda tx: tx.events(after=0, limit=100_000))
        return events[-1].seq if events else 0

    def _check_pin(self, shim: Shim) -> None:
        """Asserted at every GO of every test: the pin is durable, under a live lease of that epoch."""
        attempt = self.attempt(shim.spec.attempt_id)
        lease = self.world.store.read(lambda tx: tx.lease(attempt.id))
        assert attempt.pin == shim.pin, "GO before the pin was durable"
        assert lease is not None
        assert (attempt.epoch, lease.epoch) == (shim.spec.epoch, shim.spec.epoch), "GO of an old epoch"
        assert self.lease_is_live(LeaseKey(attempt.id, attempt.epoch, lease.owner)), "GO without a live lease"
        self.journal.append(("host", f"go {shim.pin.directory}"))


@contextmanager
def open_site() -> Iterator[Site]:
    """A site in memory."""
    with ram_folder() as folder:
        world = World(SQLITE, folder)
        try:
            yield Site(world)
        finally:
            world.close()
