"""The random drill itself: plays the steps of a plan on real processes, waits for rest, and looks at what is left."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from chaos.harness import COORDINATOR, Harness, StillWaitingError, uninterrupted
from chaos.random_drill.aftermath import Aftermath, all_works, look_back
from chaos.random_drill.configuration import LINGERING, configuration
from chaos.random_drill.controls import Controls
from chaos.random_drill.disk import SmallDisk
from chaos.random_drill.duties import Duties
from chaos.random_drill.load import Kind
from chaos.random_drill.operator import Operator
from chaos.random_drill.plan import EXTRA, FROZEN_S, STANDBY, WORKERS, Harm, Step
from chaos.random_drill.processes import Processes
from chaos.random_drill.quarantines import Quarantines
from chaos.random_drill.roster import Roster
from chaos.random_drill.watch import Watch
from chaos.witness import Mark
from shared.model.attempt import Attempt, LeaseKey
from shared.policy.steps import is_final_work
from shared.store.contract import ReadTx

LOOK_EVERY_S = 0.05
SAY_EVERY_S = 10.0
REST_BOUND_S = 60.0
AGAIN_S = 0.2
HOUND_PAUSE_S = 0.5
"""So long a worker is left alone that holds what is hounded: what else it was given runs by then, and is not suspected."""
HOUND_BOUND_S = 25.0
FAULTS_MAX = 10

Say = Callable[[str], None]


class RandomDrill:
    """One run. A context: leaving it ends everything it brought about."""

    def __init__(self, folder: Path, steps: list[Step], *, minutes: float | None, small_disk: bool, say: Say) -> None:
        """Make the home.

        Args:
            small_disk: On a disk of its own, which the plan fills.
            minutes: No step begins after so many; None: all of them are played.
        """
        with uninterrupted():  # from here on there is something to be cleaned up
            self._disk = SmallDisk(folder / "home") if small_disk else None
            try:
                self.harness = Harness(folder, configuration(folder / "witness"))
            except BaseException:
                self._take_disk_away()
                raise
        self.roster = Roster(disk_fills=small_disk)
        self.processes = Processes(self.harness)
        notes = folder / "notes"
        notes.touch()
        self.operator = Operator(self.harness, self.roster, notes, self.processes.look)
        self.controls = Controls(self.operator)
        self.duties = Duties(self.operator, self.controls)
        self.quarantines = Quarantines(self.operator)
        self.watch = Watch(self.harness, self.processes)
        self.played = 0
        self.rested = ""
        self._steps = steps
        self._say = say
        self._began = time.monotonic()
        self._until = None if minutes is None else self._began + 60 * minutes
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._said_at = self._began

    def __enter__(self) -> Self:
        self.harness.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with uninterrupted():
            self.harness.__exit__(kind, error, trace)
            self._take_disk_away()

    def _take_disk_away(self) -> None:
        if self._disk is not None:
            self._disk.close()

    def play(self) -> None:
        """Play the steps."""
        for name in (COORDINATOR, *WORKERS):
            self.processes.start(name)
        harms = self._harms()
        for step in self._steps:
            if self._until is not None and time.monotonic() >= self._until:
                self._say(f"time is up after {self.played} of {len(self._steps)} steps")
                break
            if len(self.processes.faults) >= FAULTS_MAX:
                self._say(f"{len(self.processes.faults)} processes broke by themselves: no more harm")
                break
            self.operator.hand_in(step.jobs)
            for job in step.jobs:
                if job.cancel is not None:
                    self._in(job.cancel.after_s, partial(self._until_done, partial(self.operator.cancel, job)))
                for act in job.acts:
                    self._in(act.after_s, partial(self._until_done, partial(self.controls.act, job, act)))
            self._serve(step.pause_s)
            harms[step.harm](step)
            self.played += 1

    def cut_short(self) -> None:
        """Take back what waits; what runs goes on, and is told nothing more."""
        self.controls.is_over = self.duties.is_over = True
        self.operator.cancel_waiting()

    def rest(self, bound_s: float = REST_BOUND_S, *, patient: bool = True) -> None:
        """Wait until everything is over; `rested` says what is not, when that takes longer than the bound.

        Args:
            patient: The bound begins anew as long as anything comes to its end within it.
        """
        ended = self._ended()
        while True:
            try:
                self.harness.wait(self._is_at_rest, "everything is over", bound_s)
            except StillWaitingError as error:
                before, ended = ended, self._ended()
                if patient and ended > before:
                    continue
                self.rested = str(error)
            return

    def _ended(self) -> int:
        """How many works are over."""
        return self.harness.read(lambda tx: sum(is_final_work(work.state) for work in all_works(tx)))

    def look_back(self) -> Aftermath:
        """Everything there is to know."""
        self.operator.note_words()
        return look_back(self.harness, self.operator, self.controls, self.watch, self.rested)

    def _is_at_rest(self) -> bool:
        self._serve(0)
        asked = (self.operator, self.duties, self.quarantines)
        if self._due or not self.processes.is_settled or not all(one.is_done for one in asked):
            return False
        state, is_charged = self.harness.read(lambda tx: (tx.idle_state(), not tx.has_staged_usage()))
        return state.live == 0 and state.waiting == 0 and is_charged

    def _serve(self, seconds: float) -> None:
        """Do what is due meanwhile."""
        until = time.monotonic() + seconds
        while True:
            self.processes.look()
            self.operator.look()
            self.duties.look()
            self.quarantines.look()
            self.watch.look()
            self.harness.reap_orphans()
            while self._due and self._due[0][0] <= time.monotonic():
                heapq.heappop(self._due)[2]()
            now = time.monotonic()
            if now - self._said_at >= SAY_EVERY_S:
                self._said_at = now
                self._say(self.progress())
            if now >= until:
                return
            time.sleep(min(LOOK_EVERY_S, until - now))

    def progress(self) -> str:
        """How far it is, in a line."""
        took_s = time.monotonic() - self._began
        kills, jobs = self.processes.kills, len(self.roster.planned)
        rate = kills / took_s if took_s else 0.0
        return f"{took_s:4.0f} s  step {self.played} of {len(self._steps)}  {kills} kills ({rate:.1f} a second)  {jobs} jobs"

    def _in(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (time.monotonic() + seconds, next(self._order), act))

    def _until_done(self, act: Callable[[], bool]) -> None:
        """Do what is due; a Work that has no name yet is asked for again."""
        if not act():
            self._in(AGAIN_S, partial(self._until_done, act))

    def _harms(self) -> dict[Harm, Callable[[Step], object]]:
        """What is done for each kind of harm."""
        processes = self.processes
        return {
            Harm.WORKER: lambda step: processes.again(step.target),
            Harm.COORDINATOR: lambda _: processes.again(COORDINATOR),
            Harm.PAIR: lambda step: processes.again(step.target, COORDINATOR),
            Harm.EVERYONE: lambda _: processes.again(COORDINATOR, *WORKERS),
            Harm.CLOCK: lambda step: processes.again(step.target, clock=step.clock),
            Harm.ZYGOTE: lambda step: processes.kill_zygote(step.target),
            Harm.SHIM: lambda step: self._kill_shim(step.draw),
            Harm.PROGRAM: lambda step: self._kill_program(step.draw),
            Harm.FREEZE_SHIM: lambda step: self._freeze_shim(step.draw),
            Harm.FREEZE: lambda step: processes.freeze(step.target, FROZEN_S),
            Harm.HOUND: lambda _: self._hound(),
            Harm.FREEZE_LEADER: lambda _: self._freeze_leader(),
            Harm.STANDBY: lambda _: self._come_or_go(STANDBY, processes.kill),
            Harm.EXTRA: lambda _: self._come_or_go(EXTRA, processes.leave),
            Harm.DRAIN: lambda step: self._replace(step.target),
            Harm.FULL: lambda step: processes.fill_disk(step.lasts_s),
            Harm.BUSY: lambda step: processes.hold_store(step.held, step.lasts_s),
        }

    def _come_or_go(self, name: str, end: Callable[[str], None]) -> None:
        if self.processes.is_there(name):
            end(name)
        else:
            self.processes.start(name)

    def _replace(self, name: str) -> None:
        self.processes.leave(name)
        self.processes.start(name)

    def _freeze_leader(self) -> None:
        """Nothing else is harmed meanwhile: another shall lead before the frozen one goes on."""
        if not self.processes.is_there(STANDBY):
            self.processes.start(STANDBY)
        self.processes.freeze(COORDINATOR, FROZEN_S)
        self._serve(FROZEN_S + 1)

    def _hound(self) -> None:
        """Kill whoever has held a job that lingers for a while, and only them, until its binding is quarantined for that."""
        until = time.monotonic() + HOUND_BOUND_S
        before: LeaseKey | None = None
        killed: set[LeaseKey] = set()
        while time.monotonic() < until and LINGERING not in self.harness.read(lambda tx: tx.quarantined()):
            self._serve(HOUND_PAUSE_S)
            key = self.harness.read(self._hold_of_lingering)
            if key is None and killed:
                return  # it has ended
            name = "" if key is None else key.owner.rpartition(".")[0]
            if key is not None and key == before and key not in killed and self.processes.is_there(name):
                killed.add(key)
                self.processes.again(name)
            before = key

    def _hold_of_lingering(self, tx: ReadTx) -> LeaseKey | None:
        """The lease of a job that lingers and is running; None: there is none."""
        roster = self.roster
        for number, work_id in roster.work_ids.items():
            attempts = tx.attempts(work_id) if roster.planned[number].kind is Kind.LINGERING else []
            if attempts and attempts[-1].ended_at_us is None:
                lease = tx.lease(attempts[-1].id)
                return None if lease is None else LeaseKey(lease.attempt_id, lease.epoch, lease.owner)
        return None

    def _freeze_shim(self, draw: float) -> None:
        attempt = self._held(draw)
        if attempt is not None and attempt.pin is not None:
            self.processes.freeze_shim(attempt, attempt.pin.shim, FROZEN_S)

    def _kill_program(self, draw: float) -> None:
        """One that speaks, and has said that it began; it cannot end between the look and the kill but to a zombie of its shim's."""
        attempt = self._held(draw, speaking=True)
        lines = (
            [] if attempt is None else [line for line in self.harness.witness.lines() if line.attempt_id == attempt.id]
        )
        if attempt is not None and attempt.pin is not None and lines and lines[-1].mark is Mark.START:
            self.roster.programs_killed.add(attempt.work_id)
            self.processes.kill_program(attempt, attempt.pin.shim, lines[-1].pid)

    def _kill_shim(self, draw: float) -> None:
        attempt = self._held(draw)
        if attempt is not None and attempt.pin is not None:
            self.roster.shims_killed.add(attempt.work_id)
            self.processes.kill_shim(attempt, attempt.pin.shim)

    def _held(self, draw: float, *, speaking: bool = False) -> Attempt | None:
        """One of the attempts that have a shim now, or one whose program speaks; None: there is none."""
        held = self.harness.read(lambda tx: [attempt for attempt in tx.holders(limit=64) if attempt.pin is not None])
        names = {
            work_id
            for number, work_id in self.roster.work_ids.items()
            if not speaking or self.roster.planned[number].recipe.manner is not None
        }
        ours: list[Attempt] = [attempt for attempt in held if attempt.work_id in names]
        return ours[int(draw * len(ours))] if ours else None
