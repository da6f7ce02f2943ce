"""Cells in which store or disk fails a process just when it writes.

The process stands still at its gate, the fault is made, it goes on, and the fault stays until it was met: until a wait for the queue
was given up, or a system call failed. Then everything is as before, and what the fault had put off has to come about by itself.
Rule: requirement M05.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from chaos.harness import COORDINATOR, Running
from chaos.matrix import calls
from chaos.matrix.cell import Cell, Harm, Role, Scene
from chaos.matrix.errands import errand_of
from chaos.matrix.faults import MET_BOUND_S, QueueHold, Tampering, pause_while_met, tampered, was_met
from chaos.matrix.outcome import Came, came
from chaos.matrix.programs import PLOTS, Plot
from chaos.matrix.scene import LASTING_SCENES, STATUS, hit_name, set_scene, submit
from chaos.matrix.stage import WORKER, Stage, is_stopped, send
from chaos.witness import Mark
from shared.boundary import Boundary
from shared.ids import WorkId, work_of
from shared.store.contract import Event

BUSY_SAID = ("store_busy", "queue was not free")  # put off by a step, or the end of a process that had not begun
OF_EVIDENCE = frozenset(
    {
        Boundary.ATTEMPT_MKDIR,
        Boundary.ATTEMPT_SYNC,
        Boundary.READY_SEND,
        Boundary.CHILD_RENAME,
        Boundary.CHILD_SYNC,
        Boundary.EXIT_RENAME,
        Boundary.EXIT_SYNC,
    }
)
"""Written below the home's `attempts/`, not to the store."""
WRITTEN = {
    Boundary.CLAIM_COMMIT: "attempt.claimed",
    Boundary.ACCEPT_COMMIT: "attempt.accepted",
    Boundary.PIN_COMMIT: "attempt.pinned",
    Boundary.ADOPT_COMMIT: "attempt.adopted",
    Boundary.RELAUNCH_COMMIT: "attempt.relaunched",
    Boundary.RECOVERY_COMMIT: "attempt.taken_over",
    Boundary.FINISH_COMMIT: "attempt.failed",
    Boundary.STOP_COMMIT: "attempt.stop_confirmed",
    Boundary.DECLARE_COMMIT: "declaration.recorded",
    Boundary.PARK_COMMIT: "attempt.parked",
    Boundary.WAKE_COMMIT: "attempt.woken",
    Boundary.DISPATCH_COMMIT: "intent.dispatched",
    Boundary.ACKNOWLEDGE_COMMIT: "intent.accepted",
}
"""What is in the changefeed of the job once the commit happened."""


TRIES = 5


class MissedError(Exception):
    """The process stood still with the queue in its own hands: it would have it again before anybody else."""


class Starvation:
    """One such cell being played."""

    def __init__(self, stage: Stage, cell: Cell) -> None:
        self._stage = stage
        self._cell = cell
        self._order = None if cell.gate is None else cell.order(Harm.STOP)
        self._name = hit_name(cell.role)
        self._plot = PLOTS.get(cell.scene)
        self._job: WorkId | None = None

    def play(self) -> Came:
        """Set the scene, starve whoever comes to write, let it go on until all is quiet; what came of the job."""
        if self._cell.role is Role.COMMAND:
            return self._play_command()
        for _ in range(TRIES):
            missed = False
            try:
                self._come_to_fault()
            except MissedError:
                missed = True
            came_to_rest = self._come_to_rest()
            if not missed:
                return came_to_rest
        raise AssertionError(f"{self._cell}: {TRIES} times the queue was in its hands just then")

    def _come_to_fault(self) -> None:
        stage, cell = self._stage, self._cell
        self._job = set_scene(stage, cell)
        since = len(stage.harness.reached())
        if cell.gate is not None and cell.scene is Scene.JOB:
            self._job = submit(stage, cell)
        armed = stage.start(self._name, self._order)
        if cell.role is Role.COORDINATOR:
            stage.ensure(WORKER)
        pid = self._at_gate(armed, since)
        stage.about = self._job
        with self._cue():
            self._starve(pid, armed)
        stage.harmed(self._name, "fault", cell.harm)

    def _come_to_rest(self) -> Came:
        stage, cell = self._stage, self._cell
        stage.supervise(COORDINATOR, WORKER)
        assert self._job is not None
        if self._plot is not None:
            self._plot.resolve(stage, self._job)
        elif cell.scene in LASTING_SCENES:
            stage.await_held(self._job)
        with stage.valve_open():
            stage.wait_quiet(status=STATUS)
        return came(stage, cell)

    # --- gates -------------------------------------------------------------------------------------------------------

    def _at_gate(self, armed: Running, since: int) -> int:
        """Have the process stand still just before it writes; its pid."""
        stage, cell = self._stage, self._cell
        if self._plot is not None:
            return self._at_cue(armed, since, self._plot)
        if self._order is not None:
            return stage.await_stopped(self._order, since).pid
        stage.harness.wait(lambda: self._takes_part(armed), f"{armed.name} takes part")
        if cell.scene is Scene.JOB:
            self._freeze(armed)
            job = self._job = submit(stage, cell)
            if cell.role is Role.WORKER:
                stage.harness.wait(lambda: stage.harness.read(lambda tx: tx.attempts(job)), f"{job} was claimed for it")
            return armed.pid
        self._job = submit(stage, cell)
        stage.await_mark(self._job, Mark.START)
        self._freeze(armed)
        if cell.scene is Scene.ENDED_JOB:
            with stage.valve_open():
                stage.await_mark(self._job, Mark.END)
        if cell.role is Role.COORDINATOR:
            successor = stage.start(WORKER)  # whoever held the job is killed
            stage.harness.wait(lambda: self._takes_part(successor), f"another {successor.name} takes part")
        return armed.pid

    def _at_cue(self, armed: Running, since: int, plot: Plot) -> int:
        """Have a program run, and whoever writes for it stand still just before that; its pid."""
        stage, cell = self._stage, self._cell
        stage.harness.wait(lambda: self._takes_part(armed), f"{armed.name} takes part")
        if self._job is None:
            self._job = plot.submit(stage, is_cued=cell.gate is None)
            plot.await_ready(stage, self._job)
        if cell.gate is not None:
            assert self._order is not None, "a gate makes an order"
            plot.provoke(stage, self._job, cell)
            return stage.await_stopped(self._order, since).pid
        self._freeze(armed)
        return armed.pid

    @contextlib.contextmanager
    def _cue(self) -> Iterator[None]:
        """Let the program of a cell without a gate go on, up to where it needs whoever stands still."""
        if self._plot is None or self._cell.gate is not None:
            yield
            return
        assert self._job is not None, "it was handed in before anybody stood still"
        self._plot.provoke(self._stage, self._job, self._cell)
        with self._stage.cue_given():
            self._plot.await_due(self._stage, self._job)
            yield

    def _freeze(self, running: Running) -> None:
        """Stop somebody between two transactions: while the queue is ours, nobody else can be inside one."""
        hold = QueueHold(self._stage.harness)
        self._stage.harness.wait(lambda: hold.is_held, "the queue was given to us")
        send(running.pid, signal.SIGSTOP)
        self._stage.harness.wait(lambda: is_stopped(running.pid), f"{running.name} stands still")
        hold.end()

    def _takes_part(self, running: Running) -> bool:
        leader, workers = self._stage.harness.read(lambda tx: (tx.leader(), tx.workers()))
        present = {worker.identity.pid for worker in workers} | ({leader.pid} if leader is not None else set())
        return running.pid in present

    # --- faults ------------------------------------------------------------------------------------------------------

    def _starve(self, pid: int, armed: Running) -> None:
        """Make the fault, let the process go on into it, and end it once it was met and nothing was written meanwhile."""
        epoch, cell = self._epoch(), self._cell
        if cell.harm is Harm.BUSY:
            said = armed.log.stat().st_size
            hold = QueueHold(self._stage.harness)
            if not hold.is_held:
                self._stage.let_go(pid)
                hold.end()
                raise MissedError
            try:
                self._stage.let_go(pid)
                self._await_met(lambda: any(word in _tail(armed.log, said) for word in BUSY_SAID))
                self._refuse_written(epoch)
            finally:
                hold.end()
            return
        trace = self._stage.folder / f"trace-{pid}-{cell.harm}"
        tampering = Tampering(cell.harm, trace, self._starved_file(), pid=pid)
        try:
            self._stage.let_go(pid)
            self._await_met(lambda: tampering.met)
            self._refuse_written(epoch)
        finally:
            tampering.end()

    def _await_met(self, is_met: Callable[[], bool]) -> None:
        self._stage.harness.wait(is_met, f"the fault of {self._cell} was met", MET_BOUND_S)
        pause_while_met()

    def _refuse_written(self, epoch: int) -> None:
        """Nothing gets through a fault.

        Raises:
            AssertionError: what was to fail is in the changefeed.
        """
        kind, job = WRITTEN.get(self._cell.boundary), self._job
        if kind is None or job is None:
            return
        events = self._stage.harness.read(lambda tx: tx.events(after=0, limit=100_000))
        written = [
            event for event in events if event.kind == kind and _is_of(event, job) and (event.epoch or epoch) >= epoch
        ]
        assert not written, f"{kind} was written through the fault: {written[0]}"

    def _epoch(self) -> int:
        """The epoch from which on the write is due; what earlier holders of the job wrote does not count."""
        job = self._job
        attempts = [] if job is None else self._stage.harness.read(lambda tx: tx.attempts(job))
        if not attempts:
            return 1
        return attempts[-1].epoch + (self._cell.boundary in {Boundary.RECOVERY_COMMIT, Boundary.WAKE_COMMIT})

    def _starved_file(self) -> Path | None:
        """Whose calls fail: those on the store's log, or for evidence all of the process."""
        if self._cell.boundary is Boundary.ATTEMPT_SYNC:
            return self._stage.harness.home.attempts
        if self._cell.boundary in OF_EVIDENCE:
            return None
        return log_of(self._stage)

    def _play_command(self) -> Came:
        """A command that is starved from its start to its end, and called again."""
        stage, cell = self._stage, self._cell
        stage.ensure(COORDINATOR)
        stage.ensure(WORKER)
        errand = errand_of(stage, cell)
        if cell.harm is Harm.BUSY:
            hold = QueueHold(stage.harness)
            failed = stage.command(*errand.words)
            code = stage.end_of(failed)
            hold.end()
        else:
            trace = stage.folder / f"trace-{cell}"
            failed = stage.command(*errand.words, under=tampered(cell.harm, trace, log_of(stage)))
            code = stage.end_of(failed)
            assert was_met(trace), f"{cell}: no call failed"
        assert code in REFUSALS, f"it ended with {code}: {failed.log.read_text()}"
        return calls.come_to_rest(errand, cell)


REFUSALS = (1, 3)
"""Exit codes of a command that did not get through: refused for now, or the store cannot be used."""


def log_of(stage: Stage) -> Path:
    """The store's write-ahead log."""
    store = stage.harness.home.store
    return store.with_name(f"{store.name}-wal")


def _is_of(event: Event, job: WorkId) -> bool:
    return event.work_id == job or (event.attempt_id is not None and work_of(event.attempt_id) == job)


def _tail(log: Path, offset: int) -> str:
    with log.open("rb") as file:
        file.seek(offset)
        return file.read().decode("utf-8", "replace")
