"""Coordinator and worker processes of the simulation: the classes that the bootstraps build, run by the bootstraps' own loops.

Only the ports are others. Rule: design §3, §9.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import coordinator.bootstrap
import worker.bootstrap
from chaos.seen import Fault, Go
from chaos.simulation.baton import Baton
from chaos.simulation.belt import SimulatedBelt
from chaos.simulation.clock import SimulatedBell, SimulatedClock
from chaos.simulation.files import Disk
from chaos.simulation.host import SimulatedHost
from chaos.simulation.jobs import Jobs
from chaos.simulation.launcher import SimulatedLauncher, SimulatedQuiet
from chaos.simulation.observer import Observer
from chaos.simulation.processes import Process, Processes
from chaos.simulation.store import FaultSeam, QueueFile, SimulatedQueue
from coordinator.coordinator import Coordinator
from coordinator.gates import ApprovalGate, Gates
from coordinator.leadership import Candidate, Leadership
from shared.boundary import Boundary, Side, reached
from shared.child import Stop
from shared.errors import FenceViolationError, RefusedError, StoreUnavailableError, TenureError
from shared.ids import AttemptId, Incarnation
from shared.model.evidence import LockState, Pin
from shared.store.contract import ReadTx
from shared.store.sqlite.connection import Connect
from shared.store.sqlite.place import Place
from shared.store.sqlite.store import SqliteStore, open_store
from shared.wake import COORDINATOR
from worker.batch import Batch
from worker.executors.agent import AgentExecutor
from worker.executors.claude_code import ClaudeCodeExecutor
from worker.executors.contract import registry
from worker.executors.shell import ShellExecutor
from worker.pool import Completion
from worker.ports import Ports
from worker.worker import Worker

R = TypeVar("R")

PLACE = Place(filesystem=0, machine_id="simulated", time_ns=1)
WAIT_S = 5.0
DEVICE = 1
ASKING_THREADS = 2
REGRESSED = "store_regressed"
EXPECTED_CODES = ("io_error", "disk_full")


@dataclass(eq=False)
class Stage:
    """One home on one simulated host, and whoever works there.

    Attributes:
        home: A folder with a store of its own.
        connect: Opens connections to that store; `fault`: see `FaultSeam`.
        locks: Of each incarnation: the process that holds its lock file, and that file's inode.
        bells: Of each process that listens.
        stops: How each coordinator and worker is asked to end.
        born: Of each incarnation: the last event before it held its lock.
        lost_rings: How likely a ring reaches nobody.
        commits: So often the store has changed.
        forgotten: Pinned launches that the store knows no more.
        lived_through: Whoever lived when the store went back.
        is_older: The store went back in time, so that it may be refused; `on_refusal`: told of each coordinator that refuses it at
            its start.
    """

    home: Path
    baton: Baton
    connect: Connect
    locks: dict[str, tuple[Process, int]] = field(default_factory=dict)
    bells: dict[Process, SimulatedBell] = field(default_factory=dict)
    stops: dict[Process, Stop] = field(default_factory=dict)
    born: dict[str, int] = field(default_factory=dict)
    lost_rings: float = 0.0
    commits: int = 0
    forgotten: frozenset[tuple[AttemptId, int]] = frozenset()
    lived_through: frozenset[Process] = frozenset()
    is_older: bool = False
    fault: Callable[[Process, str], int | None] = lambda _process, _where: None
    on_refusal: Callable[[], None] = lambda: None
    gos: list[Go] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = SimulatedClock(self.baton)
        self.table = Processes(self.baton)
        self.table.on_fail = self._failed
        self.disk = Disk()
        self.jobs = Jobs(self.baton, self.table, self.disk)
        self.queue = QueueFile(self.baton)
        self.observer = Observer(self.home, self.clock, self.connect)
        self.jobs.last_seq = self.last_seq
        self._last_seq, self._last_seq_at = 0, -1
        self._known: dict[Callable[[ReadTx], Any], Any] = {}
        self._known_at = -1
        shell = ShellExecutor({"PATH": "/bin"}, None)
        agent = AgentExecutor(shell, self.home / "attempts")
        self.executors = registry([shell, agent, ClaudeCodeExecutor(shell)])
        self._tokens = count(1)
        self.coordinators: list[tuple[Process, Coordinator]] = []
        self.workers: list[tuple[Process, Worker]] = []

    def close(self) -> None:
        """End everything."""
        self.baton.bury()
        self.table.on_end = lambda _process: None
        for process in self.table.living():
            process.end(0)
        self.observer.close()

    def open(self, process: Process, *, check: bool = False) -> SqliteStore:
        """A process's door to the store; it is shut from outside when the process dies."""
        store = open_store(
            self.home,
            self.clock,
            ring=self.ring,
            wait_s=WAIT_S,
            check=check,
            place=PLACE,
            seam=FaultSeam(self.baton, process, self.fault),
            queue=SimulatedQueue(self.baton, self.queue, process, wait_s=WAIT_S),
            connect=self.connect,
        )
        process.at_end.append(store.close)
        return store

    def ring(self, names: Iterable[str]) -> None:
        """See `shared.wake.Ringer`: a hint, which may be lost."""
        for name in names:
            if self.lost_rings and self.baton.random.random() < self.lost_rings:
                continue
            for process, bell in self.bells.items():
                if process.is_alive and name in bell.names:
                    bell.ring()

    def probe(self, owner: str, _device: int, inode: int) -> LockState:
        """See `shared.process.filelock.probe`."""
        found = self.locks.get(owner)
        if found is None or found[1] != inode:
            return LockState.UNPROVEN
        reached(Boundary.LOCK_PROBE, Side.BEFORE)
        if found[0].is_alive:
            return LockState.HELD
        reached(Boundary.LOCK_PROBE, Side.AFTER)
        return LockState.FREE

    def look(self, see: Callable[[ReadTx], R]) -> R:
        """Read the store from outside, while everything stands still."""
        current, self.baton.current = self.baton.current, None
        try:
            return self.observer.read(see)
        finally:
            self.baton.current = current

    def known(self, see: Callable[[ReadTx], R]) -> R:
        """The same of what no time changes: read again only once the store has changed. `see` is a function of a module."""
        if self._known_at != self.commits:
            self._known_at = self.commits
            self._known.clear()
        if see not in self._known:
            self._known[see] = self.look(see)
        found: R = self._known[see]
        return found

    def last_seq(self) -> int:
        """The last event that is committed."""
        if self._last_seq_at != self.commits:
            self._last_seq_at, self._last_seq = self.commits, self.observer.last_seq()
        return self._last_seq

    # --- processes

    def start_coordinator(self) -> Process:
        """A new coordinator process."""
        process = self.table.new(COORDINATOR, "coordinator")
        process.start(lambda: self._coordinate(process))
        return process

    def start_worker(self, name: str) -> Process:
        """A new worker process of that name."""
        process = self.table.new(name, "worker")
        process.start(lambda: self._work(process, name))
        return process

    def _coordinate(self, process: Process) -> None:
        """As `coordinator.bootstrap.main`."""
        store = self.open(process, check=True)
        self._refuse_older(store)
        name = Incarnation(store.write(lambda tx: tx.next_incarnation(COORDINATOR)))
        inode = self._take_lock(process, name)
        bell = self._bell(process, name)

        def died(_key: Hashable) -> None:
            built.notice_death()
            bell.ring()

        def gate_decided() -> None:
            built.notice_decision()
            bell.ring()

        watcher = self.table.watcher(process, died)

        def lead() -> None:
            for other in self.bells.values():
                other.names = [known for known in other.names if known != COORDINATOR]
            bell.names.append(COORDINATOR)

        candidate = Candidate(name, process.identity, DEVICE, inode)
        leadership = Leadership(store, self.clock, candidate, self.probe, watcher, lead)
        gates = Gates([ApprovalGate()], submit=self._asking(process), answered=gate_decided)
        built = Coordinator(store, self.clock, leadership, self.probe, watcher, gates)
        self.coordinators.append((process, built))
        coordinator.bootstrap.run(built, self.clock, bell, self._stop(process))
        process.end(0)

    def _asking(self, process: Process) -> Callable[[Callable[[], None]], None]:
        """Where gates are asked, as `coordinator.gates.Asking`."""
        pool = SimulatedPool(self.baton, process, ASKING_THREADS, "gates", lambda _: None)
        return partial(pool.submit, "ask")

    def _work(self, process: Process, name: str) -> None:
        """As `worker.bootstrap.main`."""
        store = self.open(process)
        me = Incarnation(store.write(lambda tx: tx.next_incarnation(name)))
        inode = self._take_lock(process, me)
        bell = self._bell(process, me)
        completions: queue.SimpleQueue[Completion] = queue.SimpleQueue()

        def completed(completion: Completion) -> None:
            completions.put(completion)
            bell.ring()

        ports = Ports(
            me=me,
            store=store,
            clock=self.clock,
            launcher=SimulatedLauncher(self.baton, self.table, self.disk, self.jobs, process, self._opened),
            host=SimulatedHost(self.baton, self.table, self.disk, process),
            watcher=self.table.watcher(process, lambda key: completed(Completion(key, None, None))),
            launches=SimulatedPool(self.baton, process, worker.bootstrap.LAUNCH_THREADS, "launch", completed),
            stops=SimulatedPool(self.baton, process, worker.bootstrap.STOP_THREADS, "stop", completed),
            executors=self.executors,
            environment_layer=lambda _snapshot: {},
            batch=Batch(store),
            belt=SimulatedBelt(self.baton, self.disk, process, completed),
            new_token=self._new_token,
            quiet=SimulatedQuiet(self.baton),
        )
        built = Worker(ports, completions)
        self.workers.append((process, built))
        worker.bootstrap.register(store, ports, name, process.identity, (DEVICE, inode))
        worker.bootstrap.run(built, self.clock, bell, self._stop(process))
        process.end(0)

    def _new_token(self) -> str:
        """A token that none was given yet; a seed gives the same ones."""
        return f"token-{next(self._tokens)}"

    def _refuse_older(self, store: SqliteStore) -> None:
        try:
            self.baton.hand_over()
            coordinator.bootstrap.refuse_older(store, self.disk.names())
        except StoreUnavailableError as error:
            if error.code == REGRESSED:
                self.on_refusal()
            raise

    def _take_lock(self, process: Process, name: str) -> int:
        """See `IncarnationLock.take`: a store that went back in time gives names again, of which one may be in use."""
        reached(Boundary.INCARNATION_LOCK, Side.BEFORE)
        holder, inode = self.locks.get(name, (None, 0))
        if holder is not None and holder.is_alive:
            raise RefusedError(f"{name} is locked by another process", code="lock_held")
        inode = inode or self.disk.inode()
        self.locks[name] = (process, inode)
        self.born[name] = self.last_seq()
        reached(Boundary.INCARNATION_LOCK, Side.AFTER)
        return inode

    def _bell(self, process: Process, name: str) -> SimulatedBell:
        bell = SimulatedBell(self.baton, name)
        self.bells[process] = bell
        process.at_end.append(lambda: self.bells.__delitem__(process))
        return bell

    def _stop(self, process: Process) -> Stop:
        stop = Stop()
        bell = self.bells[process]
        stop.on_ask(bell.ring)
        self.stops[process] = stop
        return stop

    def _opened(self, pin: Pin) -> Callable[[], None]:
        """A gate is to be opened: keep what the store says now, and once more when what is returned is called as GO is sent."""
        attempt_id = AttemptId(pin.directory.rpartition(".")[0])
        now, lease = self.baton.now(), self.look(lambda tx: tx.lease(attempt_id))

        def sent() -> None:
            attempt = self.look(lambda tx: tx.attempt(attempt_id))
            was_forgotten = (attempt_id, pin.epoch) in self.forgotten
            self.gos.append(Go(attempt_id, pin.epoch, pin.shim.pid, now, attempt, lease, was_forgotten))

        return sent

    def _failed(self, process: Process, told: str, error: BaseException) -> None:
        if isinstance(error, StoreUnavailableError) and error.code in EXPECTED_CODES:
            return
        if self.is_older and _is_of_older_store(error):
            return
        if process in self.lived_through and isinstance(error, LookupError):
            return  # between two reads the store forgot what the first one had told; writes are refused anyway
        if isinstance(error, TenureError) and error.pause_ms is not None:
            return  # met at its very beginning or end, outside the loop that would try again
        if isinstance(error, RefusedError) and process.role == "worker":
            return  # it was declared gone
        self.faults.append(Fault(process.name, type(error).__name__, told))


def _is_of_older_store(error: BaseException) -> bool:
    """It is refused; or it gave the name of an incarnation once more, to whoever stands beside its first owner."""
    if isinstance(error, FenceViolationError):
        return "worker.name, worker.number" in str(error)
    return isinstance(error, TenureError) and error.code in (REGRESSED, "lock_held")


class SimulatedPool:
    """See `worker.pool.TaskPool`: so many tasks at a time, in order of submission, each an actor of its process."""

    def __init__(
        self, baton: Baton, process: Process, threads: int, name: str, completed: Callable[[Completion], None]
    ) -> None:
        self._baton = baton
        self._process = process
        self._free = threads
        self._name = name
        self._completed = completed
        self._waiting: list[tuple[Hashable, Callable[[], object]]] = []

    def submit(self, key: Hashable, task: Callable[[], object]) -> None:
        """See `Pool.submit`."""
        self._waiting.append((key, task))
        if self._free:
            self._free -= 1
            self._process.start(self._work, f"/{self._name}")

    def _work(self) -> None:
        while self._waiting:
            key, task = self._waiting.pop(0)
            try:
                completion = Completion(key, task(), None)
            except Exception as error:  # noqa: BLE001 - as the real pool does
                completion = Completion(key, None, error)
            self._baton.hand_over()
            self._completed(completion)
        self._free += 1
