"""The simulated kernel's processes: who is whose child, who is stopped, who ended and how, and who inherits whom."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from chaos.simulation.baton import Actor, Baton, Signal, Thread, told
from shared.model.evidence import ProcessIdentity
from shared.model.instant import US_PER_MS

PID_NAMESPACE = 4026531836
INIT = 1
KILL, TERM = 9, 15
TOLD_MOST_US = 3 * US_PER_MS


@dataclass(eq=False)
class Process(Thread):
    """One process.

    Attributes:
        role: `coordinator`, `worker`, `person`, `zygote`, `shim`, `child`, or `other` (what a job started).
        parent: None: init's, or the supervisor's.
        worker: For what a worker launched: that worker.
        launch: For shim, child and what the child started: the directory of the launch. It is what they *are*, not what they show.
        is_marked: It can be told by session, environment or open files that it came from its launch.
        is_subreaper: Orphans below it become its children.
        status: How it ended, negative for a signal; None while it lives.
        is_reaped: Its parent has seen its end, so that nothing of it is left in the table.
        hears_term: TERM is noted in `term_asked` instead of ending it; `ignores_term`: nor that.
        at_end: What the kernel undoes when it ends: locks, open ends, connections.
        changed: Notified on a signal, and when a child of it ends.
    """

    table: Processes
    name: str
    role: str
    identity: ProcessIdentity
    parent: Process | None = None
    worker: Process | None = None
    launch: str = ""
    is_marked: bool = True
    is_subreaper: bool = False
    is_alive: bool = True
    stopped_until_us: int = 0
    status: int | None = None
    is_reaped: bool = False
    hears_term: bool = False
    ignores_term: bool = False
    term_asked: bool = False
    term_waits: bool = False
    at_end: list[Callable[[], None]] = field(default_factory=list)
    children: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.changed = Signal(self.table.baton)

    @property
    def pid(self) -> int:
        """Its number."""
        return self.identity.pid

    def start(self, run: Callable[[], None], name: str = "") -> Actor:
        """One more thread of it."""
        return self.table.baton.start(f"{self.name}{name}", self, run)

    def resume(self) -> None:
        """See `Thread.resume`."""
        self.stopped_until_us = 0
        if self.term_waits:
            self.term_waits = False
            self.signal(TERM)

    def fail(self, error: BaseException) -> None:
        """See `Thread.fail`: the process ends of it, and it is judged whether it may."""
        self.table.failed(self, error)
        self.end(1)

    def stop(self, us: int) -> None:
        """Stop it, as by SIGSTOP, for so long."""
        self.stopped_until_us = max(self.stopped_until_us, self.table.baton.mono_us + us)

    def signal(self, number: int) -> None:
        """Send a signal; harmless when it has ended."""
        if not self.is_alive:
            return
        if number == KILL:
            self.end(-KILL)
        elif self.stopped_until_us > self.table.baton.mono_us:
            self.term_waits = True
        elif self.hears_term:
            self.term_asked = True
            self.changed.notify()
        elif not self.ignores_term:
            self.end(-TERM)

    def end(self, status: int) -> None:
        """It ends, however: everything the kernel does at the end of a process."""
        if self.is_alive:
            self.table.ended(self, status)

    def above(self) -> list[Process]:
        """Its parent, that one's parent, and so on."""
        found: list[Process] = []
        process = self.parent
        while process is not None:
            found.append(process)
            process = process.parent
        return found


class Processes:
    """All processes of the host.

    Attributes:
        forks: How many were ever started; a look over all processes is exact while it stays the same.
        keeps_status: The kernel tells the exit status of what was watched while it lived.
        on_end: Told of each end.
        on_fail: Told of each error that ended a process.
    """

    def __init__(self, baton: Baton) -> None:
        self.baton = baton
        self.forks = 0
        self.keeps_status = True
        self.on_end: Callable[[Process], None] = lambda _process: None
        self.on_fail: Callable[[Process, str, BaseException], None] = lambda _process, _told, _error: None
        self.all: list[Process] = []
        self._by_pid: dict[int, Process] = {}
        self._next_pid = 100
        self._watchers: list[SimulatedWatcher] = []

    def new(
        self, name: str, role: str, *, parent: Process | None = None, worker: Process | None = None, launch: str = ""
    ) -> Process:
        """A new process; nothing of it runs yet."""
        self.forks += 1
        self._next_pid += 1
        now = self.baton.now()
        identity = ProcessIdentity(self._next_pid, now.mono_us // 10_000, now.boot_id, PID_NAMESPACE)
        process = Process(self, f"{name}#{self._next_pid}", role, identity, parent, worker, launch)
        if parent is not None:
            parent.children.append(process)
        self.all.append(process)
        self._by_pid[process.pid] = process
        return process

    def find(self, identity: ProcessIdentity) -> Process | None:
        """That very process, ended or not, while it is in the table."""
        process = self._by_pid.get(identity.pid)
        return process if process is not None and process.identity == identity and not process.is_reaped else None

    def is_alive(self, identity: ProcessIdentity) -> bool:
        """Whether it lives; a zombie does not."""
        process = self.find(identity)
        return process is not None and process.is_alive

    def zombie_status(self, identity: ProcessIdentity) -> int | None:
        """How a process ended that nobody reaped yet."""
        process = self.find(identity)
        return None if process is None or process.is_alive else process.status

    def living(self) -> list[Process]:
        """Everything that runs, in order of their beginning."""
        return [process for process in self.all if process.is_alive]

    def reap(self, process: Process) -> None:
        """Its parent has seen its end."""
        process.is_reaped = True
        if process.parent is not None and process in process.parent.children:
            process.parent.children.remove(process)

    def ended(self, process: Process, status: int) -> None:
        """See `Process.end`."""
        process.is_alive = False
        process.status = status
        self.baton.has_death = True
        for undo in process.at_end:
            undo()
        process.at_end.clear()
        heir = next((each for each in process.above() if each.is_alive and each.is_subreaper), None)
        for child in process.children:
            child.parent = heir
            if heir is not None:
                heir.children.append(child)
                heir.changed.notify()
            elif not child.is_alive:
                child.is_reaped = True
        process.children.clear()
        parent = process.parent
        if parent is None or not parent.is_alive or parent.role in ("worker", "zygote"):
            self.reap(process)  # by init, or by who ignores the ends of its children
        else:
            parent.changed.notify()
        for watcher in self._watchers:
            watcher.ended(process)
        self.on_end(process)

    def failed(self, process: Process, error: BaseException) -> None:
        """See `Process.fail`."""
        self.on_fail(process, told(error), error)

    def reboot(self) -> None:
        """Everything ends at once, and nothing is told to anybody."""
        self._watchers.clear()
        for process in self.living():
            process.is_alive = False
            process.status = -KILL
            process.is_reaped = True
            for undo in process.at_end:
                undo()
            process.at_end.clear()
            process.children.clear()
            self.on_end(process)
        self.baton.has_death = True

    def watcher(self, owner: Process, gone: Callable[[Hashable], None]) -> SimulatedWatcher:
        """A watcher of a process's own."""
        watcher = SimulatedWatcher(self, owner, gone)
        self._watchers.append(watcher)
        owner.at_end.append(lambda: self._forget(watcher))
        return watcher

    def _forget(self, watcher: SimulatedWatcher) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)


class SimulatedWatcher:
    """See `shared.process.watcher.Watcher`."""

    def __init__(self, table: Processes, owner: Process, gone: Callable[[Hashable], None]) -> None:
        self._table = table
        self._owner = owner
        self._gone = gone
        self._watched: dict[Hashable, Process] = {}

    def watch(self, key: Hashable, identity: ProcessIdentity) -> bool:
        """See `ExitWatcher.watch`."""
        self._table.baton.hand_over()
        self._watched.pop(key, None)
        process = self._table.find(identity)
        if process is None or not process.is_alive:
            return False
        self._watched[key] = process
        return True

    def unwatch(self, key: Hashable) -> None:
        """See `ExitWatcher.unwatch`."""
        self._watched.pop(key, None)

    def exit_status(self, key: Hashable) -> int | None:
        """See `ExitWatcher.exit_status`."""
        process = self._watched.get(key)
        if process is None or process.is_alive:
            return None
        return process.status if self._table.keeps_status or not process.is_reaped else None

    def has_ended(self, key: Hashable) -> bool:
        """See `ExitWatcher.has_ended`."""
        process = self._watched.get(key)
        return process is None or not process.is_alive

    def ended(self, process: Process) -> None:
        """That process ended: tell whoever watches it, a moment later."""
        for key in [key for key, watched in self._watched.items() if watched is process]:
            us = int(self._table.baton.random.random() * TOLD_MOST_US)
            self._table.baton.later(us, lambda key=key: self._tell(key, process))  # type: ignore[misc]

    def _tell(self, key: Hashable, process: Process) -> None:
        if self._owner.is_alive and self._watched.get(key) is process:
            self._gone(key)
