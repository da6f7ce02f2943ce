"""What must hold after any drill: pure functions over a recorded history, each with a test in which it fires.

A check returns a sentence for everything it finds wrong; none means that it holds. Jobs are expected to settle: drills that
leave something for a person leave it out of their jobs. Rule: design §9; requirements M01, R02, E03, C03.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from chaos.history import History, Job
from chaos.witness import OUTPUT, Mark
from shared.model.attempt import AttemptState, Exclusion, FailureClass
from shared.model.work import WorkState
from shared.policy.capacity import POOL_JOBS
from shared.policy.steps import is_final_attempt, is_final_work

Check = Callable[[History], list[str]]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be: the check that fired, and what it saw."""

    check: str
    what: str

    def __str__(self) -> str:
        return f"{self.check}: {self.what}"


def examine(history: History) -> list[Finding]:
    """Everything that any check finds wrong."""
    return [Finding(check.__name__, what) for check in CHECKS for what in check(history)]


def jobs_are_one_set(history: History) -> list[str]:
    """Jobs submitted, jobs with one start and jobs that are settled are the same set, seen from each side."""
    submitted = {job.work_id for job in history.jobs}
    exempt = {job.work_id for job in history.jobs if job.cancelled}
    starts = Counter(line.work_id for line in history.lines if line.mark is Mark.START)
    settled = {work.id for work in history.works.values() if is_final_work(work.state)}
    return [
        *(f"{work} was submitted and is not settled" for work in sorted(submitted - settled)),
        *(f"{work} is settled and was not submitted" for work in sorted(settled - submitted)),
        *(f"{work} was submitted and never started" for work in sorted(submitted - exempt - set(starts))),
        *(f"{work} started and was not submitted" for work in sorted(set(starts) - submitted)),
        *(f"{work} started {count} times" for work, count in sorted(starts.items()) if count > 1),
    ]


def started_jobs_came_to_their_end(history: History) -> list[str]:
    """A job that started ran to its last line, once, in one process under one launch; nothing killed it on the way."""
    found = []
    for job in history.jobs:
        starts, ends = history.lines_of(job.work_id, Mark.START), history.lines_of(job.work_id, Mark.END)
        told = [(line.attempt_id, line.epoch, line.pid) for line in starts]
        done = [(line.attempt_id, line.epoch, line.pid) for line in ends]
        if told != done and not (job.cancelled and not done):
            found.append(f"{job.work_id} started as {told} and ended as {done}")
    return found


def statuses_are_true(history: History) -> list[str]:
    """The status recorded for each job is the one its process ended with, and its Work says the same."""
    found = []
    for job in history.jobs:
        attempts = history.attempts_of(job.work_id)
        work = history.works.get(job.work_id)
        if job.cancelled or not attempts or work is None:
            continue
        last = attempts[-1]
        expected = (
            (AttemptState.SUCCEEDED, WorkState.COMPLETED)
            if job.status == 0
            else (AttemptState.FAILED, WorkState.FAILED)
        )
        if last.exit_status != job.status:
            found.append(f"{last.id} ended with {job.status}, recorded is {last.exit_status}")
        if (last.state, work.state) != expected:
            found.append(f"{last.id} ended with {job.status}, recorded is {last.state}, its work {work.state}")
    return found


def success_has_evidence(history: History) -> list[str]:
    """Nothing is called a success without a pinned launch that ended with 0."""
    return [
        f"{attempt.id} succeeded with status {attempt.exit_status} and {'a' if attempt.pin else 'no'} pin"
        for attempt in history.attempts.values()
        if attempt.state is AttemptState.SUCCEEDED and (attempt.exit_status != 0 or attempt.pin is None)
    ]


def launches_follow_their_pin(history: History) -> list[str]:
    """What started had been pinned: its epoch is the one that the attempt's pin names."""
    found = []
    for line in history.lines:
        attempt = history.attempts.get(line.attempt_id)
        pinned = None if attempt is None or attempt.pin is None else attempt.pin.epoch
        if line.mark is Mark.START and pinned != line.epoch:
            found.append(f"{line.attempt_id} started under epoch {line.epoch}, pinned is {pinned}")
    return found


def epochs_only_rise(history: History) -> list[str]:
    """Epochs of an attempt never fall in the changefeed, and its segments are one for each epoch, one after the other."""
    found = []
    seen: dict[str, int] = {}
    for event in history.events:
        if event.attempt_id is None or event.epoch is None:
            continue
        before = seen.get(event.attempt_id, 0)
        if event.epoch < before:
            found.append(f"{event.attempt_id} went from epoch {before} to {event.epoch} (event {event.seq})")
        seen[event.attempt_id] = max(before, event.epoch)
    for attempt_id, segments in history.segments.items():
        epochs = [segment.epoch for segment in segments]
        attempt = history.attempts[attempt_id]
        if epochs != list(range(attempt.segments_dropped + 1, attempt.epoch + 1)):
            found.append(f"{attempt_id} is at epoch {history.attempts[attempt_id].epoch}, its segments are {epochs}")
        if any(segment.ended_at_us is None for segment in segments[:-1]):
            found.append(f"{attempt_id} has a segment that its successor did not end")
    return found


def generations_only_rise(history: History) -> list[str]:
    """Each coordinator that took the lead did so under a higher generation than the one before."""
    taken = [int(str(event.data["generation"])) for event in history.events if event.kind == "leader.taken"]
    return [f"generation {later} followed {earlier}" for earlier, later in pairwise(taken) if later <= earlier]


def retries_are_not_spent(history: History) -> list[str]:
    """Deaths of tenure's own processes spend no retry: a further attempt follows only a launch that came to nothing."""
    found = []
    for job in history.jobs:
        for attempt in history.attempts_of(job.work_id)[:-1]:
            ran = any(line.attempt_id == attempt.id for line in history.lines)
            if attempt.failure is not FailureClass.ADMISSION or ran:
                found.append(f"{attempt.id} ended as {attempt.failure}{', ran' if ran else ''}, and another followed")
    return found


def capacity_is_kept(history: History) -> list[str]:
    """Never more jobs at once than the limit, by the witness alone."""
    running: set[str] = set()
    found = []
    for line in history.lines:
        if line.mark in (Mark.END, Mark.GONE):
            running.discard(line.work_id)
        if line.mark is not Mark.START:
            continue
        running.add(line.work_id)
        limit = history.limits.pools.get(POOL_JOBS, 0)
        if 0 < limit < len(running):
            found.append(f"{len(running)} jobs at once when {line.work_id} started, {limit} allowed")
    return found


def nothing_is_stuck(history: History) -> list[str]:
    """At rest every attempt is over, its slot free and its stop proven."""
    found = [
        f"{attempt.id} is still {attempt.state}"
        for attempt in history.attempts.values()
        if not is_final_attempt(attempt.state)
    ]
    found += [
        f"{attempt.id} is {attempt.state} and still holds its slot"
        for attempt in history.attempts.values()
        if is_final_attempt(attempt.state) and attempt.exclusion is not Exclusion.RELEASED
    ]
    if history.open_orders:
        found.append(f"{len(history.open_orders)} stop orders are open")
    return found


def outputs_are_whole(history: History) -> list[str]:
    """What a job printed is there, all of it and once."""
    found = []
    for job in history.jobs:
        output = _output(history, job)
        if not job.cancelled and output != OUTPUT:
            found.append(f"{job.work_id} printed {OUTPUT!r}, kept is {output!r}")
    return found


def _output(history: History, job: Job) -> str | None:
    attempts = history.attempts_of(job.work_id)
    return history.outputs.get(attempts[-1].id) if attempts else None


CHECKS: tuple[Check, ...] = (
    jobs_are_one_set,
    started_jobs_came_to_their_end,
    statuses_are_true,
    success_has_evidence,
    launches_follow_their_pin,
    epochs_only_rise,
    generations_only_rise,
    retries_are_not_spent,
    capacity_is_kept,
    nothing_is_stuck,
    outputs_are_whole,
)
