"""A host with shims that are values: launches, gates, deaths and evidence, as the real ones leave them, without a process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from shared.clock import Clock
from shared.ids import AttemptId, attempt_directory
from shared.model.evidence import Evidence, ExitRecord, LockState, Pin, ProcessIdentity
from shared.model.intent import Delivered
from shared.model.stop import StopResult
from shared.process.channel import Handed, Word
from shared.process.launcher import LaunchError, LaunchSpec
from shared.process.output import Piece
from worker.ports import StopTarget
from worker.quiet import Quiet

PID_NAMESPACE = 4026531836


@dataclass(eq=False)
class Shim:
    """One launch.

    Attributes:
        ran: Its job was exec'ed, and counts as a run.
        kept_status: What a pidfd of the child still tells.
        out: What it has written to its standard output.
        words: What it was told while it ran. `answers`: what comes of the next words in place of being handed over.
    """

    host: SimulatedHost
    spec: LaunchSpec
    pin: Pin
    gate: str = "held"
    alive: bool = True
    ran: bool = False
    exit: ExitRecord | None = None
    child: ProcessIdentity | None = None
    child_alive: bool = False
    kept_status: int | None = None
    out: bytearray = field(default_factory=bytearray)
    words: list[Word] = field(default_factory=list)
    answers: list[Handed] = field(default_factory=list)

    def told(self, word: Word) -> Handed:
        """Be handed an input, unless a test has given another answer."""
        answer = self.answers.pop(0) if self.answers else Handed(Delivered.ACCEPTED)
        if answer.result is Delivered.ACCEPTED:
            self.words.append(word)
        return answer

    def go(self) -> None:
        """Open the gate (see `HeldLaunch.go`)."""
        if not self.alive or self.gate != "held":
            raise LaunchError("ready", "the shim is gone")
        self.host.before_go(self)
        self.gate, self.ran, self.child_alive = "open", True, True
        self.child = self.host.new_process()

    def close(self) -> None:
        """Shut the gate (see `HeldLaunch.close`): the shim sees the end of it and leaves."""
        if self.gate == "held":
            self.gate = "shut"
            self.alive = False
            self.host.tell_ended(self.pin.shim)

    def end(self, status: int | None, *, stop: str | None = None) -> None:
        """The job ends, its tree is empty, the shim records it and leaves."""
        self.child_alive, self.alive = False, False
        self.exit = ExitRecord(status=status, ran=True, error=None, stop=stop, tree_empty=True)
        self.host.tell_ended(self.pin.shim)

    def die(self) -> None:
        """The shim alone is killed; a job that runs goes on as an orphan."""
        self.alive = False
        self.host.tell_ended(self.pin.shim)

    def end_orphan(self, status: int, *, is_kept: bool) -> None:
        """The orphaned job ends; only the kernel knows how, if it keeps that."""
        self.child_alive = False
        self.kept_status = status if is_kept else None
        assert self.child is not None
        self.host.tell_ended(self.child)


@dataclass(eq=False)
class SimulatedHost:
    """Implements the launcher, the host view and the watchers of any number of workers.

    Attributes:
        shims: By directory name, in order of launch.
        failing: Errors that the next launches end with.
        stops: Results that the next stops end with; () does what a sound stop does.
        stopped: Attempts that were told to stop, in order.
        before_go: Called with each shim before its gate opens.
        pid_namespace: Where processes start from now on.
        tells: How often a watcher is told of each end: once, unless a test says never, or twice.
        blind: So many of the next looks at evidence fail as a host does that has run out of something.
        unreadable: So many of the next looks find a lock and files that cannot be read.
    """

    clock: Clock
    shims: dict[str, Shim] = field(default_factory=dict)
    failing: list[LaunchError] = field(default_factory=list)
    stops: list[StopResult] = field(default_factory=list)
    stopped: list[AttemptId] = field(default_factory=list)
    before_go: Callable[[Shim], None] = lambda _shim: None
    pid_namespace: int = PID_NAMESPACE
    tells: int = 1
    blind: int = 0
    unreadable: int = 0
    _watchers: list[SimulatedWatcher] = field(default_factory=list)
    _pids: itertools.count[int] = field(default_factory=lambda: itertools.count(1000))

    def new_process(self) -> ProcessIdentity:
        """Some process of this boot."""
        pid = next(self._pids)
        return ProcessIdentity(pid, pid * 10, self.clock.now().boot_id, self.pid_namespace)

    def shim(self, attempt_id: str, epoch: int = 1) -> Shim:
        """The launch of that epoch."""
        return self.shims[f"{attempt_id}.{epoch}"]

    def runs(self, attempt_id: str) -> int:
        """How often the attempt's job was exec'ed."""
        return sum(shim.ran for shim in self.shims.values() if shim.spec.attempt_id == attempt_id)

    def launch(self, spec: LaunchSpec) -> Shim:
        """See `Launcher.launch`."""
        if self.failing:
            raise self.failing.pop(0)
        directory = attempt_directory(AttemptId(spec.attempt_id), spec.epoch)
        if directory in self.shims:
            raise LaunchError("directory", f"{directory} exists", exists=True)
        pin = Pin(spec.epoch, directory, self.new_process(), directory_ino=len(self.shims) + 1, lock_ino=7)
        self.shims[directory] = Shim(self, spec, pin)
        return self.shims[directory]

    def close(self) -> None:
        """See `Launcher.close`."""

    def read_evidence(self, pin: Pin) -> Evidence:
        """See `HostView.read_evidence`."""
        self._look()
        shim = self.shims[pin.directory]
        same_boot = pin.shim.boot_id == self.clock.now().boot_id
        if self.unreadable:
            self.unreadable -= 1
            nothing: dict[str, Any] = dict.fromkeys(("exit", "child", "child_alive"))
            files = ("exit.json", "child.json")
            return Evidence(same_boot, True, True, LockState.UNPROVEN, unreadable=files, **nothing)
        return Evidence(
            same_boot=same_boot,
            same_pid_ns=True,
            directory_proven=True,
            lock=LockState.HELD if shim.alive and same_boot else LockState.FREE,
            exit=shim.exit,
            child=shim.child,
            unreadable=(),
            child_alive=None if shim.child is None else shim.child_alive and same_boot,
        )

    def child_record_seen(self, attempt_id: AttemptId, since_epoch: int) -> bool | None:
        """See `HostView.child_record_seen`."""
        if self.unreadable:
            self.unreadable -= 1
            return None
        launched = [one for one in self.shims.values() if one.spec.attempt_id == attempt_id]
        return any(shim.child is not None for shim in launched if shim.spec.epoch >= since_epoch)

    def _look(self) -> None:
        if self.blind:
            self.blind -= 1
            raise OSError(24, "Too many open files")

    def read_output(self, pin: Pin, offset: int, limit: int) -> Piece:
        """See `HostView.read_output`."""
        return Piece(offset, bytes(self.shims[pin.directory].out[offset : offset + limit]))

    def hand_over(self, pin: Pin, words: list[Word]) -> list[Handed]:
        """See `HostView.hand_over`."""
        return [self.shims[pin.directory].told(word) for word in words]

    def stop(self, target: StopTarget, quiet: Quiet) -> StopResult:
        """See `HostView.stop`."""
        self._look()
        pin = target.pin
        self.stopped.append(target.attempt_id)
        with quiet.scanning():
            pass
        if self.stops:
            return self.stops.pop(0)
        if pin is None:
            seen = self.child_record_seen(target.attempt_id, target.since_epoch) or not target.isolated
            return StopResult(None if seen else "S0", (), (), None)
        shim = self.shims[pin.directory]
        if pin.shim.boot_id != self.clock.now().boot_id:
            return StopResult("S3", (), (), shim.exit)
        if shim.alive and shim.gate == "held":
            shim.close()
            return StopResult("S1b", (), (), None)
        if shim.alive:
            shim.end(-15, stop="request")
        return StopResult("S1" if shim.exit else None, (), () if shim.exit else ("S1: no exit record",), shim.exit)

    def watcher(self, gone: Callable[[Hashable], None]) -> SimulatedWatcher:
        """A watcher of one process's own."""
        self._watchers.append(SimulatedWatcher(self, gone))
        return self._watchers[-1]

    def lives(self, identity: ProcessIdentity) -> bool:
        """Whether that shim or child lives."""
        return any(
            (shim.alive and shim.pin.shim == identity) or (shim.child_alive and shim.child == identity)
            for shim in self.shims.values()
        )

    def kept_status(self, identity: ProcessIdentity) -> int | None:
        """What the kernel still tells of an ended child."""
        return next((shim.kept_status for shim in self.shims.values() if shim.child == identity), None)

    def tell_ended(self, identity: ProcessIdentity) -> None:
        """Tell whoever watches that process."""
        for _ in range(self.tells):
            for watcher in self._watchers:
                watcher.ended(identity)

    def restart(self) -> None:
        """Everything that ran is gone with the boot, and recorded nothing."""
        for shim in self.shims.values():
            shim.alive = shim.child_alive = False


class SimulatedWatcher:
    """See `worker.ports.ExitWatcher`.

    Attributes:
        watched: What is watched now.
    """

    def __init__(self, host: SimulatedHost, gone: Callable[[Hashable], None]) -> None:
        self._host = host
        self._gone = gone
        self.watched: dict[Hashable, ProcessIdentity] = {}

    def watch(self, key: Hashable, identity: ProcessIdentity) -> bool:
        """See `ExitWatcher.watch`."""
        if not self._host.lives(identity):
            return False
        self.watched[key] = identity
        return True

    def unwatch(self, key: Hashable) -> None:
        """See `ExitWatcher.unwatch`."""
        self.watched.pop(key, None)

    def exit_status(self, key: Hashable) -> int | None:
        """See `ExitWatcher.exit_status`."""
        identity = self.watched.get(key)
        return None if identity is None else self._host.kept_status(identity)

    def has_ended(self, key: Hashable) -> bool:
        """See `ExitWatcher.has_ended`."""
        identity = self.watched.get(key)
        return identity is None or not self._host.lives(identity)

    def ended(self, identity: ProcessIdentity) -> None:
        """That process ended: report each key that watches it."""
        for key in [key for key, watched in self.watched.items() if watched == identity]:
            self._gone(key)
