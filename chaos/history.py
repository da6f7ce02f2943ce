"""What is known after a drill, as plain values: what was asked for, what the store says, what the witness says.

`record` reads; everything that judges works on the result alone. Rule: design §9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.witness import Line, Mark
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt, Segment
from shared.model.work import Work
from shared.store.contract import Event, ReadTx, Store

PAGE = 500
OUTPUT_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it was submitted.

    Attributes:
        status: How it ends when it is left alone: 0 to 255, or the negative number of a signal.
        cancelled: It was cancelled; it may never start, or end early.
    """

    work_id: WorkId
    status: int
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """Everything the checks look at.

    Attributes:
        job_concurrency: The limit that was in force; 0 is none.
        lines: The witness, in the order it was written.
        outputs: What each pinned attempt wrote to its standard output.
        open_orders: Stop orders that nobody has proven yet.
    """

    jobs: tuple[Job, ...]
    job_concurrency: int
    lines: tuple[Line, ...]
    works: Mapping[WorkId, Work]
    attempts: Mapping[AttemptId, Attempt]
    segments: Mapping[AttemptId, tuple[Segment, ...]]
    events: tuple[Event, ...]
    outputs: Mapping[AttemptId, str]
    open_orders: int

    def lines_of(self, work_id: WorkId, mark: Mark) -> list[Line]:
        """What the jobs of one Work said."""
        return [line for line in self.lines if line.work_id == work_id and line.mark is mark]

    def attempts_of(self, work_id: WorkId) -> list[Attempt]:
        """A Work's attempts, by number."""
        found = [attempt for attempt in self.attempts.values() if attempt.work_id == work_id]
        return sorted(found, key=lambda attempt: attempt.number)


def record(
    store: Store, attempts_dir: Path, jobs: Sequence[Job], lines: Sequence[Line], *, job_concurrency: int
) -> History:
    """Read everything there is to know about a home that has come to rest."""
    return store.read(lambda tx: _record(tx, attempts_dir, jobs, lines, job_concurrency))


def _record(
    tx: ReadTx, attempts_dir: Path, jobs: Sequence[Job], lines: Sequence[Line], job_concurrency: int
) -> History:
    works = _all_works(tx)
    attempts = {attempt.id: attempt for work_id in works for attempt in tx.attempts(work_id)}
    return History(
        jobs=tuple(jobs),
        job_concurrency=job_concurrency,
        lines=tuple(lines),
        works=works,
        attempts=attempts,
        segments={attempt_id: tuple(tx.segments(attempt_id)) for attempt_id in attempts},
        events=_all_events(tx),
        outputs={attempt.id: _output(attempts_dir, attempt) for attempt in attempts.values() if attempt.pin},
        open_orders=len(tx.stop_orders()),
    )


def _all_works(tx: ReadTx) -> dict[WorkId, Work]:
    works: dict[WorkId, Work] = {}
    after = 0
    while page := tx.works(states=(), after=after, limit=PAGE):
        works.update((work.id, work) for work in page)
        after = page[-1].number
    return works


def _all_events(tx: ReadTx) -> tuple[Event, ...]:
    events: list[Event] = []
    after = 0
    while page := tx.events(after=after, limit=PAGE):
        events += page
        after = page[-1].seq
    return tuple(events)


def _output(attempts_dir: Path, attempt: Attempt) -> str:
    if attempt.pin is None:
        return ""
    try:
        with (attempts_dir / attempt.pin.directory / "out").open("rb") as file:
            return file.read(OUTPUT_BYTES_MAX).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
