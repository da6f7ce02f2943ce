"""The jobs of a drill that were handed in, and what was done to each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from chaos.job import Job
from chaos.random_drill.load import NUMBER_VARIABLE, PlannedJob
from shared.ids import WorkId
from shared.model.work import NewWork, Work, WorkKind

SUBMITTER = "drill"


class Admission(StrEnum):
    """What is known of whether a job was taken."""

    TAKEN = "taken"
    REFUSED = "refused"  # nothing was handed in, it was said
    UNKNOWN = "unknown"  # nobody could say


@dataclass(slots=True)
class Roster:
    """Attributes:
    admissions: By number; a job that is missing was never tried.
    work_ids: By number, where whoever handed it in was told.
    cancelled: Works whose cancel was accepted; `interrupted`: of which an attempt was interrupted.
    disk_fills: The home lies on a disk that is filled now and then.
    shims_killed: Works of which a shim was killed, or was about to be; `programs_killed`: a program.
    """

    planned: dict[int, PlannedJob] = field(default_factory=dict)
    admissions: dict[int, Admission] = field(default_factory=dict)
    work_ids: dict[int, WorkId] = field(default_factory=dict)
    cancelled: set[WorkId] = field(default_factory=set)
    interrupted: set[WorkId] = field(default_factory=set)
    shims_killed: set[WorkId] = field(default_factory=set)
    programs_killed: set[WorkId] = field(default_factory=set)
    disk_fills: bool = False

    def expect(self, job: PlannedJob) -> None:
        """It is about to be handed in."""
        self.planned[job.number] = job

    def taken(self, job: PlannedJob, work_id: WorkId) -> None:
        """It was handed in, and got a name."""
        self.admissions[job.number] = Admission.TAKEN
        self.work_ids[job.number] = work_id

    def jobs(self, works: Mapping[WorkId, Work]) -> list[Job]:
        """How each Work that is there and planned may end."""
        return [
            job.expectation(
                work_id,
                cancelled=work_id in self.cancelled,
                shim_killed=work_id in self.shims_killed,
                disk_fills=self.disk_fills,
                interrupted=work_id in self.interrupted,
                program_killed=work_id in self.programs_killed,
            )
            for work_id, job in self.found(works.values()).items()
        ]

    def found(self, works: Iterable[Work]) -> dict[WorkId, PlannedJob]:
        """The planned job behind each Work, by what it carries in its environment."""
        numbers = {work.id: number_of(work) for work in works}
        return {
            work_id: self.planned[number]
            for work_id, number in numbers.items()
            if number is not None and number in self.planned
        }


def new_work(job: PlannedJob, command: tuple[str, ...] | None) -> NewWork:
    """The Work that hands a planned job in."""
    return NewWork(
        scope=job.scope,
        binding=job.recipe.binding,
        command=command,
        env=job.env,
        cwd="/",
        input=job.input,
        submitted_by=SUBMITTER,
        priority=job.priority,
        kind=WorkKind.STANDING if job.recipe.standing else WorkKind.RUN_ONCE,
        correlate=job.correlations,
    )


def number_of(work: Work) -> int | None:
    """Which planned job a Work is; None when it is none."""
    text = dict(work.env).get(NUMBER_VARIABLE, "")
    return int(text) if text.isdecimal() else None
