"""What whoever submitted a job may rely on: it runs once, to its end, and what is recorded of it is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from chaos.history import History, Job
from chaos.witness import Mark
from shared.model.attempt import Attempt, AttemptState, FailureClass
from shared.model.work import Work, WorkState
from shared.policy.steps import is_final_attempt, is_final_work

_TOOK_EFFECT = (AttemptState.SUCCEEDED, AttemptState.HANDED_OFF)
_WAITS = (WorkState.READY, WorkState.BACKOFF, WorkState.HELD)


def jobs_are_one_set(history: History) -> list[str]:
    """Jobs submitted, jobs with one start and jobs that are settled are the same set, seen from each side."""
    submitted = {job.work_id for job in history.jobs}
    exempt = {job.work_id for job in history.jobs if job.may_never_start}
    again = {job.work_id for job in history.jobs if job.may_run_again}
    settled = {work.id for work in history.works.values() if is_final_work(work.state)}
    left = {job.work_id for job in history.jobs if job.may_need_person and _is_left_to_person(history, job)}
    left |= {job.work_id for job in history.jobs if job.may_stay_open}
    starts = Counter(line.work_id for line in history.lines if line.mark is Mark.START)
    each = Counter((line.work_id, line.attempt_id) for line in history.lines if line.mark is Mark.START)
    twice = [f"{attempt} started {count} times" for (work, attempt), count in each.items() if count > 1]
    twice += [f"{work} started {count} times" for work, count in starts.items() if count > 1 and work not in again]
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
    """The status recorded for each job is the one its process ended with, and its Work says the same."""
    found = []
    for job in history.jobs:
        attempts, work = history.attempts_of(job.work_id), history.works.get(job.work_id)
        if work is None or not attempts or not _is_over(attempts[-1]):
            continue
        last = attempts[-1]
        if not (_is_natural(job, last, work) or _is_allowed(job, last, work)):
            found.append(
                f"{last.id} ends with {job.status} by itself, recorded is {last.exit_status}: {last.state}"
                f" ({last.failure}), its work {work.state}"
            )
    return found


def _is_natural(job: Job, last: Attempt, work: Work) -> bool:
    if job.cannot_run:
        end = (last.state, last.failure, last.exit_status, work.state)
        return end == (AttemptState.FAILED, FailureClass.PERMANENT, None, WorkState.FAILED)
    states = (AttemptState.FAILED, WorkState.FAILED) if job.status else (AttemptState.SUCCEEDED, WorkState.COMPLETED)
    return last.exit_status == job.status and (last.state, work.state) == states


def _is_allowed(job: Job, last: Attempt, work: Work) -> bool:
    """Whether it is how a job may end to which that happened which the drill says of it."""
    end = (last.state, work.state)
    if work.state is WorkState.CANCELLED:
        return job.cancelled
    if job.may_time_out and end == (AttemptState.TIMED_OUT, WorkState.FAILED):
        return True
    if job.may_need_person and end == (AttemptState.RECOVERY_REQUIRED, WorkState.RUNNING):
        return True
    if end != (AttemptState.FAILED, WorkState.FAILED):
        return False
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


def inputs_are_kept(history: History) -> list[str]:
    """An accepted input waits, or the last attempt has it: no end of an attempt loses one, none is consumed twice."""
    found = []
    for work in history.works.values():
        attempts = history.attempts_of(work.id)
        waiting = set(history.pending_inputs.get(work.id, ()))
        carried: set[int] = set()
        for attempt in attempts:
            consumed = set(_inputs(history, attempt))
            found += [f"{attempt.id} did not get input {one}" for one in sorted(carried - consumed - waiting)]
            carried = set() if attempt.state in _TOOK_EFFECT else consumed
        last = set(_inputs(history, attempts[-1])) if attempts else set()
        if attempts and work.state in _WAITS:
            found += [f"{work.id} is {work.state}, input {one} was not returned" for one in sorted(carried - waiting)]
        elif attempts and work.state is not WorkState.CANCELLED:
            found += [f"input {one} of {work.id} waits, and {attempts[-1].id} had it" for one in sorted(last & waiting)]
        if not last | waiting:
            found.append(f"the input of {work.id} is neither waiting nor consumed")
        if work.state is WorkState.COMPLETED:
            found += [f"{work.id} is completed, input {one} never was" for one in sorted(waiting - last)]
    return found


def retries_are_not_spent(history: History) -> list[str]:
    """Deaths of tenure's own processes spend no retry: a further attempt follows only a launch that came to nothing, or one that
    may be run again.
    """
    found = []
    for job in history.jobs:
        for attempt in history.attempts_of(job.work_id)[:-1]:
            ran = any(line.attempt_id == attempt.id for line in history.lines)
            nothing_ran = attempt.failure is FailureClass.ADMISSION
            if (nothing_ran and ran) or not (nothing_ran or job.may_run_again):
                found.append(f"{attempt.id} ended as {attempt.failure}{', ran' if ran else ''}, and another followed")
    return found


def _inputs(history: History, attempt: Attempt) -> Iterable[int]:
    snapshot = history.snapshots.get(attempt.id)
    return () if snapshot is None else snapshot.inputs


def _is_left_to_person(history: History, job: Job) -> bool:
    attempts = history.attempts_of(job.work_id)
    return bool(attempts) and attempts[-1].state is AttemptState.RECOVERY_REQUIRED


def _is_over(attempt: Attempt) -> bool:
    return is_final_attempt(attempt.state) or attempt.state is AttemptState.RECOVERY_REQUIRED
