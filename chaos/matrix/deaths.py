"""Cells in which a process is killed or frozen at its boundary, alone or with everybody else.

Killed alone, the process kills itself there. Otherwise it stops itself there first, and while it stands still the others are hit
one right after the other: so the instant is exact for whoever came to the boundary, and a few milliseconds long for the rest.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator

from chaos.harness import COORDINATOR, Running
from chaos.matrix.cell import CameTo, Cell, Harm, Role, Scene, Who
from chaos.matrix.faults import Tampering
from chaos.matrix.outcome import Came, came
from chaos.matrix.programs import PLOTS
from chaos.matrix.scene import JOB_SCENES, LASTING_SCENES, STATUS, hit_name, set_scene, submit
from chaos.matrix.stage import HIT_BOUND_S, SECOND_WORKER, STANDBY, WORKER, Stage, is_stopped, parent_of, send
from chaos.witness import Mark
from shared.ids import WorkId
from shared.model.evidence import ProcessIdentity
from shared.model.instant import US_PER_S

OUTLASTS = 1.25  # how much longer than a lease somebody is frozen
FROZEN_ALONE_S = 0.8
"""What a worker launched is held by no lease; it is frozen for long enough that everybody notices nothing."""
KILL_SIGNAL = -9


class Death:
    """One such cell being played."""

    def __init__(self, stage: Stage, cell: Cell) -> None:
        self._stage = stage
        self._cell = cell
        self._order = cell.order(Harm.KILL if cell.harm is Harm.KILL and cell.who is Who.SELF else Harm.STOP)
        self._name = hit_name(cell.role)
        self._is_own = cell.role in {Role.COORDINATOR, Role.WORKER}  # the armed process itself comes to the boundary
        self._plot = PLOTS.get(cell.scene)
        self._job: WorkId | None = None

    def play(self) -> Came:
        """Set the scene, hit whoever comes to the boundary, let the rest go on until all is quiet; what came of the job."""
        stage = self._stage
        self._job = set_scene(stage, self._cell)
        for _ in range(self._cell.incarnations):
            since = len(stage.harness.reached())
            armed = self._come_on()
            with self._tampering(armed):
                self._hit(armed, since)
        stage.ensure(COORDINATOR)
        stage.ensure(WORKER)
        assert self._job is not None
        if self._plot is not None:
            self._plot.resolve(stage, self._job)
        elif self._cell.scene in LASTING_SCENES:
            stage.await_held(self._job)
        with stage.valve_open():
            stage.wait_quiet(status=self._truth())
        stage.leave(SECOND_WORKER, STANDBY)
        return came(stage, self._cell)

    def _come_on(self) -> Running:
        stage, cell = self._stage, self._cell
        if cell.scene in JOB_SCENES:
            self._submitted(submit(stage, cell))
        if cell.scene is Scene.NO_BALLAST:
            (stage.harness.home.path / "ballast").unlink()
        armed = stage.start(self._name, self._order)
        if cell.scene in {Scene.CANCEL, Scene.FULL_DISK}:
            job = submit(stage, cell)
            self._submitted(job)
            stage.await_mark(job, Mark.START)
            if cell.scene is Scene.CANCEL:
                stage.harness.cancel(job)
        if self._plot is not None:
            self._job = self._job or self._plot.submit(stage)
            if cell.role is Role.WORKER:
                stage.await_mark(self._job, Mark.START)
            self._plot.provoke(stage, self._job, cell)
        return armed

    def _submitted(self, job: WorkId) -> None:
        self._job = self._job or job
        may_need_person = bool(self._cell.expected & {CameTo.ASKED, CameTo.KILLED})
        self._stage.expect(job, may_need_person=may_need_person)

    @contextlib.contextmanager
    def _tampering(self, armed: Running) -> Iterator[None]:
        """On a full disk for the armed worker, where the scene wants it; the disk is good again before anybody else is hit."""
        if self._cell.scene is not Scene.FULL_DISK:
            yield
            return
        home = self._stage.harness.home
        trace = self._stage.folder / f"trace-{armed.pid}"
        tampering = Tampering(Harm.FULL, trace, home.store.with_name(f"{home.store.name}-wal"), pid=armed.pid)
        try:
            since = len(self._stage.harness.reached())
            self._stage.await_reached(self._order, since)
        finally:
            tampering.end()
        yield

    def _hit(self, armed: Running, since: int) -> None:
        self._stage.about = self._job
        self._do_harm(armed, since)
        if self._cell.harm is Harm.KILL:
            hit = (COORDINATOR, WORKER) if self._cell.who is Who.EVERYONE else (self._name,) if self._is_own else ()
            for name in hit:
                self._stage.harmed(name, "kill", self._order, when_reached=True)

    def _do_harm(self, armed: Running, since: int) -> None:
        match self._cell.harm, self._cell.who:
            case Harm.KILL, Who.SELF:
                self._await_own_death(armed, since)
            case Harm.KILL, Who.HOLDER:
                stopped = self._await_stop(armed, since)
                self._stage.leave(self._name)
                self._stage.let_go(stopped.pid)
            case Harm.KILL, Who.EVERYONE:
                stopped = self._await_stop(armed, since)
                self._stage.kill_everyone(self._below(stopped))
                self._stage.await_gone(stopped, f"the process that reached {self._order} died there")
                self._stage.ensure(COORDINATOR)
            case Harm.STOP, Who.SELF:
                self._freeze_alone(self._await_stop(armed, since))
            case _:
                self._freeze_everyone(self._await_stop(armed, since))

    def _await_own_death(self, armed: Running, since: int) -> None:
        """See it die of its own SIGKILL where it was armed."""
        stage = self._stage
        if self._is_own:
            stage.harness.wait(lambda: armed.process.poll() is not None, f"{self._cell} was reached", HIT_BOUND_S)
            assert armed.process.returncode == KILL_SIGNAL, armed.log.read_text()[-2000:]
            noted = stage.reached(self._order, since)
            assert noted is not None, f"{armed.name} was killed without coming to {self._order}"
            assert noted.pid == armed.pid, f"{self._order} was reached by {noted.pid}, not by {armed.pid}"
        else:
            noted = stage.await_reached(self._order, since)
            stage.await_gone(noted, f"the process that reached {self._order} died there")
            assert armed.process.poll() is None, f"{armed.name} did not outlive what it launched"

    def _await_stop(self, armed: Running, since: int) -> ProcessIdentity:
        stopped = self._stage.await_stopped(self._order, since)
        if self._is_own:
            assert stopped.pid == armed.pid, f"{self._order} was reached by {stopped.pid}, not by {armed.pid}"
            self._stage.harmed(self._name, "stop", self._order, when_reached=True)
        return stopped

    def _freeze_alone(self, stopped: ProcessIdentity) -> None:
        stage = self._stage
        if self._is_own:
            stage.start(STANDBY if self._cell.role is Role.COORDINATOR else SECOND_WORKER)
            stage.ensure(COORDINATOR)
            stage.ensure(WORKER)
            time.sleep(self._past_expiry_s())
        else:
            time.sleep(FROZEN_ALONE_S)
        assert is_stopped(stopped.pid), f"the process that reached {self._order} did not stand still"
        self._stage.let_go(stopped.pid)
        self._stage.harmed(self._name, "cont", self._order)

    def _freeze_everyone(self, stopped: ProcessIdentity) -> None:
        everyone = self._stage.everyone(self._below(stopped))
        for pid in everyone:
            send(pid, signal.SIGSTOP)
        time.sleep(self._past_expiry_s())
        assert is_stopped(stopped.pid), f"the process that reached {self._order} did not stand still"
        self._stage.let_go(*everyone)

    def _below(self, stopped: ProcessIdentity) -> list[int]:
        """Who is hit besides coordinators and workers: the process at the boundary, and for a child its shim."""
        is_child = self._cell.role is Role.CHILD
        return [stopped.pid, *([parent_of(stopped.pid)] if is_child else [])]

    def _past_expiry_s(self) -> float:
        return OUTLASTS * self._stage.harness.config.settings.lease_us / US_PER_S

    def _truth(self) -> int:
        """How the job really ended, for the person who is asked: a child that was killed never became the job."""
        return KILL_SIGNAL if self._cell.role is Role.CHILD else STATUS
