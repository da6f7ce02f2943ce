"""The boundary drill: a coordinator or worker dies at one named boundary, another takes over, and everything still holds.

A *cell* is a boundary and a side of it, for the role that crosses it, in the scene that leads there. Launch boundaries are met
by several incarnations in a row. Cells of a role share a home; each starts from rest. Rule: design §8, §9; requirement M01.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from chaos.checks import Finding, examine
from chaos.harness import COORDINATOR, Arm, Harness, Running
from chaos.witness import Mark
from shared.boundary import Boundary, Side
from shared.ids import WorkId
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.settings import Settings

WORKER = "worker"
SECOND_WORKER = "worker-2"
CHAIN = 3
JOB_S = 0.02
SETTINGS = Settings(job_concurrency=8, lease_us=1_500 * US_PER_MS)
HIT_BOUND_S = 20.0


class Scene(StrEnum):
    """What is under way when the armed process starts, so that it comes to its boundary."""

    JOB = "job"  # a new job waits
    TAKEOVER = "takeover"  # a job runs, and its worker is dead
    LOST_LAUNCH = "lost launch"  # a job was accepted by a worker that died before it launched it
    STOP = "stop"  # a job runs, its worker is dead, and it was cancelled


class Mode(StrEnum):
    """What happens to the armed process at its boundary."""

    KILL = "KILL"
    STOP = "STOP"  # frozen until its leases have lapsed, then let go on


@dataclass(frozen=True, slots=True)
class Cell:
    """One drill. `incarnations`: how many in a row meet the boundary before one is left alone."""

    role: str
    boundary: Boundary
    side: Side
    scene: Scene
    incarnations: int = 1
    mode: Mode = Mode.KILL

    @property
    def arm(self) -> Arm:
        """The order that the armed process gets."""
        return Arm(f"{self.boundary}:{self.side}:{self.mode}")

    @property
    def frozen_s(self) -> float:
        """How long a frozen process stays so: until its leases lapsed."""
        return 2 * SETTINGS.lease_us / US_PER_S

    def __str__(self) -> str:
        return f"{self.role}-{self.boundary}-{self.side}-{self.mode}".lower()


WORKER_SCENES = {
    Boundary.QUEUE_LOCK: Scene.JOB,
    Boundary.INCARNATION_LOCK: Scene.JOB,
    Boundary.REGISTER_COMMIT: Scene.JOB,
    Boundary.ZYGOTE_EXEC: Scene.JOB,
    Boundary.RENEW_COMMIT: Scene.JOB,
    Boundary.ACCEPT_COMMIT: Scene.JOB,
    Boundary.ATTEMPT_MKDIR: Scene.JOB,
    Boundary.ATTEMPT_SPEC: Scene.JOB,
    Boundary.ATTEMPT_SYNC: Scene.JOB,
    Boundary.SHIM_SPAWN: Scene.JOB,
    Boundary.READY_RECEIVE: Scene.JOB,
    Boundary.PIN_COMMIT: Scene.JOB,
    Boundary.GO_SEND: Scene.JOB,
    Boundary.FINISH_COMMIT: Scene.JOB,
    Boundary.LOCK_PROBE: Scene.TAKEOVER,
    Boundary.ADOPT_COMMIT: Scene.TAKEOVER,
    Boundary.RELAUNCH_COMMIT: Scene.LOST_LAUNCH,
    Boundary.STOP_COMMIT: Scene.STOP,
    Boundary.STOP_SIGNAL: Scene.STOP,
}
COORDINATOR_SCENES = {
    Boundary.QUEUE_LOCK: Scene.JOB,
    Boundary.INCARNATION_LOCK: Scene.JOB,
    Boundary.REGISTER_COMMIT: Scene.JOB,
    Boundary.LEADER_COMMIT: Scene.JOB,
    Boundary.CLAIM_COMMIT: Scene.JOB,
    Boundary.PASS_COMMIT: Scene.JOB,
    Boundary.LOCK_PROBE: Scene.TAKEOVER,
    Boundary.RECOVERY_COMMIT: Scene.TAKEOVER,
}
LAUNCH = frozenset(
    {
        Boundary.ACCEPT_COMMIT,
        Boundary.ATTEMPT_MKDIR,
        Boundary.ATTEMPT_SPEC,
        Boundary.ATTEMPT_SYNC,
        Boundary.SHIM_SPAWN,
        Boundary.READY_RECEIVE,
        Boundary.PIN_COMMIT,
        Boundary.GO_SEND,
    }
)
"""Between claim and running, as a worker sees it: met by a chain of takeovers."""

ELSEWHERE = frozenset(
    {
        # A command's, or made once before anybody takes part.
        Boundary.MIGRATE_COMMIT,
        Boundary.CONFIG_COMMIT,
        Boundary.SUBMIT_COMMIT,
        Boundary.CANCEL_COMMIT,
        Boundary.STORE_LINK,
        Boundary.HOME_SYNC,
        # On a full disk alone: tests/unit/test_ballast.py kills there.
        Boundary.BALLAST_FREE,
        Boundary.BALLAST_RENAME,
        # The zygote's, the shim's and the child's: the drill of the launch protocol.
        Boundary.REAPER_PROBE,
        Boundary.SHIM_FORK,
        Boundary.SHIM_LOCK,
        Boundary.READY_SEND,
        Boundary.GO_RECEIVE,
        Boundary.CHILD_FORK,
        Boundary.CHILD_EXEC,
        Boundary.CHILD_REAP,
        Boundary.EXIT_RENAME,
        Boundary.EXIT_SYNC,
        Boundary.EXIT_DIRECTORY_SYNC,
        Boundary.TREE_LOCK,
        Boundary.CHILD_RENAME,
        Boundary.CHILD_SYNC,
        Boundary.CHILD_DIRECTORY_SYNC,
        Boundary.TREE_SIGNAL,
        # A harness's own.
        Boundary.HARM_SIGNAL,
    }
)
"""Boundaries that neither a coordinator nor a worker crosses."""


def cells(*, mode: Mode = Mode.KILL) -> Iterator[Cell]:
    """Every boundary of a worker or coordinator, on both sides; one role after the other."""
    for role, scenes in ((WORKER, WORKER_SCENES), (COORDINATOR, COORDINATOR_SCENES)):
        for boundary, scene in scenes.items():
            chain = CHAIN if role == WORKER and boundary in LAUNCH and mode is Mode.KILL else 1
            for side in Side:
                yield Cell(role, boundary, side, scene, chain, mode)


class Stage:
    """The home on which the cells of one role are played, one after the other; a new one after each failure."""

    def __init__(self, folder: Path, role: str) -> None:
        self._folder = folder
        self._role = role
        self._homes = 0
        self._harness: Harness | None = None
        self._partner: Running | None = None

    def play(self, cell: Cell) -> list[Finding]:
        """Play a cell and examine everything that happened on this home so far.

        Raises:
            StillWaitingError: the boundary was not reached, or the home never came to rest.
        """
        harness = self._harness or self._new_home()
        try:
            _Scene(harness, cell, self._ready_partner(harness)).play()
            findings = examine(harness.history())
        except BaseException:
            self.close()
            raise
        if findings:
            self.close()
        return findings

    def close(self) -> None:
        """End everything on this stage; the next cell gets a new home."""
        harness, self._harness, self._partner = self._harness, None, None
        if harness is not None:
            harness.close()

    def _new_home(self) -> Harness:
        self._homes += 1
        self._harness = Harness(self._folder / f"{self._role}-{self._homes}", SETTINGS)
        return self._harness

    def _ready_partner(self, harness: Harness) -> Running:
        """The one of the other role, which is left alone: running since an earlier cell, or started now."""
        if self._partner is None or self._partner.process.poll() is not None:
            self._partner = harness.start(COORDINATOR if self._role == WORKER else "worker-1")
        return self._partner


class _Scene:
    """One cell being played."""

    def __init__(self, harness: Harness, cell: Cell, partner: Running) -> None:
        self._harness = harness
        self._cell = cell
        self._partner = partner
        self._hit_name = COORDINATOR if cell.role == COORDINATOR else "worker-1"
        self._valve = harness.home.path.parent / "valve"
        if not self._valve.exists():
            os.mkfifo(self._valve)

    def play(self) -> None:
        """Set the scene, have each armed incarnation hit where it was told, let the last one go on to rest."""
        self._set()
        for _ in range(self._cell.incarnations):
            self._harness.submit(wait=JOB_S, status=7)
            armed = self._harness.start(self._hit_name, arm=self._cell.arm)
            if self._cell.mode is Mode.KILL:
                self._await_death(armed)
            else:
                self._freeze(armed)
        last = self._harness.start(self._hit_name)
        self._revive_partner()
        self._open_valve()
        self._harness.wait_quiet()
        self._harness.kill(last)
        if self._cell.role == COORDINATOR and self._cell.scene is Scene.TAKEOVER:
            self._harness.kill(self._partner)

    def _revive_partner(self) -> None:
        if self._cell.role == COORDINATOR and self._partner.process.poll() is not None:
            self._partner = self._harness.start("worker-1")

    def _set(self) -> None:
        match self._cell.scene:
            case Scene.JOB:
                pass
            case Scene.LOST_LAUNCH:
                self._harness.submit(wait=JOB_S, status=0)
                order = f"{Boundary.ACCEPT_COMMIT}:{Side.AFTER}:{Mode.KILL}"
                self._await_death(self._harness.start("worker-1", arm=Arm(order)), order)
            case Scene.TAKEOVER | Scene.STOP:
                work_id = self._lose_worker_of_running_job()
                if self._cell.scene is Scene.STOP:
                    self._harness.cancel(work_id)

    def _lose_worker_of_running_job(self) -> WorkId:
        """A job that waits at the valve, its worker killed; for a coordinator's cell the coordinator too, first."""
        harness = self._harness
        is_coordinator_cell = self._cell.role == COORDINATOR
        other = harness.start(COORDINATOR) if is_coordinator_cell else harness.start("worker-1")
        work_id = harness.submit(wait=self._valve, status=3)
        harness.wait(
            lambda: any(line.work_id == work_id and line.mark is Mark.START for line in harness.witness.lines()),
            f"{work_id} has started",
        )
        harness.kill(other)
        if is_coordinator_cell:
            harness.kill(self._partner)
        return work_id

    def _open_valve(self) -> None:
        """Let every job that waits at the valve go on, now and until the cell ends: one line for each."""
        if self._cell.scene in {Scene.TAKEOVER, Scene.STOP}:
            fd = os.open(self._valve, os.O_RDWR)
            os.write(fd, b"\n")
            self._harness.wait(self._is_valve_used, "the job at the valve went on, or is gone")
            os.close(fd)

    def _is_valve_used(self) -> bool:
        waiting = {job.work_id for job in self._harness.jobs if not job.cancelled}
        marks = [line for line in self._harness.witness.lines() if line.work_id in waiting]
        return sum(line.mark is Mark.START for line in marks) == sum(line.mark is Mark.END for line in marks)

    def _await_death(self, armed: Running, order: str | None = None) -> None:
        """See it die of its own SIGKILL at the boundary it was armed for."""
        self._harness.wait(lambda: armed.process.poll() is not None, f"{self._cell} was reached", HIT_BOUND_S)
        assert armed.process.returncode == -signal.SIGKILL, armed.log.read_text()[-2000:]
        self._assert_reached(armed, order or self._cell.arm.order)

    def _freeze(self, armed: Running) -> None:
        """See it stop there, keep it stopped until everything it held has lapsed while another works, let it go on."""
        self._harness.wait(lambda: _is_stopped(armed.pid), f"{self._cell} was reached", HIT_BOUND_S)
        self._assert_reached(armed, self._cell.arm.order)
        other = self._harness.start(COORDINATOR if self._cell.role == COORDINATOR else SECOND_WORKER)
        self._revive_partner()
        time.sleep(self._cell.frozen_s)
        os.kill(armed.pid, signal.SIGCONT)
        self._open_valve()
        self._harness.wait_quiet()
        self._harness.kill(armed)
        self._harness.kill(other)

    def _assert_reached(self, armed: Running, order: str) -> None:
        lines = [line for line in self._harness.reached() if line.startswith(f"{order} {armed.pid} ")]
        assert len(lines) == 1, f"{order} was not reached by {armed.pid}: {self._harness.reached()[-3:]}"


def _is_stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()[0] == b"T"
