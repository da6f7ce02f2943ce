"""Cells of commands: what a person typed is killed or frozen at its commit, and called again.

Whether it was done is read from the store, never from what the command said. Rule: requirements M01, M05, V05.
"""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from chaos.harness import COORDINATOR, DRILL_ID, Running
from chaos.job import Job
from chaos.matrix.cell import CameTo, Cell, Harm, Scene, Who
from chaos.matrix.scene import JOB_S, STATUS
from chaos.matrix.stage import RETRIED_ONCE, WORKER, Stage, is_stopped, send
from chaos.witness import Mark
from shared.boundary import Boundary
from shared.home import Home, create_home
from shared.ids import WorkId
from shared.model.instant import US_PER_MS
from shared.store.sqlite.store import open_store

FROZEN_S = 0.8
RUN_AGAIN = "run it again"  # of two at once, one may be told so
KILLED = -9
_numbers = itertools.count(1)


class Call:
    """One command, before and after: what it is to do, and whether the store says that it is done."""

    def __init__(self, stage: Stage, boundary: Boundary) -> None:
        self.stage = stage
        self.boundary = boundary
        self.job: WorkId | None = None
        self._known = self._works()
        self._generation = self._generations()
        match boundary:
            case Boundary.SUBMIT_COMMIT:
                words = stage.harness.witness.command(wait=JOB_S, status=STATUS)
                self.words: Sequence[str] = ("submit", "--", *words)
            case Boundary.CONFIG_COMMIT:
                self.words = ("apply", str(_configuration(stage)))
            case Boundary.CANCEL_COMMIT:
                self.job = stage.submit(at_valve=True, seconds=0, status=STATUS)
                stage.await_mark(self.job, Mark.START)
                self.words = ("work", "cancel", self.job, "--wait", "0")
            case Boundary.COMMAND_COMMIT:
                self.job = stage.submit(at_valve=True, seconds=0, status=STATUS)
                stage.await_mark(self.job, Mark.START)
                self.words = ("work", "hold", self.job)
            case other:
                raise AssertionError(f"no command is drilled at {other}")

    def is_done(self) -> bool:
        """Whether its effect is in the store."""
        if self.boundary is Boundary.CONFIG_COMMIT:
            return self._generations() > self._generation
        if self.boundary is Boundary.SUBMIT_COMMIT:
            return bool(self._works() - self._known)
        job = self.job
        assert job is not None
        if self.boundary is Boundary.COMMAND_COMMIT:
            work = self.stage.harness.read(lambda tx: tx.work(job))
            return work is not None and work.hold is not None
        return bool(self.stage.harness.read(lambda tx: tx.cancellations(job)))

    def settle(self) -> None:
        """Tell the harness what was called for, so that the checks know of it."""
        if self.boundary is Boundary.SUBMIT_COMMIT:
            new = self._works() - self._known
            assert len(new) == 1, f"called for one work, there are {len(new)}"
            self.stage.harness.jobs += [Job(work_id, STATUS) for work_id in new]
        elif self.boundary is Boundary.CANCEL_COMMIT:
            assert self.job is not None
            self.stage.harness.was_cancelled(self.job)

    def _works(self) -> set[WorkId]:
        works = self.stage.harness.read(lambda tx: tx.works(states=(), after=0, limit=10_000))
        return {work.id for work in works}

    def _generations(self) -> int:
        found = self.stage.harness.read(lambda tx: tx.config())
        return 0 if found is None else found.number


def play(stage: Stage, cell: Cell) -> CameTo:
    """Hit a command at its boundary; call again when nothing had been done.

    Raises:
        AssertionError: it was not hit there, or what it left is neither done nor not done.
    """
    stage.ensure(COORDINATOR)
    stage.ensure(WORKER)
    call = Call(stage, cell.boundary)
    order = cell.order(Harm.KILL if cell.who is Who.SELF and cell.harm is Harm.KILL else Harm.STOP)
    since = len(stage.harness.reached())
    command = stage.command(*call.words, order=order)
    hit(stage, cell, command, order, since)
    return come_to_rest(call)


def come_to_rest(call: Call) -> CameTo:
    """Call again where nothing was done, and see everything to its end."""
    stage = call.stage
    came_to = CameTo.DONE if call.is_done() else CameTo.REPEATED
    if came_to is CameTo.REPEATED:
        again = stage.command(*call.words)
        assert stage.end_of(again) == 0, again.log.read_text()
        assert call.is_done(), f"`tenure {call.words[0]}` ended well and did nothing"
    call.settle()
    stage.ensure(COORDINATOR)
    stage.ensure(WORKER)
    with stage.valve_open():
        stage.wait_quiet(status=STATUS)
    return came_to


def hit(stage: Stage, cell: Cell, command: Running, order: str, since: int) -> None:
    """Do the harm of the cell to a command that is under way."""
    if cell.harm is Harm.KILL and cell.who is Who.SELF:
        noted = stage.await_reached(order, since)
        assert (noted.pid, stage.end_of(command)) == (command.pid, KILLED), command.log.read_text()
        return
    stopped = stage.await_stopped(order, since)
    assert stopped.pid == command.pid, f"{order} was reached by {stopped.pid}, not by {command.pid}"
    if cell.harm is Harm.KILL:
        stage.kill_everyone([command.pid])
        assert stage.end_of(command) == KILLED
        return
    frozen = stage.everyone([command.pid]) if cell.who is Who.EVERYONE else [command.pid]
    for pid in frozen:
        send(pid, signal.SIGSTOP)
    time.sleep(FROZEN_S)
    assert is_stopped(command.pid), f"the command at {order} did not stand still"
    stage.let_go(*frozen)
    assert stage.end_of(command) == 0, command.log.read_text()


def make_home(stage: Stage, cell: Cell) -> CameTo:
    """`tenure init`, hit while it makes the store of a home that was begun; then called again.

    Raises:
        AssertionError: as `play`; or the home is not whole afterwards.
    """
    assert cell.scene is Scene.NEW_HOME
    path = stage.folder / f"new-{next(_numbers)}"
    home = create_home(path)[0]
    (path / "drill").write_text(DRILL_ID, encoding="ascii")
    order = cell.order(cell.harm)
    command = stage.command("init", order=order, home=path)
    stage.harness.wait(lambda: _noted(home, order, command.pid) or command.process.poll() is not None, f"{order}", 20)
    assert _noted(home, order, command.pid), f"{order} was not reached: {command.log.read_text()}"
    if cell.harm is Harm.KILL:
        assert stage.end_of(command) == KILLED
        came_to = CameTo.DONE if _active(home, stage) else CameTo.REPEATED
        again = stage.command("init", home=path)
        assert stage.end_of(again) == 0, again.log.read_text()
    else:
        stage.harness.wait(lambda: is_stopped(command.pid), "the command stands still")
        other = stage.command("init", home=path)  # meanwhile somebody else tries
        time.sleep(FROZEN_S)
        send(command.pid, signal.SIGCONT)
        told = {each.log.read_text() for each in (command, other) if stage.end_of(each) != 0}
        assert len(told) <= 1, told
        assert all(RUN_AGAIN in text for text in told), told
        came_to = CameTo.DONE
    checked = stage.command("store", "check", home=path)
    assert stage.end_of(checked) == 0, checked.log.read_text()
    assert _active(home, stage), "the home has no configuration"
    return came_to


def _noted(home: Home, order: str, pid: int) -> bool:
    try:
        return (home.path / "drill.log").read_text(encoding="ascii").startswith(f"{order} {pid} ")
    except FileNotFoundError:
        return False


def _active(home: Home, stage: Stage) -> bool:
    if not home.store.exists():
        return False
    store = open_store(home.path, stage.harness.clock)
    try:
        return store.read(lambda tx: tx.config()) is not None
    finally:
        store.close()


def _configuration(stage: Stage) -> Path:
    """What is active, with one binding more that nobody uses."""
    settings = stage.harness.config.settings
    path = stage.folder / "tenure.toml"
    path.write_text(
        f"[settings]\njob_concurrency = {settings.job_concurrency}\n"
        f'lease = "{settings.lease_us // US_PER_MS}ms"\n'
        f'[binding.{RETRIED_ONCE.name}]\ncommand = ["true"]\nretry = {{ delays = ["1s"] }}\n'
        f'[binding.drill{next(_numbers)}]\ncommand = ["true"]\n',
        encoding="utf-8",
    )
    return path
