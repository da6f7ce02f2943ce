"""When the processes of jobs lived, by the witness alone."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.history import History
from chaos.witness import Line, Mark
from shared.ids import AttemptId, WorkId

Launch = tuple[AttemptId, int]
"""An attempt, and the epoch it was launched under."""

ProcessKey = tuple[AttemptId, int, int]


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a job.

    Attributes:
        began, ended: Places in the witness; `ended` None: it lives to this day.
        began_seq, ended_seq: The last event then, where that is known.
    """

    work_id: WorkId
    launch: Launch
    pid: int
    began: int
    ended: int | None
    began_seq: int | None
    ended_seq: int | None

    def lives_at(self, place: int) -> bool:
        """Whether it lives right after a line of the witness."""
        return self.began <= place and (self.ended is None or place < self.ended)

    def lives_at_seq(self, seq: int) -> bool:
        """Whether it is known to have lived when an event was committed."""
        if self.began_seq is None or self.began_seq >= seq:
            return False
        return self.ended is None or (self.ended_seq is not None and seq <= self.ended_seq)


def processes(history: History) -> list[Process]:
    """Every process that the witness knows of, by its beginning.

    A simulation sees each end exactly. In a drill a job's last line is the end: it ends right behind it, and whoever drills may
    see that late. One that may have been killed without anybody seeing it is taken for gone at once there, since nothing is known.
    """
    ends = _ends(history)
    return [
        _process(history, place, line, ends.get(_key(line), {}))
        for place, line in enumerate(history.lines)
        if line.mark in (Mark.START, Mark.CHILD)
    ]


def _ends(history: History) -> dict[ProcessKey, dict[Mark, int]]:
    """Where the witness tells of each process that it ended."""
    ends: dict[ProcessKey, dict[Mark, int]] = {}
    for place, line in enumerate(history.lines):
        if line.mark in (Mark.END, Mark.GONE):
            ends.setdefault(_key(line), {})[line.mark] = place
    return ends


def _process(history: History, place: int, line: Line, ends: dict[Mark, int]) -> Process:
    ended: int | None
    if line.seq is not None:
        ended = ends.get(Mark.GONE)
    else:
        ended = ends.get(Mark.END, ends.get(Mark.GONE, place if _may_be_unseen(history, line) else None))
    ended_seq = None if ended is None else history.lines[ended].seq
    return Process(line.work_id, (line.attempt_id, line.epoch), line.pid, place, ended, line.seq, ended_seq)


def _may_be_unseen(history: History, line: Line) -> bool:
    job = history.job(line.work_id)
    return line.mark is Mark.CHILD or (job is not None and job.may_be_cut_short)


def _key(line: Line) -> ProcessKey:
    return line.attempt_id, line.epoch, line.pid
