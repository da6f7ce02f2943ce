"""Further attempts: each has its cause, comes when its policy says, and none is spent on a death of tenure's own.

Rule: requirements O09, O13, O14, F01, F02.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from chaos.checks.inputs import RETRY, TIMER, TOOK_EFFECT, inputs_of, is_hinted, is_retried_by_person, is_spent
from chaos.checks.jobs import GIVEN_UP
from chaos.checks.slots import ENDINGS
from chaos.checks.wakes import PUT_OFF
from chaos.history import History
from chaos.job import Job
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt, AttemptState, FailureClass, Snapshot
from shared.model.instant import US_PER_S
from shared.model.timer import TimerKind
from shared.model.work import Reason, Work, WorkKind
from shared.store.contract import Event

ATTEMPTS_OF_UNKNOWN = 3
"""Attempts in all where nobody knows how one ended and running it again does no harm. Rule: E01."""
RESUMES_MAX = 10
"""Resumes in a row that come to nothing before the attempt ends of it. Rule: F01."""
_CAUSES: dict[FailureClass | None, str] = {FailureClass.KNOWN: "failure", FailureClass.TIMED_OUT: "timeout"}
_NEEDS_WORD = (FailureClass.KNOWN, FailureClass.TIMED_OUT, FailureClass.ADMISSION, FailureClass.PERMANENT)


def retries_are_not_spent(history: History) -> list[str]:
    """Deaths of tenure's own processes spend no retry: a further attempt follows only one of which nothing ever ran, or one that
    may be run again and that ended as it does by itself, or as what the drill did to it leaves open.
    """
    found = []
    put_off = Counter(event.attempt_id for event in history.events if event.kind == PUT_OFF)
    for job in history.jobs:
        for attempt, following in pairwise(history.attempts_of(job.work_id)):
            ran = any(line.attempt_id == attempt.id for line in history.lines)
            nothing_ran = attempt.failure is FailureClass.ADMISSION
            if nothing_ran and ran and put_off[attempt.id] >= RESUMES_MAX:
                continue  # its resumes were given up, and its policy tries it again
            if (nothing_ran and ran) or not (
                nothing_ran or _may_follow(job, attempt) or _is_told_more(history, attempt, following)
            ):
                found.append(f"{attempt.id} ended as {attempt.failure}{', ran' if ran else ''}, and another followed")
    return found


def _is_told_more(history: History, attempt: Attempt, following: Attempt) -> bool:
    """Whether an attempt that took effect is followed for the sake of an input that came in meanwhile."""
    return attempt.state in TOOK_EFFECT and not {*inputs_of(history, following)} <= {*inputs_of(history, attempt)}


def _may_follow(job: Job, attempt: Attempt) -> bool:
    if (
        job.speaks or job.is_overheard
    ):  # what its program said says what may follow: `spoken.attempts_follow_what_was_said`
        return True
    if not (job.may_run_again or job.may_be_retried):
        return False
    status = attempt.exit_status
    match attempt.failure:
        case None:
            return job.is_standing or (job.interrupted and attempt.state is AttemptState.INTERRUPTED)
        case FailureClass.KNOWN:
            is_killed = job.may_be_killed and status is not None and status < 0
            if status is None:
                return job.may_be_given_up and (attempt.error or "").startswith(GIVEN_UP)
            return is_killed or status == job.status_of(attempt.number) != 0
        case FailureClass.TIMED_OUT:
            return job.may_time_out
        case FailureClass.AMBIGUOUS:
            return job.may_need_person or job.may_be_killed
        case FailureClass.PERMANENT:
            return job.cannot_run and job.may_be_retried
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Request:
    """An accepted event that asks for a retry. `timer`: that fired it; None: a person asked."""

    seq: int
    attempt_id: AttemptId
    timer: int | None


def retries_come_from_accepted_events(history: History) -> list[str]:
    """An attempt that follows a failure follows an accepted request behind that failure, which serves once; each timer fires once."""
    requests = list(_requests(history))
    ends = {event.attempt_id: event.seq for event in history.events if event.kind in ENDINGS}
    claims = {event.attempt_id: event.seq for event in history.events if event.kind == "attempt.claimed"}
    timers = Counter(request.timer for request in requests if request.timer is not None)
    served = Counter(request.attempt_id for request in requests)
    found = [f"timer {timer} fired {count} times" for timer, count in timers.items() if count > 1]
    found += [f"{name} was asked for again {count} times" for name, count in served.items() if count > 1]
    found += [
        f"a retry of {one.attempt_id} was accepted (event {one.seq}) before it had failed"
        for one in requests
        if ends.get(one.attempt_id, one.seq) >= one.seq
    ]
    for work_id in history.works:
        lifted = [event.seq for event in history.events if (event.kind, event.work_id) == ("hold.lifted", work_id)]
        for failed, following in pairwise(history.attempts_of(work_id)):
            if failed.failure not in _NEEDS_WORD or is_spent(history, failed):
                continue
            asked = [one.seq for one in requests if one.attempt_id == failed.id]
            begin, end = ends.get(failed.id, 0), claims.get(following.id, 0)
            if not any(begin < seq < end for seq in (*asked, *lifted)):
                found.append(f"{following.id} followed the failure of {failed.id}, and nobody had asked for it")
    return found


def _requests(history: History) -> Iterator[_Request]:
    for event in history.events:
        if event.kind == RETRY:
            timer = event.data.get("timer")
            yield _Request(event.seq, AttemptId(str(event.data["attempt"])), None if timer is None else int(str(timer)))


def retries_keep_the_policy(history: History) -> list[str]:
    """No more failures than the pinned policy allows, unless a person asked, nor fewer; each wait is the policy's, and is waited for."""
    found = []
    numbers: dict[AttemptId, int] = {}
    for work in history.works.values():
        numbers |= _failure_numbers(history, work.id)
        attempts = history.attempts_of(work.id)
        for failed in attempts[:-1]:
            wrong = _why_not_again(history, failed, numbers.get(failed.id, 0))
            found += [f"{failed.id} {wrong}, and another followed"] if wrong else []
        if attempts and _gave_up_early(history, work, attempts[-1], numbers.get(attempts[-1].id, 0)):
            found.append(f"{work.id} has nothing left to try after failure {numbers[attempts[-1].id]}, its policy has")
    return found + _waits_that_differ(history, numbers) + _fired_early(history)


def _failure_numbers(history: History, work_id: WorkId) -> dict[AttemptId, int]:
    """Of each failure that a policy counts: the how-manieth it is since the last success or word of a person."""
    numbers: dict[AttemptId, int] = {}
    count = 0
    for attempt in history.attempts_of(work_id):
        if attempt.failure in (FailureClass.KNOWN, FailureClass.TIMED_OUT, FailureClass.AMBIGUOUS):
            count += 1
            numbers[attempt.id] = count
        if attempt.state in TOOK_EFFECT or is_retried_by_person(history, attempt):
            count = 0
    return numbers


def _why_not_again(history: History, failed: Attempt, number: int) -> str:
    """Why its policy does not try it again; empty when it does, or when that is no question of the policy."""
    snapshot = history.snapshots.get(failed.id)
    if snapshot is None or not number or is_retried_by_person(history, failed) or is_spent(history, failed):
        return ""
    if failed.failure is FailureClass.AMBIGUOUS:
        allowed = max(ATTEMPTS_OF_UNKNOWN, snapshot.retry.attempts_max)
    elif snapshot.kind is WorkKind.STANDING and is_hinted(history, failed):
        return ""  # the hint arms its timer whatever the policy lists: O12
    elif _CAUSES[failed.failure] not in _causes_of(snapshot):
        return f"ended as {failed.failure}, which its policy does not try again"
    else:
        allowed = snapshot.retry.attempts_max
    return "" if number < allowed else f"was failure {number} of {allowed}"


def _causes_of(snapshot: Snapshot) -> tuple[str, ...]:
    """The failures that a pinned policy tries again, as texts."""
    return snapshot.retry_on


def _gave_up_early(history: History, work: Work, last: Attempt, number: int) -> bool:
    snapshot = history.snapshots.get(last.id)
    if work.reason is not Reason.EXHAUSTED or snapshot is None or last.failure not in _CAUSES:
        return False
    listed = _CAUSES[last.failure] in _causes_of(snapshot)
    return snapshot.kind is WorkKind.RUN_ONCE and listed and number < snapshot.retry.attempts_max


def _waits_that_differ(history: History, numbers: dict[AttemptId, int]) -> list[str]:
    found = []
    for event in history.events:
        if event.kind != "timer.armed" or event.data.get("kind") != "retry":
            continue
        name, after_us = AttemptId(str(event.data["attempt"])), int(str(event.data["after_us"]))
        least_us, most_us = _bounds_us(history.snapshots[name], numbers.get(name, 0))
        if not least_us <= after_us <= most_us:
            found.append(f"after {name} {after_us} us are waited, by its policy {least_us} to {most_us}")
    return found


def _bounds_us(pinned: Snapshot, number: int) -> tuple[int, int]:
    """The shortest and the longest wait after the failure of that number; (0, -1) when there is none."""
    exponential = pinned.retry_exponential
    if exponential is not None:
        return US_PER_S, max(US_PER_S, min(exponential.max_us, exponential.base_us << max(0, number - 1)))
    if not 0 < number <= len(pinned.retry_delays_us):
        return 0, -1
    return pinned.retry_delays_us[number - 1], pinned.retry_delays_us[number - 1]


def _fired_early(history: History) -> list[str]:
    """Timers that fired before their time, by what elapsed between the moments that were seen around it."""
    armed = {event.data["timer"]: event for event in history.events if event.kind == "timer.armed"}
    seqs = [tick.seq for tick in history.ticks]
    found = []
    for event in history.events:
        before = armed.get(event.data.get(TIMER)) if event.kind == RETRY else None
        if before is None or _was_made_due(history, before, event):
            continue
        since, fired = bisect_left(seqs, before.seq) - 1, bisect_left(seqs, event.seq)
        if since < 0 or fired == len(seqs):
            continue
        waited_us = history.ticks[fired].at_us - history.ticks[since].at_us
        if waited_us < int(str(before.data["after_us"])):
            found.append(
                f"timer {event.data[TIMER]} fired after {waited_us} us, it was armed for {before.data['after_us']}"
            )
    return found


def _was_made_due(history: History, armed: Event, fired: Event) -> bool:
    """Whether a clock that was set forward has brought the time that a hint named."""
    return armed.data.get("kind") == TimerKind.HINT and any(
        armed.seq < event.seq < fired.seq and int(str(event.data["by_us"])) > 0
        for event in history.events
        if event.kind == "clock.jumped"
    )
