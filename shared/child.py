"""What a process of tenure is told, how it is asked to stop, and how a child of `tenure up` begins and ends.

A bootstrap's `main(options: ChildOptions) -> None` runs until `options.stop.asked`, then drains for `options.stop.drain_s` and
returns. Under `tenure up` it is called by `run`; alone, by its own command, which calls `listen` first.

Rule: design §6, last two paragraphs.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.queues import Queue
from pathlib import Path
from types import FrameType
from typing import Any

from shared import logs, presence
from shared.clock import Clock, SystemClock
from shared.errors import TenureError
from shared.home import Home
from shared.model.instant import US_PER_MS, US_PER_S

ORPHAN_BOUND_S = 1.8  # from the parent's death to this process's own end, which is promised within 2 s
COMM_CHARS_MAX = 15  # of a process name, in the kernel
DRAIN_S = 10.0
DRAIN_MAX_US = 86_400 * US_PER_S
LEAVE_BOUND_S = 5.0
LEFT_TO_PARENT = (signal.SIGINT, signal.SIGHUP)  # a terminal sends them to the whole group; `up` says what they mean
HURRY = signal.SIGUSR1  # from `up`: no more time for the drain

log = logging.getLogger(__name__)


def leave_in_time(leave: Callable[[], None], clock: Clock) -> None:
    """Have a process's end written down by `leave`, tried again while the store is busy, for `LEAVE_BOUND_S`.

    What is not written by then is found out all the same: whoever looks finds the process's lock free.

    Raises:
        TenureError: what `leave` raised last when the time was over; at once, what does not pass by itself.
    """
    until_us = clock.now().mono_us + int(LEAVE_BOUND_S * US_PER_S)
    while True:
        try:
            leave()
            return
        except TenureError as error:
            now_us = clock.now().mono_us
            if error.pause_ms is None or now_us >= until_us:
                raise
            clock.wait(now_us + error.pause_ms * US_PER_MS, None)


class Stop:
    """The wish that this process ends, and the time it may still take for its drain.

    Asked from another thread than the main loop, which reads it after each step. It crosses into a spawned child as one that
    nobody asked yet.

    Attributes:
        drain_s: Seconds from the first ask until what still runs is released; 0 is at once. It only ever shrinks. None: go on.
        why: A word for the log: a signal's name, or `parent gone`. Empty: go on.
    """

    def __init__(self) -> None:
        self.drain_s: float | None = None
        self.why = ""
        self._wakes: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Stop], tuple[()]]:
        return (Stop, ())

    @property
    def asked(self) -> bool:
        """True from the first ask on."""
        return self.drain_s is not None

    def ask(self, drain_s: float, why: str) -> None:
        """Ask for the end; a later ask can only shorten the time."""
        with self._lock:
            self.why = self.why or why
            self.drain_s = drain_s if self.drain_s is None else min(self.drain_s, drain_s)
            wakes = tuple(self._wakes)
        for wake in wakes:
            wake()

    def on_ask(self, wake: Callable[[], object]) -> None:
        """Have `wake` called at each ask, from another thread, or at once when one came already."""
        with self._lock:
            self._wakes.append(wake)
            missed = self.asked
        if missed:
            wake()


@dataclass(frozen=True, slots=True)
class ChildOptions:
    """What a coordinator or worker process is told at its start.

    Attributes:
        home: Absolute path of the home.
        name: `coordinator`, or the worker's name.
        drain_s: Time for the drain once it is asked to stop.
        parent_pid: The `tenure up` above it; None when it runs alone.
        log_level: Lowest level logged.
        stop: Asked when this process shall end.
    """

    home: str
    name: str
    drain_s: float = DRAIN_S
    parent_pid: int | None = None
    log_level: int = logging.INFO
    stop: Stop = field(default_factory=Stop)


class ParentWatch:
    """Notices the death of the process that started this one with multiprocessing, without ever waking up for it.

    After `on_gone` was called the process has `bound_s` to end by itself; then it is ended, whatever hangs. That is safe at any
    instant, like every death of a tenure process.
    """

    def __init__(self, on_gone: Callable[[], None], *, bound_s: float = ORPHAN_BOUND_S) -> None:
        parent = multiprocessing.parent_process()
        if parent is None:
            raise RuntimeError("this process was not started with multiprocessing")
        self._sentinel = parent.sentinel
        self._on_gone = on_gone
        self._bound_s = bound_s

    def start(self) -> None:
        """Watch from now on, on a thread of its own, until this process ends."""
        threading.Thread(target=self._watch, name="parent-watch", daemon=True).start()

    def _watch(self) -> None:
        wait([self._sentinel])
        self._on_gone()
        threading.Event().wait(self._bound_s)
        os._exit(1)


def run(target: str, options: ChildOptions, queue: Queue[Any]) -> None:
    """Be a child of `tenure up`: the first function of ours in the spawned process. Ends with `sys.exit`'s code as usual.

    Args:
        target: `module:function`, imported here and called with `options`.
        options: As the bootstraps take them.
        queue: The queue of the parent's `ChildLog` for this process.
    """
    listen(options)
    finish_log = logs.set_up_child(queue, level=options.log_level)
    try:
        ParentWatch(lambda: options.stop.ask(0.0, "parent gone")).start()
        _be_visible(options)
        _call(target, options)
    finally:
        hear_no_more()
        finish_log()


def listen(options: ChildOptions) -> None:
    """Turn signals into `options.stop`. Call it from the main thread.

    Alone, SIGTERM, Ctrl-C and a hang-up ask for the stop, and a second one takes the drain away. Under `tenure up` SIGTERM asks,
    however often (one that is sent to a whole group comes twice: directly, and through `up`), `HURRY` takes the drain away, and
    the terminal's signals are passed over. Passed over, not ignored: what is ignored stays ignored in every program that is
    exec'ed below, a job for instance. What this process itself was told to ignore (`nohup`) stays so.

    The handlers do nothing: Python writes each signal's number to a pipe, and a thread reads that. A handler in Python would only
    run once the main thread wakes, and a signal that comes just before that thread blocks does not wake it.
    """
    alone = options.parent_pid is None
    numbers, tell = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, *LEFT_TO_PARENT, *(() if alone else (HURRY,))):
        if number not in LEFT_TO_PARENT or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _pass_over)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, LEFT_TO_PARENT)  # the parent blocks them around the spawn

    def hear() -> None:
        while True:
            for number in os.read(numbers, 64):
                hurry = options.stop.asked if alone else number == HURRY
                if hurry or alone or number == signal.SIGTERM:
                    options.stop.ask(0.0 if hurry else options.drain_s, signal.Signals(number).name)

    threading.Thread(target=hear, name="signals", daemon=True).start()


def hear_no_more() -> None:
    """Ignore from now on what `listen` heard: this process is at its end, and how it ended is decided.

    The interpreter's own end gives handled signals their deadly default back, ignored ones not.
    """
    for number in (signal.SIGTERM, HURRY, *LEFT_TO_PARENT):
        signal.signal(number, signal.SIG_IGN)


def _pass_over(_number: int, _frame: FrameType | None) -> None:
    """Keep the signal from doing what it does by default."""


def _be_visible(options: ChildOptions) -> None:
    """Show the name in `ps`, and hold the file that names this process to a later `up`, until it ends; neither is vital."""
    try:
        Path("/proc/self/comm").write_text(f"tenure:{options.name}"[:COMM_CHARS_MAX], encoding="ascii")
        presence.hold_child(Home(Path(options.home)).run, options.name, SystemClock())
    except OSError as error:  # a full disk, say
        log.warning("process.unnamed", extra={"why": str(error)})


def _call(target: str, options: ChildOptions) -> None:
    module, _, function = target.partition(":")
    try:
        getattr(import_module(module), function)(options)
    except TenureError as error:
        log.error("process.refused", extra={"code": error.code, "error": str(error), "hint": error.hint})  # noqa: TRY400  # ours: no traceback
        raise SystemExit(error.exit_code) from error
    except Exception as error:
        log.exception("process.failed")
        raise SystemExit(1) from error
