"""Who works in a history: starts coordinators, workers and the person, and each of them anew a while after it ended."""

from __future__ import annotations

import random

from chaos.seen import Life
from chaos.simulation.actors import Stage
from chaos.simulation.lookout import Lookout
from chaos.simulation.person import Person
from chaos.simulation.processes import Process
from shared.ids import Incarnation
from shared.model.instant import US_PER_MS

RESTART_MOST_US = 1_500 * US_PER_MS
SERVICES = ("coordinator", "worker")


class Supervisor:
    """Keeps as many of each as there are to be.

    Attributes:
        lives: Of coordinators and workers that ended.
    """

    def __init__(
        self, stage: Stage, person: Person, lookout: Lookout, chance: random.Random, *, workers: tuple[str, ...]
    ) -> None:
        """Take the names of the workers."""
        self._stage = stage
        self._person = person
        self._lookout = lookout
        self._chance = chance
        self._workers = workers
        self._names: dict[Process, str] = {}
        self.lives: list[Life] = []
        stage.table.on_end = self._ended

    def start(self) -> None:
        """Start everybody."""
        for name in ("coordinator", *self._workers, "person"):
            self._start(name)

    def stand_down(self) -> None:
        """The host goes down: nobody is started anew for having ended by that."""
        self._names.clear()

    def reboot(self) -> None:
        """The host is up again: start everybody."""
        for name in ("coordinator", *self._workers, "person"):
            self._start_later(name)

    def survivors(self) -> list[Life]:
        """Of coordinators and workers that live still."""
        holders = self._stage.locks.items()
        return [
            Life(Incarnation(name), self._stage.born[name], None) for name, (process, _) in holders if process.is_alive
        ]

    def _ended(self, process: Process) -> None:
        """Somebody ended: start it anew after a while; keep what the checks want to know of it."""
        if process.role in SERVICES:
            self._lookout.disturb()
            for name, (holder, _) in self._stage.locks.items():
                if holder is process:
                    self.lives.append(Life(Incarnation(name), self._stage.born[name], self._stage.last_seq()))
        name = self._names.pop(process, "")
        if (
            name or process.role == "coordinator"
        ):  # also after a second one, beside which the first was not started again
            self._start_later(name or "coordinator")

    def _start_later(self, name: str) -> None:
        self._stage.baton.later(1 + int(self._chance.random() * RESTART_MOST_US), lambda: self._start(name))

    def _start(self, name: str) -> None:
        if name == "coordinator":
            if not any(process.role == "coordinator" for process in self._stage.table.living()):
                self._names[self._stage.start_coordinator()] = name
        elif name == "person":
            self._names[self._person.start()] = name
        else:
            self._names[self._stage.start_worker(name)] = name
