"""What must hold after a random drill, besides what must hold after any: pure functions over its aftermath.

Each returns a sentence for everything it finds wrong; the name of a check is what reports call it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from chaos.checks import Finding, examine
from chaos.checks.processes import processes
from chaos.job import Job
from chaos.random_drill.aftermath import Aftermath
from chaos.random_drill.load import PlannedJob
from chaos.random_drill.roster import Admission, number_of
from shared.model.attempt import AttemptState
from shared.model.settings import scope_chain
from shared.model.work import WorkState

Expectation = Callable[[Aftermath], list[str]]

TENURE_FAILED = 125
SIGNAL_BASE = 128
LOST_SIGHT = "cannot be followed any more"


def judge(after: Aftermath) -> list[Finding]:
    """Everything that any check finds wrong, those of all drills first."""
    own = [Finding(check.__name__, what) for check in EXPECTATIONS for what in check(after)]
    return examine(after.history) + own


def comes_to_rest(after: Aftermath) -> list[str]:
    """Once nobody is harmed any more, everything is over within the bound."""
    return [after.not_over] if after.not_over else []


def handed_in_once(after: Aftermath) -> list[str]:
    """What was taken is one Work, what was refused is none, and nobody could say otherwise of at most one."""
    counts = Counter(number_of(work) for work in after.history.works.values())
    found = [
        f"job {number} is {counts[number]} works, and was {admission}"
        for number, admission in after.admissions.items()
        if not _is_possible(admission, counts[number])
    ]
    return found + [f"{work} is no planned job" for work in after.history.works if work not in after.jobs]


def ended_as_its_kind_may(after: Aftermath) -> list[str]:
    """How each job ended is what its kind, and what was done to it, leaves open: exactly one way for nearly all of them."""
    found = []
    for work_id, job in after.jobs.items():
        work, expected = after.history.works[work_id], after.history.job(work_id)
        assert expected is not None, "every Work of a planned job is a job"
        attempts = after.history.attempts_of(work_id)
        may = _ends_of(job, expected, is_cut_short=after.is_cut_short)
        came_to = (work.state, attempts[-1].state if attempts else None)
        if came_to not in may:
            told = " or ".join(f"{state}/{last}" for state, last in may)
            found.append(f"{work_id} ({job.kind}) came to {came_to[0]}/{came_to[1]}, possible was {told}")
    return found


def printed_whole(after: Aftermath) -> list[str]:
    """What a job printed on its way to its end is there: all of it, or the tail of it that its cap allows."""
    return [f"{attempt_id} printed {wrong}" for attempt_id, wrong in after.broken_outputs.items()]


def run_told_the_truth(after: Aftermath) -> list[str]:
    """`tenure run` ended with its job's code, or said that it could not follow it."""
    names = {job.number: work_id for work_id, job in after.jobs.items()}
    found = []
    for answer in after.answers:
        job = answer.job
        if job.number not in names or (answer.code == TENURE_FAILED and LOST_SIGHT in answer.err):
            continue
        state, expected = after.history.works[names[job.number]].state, after.history.job(names[job.number])
        if state in (WorkState.COMPLETED, WorkState.FAILED) and not job.recipe.may_time_out:
            code = job.status if job.status >= 0 else SIGNAL_BASE - job.status
        else:
            code = TENURE_FAILED
        if answer.code != code:
            found.append(
                f"`tenure run` of job {job.number} ended with {answer.code}, its job with {code}: {answer.err}"
            )
        elif code != TENURE_FAILED and expected is not None and expected.output not in (None, answer.out.decode()):
            found.append(f"`tenure run` of job {job.number} showed {answer.out[:200]!r}")
    return found


def commands_said_what_they_may(after: Aftermath) -> list[str]:
    """A command did what it was asked, or refused it for a reason that it may have."""
    return list(after.troubles)


def nothing_is_left_running(after: Aftermath) -> list[str]:
    """At rest no process of any job is there: neither stragglers nor those that went into sessions of their own."""
    return [f"still there: {told}" for told in after.left]


def scopes_are_kept(after: Aftermath) -> list[str]:
    """Never more jobs at once in a scope and below it than its limit, by the witness alone."""
    lived = processes(after.history)
    found = []
    for scope, limit in after.history.limits.scopes.items():
        inside = [each for each in lived if scope in scope_chain(after.history.works[each.work_id].scope)]
        for each in inside:
            at_once = {other.work_id for other in inside if other.lives_at(each.began)}
            if 0 < limit < len(at_once):
                found.append(f"{len(at_once)} jobs at once in {scope} when {each.work_id} started, {limit} allowed")
    return found


def _is_possible(admission: Admission, works: int) -> bool:
    match admission:
        case Admission.TAKEN:
            return works == 1
        case Admission.REFUSED:
            return works == 0
        case Admission.UNKNOWN:
            return works <= 1


End = tuple[WorkState, AttemptState | None]


_SPOKEN_LAST = (AttemptState.SUCCEEDED, AttemptState.HANDED_OFF, AttemptState.INTERRUPTED)
"""How the attempt before may have ended when a Work that goes on is cancelled."""


def _ends_of(job: PlannedJob, expected: Job, *, is_cut_short: bool) -> tuple[End, ...]:
    if expected.cancelled:
        last = (AttemptState.CANCELLED, AttemptState.FAILED, None, *(_SPOKEN_LAST if expected.speaks else ()))
        return tuple((WorkState.CANCELLED, state) for state in last)
    if job.recipe.manner is not None:
        return _spoken_ends(job, expected, is_cut_short=is_cut_short)
    if job.recipe.may_time_out:
        return ((WorkState.FAILED, AttemptState.TIMED_OUT),)
    if job.status == 0:
        return ((WorkState.COMPLETED, AttemptState.SUCCEEDED),)
    return ((WorkState.FAILED, AttemptState.FAILED),)


def _spoken_ends(job: PlannedJob, expected: Job, *, is_cut_short: bool) -> tuple[End, ...]:
    done: End = (WorkState.IDLE if job.recipe.standing else WorkState.COMPLETED, AttemptState.SUCCEEDED)
    failed: End = (WorkState.IDLE if job.recipe.standing else WorkState.FAILED, AttemptState.FAILED)
    may_be_word = expected.may_need_person  # a person says how it ended, by its exit status alone
    is_left = job.is_hopeless and is_cut_short  # nobody was there any more to try it again
    if expected.may_be_killed or may_be_word or is_left:
        return done, failed
    return (failed,) if job.is_hopeless and not job.person.retries else (done,)


EXPECTATIONS: tuple[Expectation, ...] = (
    comes_to_rest,
    handed_in_once,
    ended_as_its_kind_may,
    printed_whole,
    run_told_the_truth,
    commands_said_what_they_may,
    nothing_is_left_running,
    scopes_are_kept,
)
