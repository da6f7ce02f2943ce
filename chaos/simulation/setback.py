"""A store that goes back in time, once in a history, and the newest copy of it that a person may put back.

What the witness and the changefeed say is told by the number of the last event. Numbers of commits that are lost come to mean other
events, so whatever was noted under them is moved to the last event that both stores have. Rule: design §4, §9.
"""

from __future__ import annotations

from dataclasses import replace

from chaos.history import pins_in
from chaos.recording import all_events
from chaos.seen import Backward, Life
from chaos.simulation.actors import Stage
from chaos.simulation.homes import Homes
from chaos.simulation.past import Past
from chaos.simulation.processes import Process
from chaos.witness import Line
from shared.boundary import Boundary, Side
from shared.ids import Incarnation
from shared.store.contract import Event
from shared.store.sqlite.driver import sqlite3


class Setback:
    """Cuts the store, and undoes it.

    Attributes:
        lives: As the director keeps them: of coordinators and workers that ended.
        lost: Events that were committed and that the store knows no more.
        backwards: Commits of a process that had seen more than the store knew.
        has_happened: The store went back; `is_undone`: and the newest copy was put back.
    """

    def __init__(self, homes: Homes, stage: Stage, lives: list[Life]) -> None:
        self.lives = lives
        self.lost: tuple[Event, ...] = ()
        self.backwards: list[Backward] = []
        self.has_happened = False
        self.is_undone = False
        self._warm = homes.warm
        self._stage = stage
        self._past = Past(homes.path / "store.db")
        self._seen: dict[Process, int] = {}
        self._newest: sqlite3.Connection | None = None
        self._newest_seq = 0
        self._cut_seq = 0
        self._lines: list[Line] = []
        self._ended: list[Life] = []
        self._born: dict[str, int] = {}
        self._were_alive: list[str] = []
        self._gos = 0

    @property
    def is_in_use(self) -> bool:
        """Somebody is in the middle of a transaction, so that nothing can be written over the store."""
        return self._warm.is_in_use

    @property
    def has_launched_since(self) -> bool:
        """A gate was opened after the store went back."""
        return len(self._stage.gos) > self._gos

    def note(self, process: Process, boundary: Boundary, side: Side) -> None:
        """A process came to a boundary: it may have committed something."""
        if side is not Side.AFTER or not boundary.endswith("_commit") or not self._past.note():
            return
        seq, seen = self._stage.last_seq(), self._seen.get(process, 0)
        if seq < seen:
            self.backwards.append(Backward(process.name, seen, seq))
        self._seen[process] = seq

    def cut(self, commits: int) -> bool:
        """Lose so many of the last commits; False: there is nothing to lose. Once in a history."""
        stage = self._stage
        with self._past.without_last(commits) as older:
            if older is None:
                return False
            newest = stage.look(all_events)
            self._newest = self._warm.copy_to_memory()
            self._warm.restore(older)
            stage.commits += 1
        self.has_happened = True
        self._gos = len(stage.gos)
        stage.lived_through = frozenset(stage.table.living())
        self._past.forget()
        self._newest_seq, self._cut_seq = len(newest), stage.last_seq()
        self._forget(newest)
        self._lines, self._ended, self._born = list(stage.jobs.lines), list(self.lives), dict(stage.born)
        self._were_alive = [name for name, (holder, _) in stage.locks.items() if holder.is_alive]
        stage.jobs.lines[:] = [replace(line, seq=self._known(line.seq)) for line in self._lines]
        stage.born = {name: min(seq, self._cut_seq) for name, seq in self._born.items()}
        self.lives[:] = [
            Life(life.who, min(life.from_seq, self._cut_seq), self._known(life.until_seq)) for life in self._ended
        ]
        return True

    def undo(self) -> None:
        """Put the newest copy back. Whoever had the store open must have ended."""
        newest, stage = self._newest, self._stage
        assert newest is not None, "the store was cut before"
        self.is_undone = True
        self._forget(stage.look(all_events))
        self._warm.restore(newest)
        stage.commits += 1
        newest.close()
        self._newest = None
        since = stage.jobs.lines[len(self._lines) :]
        stage.jobs.lines[:] = [*self._lines, *(replace(line, seq=self._newest_seq) for line in since)]
        stage.born = {**stage.born, **self._born}
        ended = [Life(Incarnation(name), self._born[name], self._newest_seq) for name in self._were_alive]
        self.lives[:] = [*self._ended, *ended]
        self._seen.clear()

    def close(self) -> None:
        """Drop the copy."""
        if self._newest is not None:
            self._newest.close()

    def _forget(self, events: tuple[Event, ...]) -> None:
        self.lost = events[self._cut_seq :]
        self._stage.forgotten = pins_in(self.lost)

    def _known(self, seq: int | None) -> int | None:
        return None if seq is None else min(seq, self._cut_seq)
