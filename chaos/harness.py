"""A fresh home in a folder of its own, and real coordinators and workers on it, to be started, harmed and started again.

Whatever this brings about is killed and reaped at the end, on every path: the process that drills becomes a subreaper, so that
what loses its parent falls to it. Rule: design §9 ("Drills").
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from chaos.history import History
from chaos.job import Job
from chaos.notes import read_notes
from chaos.recording import Known, output_in, record
from chaos.seen import Seen
from chaos.witness import Witness
from shared import boundary
from shared.boundary import Boundary
from shared.clock import SystemClock
from shared.home import Home, create_home
from shared.ids import AttemptId, WorkId
from shared.model.settings import Config, Settings
from shared.model.work import NewWork
from shared.policy.capacity import POOL_JOBS
from shared.process import procfs
from shared.store.contract import IdleState, ReadTx
from shared.store.sqlite.store import create, open_store
from shared.wake import Ringer

R = TypeVar("R")

DRILL_ID = "drill"
COORDINATOR = "coordinator"
ZYGOTE_NAME = "tenure-zygote"
LONGEST_PAUSE_S = 0.05
QUIET_BOUND_S = 30.0
_PR_SET_CHILD_SUBREAPER = 36


class StillWaitingError(AssertionError):
    """Something that a drill waits for did not come true within its bound."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Where a process is to be hit: `BOUNDARY:SIDE:KILL|STOP[:VICTIMS]`, as `shared/boundary.py` reads it."""

    order: str


@dataclass(frozen=True, slots=True)
class Running:
    """One started process; `name` is `coordinator` or a worker's name."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def out(self) -> Path:
        """What it wrote to its standard output."""
        return self.log.with_suffix(".out")

    @property
    def pid(self) -> int:
        """Its pid; not reused before it was reaped."""
        return self.process.pid


class Harness:
    """One drill's home and processes. A context: leaving it kills and reaps everything it brought about.

    Attributes:
        logs: What each process wrote to its standard error, and what it wrote to its standard output beside it.
        notes: Where programs that speak with tenure note what they were told and what they say.
    """

    def __init__(self, folder: Path, given: Settings | Config) -> None:
        """Make the home, its store and its configuration in an empty folder.

        Args:
            given: Activated as the first configuration, or settings of one that says nothing else.
        """
        become_subreaper()
        self._before = _tree()
        self._started: list[Running] = []
        self._folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True)
        self.clock = SystemClock()
        self.home: Home = create_home(folder / "home")[0]
        (self.home.path / "drill").write_text(DRILL_ID, encoding="ascii")
        self.witness = Witness(folder / "witness")
        self.notes = folder / "notes"
        self.notes.touch()
        self.config = given if isinstance(given, Config) else Config(settings=given)
        self.jobs: list[Job] = []
        create(self.home.path, self.clock)
        self._ringer = Ringer(self.home.run)
        self.store = open_store(self.home.path, self.clock, ring=self._ringer)
        body, digest = self.config.to_json(), self.config.digest
        self.store.write(lambda tx: tx.activate_config(body, digest, str(folder / "tenure.toml")))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with uninterrupted():
            self.close()

    def start(
        self,
        name: str,
        *,
        arm: Arm | None = None,
        clock: tuple[float, float] | None = None,
        drain_s: float | None = None,
    ) -> Running:
        """Start a coordinator or the named worker; returns at once.

        Args:
            clock: (after, by): so many seconds after its start its wall clock steps by so many.
            drain_s: Its time to leave once it is asked to; for workers.
        """
        words = [COORDINATOR] if name == COORDINATOR else ["worker", "--name", name]
        if drain_s is not None and name != COORDINATOR:
            words += ["--drain", f"{round(drain_s * 1000)}ms"]
        ordered = {} if arm is None else {"TENURE_ARM": arm.order}
        if clock is not None:
            ordered["TENURE_CLOCK"] = f"{clock[0]:g}:{clock[1]:g}"
        return self.call(name, words, env={**ordered, "TENURE_DRILL": DRILL_ID} if ordered else {})

    def call(self, name: str, words: Sequence[str], *, env: Mapping[str, str] | None = None) -> Running:
        """Call `tenure` on this home, with nothing to read; returns at once.

        Args:
            name: What it is called in names of logs.
            env: Added to the caller's environment, less what is tenure's and Python's.
        """
        return self.spawn(
            name, [sys.executable, "-P", "-m", "shared.cli", "--home", str(self.home.path), *words], env=env or {}
        )

    def spawn(self, name: str, argv: Sequence[str], *, env: Mapping[str, str]) -> Running:
        """Start a program of the drill's own; see `call`."""
        own = {key: value for key, value in os.environ.items() if not key.startswith(("TENURE_", "PYTHON"))}
        log = self.logs / f"{len(self._started):04}-{name}.log"
        with log.open("wb") as stderr, log.with_suffix(".out").open("wb") as stdout:
            process = subprocess.Popen(
                argv,
                env={**own, **env},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        running = Running(name, process, log)
        self._started.append(running)
        return running

    def own(self, running: Running) -> None:
        """Reap a process that somebody else started, and end it when this ends."""
        self._started.append(running)

    def kill(self, running: Running) -> None:
        """Kill -9 and reap a process that was started here; the shims and jobs below it live on."""
        if running.process.poll() is None:
            boundary.kill(running.pid, signal.SIGKILL, Boundary.HARM_SIGNAL)
            running.process.wait()

    def kill_zygote(self, running: Running) -> bool:
        """Kill -9 a worker's zygote; False when it has none just now."""
        for pid in procfs.children(running.pid):
            if _name(pid) == ZYGOTE_NAME:
                _kill(pid)
                return True
        return False

    def submit(self, *, wait: float | Path = 0, status: int = 0, binding: str | None = None) -> WorkId:
        """Submit a job that reports to the witness; see `Witness.command`. `binding`: one that tries it again."""
        work_id = self.submit_commands([self.witness.command(wait=wait, status=status)], binding)[0]
        self.jobs.append(Job(work_id, status, may_run_again=binding is not None))
        return work_id

    def submit_command(self, command: Sequence[str]) -> WorkId:
        """Submit any command; it is no job of the witness."""
        return self.submit_commands([command])[0]

    def submit_commands(self, commands: Sequence[Sequence[str]], binding: str | None = None) -> list[WorkId]:
        """Submit several in one commit."""
        works = [
            NewWork(
                scope="",
                binding=binding,
                command=tuple(command),
                env=(),
                cwd="/",
                input=None,
                submitted_by="drill",
            )
            for command in commands
        ]
        return self.store.write(lambda tx: [tx.submit(work, POOL_JOBS) for work in works])

    def cancel(self, work_id: WorkId) -> None:
        """Cancel a job; from here on it may have started, or not."""
        self.store.write(lambda tx: tx.cancel_work(work_id, by="drill", reason="drill"))
        self.was_cancelled(work_id)

    def was_cancelled(self, work_id: WorkId) -> None:
        """Know of a job that somebody else cancelled."""
        self.jobs = [replace(job, cancelled=job.cancelled or job.work_id == work_id) for job in self.jobs]

    def was_interrupted(self, work_id: WorkId) -> None:
        """Know of a job that somebody interrupted: an attempt of it may be stopped, and another follows."""
        self.jobs = [
            replace(job, interrupted=True, may_run_again=True) if job.work_id == work_id else job for job in self.jobs
        ]

    def read(self, fn: Callable[[ReadTx], R]) -> R:
        """Read the store."""
        return self.store.read(fn)

    def attempt_states(self) -> dict[AttemptId, str]:
        """State of every attempt of the jobs submitted here."""

        def read(tx: ReadTx) -> dict[AttemptId, str]:
            return {attempt.id: attempt.state for job in self.jobs for attempt in tx.attempts(job.work_id)}

        return self.read(read)

    def wait_quiet(self, bound_s: float = QUIET_BOUND_S, *, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait until nothing is live or waiting any more.

        Args:
            meanwhile: Called before each look.

        Raises:
            StillWaitingError: it did not come to rest in time; what it came to is named.
        """

        def is_quiet() -> bool:
            meanwhile()
            state: IdleState = self.read(lambda tx: tx.idle_state())
            return state.live == 0 and state.waiting == 0

        self.wait(is_quiet, "nothing is live or waiting", bound_s)

    def wait(self, predicate: Callable[[], R], what: str, bound_s: float = QUIET_BOUND_S) -> R:
        """Ask again and again until the answer is true; return it. What ended below us is reaped meanwhile.

        Raises:
            StillWaitingError: the bound passed first.
        """
        until = time.monotonic() + bound_s
        pause = 0.002
        while True:
            answer = predicate()
            if answer:
                return answer
            self.reap_orphans()
            if time.monotonic() >= until:
                raise StillWaitingError(f"not within {bound_s:g} s: {what}; last: {self.describe()}")
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_S)

    def describe(self) -> str:
        """What is not over, in a line, for a failure."""
        state = self.read(lambda tx: tx.idle_state())
        alive = [f"{running.name}:{running.pid}" for running in self._started if running.process.poll() is None]
        open_attempts = {name: word for name, word in self.attempt_states().items() if word not in ENDED}
        return f"{state}, open {open_attempts}, running {alive}, logs {self.logs}"

    def history(self) -> History:
        """Everything the checks look at."""
        known = Known(self.jobs, self.witness.lines(), self.config, Seen(notes=read_notes(self.notes)))
        return record(self.store, output_in(self.home.attempts), known)

    @property
    def drill_log(self) -> Path:
        """Where an armed process notes that it came to its boundary."""
        return self.home.path / "drill.log"

    def reached(self) -> list[str]:
        """Lines of the drill's log: every armed boundary that was reached, `ORDER PID TICKS` each."""
        try:
            return self.drill_log.read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return []

    def reap_orphans(self) -> None:
        """Take the exit status of what ended below us and belongs to nobody, as init would."""
        unreaped = {running.pid for running in self._started if running.process.returncode is None}
        owned = unreaped | {pid for pid, _ in self._before}
        for pid in procfs.children(os.getpid()):
            if pid not in owned and _is_zombie(pid):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def unowned(self) -> set[int]:
        """Pids of everything below this process that was not there before, and was not started here itself: jobs, shims …"""
        own = {running.pid for running in self._started if running.process.poll() is None}
        return {pid for pid, _ in _tree() - self._before} - own

    def strangers(self) -> list[int]:
        """Pids of everything below this process that neither was there before nor is one of tenure's own at rest."""
        own = {running.pid for running in self._started if running.process.poll() is None}
        own |= {pid for each in own for pid in procfs.children(each) if _name(pid) == ZYGOTE_NAME}
        return sorted(pid for pid, _ in _tree() - self._before if pid not in own and not _is_zombie(pid))

    def close(self) -> None:
        """Kill and reap everything that this drill brought about. May be repeated."""
        for running in self._started:
            self.kill(running)
        while left := _tree() - self._before:
            for pid, _ in left:
                _kill(pid)
            self.reap_orphans()
            time.sleep(0.002)
        self.store.close()
        self._ringer.close()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Put an interrupt off until the block ends: whoever is impatient and asks a second time waits for the cleaning up."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


ENDED = frozenset({"succeeded", "failed", "timed_out", "interrupted", "handed_off", "cancelled"})


def become_subreaper() -> None:
    """Let what loses its parent below this process fall to it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def kill_below(pid: int) -> None:
    """Kill everything below a process, until nothing is left there."""
    while left := [each for each in procfs.descendants(pid) if not _is_zombie(each)]:
        for each in left:
            _kill(each)
        time.sleep(0.002)


def _tree() -> set[tuple[int, int]]:
    """Every process below this one, by pid and start, so that a pid used again is another process."""
    found = set()
    for pid in procfs.descendants(os.getpid()):
        with contextlib.suppress(OSError):
            found.add((pid, procfs.start_ticks(pid)))
    return found


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        boundary.kill(pid, signal.SIGKILL, Boundary.HARM_SIGNAL)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _is_zombie(pid: int) -> bool:
    try:
        return procfs.is_ended(pid, procfs.stat_fields(pid))
    except OSError:
        return False
