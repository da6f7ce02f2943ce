"""Coordinators and workers as the bootstraps build them, around a real store, a virtual clock and a simulated host.

Nothing moves by itself: a test steps one of them, lets slow tasks finish, or lets time pass.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager

from coordinator.coordinator import Coordinator
from coordinator.gates import Gates
from coordinator.leadership import Candidate, Leadership
from shared.clock import VirtualClock
from shared.ids import AttemptId, Incarnation, WorkId, work_of
from shared.model.attempt import Attempt, AttemptState, LeaseKey, Segment, Snapshot
from shared.model.evidence import LockState, ProcessIdentity
from shared.model.host import StopOrder
from shared.model.host import Worker as StoredWorker
from shared.model.instant import US_PER_S
from shared.model.settings import Config
from shared.model.work import NewWork, Work
from shared.policy.steps import is_final_attempt
from shared.store.contract import Event, Registration
from tests.support.hosts import Shim, SimulatedHost
from tests.support.stores import SQLITE, World, identity, ram_folder
from tests.support.watched_stores import Journal, WatchedStore
from worker.batch import Batch
from worker.executors.contract import Executor
from worker.executors.shell import ShellExecutor
from worker.pool import Completion
from worker.ports import Ports
from worker.worker import Worker


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
    """One worker, registered.

    Attributes:
        executors: What it offers, by registration; the shell unless a test gives others.
        layer: What its environment layer answers; a test replaces it.
        asked: The snapshots for which the layer was asked, in order.
    """

    def __init__(
        self, site: Site, name: str, *, slots: int = 64, executors: Mapping[str, Executor] | None = None
    ) -> None:
        world = site.world
        self.executors = dict(executors or {"shell@1": ShellExecutor({"PATH": "/bin"}, None)})
        self.layer: Callable[[Snapshot], Mapping[str, str]] = lambda _snapshot: {}
        self.asked: list[Snapshot] = []
        self.me = self._register(site, name, slots)
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
            executors=self.executors,
            environment_layer=self._layer,
            batch=Batch(self.store),
        )
        self.worker = Worker(self.ports, self.completions)

    def _register(self, site: Site, name: str, slots: int) -> Incarnation:
        store = site.world.store
        me = store.write(lambda tx: tx.next_incarnation(name))
        process, number = identity(100, site.clock.now().boot_id), 5_000 + len(site.locks)
        registration = Registration(me, name, process, "machine", 1, number, slots, tuple(self.executors))
        store.write(lambda tx: tx.register_worker(registration))
        return me

    def _layer(self, snapshot: Snapshot) -> Mapping[str, str]:
        self.asked.append(snapshot)
        return self.layer(snapshot)

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

    def __init__(self, site: Site, gates: Gates | None = None) -> None:
        world = site.world
        self.me = world.store.write(lambda tx: tx.next_incarnation("coordinator"))
        site.locks[self.me] = LockState.HELD
        self.store = WatchedStore(world.open(), self.me, site.journal)
        self.led = 0
        self.watched: dict[str, ProcessIdentity] = {}
        candidate = Candidate(self.me, identity(1, site.clock.now().boot_id), 1, 1)
        self.leadership = Leadership(self.store, world.clock, candidate, site.probe, self, self._lead)
        self.coordinator = Coordinator(self.store, world.clock, self.leadership, site.probe, self, gates)

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

    def bench(
        self, name: str = "worker-1", *, slots: int = 64, executors: Mapping[str, Executor] | None = None
    ) -> Bench:
        """Start a worker."""
        self.benches.append(Bench(self, name, slots=slots, executors=executors))
        return self.benches[-1]

    def head(self, gates: Gates | None = None) -> Head:
        """Start a coordinator."""
        self.heads.append(Head(self, gates))
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

    def submit(self, binding: str, *, input_: bytes | None = None) -> AttemptId:
        """Submit Work of that binding; the name that its first attempt will have."""
        work = NewWork("", binding, None, (), "/", input_, "test")
        return AttemptId(f"{self.world.store.write(lambda tx: tx.submit(work, 'jobs'))}.1")

    def submit_command(self) -> AttemptId:
        """Submit Work that brings its own command; the name that its first attempt will have."""
        return AttemptId(f"{self.world.submit()}.1")

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

    def segments(self, attempt_id: AttemptId | str) -> list[Segment]:
        """The stored segments of an attempt."""
        return self.world.store.read(lambda tx: tx.segments(AttemptId(attempt_id)))

    def events(self, attempt_id: AttemptId | str | None = None) -> list[Event]:
        """The changefeed; of one attempt when it is named."""
        events = self.world.store.read(lambda tx: tx.events(after=0, limit=100_000))
        return [event for event in events if attempt_id is None or event.attempt_id == attempt_id]

    def ends(self, attempt_id: AttemptId | str) -> list[AttemptState]:
        """Each end of the attempt that was ever committed."""
        told = [AttemptState(str(event.data["to"])) for event in self.events(attempt_id) if "from" in event.data]
        return [state for state in told if is_final_attempt(state)]

    def orders(self) -> list[StopOrder]:
        """Open stop orders."""
        return self.world.store.read(lambda tx: tx.stop_orders())

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
        events = self.events()
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
