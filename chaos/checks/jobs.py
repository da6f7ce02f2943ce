"""What whoever submitted a job may rely on: it runs once, to its end, and what is recorded of it is true."""

from __future__ import annotations

from collections import Counter

from chaos.checks.wakes import woken_epochs
from chaos.history import History
from chaos.job import Job
from chaos.witness import Mark
from shared.ids import work_of
from shared.model.attempt import Attempt, AttemptState, FailureClass
from shared.model.work import Work, WorkState
from shared.policy.steps import is_final_attempt, is_final_work

GIVEN_UP = "worker lost:"
"""How the error of a launch begins that was given up, as it had cost so many workers."""


def jobs_are_one_set(history: History) -> list[str]:
    """Jobs submitted, jobs with one start and jobs that are settled are the same set, seen from each side."""
    submitted = {job.work_id for job in history.jobs}
    exempt = {job.work_id for job in history.jobs if job.may_never_start}
    again = {job.work_id for job in history.jobs if job.may_run_again or job.may_be_retried}
    settled = {work.id for work in history.works.values() if is_final_work(work.state)}
    left = {job.work_id for job in history.jobs if job.may_need_person and _is_left_to_person(history, job)}
    left |= {job.work_id for job in history.jobs if job.may_stay_open}
    left |= {job.work_id for job in history.jobs if _rests(history, job)}
    starts = Counter(line.work_id for line in history.lines if line.mark is Mark.START)
    each = Counter(line.attempt_id for line in history.lines if line.mark is Mark.START)
    woken = woken_epochs(history)
    allowed = {attempt: 1 + len(woken.get(attempt, ())) for attempt in each}
    twice = [f"{attempt} started {count} times" for attempt, count in each.items() if count > allowed[attempt]]
    wakes = Counter(work_of(attempt) for attempt, epochs in woken.items() for _ in epochs)
    twice += [
        f"{work} started {count} times"
        for work, count in starts.items()
        if count > 1 + wakes[work] and work not in again
    ]
    return [
        *(f"{work} was submitted and is not settled" for work in sorted(submitted - settled - left)),
        *(f"{work} is settled and was not submitted" for work in sorted(settled - submitted)),
        *(f"{work} was submitted and never started" for work in sorted(submitted - exempt - set(starts))),
        *(f"{work} started and was not submitted" for work in sorted(set(starts) - submitted)),
        *sorted(twice),
    ]


def started_jobs_came_to_their_end(history: History) -> list[str]:
    """A job that started ran to its last line, once, in one process under one launch; nothing killed it on the way."""
    found = []
    for job in history.jobs:
        starts, ends = history.lines_of(job.work_id, Mark.START), history.lines_of(job.work_id, Mark.END)
        told = Counter((line.attempt_id, line.epoch, line.pid) for line in starts)
        done = Counter((line.attempt_id, line.epoch, line.pid) for line in ends)
        missing, extra = told - done, done - told
        if extra or (missing and not job.may_be_cut_short):
            found.append(f"{job.work_id} started as {list(told)} and ended as {list(done)}")
    return found


def statuses_are_true(history: History) -> list[str]:
    """The status recorded for each job is the one its process ended with, and its Work says the same. Of those that speak,
    `spoken` knows.
    """
    found = []
    for job in history.jobs:
        if job.speaks or job.is_overheard:
            continue
        attempts, work = history.attempts_of(job.work_id), history.works.get(job.work_id)
        if work is None or not attempts or not _is_over(attempts[-1]):
            continue
        last = attempts[-1]
        if job.may_stay_open and not is_final_work(work.state):
            continue  # the history ended before its Work was settled
        if not (_is_natural(job, last, work) or _is_allowed(job, last, work)):
            found.append(
                f"{last.id} ends with {job.status} by itself, recorded is {last.exit_status}: {last.state}"
                f" ({last.failure}), its work {work.state}"
            )
    return found


def _is_natural(job: Job, last: Attempt, work: Work) -> bool:
    if job.cannot_run:
        end = (last.state, last.failure, last.exit_status, work.state)
        return end == (AttemptState.FAILED, FailureClass.PERMANENT, None, _given_up(job))
    status = job.status_of(last.number)
    if status == 0:
        states = (AttemptState.SUCCEEDED, WorkState.IDLE if job.is_standing else WorkState.COMPLETED)
    else:
        states = (AttemptState.FAILED, WorkState.IDLE if job.is_standing else _given_up(job))
    return last.exit_status == status and (last.state, work.state) == states


def _given_up(job: Job) -> WorkState:
    """What becomes of it once nothing is left to try."""
    return WorkState.HELD if job.is_standing or job.is_held else WorkState.FAILED


def _is_allowed(job: Job, last: Attempt, work: Work) -> bool:
    """Whether it is how a job may end to which that happened which the drill says of it."""
    end = (last.state, work.state)
    if work.state is WorkState.CANCELLED:
        return job.cancelled
    failed = {_given_up(job), *([WorkState.IDLE] if job.is_standing else [])}
    if job.may_time_out and last.state is AttemptState.TIMED_OUT and work.state in failed:
        return True
    if job.may_need_person and end == (AttemptState.RECOVERY_REQUIRED, WorkState.RUNNING):
        return True
    if last.state is not AttemptState.FAILED or work.state not in failed:
        return False
    if last.failure is FailureClass.KNOWN and last.exit_status is None:
        return job.may_be_given_up and (last.error or "").startswith(GIVEN_UP)
    if last.exit_status is None:  # its outcome is unknown, and it was tried as often as it may be
        return last.failure is FailureClass.AMBIGUOUS and job.may_need_person and job.may_run_again
    return job.may_be_killed and last.exit_status < 0


def outputs_are_whole(history: History) -> list[str]:
    """What a job printed is there, all of it and once; of one that was cut short, the beginning."""
    found = []
    for job in history.jobs:
        attempts = history.attempts_of(job.work_id)
        kept = history.outputs.get(attempts[-1].id) if attempts else None
        if job.output is None or kept is None or kept == job.output:
            continue
        if job.may_be_cut_short or job.may_need_person:
            if not job.output.startswith(kept):
                found.append(f"{job.work_id} prints {job.output!r}, kept is {kept!r}, which is not its beginning")
        else:
            found.append(f"{job.work_id} printed {job.output!r}, kept is {kept!r}")
    return found


def _rests(history: History, job: Job) -> bool:
    """Whether it is as it may be left: a standing one, or one with nothing left to try that is held."""
    work = history.works.get(job.work_id)
    if work is None:
        return False
    return (job.is_standing and work.state in (WorkState.IDLE, WorkState.HELD)) or (
        job.is_held and work.state is WorkState.HELD and work.hold is None
    )


def _is_left_to_person(history: History, job: Job) -> bool:
    attempts = history.attempts_of(job.work_id)
    return bool(attempts) and attempts[-1].state is AttemptState.RECOVERY_REQUIRED


def _is_over(attempt: Attempt) -> bool:
    return is_final_attempt(attempt.state) or attempt.state is AttemptState.RECOVERY_REQUIRED
