"""The stage: one home with its cast of coordinators and workers, on which cells are played one after the other."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from chaos.harness import COORDINATOR, DRILL_ID, QUIET_BOUND_S, Arm, Harness, Running
from chaos.job import Job
from chaos.stories import LEADER, Harm
from chaos.witness import Mark
from shared import boundary
from shared.boundary import Boundary
from shared.config.loader import parse
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt, AttemptState, Lease
from shared.model.evidence import ProcessIdentity
from shared.model.host import Worker
from shared.model.instant import US_PER_MS, Instant
from shared.model.settings import Settings
from shared.model.work import NewWork, Work, WorkState
from shared.policy.capacity import POOL_AGENTS
from shared.policy.lease import is_live
from shared.policy.steps import is_final_work
from shared.process import procfs
from shared.process.identity import boot_id, is_alive, pid_namespace
from shared.store.contract import ReadTx

WORKER, SECOND_WORKER, STANDBY = "worker-1", "worker-2", "standby"
HIT_BOUND_S = 20.0
COMMAND_BOUND_S = 30.0
VALVE_LINES = 64
RETRIED_ONCE, AGENT = "again", "agent"
"""Bindings of every stage."""
LOOK_AGAIN_S = 0.005
NS_PER_US = 1_000


class Stage:
    """A harness, who plays, and a valve at which jobs wait until the harm is over.

    Attributes:
        cue: Where a program waits that must not go on before somebody stands still.
        about: The Work that the present cell is about; None: there is none yet, or never.
        harms: What was done in the present cell, and when.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self.valve, self.cue = folder / "valve", folder / "cue"
        self.configuration = _configuration(settings)
        self.harness = Harness(folder, parse(self.configuration, source="the stage", folder=folder))
        for fifo in (self.valve, self.cue):
            os.mkfifo(fifo)
        self.about: WorkId | None = None
        self.harms: list[Harm] = []
        self._cast: dict[str, Running] = {}
        self._supervised: tuple[str, ...] = ()
        self._commands = 0

    def close(self) -> None:
        """End everything on it."""
        self.harness.close()

    def begin(self) -> None:
        """Begin another cell."""
        self.about = None
        self.harms.clear()

    def harmed(self, name: str, kind: str, label: str, *, when_reached: bool = False) -> None:
        """Remember for the story what was done to somebody: `kill`, `stop`, `cont` or `fault`.

        Args:
            when_reached: When an armed boundary was reached last; else just now.
        """
        who = LEADER if name in {COORDINATOR, STANDBY} else name
        reached_us = self.harness.drill_log.stat().st_mtime_ns // NS_PER_US if when_reached else None
        at_us = self.harness.clock.now().wall_us if reached_us is None else reached_us
        self.harms.append(Harm(at_us, who, kind, label))

    # --- cast --------------------------------------------------------------------------------------------------------

    @property
    def cast(self) -> list[Running]:
        """Who is on stage and alive."""
        return [running for running in self._cast.values() if running.process.poll() is None]

    def start(self, name: str, order: str | None = None) -> Running:
        """Bring somebody on; whoever had that name leaves."""
        self.leave(name)
        played = COORDINATOR if name == STANDBY else name
        if order is not None:
            self._hold.touch()
        self._cast[name] = self.harness.start(played, arm=None if order is None else Arm(order))
        return self._cast[name]

    def ensure(self, name: str) -> Running:
        """The one of that name who is on stage; started when nobody is."""
        running = self._cast.get(name)
        return running if running is not None and running.process.poll() is None else self.start(name)

    def supervise(self, *names: str) -> None:
        """Start these now and again whenever one has ended, for as long as is waited for rest; none: nobody any more."""
        self._supervised = names
        self._look_after()

    def _look_after(self) -> None:
        for name in self._supervised:
            self.ensure(name)

    def leave(self, *names: str) -> None:
        """Kill these, if they are there."""
        for name in names:
            running = self._cast.pop(name, None)
            if running is not None:
                self.harness.kill(running)

    def everyone(self, also: Iterable[int] = ()) -> list[int]:
        """Every coordinator and worker with the zygotes they started, and `also`; each pid once."""
        found = [pid for running in self.cast for pid in (running.pid, *procfs.children(running.pid))]
        return list(dict.fromkeys([*found, *also]))

    def kill_everyone(self, also: Iterable[int] = ()) -> None:
        """SIGKILL to all of them, one right after the other, and reap."""
        for pid in self.everyone(also):
            send(pid, signal.SIGKILL)
        self.leave(*self._cast)

    # --- jobs --------------------------------------------------------------------------------------------------------

    def submit(self, *, at_valve: bool, seconds: float, status: int, is_retried: bool = False) -> WorkId:
        """A job of the witness that takes so long, or waits at the valve; its binding may try it again, once."""
        wait = self.valve if at_valve else seconds
        return self.harness.submit(wait=wait, status=status, binding=RETRIED_ONCE if is_retried else None)

    def submit_agent(self, *, seconds: float, status: int) -> WorkId:
        """A job of the witness that takes so long, as an agent: what it prints is no message, so that its status decides."""
        command = self.harness.witness.command(wait=seconds, status=status)
        work = NewWork("", AGENT, command, (), "/", None, "drill")
        work_id = self.harness.store.write(lambda tx: tx.submit(work, POOL_AGENTS))
        self.harness.jobs.append(Job(work_id, status))
        return work_id

    def expect(self, work_id: WorkId, *, may_need_person: bool) -> None:
        """Let a job's evidence be destroyed: it may be killed before it begins, or its end be known to nobody."""
        self.harness.jobs = [
            replace(job, may_need_person=may_need_person, may_be_killed=may_need_person)
            if job.work_id == work_id
            else job
            for job in self.harness.jobs
        ]

    def await_mark(self, work_id: WorkId, mark: Mark) -> None:
        """Wait until the job has said so."""
        self.harness.wait(
            lambda: any(line.work_id == work_id and line.mark is mark for line in self.harness.witness.lines()),
            f"{work_id} said {mark}",
        )

    def await_shim_gone(self, work_id: WorkId) -> None:
        """Wait until the launch of a job that was pinned is over, its end written."""
        attempt = self.harness.read(lambda tx: tx.attempts(work_id))[-1]
        assert attempt.pin is not None, f"{attempt.id} was never pinned"
        self.await_gone(attempt.pin.shim, f"the shim of {attempt.id} is gone")

    def await_held(self, work_id: WorkId) -> None:
        """Wait until a lasting job runs under somebody on stage who watches it, or can go no further by itself."""
        self.harness.wait(lambda: self._is_held(work_id), f"{work_id} is held by somebody on stage")

    def _is_held(self, work_id: WorkId) -> bool:
        self._look_after()
        attempts, lease, workers, now = self.harness.read(lambda tx: _holding(tx, work_id))
        if not attempts or lease is None:
            return False
        last = attempts[-1]
        if last.state is not AttemptState.RUNNING:
            return last.state is _ASKED or is_final_work(self._work_state(work_id))
        holders = [worker.identity.pid for worker in workers if worker.id == lease.owner]
        mine = set(holders) & {running.pid for running in self.cast}
        if not (mine and is_live(lease, now)):
            return False
        jobs = [line.pid for line in self.harness.witness.lines() if line.work_id == work_id]
        seen = {*jobs, *([] if last.pin is None else [last.pin.shim.pid])}
        return bool(watched_by(mine.pop()) & seen)

    def _work_state(self, work_id: WorkId) -> WorkState:
        work = self.harness.read(lambda tx: tx.work(work_id))
        assert work is not None
        return work.state

    @contextlib.contextmanager
    def valve_open(self) -> Iterator[None]:
        """Let every job go on that waits at the valve, or comes to it meanwhile."""
        with _open_for_all(self.valve):
            yield

    @contextlib.contextmanager
    def cue_given(self) -> Iterator[None]:
        """Let every program go on that waits for its cue, or comes to that meanwhile."""
        with _open_for_all(self.cue):
            yield

    def await_work(
        self, work_id: WorkId, holds: Callable[[Work], bool], what: str, bound_s: float = QUIET_BOUND_S
    ) -> None:
        """Wait until something holds of a Work; who is supervised is started again meanwhile."""

        def is_so() -> bool:
            self._look_after()
            work = self.harness.read(lambda tx: tx.work(work_id))
            return work is not None and holds(work)

        self.harness.wait(is_so, f"{work_id} {what}", bound_s)

    # --- the armed process -------------------------------------------------------------------------------------------

    def reached(self, order: str, since: int) -> ProcessIdentity | None:
        """Who noted that it came to the armed boundary, after so many earlier notes; None: nobody yet.

        Raises:
            AssertionError: more than one did.
        """
        noted = [line.split() for line in self.harness.reached()[since:]]
        mine = [(int(pid), int(ticks)) for what, pid, ticks in noted if what == order]
        assert len(mine) <= 1, f"{order} was reached {len(mine)} times"
        return None if not mine else ProcessIdentity(*mine[0], boot_id(), pid_namespace())

    def await_reached(self, order: str, since: int) -> ProcessIdentity:
        """Wait until somebody came to the armed boundary."""
        found = self.harness.wait(lambda: self.reached(order, since), f"{order} was reached", HIT_BOUND_S)
        assert found is not None
        return found

    @property
    def _hold(self) -> Path:
        return self.harness.home.path / f"drill.log{boundary.HOLD}"

    def let_go(self, *pids: int) -> None:
        """Let everybody go on who stands still, whoever came to a boundary included: that one may just be stopping again."""
        self._hold.unlink(missing_ok=True)
        while pids:
            for pid in pids:
                send(pid, signal.SIGCONT)
            time.sleep(LOOK_AGAIN_S)
            pids = tuple(pid for pid in pids if is_stopped(pid))

    def await_stopped(self, order: str, since: int) -> ProcessIdentity:
        """Wait until whoever came there stands still."""
        found = self.await_reached(order, since)
        self.harness.wait(lambda: is_stopped(found.pid), f"the process that reached {order} stands still", HIT_BOUND_S)
        return found

    def await_gone(self, identity: ProcessIdentity, what: str) -> None:
        """Wait until exactly this process is dead."""
        self.harness.wait(lambda: is_alive(identity) is False, what, HIT_BOUND_S)

    # --- commands ----------------------------------------------------------------------------------------------------

    def command(
        self, *words: str, order: str | None = None, under: Sequence[str] = (), home: Path | None = None
    ) -> Running:
        """Start a command of tenure as a person would; its output goes to a file."""
        self._commands += 1
        env = {key: value for key, value in os.environ.items() if not key.startswith(("TENURE_", "PYTHON"))}
        if order is not None:
            env |= {"TENURE_ARM": order, "TENURE_DRILL": DRILL_ID}
            self._hold.touch()
        path = self.harness.home.path if home is None else home
        log = self.folder / f"command-{self._commands:04}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*under, sys.executable, "-P", "-m", "shared.cli", "--home", str(path), *words],
                env=env,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        running = Running(words[0], process, log)
        self.harness.own(running)
        return running

    def end_of(self, running: Running) -> int:
        """Wait for a command's end; its exit code, negative for a signal."""
        self.harness.wait(lambda: running.process.poll() is not None, f"{running.name} has ended", COMMAND_BOUND_S)
        return running.process.returncode

    # --- rest --------------------------------------------------------------------------------------------------------

    def wait_quiet(self, *, status: int) -> list[AttemptId]:
        """Wait until nothing is live or waiting, and answer for whoever is asked how a job ended.

        Args:
            status: The truth about the job that may be asked about.
        Returns: Attempts that were left to a person.
        """
        asked: list[AttemptId] = []
        while True:
            self.harness.wait_quiet(meanwhile=self._look_after)
            open_ones = [name for name, state in self.harness.attempt_states().items() if state == _ASKED]
            if not open_ones:
                return asked
            for attempt_id in open_ones:
                words = ("--finished", str(status)) if status >= 0 else ("--signal", str(-status))
                told = self.command("attempt", "reconcile", attempt_id, *words, "--reason", "the drill knows")
                assert self.end_of(told) == 0, told.log.read_text()
                asked.append(attempt_id)


_ASKED = AttemptState.RECOVERY_REQUIRED


def _configuration(settings: Settings) -> str:
    """What is configured on a stage, as a person would write it."""
    return f"""\
[settings]
job_concurrency = {settings.job_concurrency}
workers_lost_max = {settings.workers_lost_max}
lease = "{settings.lease_us // US_PER_MS}ms"
[binding.{RETRIED_ONCE}]
command = ["true"]
retry = {{ delays = ["1s"] }}
[binding.{AGENT}]
executor = "agent"
command = ["false"]
[[budget]]
unit = "tokens"
max = 1_000_000
per = "work"
period = "life"
"""


@contextlib.contextmanager
def _open_for_all(fifo: Path) -> Iterator[None]:
    """A line for everybody who reads there, for as long as this lasts."""
    fd = os.open(fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.write(fd, b"\n" * VALVE_LINES)
        yield
    finally:
        os.close(fd)


def _holding(tx: ReadTx, work_id: WorkId) -> tuple[list[Attempt], Lease | None, list[Worker], Instant]:
    attempts = tx.attempts(work_id)
    return attempts, tx.lease(attempts[-1].id) if attempts else None, tx.workers(), tx.now


def send(pid: int, number: signal.Signals) -> None:
    """Signal a process that may be gone."""
    with contextlib.suppress(ProcessLookupError):
        boundary.kill(pid, number, Boundary.HARM_SIGNAL)


def is_stopped(pid: int) -> bool:
    """Whether it stands still: stopped, by a signal or under a tracer. False for one that is gone."""
    try:
        return procfs.stat_fields(pid)[procfs.STATE] in (b"T", b"t")
    except OSError:
        return False


def watched_by(pid: int) -> set[int]:
    """Living processes that a process has a pidfd of."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for info in Path(f"/proc/{pid}/fdinfo").iterdir():
            with contextlib.suppress(OSError):
                lines = info.read_text(encoding="ascii").splitlines()
                found |= {int(line.split()[1]) for line in lines if line.startswith("Pid:")}
    return found - {-1, 0}


def parent_of(pid: int) -> int:
    """Who started it, or who inherited it."""
    return int(procfs.stat_fields(pid)[procfs.PPID])
