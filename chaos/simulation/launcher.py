"""The simulated launcher of one worker: the zygote's end, the gates it holds, and what keeps launches and scans apart.

A mirror of `shared/process/launcher.py` over simulated files and processes. Rule: design §7, §9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chaos.simulation.baton import Baton, Signal
from chaos.simulation.files import Channel, Directory, Disk
from chaos.simulation.jobs import Jobs
from chaos.simulation.processes import Process, Processes
from chaos.simulation.shim import Gate, Launching
from shared.boundary import Boundary, Side, reached
from shared.ids import AttemptId, attempt_directory
from shared.model.evidence import Pin
from shared.model.instant import US_PER_MS, US_PER_S
from shared.process.launcher import READY_TIMEOUT_S, LaunchError, LaunchSpec
from worker.quiet import WAIT_S, Quiet


class SimulatedQuiet(Quiet):
    """`Quiet` without threads."""

    def __init__(self, baton: Baton) -> None:
        super().__init__()
        self._baton = baton
        self._signal = Signal(baton)

    @contextmanager
    def launching(self) -> Iterator[None]:
        """See `Quiet.launching`."""
        while self._scans:
            self._signal.wait(self._baton.mono_us + US_PER_S)
        self._launching += 1
        try:
            yield
        finally:
            self._launching -= 1
            self._signal.notify()

    @contextmanager
    def scanning(self) -> Iterator[None]:
        """See `Quiet.scanning`."""
        self._scans += 1
        until_us = self._baton.mono_us + int(WAIT_S * US_PER_S)
        while self._launching and self._baton.mono_us < until_us:
            self._signal.wait(until_us)
        try:
            yield
        finally:
            self._scans -= 1
            self._signal.notify()


class HeldGate:
    """The worker's end of a gate; see `shared.process.launcher.HeldLaunch`."""

    def __init__(self, gate: Gate, pin: Pin, on_go: Callable[[Pin], Callable[[], None]]) -> None:
        self._gate = gate
        self._pin = pin
        self._on_go = on_go

    @property
    def pin(self) -> Pin:
        """See `HeldLaunch.pin`."""
        return self._pin

    def go(self) -> None:
        """See `HeldLaunch.go`."""
        opened = self._on_go(self._pin)
        reached(Boundary.GO_SEND, Side.BEFORE)
        gate = self._gate
        is_served = gate.is_served
        if is_served:
            opened()
            gate.said_go = True
        gate.close()
        if not is_served:
            raise LaunchError("ready", "the shim was gone before GO (EPIPE)")
        reached(Boundary.GO_SEND, Side.AFTER)

    def close(self) -> None:
        """See `HeldLaunch.close`."""
        self._gate.close()


class SimulatedLauncher:
    """See `shared.process.launcher.ZygoteLauncher`."""

    def __init__(
        self,
        baton: Baton,
        table: Processes,
        disk: Disk,
        jobs: Jobs,
        worker: Process,
        on_go: Callable[[Pin], Callable[[], None]],
    ) -> None:
        self._baton = baton
        self._table = table
        self._disk = disk
        self._jobs = jobs
        self._worker = worker
        self._on_go = on_go
        self._zygote = self._start_zygote()

    def launch(self, spec: LaunchSpec) -> HeldGate:
        """See `Launcher.launch`."""
        directory = self._make_directory(attempt_directory(AttemptId(spec.attempt_id), spec.epoch))
        if spec.channel:
            directory.channel = Channel(Signal(self._baton))
            directory.channel.is_broken = self._jobs.of(spec).is_deaf
        gate = Gate(self._baton)
        self._worker.at_end.append(gate.close)
        try:
            self._spawn(gate, directory)
            reached(Boundary.ATTEMPT_SYNC, Side.BEFORE)
            self._disk.sync()
            reached(Boundary.ATTEMPT_SYNC, Side.AFTER)
            shim, lock_ino = self._await_ready(gate, spec)
            if directory.channel is not None and spec.stdin:
                directory.channel.write(spec.stdin)
        except BaseException:
            gate.close()
            raise
        pin = Pin(spec.epoch, directory.name, shim.identity, directory.inode, lock_ino)
        return HeldGate(gate, pin, self._on_go)

    def close(self) -> None:
        """See `Launcher.close`."""
        self._zygote.end(0)

    def _make_directory(self, name: str) -> Directory:
        reached(Boundary.ATTEMPT_MKDIR, Side.BEFORE)
        if self._baton.elapsed_us < self._disk.full_until_us:
            raise LaunchError("directory", f"{name}: ENOSPC")
        directory = self._disk.make(name)
        if directory is None:
            raise LaunchError("directory", f"{name} exists already", nothing_ran=False, exists=True)
        reached(Boundary.ATTEMPT_MKDIR, Side.AFTER)
        reached(Boundary.ATTEMPT_SPEC, Side.BEFORE)
        reached(Boundary.ATTEMPT_SPEC, Side.AFTER)
        return directory

    def _spawn(self, gate: Gate, directory: Directory) -> None:
        reached(Boundary.SHIM_SPAWN, Side.BEFORE)
        zygote = self._zygote
        if not zygote.is_alive:  # the request could not be sent: a new one, and it is exec'ed once for this launch
            self._zygote = self._start_zygote()
            zygote = self._table.new(f"once:{self._worker.name}", "zygote", parent=self._worker, worker=self._worker)
        launching = Launching(self._baton, self._table, directory, gate, self._jobs)

        def serve() -> None:
            launching.serve(zygote, zygote)
            if zygote is not self._zygote:
                zygote.end(0)

        unserved = zygote.at_end
        unserved.append(gate.leave)

        def served() -> None:
            serve()
            if gate.leave in unserved:
                unserved.remove(gate.leave)

        zygote.start(served, f"/{directory.name}")
        reached(Boundary.SHIM_SPAWN, Side.AFTER)

    def _start_zygote(self) -> Process:
        reached(Boundary.ZYGOTE_EXEC, Side.BEFORE)
        worker = self._worker
        zygote = self._table.new(f"zygote:{worker.name}", "zygote", parent=worker, worker=worker)
        # The end of its worker ends it, once it has served what was asked for before.
        worker.at_end.append(lambda: self._baton.later(20 * US_PER_MS, lambda: zygote.end(0)))
        reached(Boundary.ZYGOTE_EXEC, Side.AFTER)
        return zygote

    def _await_ready(self, gate: Gate, spec: LaunchSpec) -> tuple[Process, int]:
        reached(Boundary.READY_RECEIVE, Side.BEFORE)
        gate.order = spec
        gate.changed.notify()
        until_us = self._baton.mono_us + int(READY_TIMEOUT_S * US_PER_S)
        while gate.ready is None and gate.is_served and self._baton.mono_us < until_us:
            gate.changed.wait(until_us)
        if gate.ready is None:
            if gate.is_served:
                raise LaunchError("ready", f"no answer within {READY_TIMEOUT_S:.0f} s")
            raise LaunchError("ready", "the shim died before it was ready")
        if isinstance(gate.ready, str):
            raise LaunchError("ready", gate.ready)
        reached(Boundary.READY_RECEIVE, Side.AFTER)
        return gate.ready
