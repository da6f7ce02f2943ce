"""Coordinators and workers of a random drill: started, killed, frozen, asked to leave, and watched for deaths of their own."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from chaos.harness import COORDINATOR, Harness, Running
from chaos.random_drill.disk import FULL_WORDS, fill
from chaos.random_drill.plan import STANDBY, Held
from chaos.recording import PAGE
from chaos.seen import Fault
from shared import boundary
from shared.boundary import Boundary
from shared.model.attempt import Attempt
from shared.model.evidence import ProcessIdentity
from shared.process import procfs
from shared.process.identity import is_it

DRAIN_S = 1.0
LEAVE_BOUND_S = 20.0
FILLER = "filler"
LOG_TAIL_CHARS = 2_000
GAVE_UP = {1: "tenure: the store's queue was not free", 3: FULL_WORDS}
"""How a process may end by itself that comes to a busy store, or a full disk, at its start."""

SHIM = "shim"
PROGRAM = "program"
ZYGOTE = "zygote"
WORKER = "worker"
"""What kills are counted as, beside `COORDINATOR`."""


@dataclass(frozen=True, slots=True)
class Blow:
    """Harm that was done.

    Attributes:
        at_us: UTC, by the drill's own clock.
        what: `kill`, `freeze`, `thaw`, `ask to leave`, `busy`, `clock`.
        who: Its name: `worker-1`, `coordinator`, `standby`, `w41.1's shim`.
        pid: None where no process was meant.
        led: It was the leading coordinator.
    """

    at_us: int
    what: str
    who: str
    pid: int | None = None
    led: bool = False


@dataclass(slots=True)
class Term:
    """When a coordinator or worker was there, in numbers of the changefeed.

    Attributes:
        from_seq: The last event before it was started.
        until_seq: The last event right before it was killed or asked to leave; None: neither was done.
        failed: It ended by itself.
    """

    pid: int
    from_seq: int
    until_seq: int | None = None
    failed: bool = False


@dataclass(slots=True)
class _Leaving:
    running: Running
    until_s: float


@dataclass(slots=True)
class Processes:
    """The processes of one drill.

    Attributes:
        killed: Counted, by kind.
        blows: In the order they were dealt.
        faults: Deaths that nobody brought about.
        terms: Of each coordinator and worker, in the order they were started.
    """

    harness: Harness
    killed: Counter[str] = field(default_factory=Counter)
    blows: list[Blow] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _running: dict[str, Running] = field(default_factory=dict)
    _frozen: dict[str, float] = field(default_factory=dict)
    _frozen_shims: list[tuple[ProcessIdentity, float]] = field(default_factory=list)
    _leaving: list[_Leaving] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    _holders: list[Running] = field(default_factory=list)
    _filler: tuple[Path, float] | None = None
    _seq: int = 0

    @property
    def pids(self) -> set[int]:
        """Of those that were started, and neither killed nor asked to leave since."""
        return {running.pid for running in self._running.values()}

    @property
    def kills(self) -> int:
        """Kills of workers and coordinators."""
        return self.killed[WORKER] + self.killed[COORDINATOR]

    def is_there(self, name: str) -> bool:
        """Whether it was started, and neither killed nor asked to leave since."""
        return name in self._running

    def is_frozen(self, name: str) -> bool:
        """Whether it is stopped now."""
        return name in self._frozen

    def start(self, name: str, *, clock: tuple[float, float] | None = None) -> None:
        """Start it; see `Harness.start`."""
        role = COORDINATOR if name == STANDBY else name
        from_seq = self._last_seq()
        self._running[name] = self.harness.start(role, clock=clock, drain_s=DRAIN_S)
        self.terms.append(Term(self._running[name].pid, from_seq))
        if clock is not None:
            self._note(f"clock {clock[1] / 3600:+g} h after {clock[0]:g} s", name, self._running[name].pid)

    def again(self, *names: str, clock: tuple[float, float] | None = None) -> None:
        """Kill all of them, then start them again."""
        for name in names:
            self.kill(name)
        for name in names:
            self.start(name, clock=clock)

    def kill(self, name: str) -> None:
        """Kill -9, stopped or not. One that had ended by itself is a fault."""
        running = self._running.pop(name)
        self._frozen.pop(name, None)
        if self._has_failed(name, running):
            return
        self._term(running).until_seq = self._last_seq()
        led = name in (COORDINATOR, STANDBY) and self._leader_pid() == running.pid
        self._note("kill", name, running.pid, led=led)
        self.harness.kill(running)
        self.killed[COORDINATOR if name in (COORDINATOR, STANDBY) else WORKER] += 1

    def kill_zygote(self, name: str) -> None:
        """Kill a worker's zygote, if it has one just now."""
        if self.harness.kill_zygote(self._running[name]):
            self._note("kill", f"{name}'s zygote")
            self.killed[ZYGOTE] += 1

    def kill_shim(self, attempt: Attempt, shim: ProcessIdentity) -> None:
        """Kill the shim of a pinned attempt, if it is still that one."""
        if _signal(shim, signal.SIGKILL):
            self._note("kill", f"{attempt.id}'s shim", shim.pid)
            self.killed[SHIM] += 1

    def kill_program(self, attempt: Attempt, shim: ProcessIdentity, pid: int) -> bool:
        """Kill a program of a job, if it is still below its shim; False: it is not."""
        if pid not in procfs.children(shim.pid):
            return False
        self._note("kill", f"{attempt.id}'s program", pid)
        boundary.kill(pid, signal.SIGKILL, Boundary.HARM_SIGNAL)
        self.killed[PROGRAM] += 1
        return True

    def freeze_shim(self, attempt: Attempt, shim: ProcessIdentity, seconds: float) -> None:
        """Stop the shim of a pinned attempt for a while; its job goes on, and it by `look`."""
        if _signal(shim, signal.SIGSTOP):
            self._note("freeze", f"{attempt.id}'s shim", shim.pid)
            self._frozen_shims.append((shim, time.monotonic() + seconds))

    def freeze(self, name: str, seconds: float) -> None:
        """Stop it for a while; it goes on by `look`."""
        running = self._running[name]
        if name in self._frozen or running.process.poll() is not None:
            return
        self._note("freeze", name, running.pid)
        boundary.kill(running.pid, signal.SIGSTOP, Boundary.HARM_SIGNAL)
        self._frozen[name] = time.monotonic() + seconds

    def leave(self, name: str) -> None:
        """Ask it to leave; whether it does is seen by `look`. One that had not come so far as to hear it just ends."""
        running = self._running.pop(name)
        self._thaw(name, running)
        if self._has_failed(name, running):
            return
        self._term(running).until_seq = self._last_seq()
        self._note("ask to leave", name, running.pid)
        boundary.kill(running.pid, signal.SIGTERM, Boundary.HARM_SIGNAL)
        self._leaving.append(_Leaving(running, time.monotonic() + LEAVE_BOUND_S))

    def hold_store(self, held: Held, seconds: float) -> None:
        """Have another process hold a lock of the store for a while."""
        self._note(f"hold the {held} for {seconds:.1f} s", "store")
        folder = self.harness.home
        words = [held, str(folder.queue_lock if held is Held.QUEUE else folder.store), f"{seconds:.3f}"]
        holder = [sys.executable, "-P", "-m", "chaos.random_drill.holder", *words]
        self._holders.append(self.harness.spawn("holder", holder, env={}))

    def look(self) -> None:
        """Let go on what was frozen long enough, see who has left, start anew who ended by itself."""
        now = time.monotonic()
        for name, until_s in list(self._frozen.items()):
            if now >= until_s:
                self._thaw(name, self._running[name])
        for shim, until_s in list(self._frozen_shims):
            if now >= until_s:
                self._frozen_shims.remove((shim, until_s))
                _signal(shim, signal.SIGCONT)
        if self._filler is not None and now >= self._filler[1]:
            self._filler[0].unlink()
            self._filler = None
        for leaving in list(self._leaving):
            code = leaving.running.process.poll()
            if code is None and now < leaving.until_s:
                continue
            self._leaving.remove(leaving)
            if code != 0 and not (code == -signal.SIGTERM and leaving.running.log.stat().st_size == 0):
                what = "did not leave" if code is None else f"left with {code}"
                self._fault(leaving.running, what)
        for name, running in list(self._running.items()):
            if self._has_failed(name, running):
                self._frozen.pop(name, None)
                self.start(name)

    def fill_disk(self, seconds: float) -> None:
        """Leave no room on the home's disk for a while."""
        if self._filler is None:
            self._note(f"fill the disk for {seconds:.1f} s", "disk")
            path = self.harness.home.path / FILLER
            fill(path)
            self._filler = (path, time.monotonic() + seconds)

    @property
    def is_settled(self) -> bool:
        """Nobody is frozen or about to leave, nobody keeps the store, and there is room."""
        self._holders = [holder for holder in self._holders if holder.process.poll() is None]
        is_frozen = self._frozen or self._frozen_shims
        return not is_frozen and not self._leaving and not self._holders and self._filler is None

    def _thaw(self, name: str, running: Running) -> None:
        if self._frozen.pop(name, None) is not None and running.process.poll() is None:
            boundary.kill(running.pid, signal.SIGCONT, Boundary.HARM_SIGNAL)
            self._note("thaw", name, running.pid)

    def _has_failed(self, name: str, running: Running) -> bool:
        code = running.process.poll()
        if code is None:
            return False
        self._term(running).failed = True
        if _gave_up(code, _tail(running)):
            self._note("gave up at its start", name, running.pid)  # whoever supervises it starts it anew
        else:
            self._fault(running, f"{name} ended by itself with {code}")
        return True

    def _fault(self, running: Running, error: str) -> None:
        self.faults.append(Fault(running.log.stem, error, _tail(running)))

    def _term(self, running: Running) -> Term:
        return next(term for term in reversed(self.terms) if term.pid == running.pid)

    def _last_seq(self) -> int:
        while page := self.harness.read(lambda tx: tx.events(after=self._seq, limit=PAGE)):
            self._seq = page[-1].seq
        return self._seq

    def _leader_pid(self) -> int | None:
        leader = self.harness.read(lambda tx: tx.leader())
        return None if leader is None else leader.pid

    def _note(self, what: str, who: str, pid: int | None = None, *, led: bool = False) -> None:
        self.blows.append(Blow(self.harness.clock.now().wall_us, what, who, pid, led))


def _signal(who: ProcessIdentity, number: signal.Signals) -> bool:
    """Send it a signal, if it is still that process; False: it is not."""
    try:
        fd = os.pidfd_open(who.pid)
    except OSError:
        return False
    try:
        if not is_it(who):
            return False
        boundary.pidfd_kill(fd, number, Boundary.HARM_SIGNAL)
    except ProcessLookupError:
        return False  # it ended just now
    finally:
        os.close(fd)
    return True


def _gave_up(code: int, told: str) -> bool:
    return code in GAVE_UP and GAVE_UP[code] in told and "Traceback" not in told


def _tail(running: Running) -> str:
    return running.log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL_CHARS:]
