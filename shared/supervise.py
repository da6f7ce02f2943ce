"""Starts processes with multiprocessing, starts again those that die, and ends them all within a bound.

The parent's loop asks a `Supervisor` what is due and waits on one pipe, which carries the signals of this process, the deaths of
children (SIGCHLD) among them; while nothing happens it never wakes up. Start method **spawn**: no store connection, lock or
thread crosses into a child.

Rule: design §6, "`tenure up` is a small parent for one host".
"""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from types import FrameType, TracebackType
from typing import Protocol, Self

from shared import boundary, child
from shared.boundary import Boundary
from shared.clock import Clock
from shared.logs import ChildLog, TerminalHandler
from shared.model.instant import US_PER_MS, US_PER_S

GRACE_US = 2 * US_PER_S  # a child's time to end after its drain is over, and again after it was hurried
REFUSALS_MAX = 3  # quick ends with the same refusal, after which starting again cannot help
REFUSED = (2, 3)  # exit codes of design §12: a file is wrong; the store or home cannot be used


class Report(Protocol):
    """Tells the person at the terminal what happens, and a program the same as an event with facts."""

    def __call__(self, event: str, line: str, /, **facts: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """One process to keep running.

    Attributes:
        name: Unique among them; a name of files and log lines.
        target: `module:function`, imported in the child.
    """

    name: str
    target: str


@dataclass(slots=True)
class Backoff:
    """How long a child that died waits for its next start: 0.1 s, doubled up to 5 s, anew after 30 s of life."""

    deaths: int = 0

    FIRST_US = 100 * US_PER_MS
    LONGEST_US = 5 * US_PER_S
    STEADY_US = 30 * US_PER_S

    def delay_us(self, lived_us: int) -> int:
        """The wait after a death; remembers it."""
        self.deaths = 1 if lived_us >= self.STEADY_US else self.deaths + 1
        return min(self.FIRST_US << min(self.deaths - 1, 10), self.LONGEST_US)


class Phase(StrEnum):
    """How far the end is; each phase but the first has a deadline, at which the next one begins."""

    RUNNING = "running"
    DRAINING = "draining"
    HURRYING = "hurrying"
    KILLING = "killing"


@dataclass(slots=True)
class _Child:
    plan: Plan
    backoff: Backoff = field(default_factory=Backoff)
    process: BaseProcess | None = None
    log: ChildLog | None = None
    started_us: int = 0
    due_us: int | None = 0  # when it is to be started; None while it runs or will not run again
    refusals: int = 0


class Supervisor:
    """Keeps the planned processes running until asked to end them.

    Attributes:
        code: What the parent should exit with: 0; 1 when a child did not end cleanly; a child's code when it refused for good.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        *,
        options_for: Callable[[str], child.ChildOptions],
        terminal: TerminalHandler,
        clock: Clock,
        report: Report,
        on_end: Callable[[str, int], None],
        drain_s: float,
    ) -> None:
        """Plan only; `advance` starts them.

        Args:
            options_for: What the child of that name is told.
            terminal: Where their records go.
            on_end: Called with name and pid of a child that was reaped.
            drain_s: The children's own bound for their drain.
        """
        self._children = [_Child(plan) for plan in plans]
        self._options_for = options_for
        self._terminal = terminal
        self._clock = clock
        self._report = report
        self._on_end = on_end
        self._drain_us = round(drain_s * US_PER_S)
        self._phase = Phase.RUNNING
        self._deadline_us: int | None = None
        self.code = 0

    @property
    def ended(self) -> bool:
        """True once the end was asked for and no process is left."""
        return self._phase is not Phase.RUNNING and not self._alive()

    @property
    def ending(self) -> bool:
        """True once the end was asked for."""
        return self._phase is not Phase.RUNNING

    def pids(self) -> dict[str, int]:
        """The running processes, by name."""
        return {each.plan.name: each.process.pid or 0 for each in self._alive() if each.process}

    def advance(self) -> int | None:
        """Reap what died, start what is due, let a deadline pass; never blocks for long.

        Returns: The monotonic instant at which to call again at the latest; None: at the next signal.
        """
        for each in self._alive():
            if each.process is not None and each.process.exitcode is not None:
                self._reaped(each, each.process)
        now = self._clock.now().mono_us
        if self._deadline_us is not None and now >= self._deadline_us and self._alive():
            self._next_phase()
        if self._phase is Phase.RUNNING:
            for each in self._children:
                if each.due_us is not None and each.due_us <= now:
                    self._start(each)
        return self._next_due_us()

    def end(self) -> None:
        """Ask all children to end: the first call lets them drain, each later one hurries them."""
        if self._phase in {Phase.RUNNING, Phase.DRAINING}:
            self._next_phase()

    def end_now(self) -> None:
        """Kill and reap whatever is left; for a parent that fails."""
        for each in self._alive():
            if each.process is not None:
                each.process.kill()
                each.process.join()

    def _alive(self) -> list[_Child]:
        return [each for each in self._children if each.process is not None]

    def _next_due_us(self) -> int | None:
        if self._phase is not Phase.RUNNING:
            return self._deadline_us
        return min((each.due_us for each in self._children if each.due_us is not None), default=None)

    def _start(self, each: _Child) -> None:
        each.due_us = None
        each.started_us = self._clock.now().mono_us
        log = None
        try:
            log = ChildLog(each.plan.name, self._terminal)
            options = self._options_for(each.plan.name)
            process = multiprocessing.Process(
                target=child.run, name=each.plan.name, args=(each.plan.target, options, log.queue)
            )
            with _left_to_parent():
                process.start()
        except OSError as error:  # no process, descriptor or memory to be had just now
            self._died(each, f"could not be started ({error.strerror})", error=str(error))
        else:
            each.process, each.log = process, log
        finally:
            if log is not None:
                log.started()

    def _reaped(self, each: _Child, process: BaseProcess) -> None:
        code = process.exitcode or 0
        pid = process.pid or 0
        process.close()
        each.process = None
        if each.log is not None:
            each.log.close()  # its last words come before ours
            each.log = None
        self._on_end(each.plan.name, pid)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        facts = {"pid": pid, "signal": -code if code < 0 else None, "exit_code": code if code >= 0 else None}
        if self._phase is Phase.RUNNING:
            quick = self._clock.now().mono_us - each.started_us < Backoff.STEADY_US
            each.refusals = each.refusals + 1 if quick and code in REFUSED else 0
            if each.refusals >= REFUSALS_MAX:
                self._give_up(each, code)
            else:
                self._died(each, f"died ({how})", **facts)
        elif code not in {0, -signal.SIGTERM, -child.HURRY}:  # killed before its handlers stood: nothing was begun yet
            self.code = self.code or 1
            self._report(
                "child.unclean", f"{each.plan.name} did not end cleanly ({how})", child=each.plan.name, **facts
            )

    def _died(self, each: _Child, what: str, **facts: object) -> None:
        now = self._clock.now().mono_us
        delay_us = each.backoff.delay_us(now - each.started_us)
        each.due_us = now + delay_us
        later = f" in {delay_us / US_PER_S:g} s" if each.backoff.deaths > 1 else ""
        line = f"{each.plan.name} {what}, starting it again{later}"
        self._report("child.died", line, child=each.plan.name, delay_ms=delay_us // US_PER_MS, **facts)

    def _give_up(self, each: _Child, code: int) -> None:
        line = f"{each.plan.name} refused to run {REFUSALS_MAX} times (exit code {code}): ending the others"
        self._report("child.refused", line, child=each.plan.name, exit_code=code)
        self.code = code
        self.end()

    def _next_phase(self) -> None:
        """Begin the next phase of the end; each child that is left hears of it."""
        after = {Phase.RUNNING: Phase.DRAINING, Phase.DRAINING: Phase.HURRYING}
        self._phase = after.get(self._phase, Phase.KILLING)
        bound_us = self._drain_us + GRACE_US if self._phase is Phase.DRAINING else GRACE_US
        self._deadline_us = self._clock.now().mono_us + bound_us
        for each in self._alive():
            if each.process is None:
                continue
            if self._phase is Phase.KILLING:
                line = f"{each.plan.name} did not end in time: killing it (what it runs lives on)"
                self._report("child.killed", line, child=each.plan.name, pid=each.process.pid)
                each.process.kill()
            elif self._phase is Phase.HURRYING and each.process.exitcode is None:
                boundary.kill(each.process.pid or 0, child.HURRY, Boundary.HARM_SIGNAL)
            else:
                each.process.terminate()


class SignalPipe:
    """The signals that `tenure up` acts on, as something to wait for: Ctrl-C, SIGTERM, a hang-up, a child's death.

    What this process was told to ignore (`nohup`, a background job of a script) stays ignored.
    """

    ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before = {number: signal.getsignal(number) for number in (*self.ENDING, signal.SIGCHLD)}
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number, handler in self._before.items():
            if handler is not signal.SIG_IGN or number is signal.SIGCHLD:
                signal.signal(number, _noted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, timeout_s: float | None) -> int:
        """Block until a signal or the end of the time; None is without end. Returns how many asked for the end."""
        readable, _, _ = select.select([self._reader], [], [], timeout_s)
        if not readable:
            return 0
        return sum(number in self.ENDING for number in os.read(self._reader, 4096))


def prepare() -> None:
    """Make this process ready to spawn: once, before the first `Supervisor`, child or queue.

    PYTHONSAFEPATH: no child, and no helper of multiprocessing, looks for modules in the folder it happens to be started in.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    multiprocessing.set_start_method("spawn", force=True)
    # When this process is killed, its tracker cleans up the semaphores of the queues. That is what it is for, not worth a warning.
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore:resource_tracker:UserWarning"
    resource_tracker.ensure_running()
    if before is None:
        del os.environ["PYTHONWARNINGS"]
    else:
        os.environ["PYTHONWARNINGS"] = before


def _noted(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal by the byte that Python has written to the pipe."""


@contextmanager
def _left_to_parent() -> Iterator[None]:
    """Keep the terminal's signals from a child until it has its own handlers; ours come a moment later."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, child.LEFT_TO_PARENT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
