"""What follows a failed attempt: another one later, at once, or nothing until a person says so.

The failure count is not the attempt's number: attempts that failed before anything ran are not counted, and a person's retry
starts the count again. Waiting is elapsed time; only a hint's reset is a time of the wall clock.

Rule: requirements O05, O09–O14, F01, F02; design §11.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from shared.ids import WorkId
from shared.model.attempt import FailureClass, RetryHint
from shared.model.instant import US_PER_HOUR, US_PER_MINUTE, US_PER_S, Instant
from shared.model.settings import Exponential, RetryPolicy
from shared.model.timer import TimerKind
from shared.model.work import Reason, WorkKind

ATTEMPTS_MAX = 3
"""Attempts in all where a binding says that running it again does no harm, and names no more. Rule: E01."""
ADMISSION_FAILURES_MAX = 10
ADMISSION_BACKOFF_US = US_PER_S
ADMISSION_BACKOFF_MAX_US = US_PER_MINUTE
HINT_MARGIN_US = 2 * US_PER_MINUTE
HINT_UNKNOWN_US = 30 * US_PER_MINUTE
HINT_MAX_US = 7 * 24 * US_PER_HOUR
"""A reset further away than this is refused: no quota of a provider lasts longer than a week."""
EXPONENTIAL_MIN_US = US_PER_S


class Retried(StrEnum):
    """What may be tried again after a failure of some class."""

    NOTHING = "nothing"
    OPERATION = "operation"  # the store's or scheduler's own step; never the job
    LAUNCH = "launch"  # a next attempt that spends nothing of the policy
    BY_POLICY = "by_policy"
    IF_LISTED = "if_listed"  # by policy, when that names it
    IF_SAFE = "if_safe"  # when the binding says that running it again does no harm, once the stop is proven
    DELIVERY = "delivery"  # the delivery alone


RETRIED: Mapping[FailureClass, Retried] = {
    FailureClass.VALIDATION: Retried.NOTHING,
    FailureClass.AUTHORITY: Retried.NOTHING,
    FailureClass.TRANSIENT: Retried.OPERATION,
    FailureClass.ADMISSION: Retried.LAUNCH,
    FailureClass.KNOWN: Retried.BY_POLICY,
    FailureClass.PERMANENT: Retried.NOTHING,
    FailureClass.TIMED_OUT: Retried.IF_LISTED,
    FailureClass.CANCELLED: Retried.NOTHING,
    FailureClass.AMBIGUOUS: Retried.IF_SAFE,
    FailureClass.DELIVERY: Retried.DELIVERY,
}
"""The whole of F01. An ambiguous failure is one whose outcome nobody knows: it comes here only where its binding is safe to replay;
elsewhere the attempt waits for a person and does not end.
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt, as its Work's policy sees it.

    Attributes:
        failures_before: That the policy has counted before this one.
        admission_failures: In a row, before this one.
        hint: None: it gave none.
    """

    work_id: WorkId
    kind: WorkKind
    failure: FailureClass
    failures_before: int = 0
    admission_failures: int = 0
    hint: RetryHint | None = None


@dataclass(frozen=True, slots=True)
class Arm:
    """Try again after this elapsed time; see `Timer` for `due_at_us`."""

    timer: TimerKind
    after_us: int
    why: str
    due_at_us: int | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """Try again at once; only the proof of the stop is waited for."""

    why: str


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Nothing is left to try; a person may still retry it."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Blocked:
    """The policy does not try this again by itself, whatever is left of it."""

    reason: Reason


Decision = Arm | Again | Exhausted | Blocked | None
"""None: nothing is armed and nothing is blocked; standing Work rests until its next input."""


def decide(failure: Failure, policy: RetryPolicy, now: Instant) -> Decision:
    """What follows a failure, by its class, its hint and what the policy has left.

    A hint that is refused (`hint_fault`) counts as none. A hint's wait never indexes the delays of the policy, so that standing
    Work with many failures cannot overrun them.
    """
    match RETRIED[failure.failure]:
        case Retried.LAUNCH if failure.admission_failures < ADMISSION_FAILURES_MAX:
            wait_us = admission_backoff_us(failure.admission_failures)
            return Arm(TimerKind.ADMISSION, wait_us, f"nothing ran, {failure.admission_failures + 1} in a row")
        case Retried.LAUNCH if failure.kind is WorkKind.STANDING:
            return Exhausted(Reason.EXHAUSTED)  # its inputs ran nowhere: it must not rest as if they had
        case Retried.LAUNCH | Retried.BY_POLICY:
            return _by_policy(failure, policy, now, listed="failure" in policy.on)
        case Retried.IF_LISTED if "timeout" in policy.on:
            return _by_policy(failure, policy, now, listed=True)
        case Retried.IF_LISTED:
            return Blocked(Reason.TIMED_OUT)
        case Retried.IF_SAFE if failure.failures_before + 1 < max(ATTEMPTS_MAX, policy.attempts_max):
            return Again("its outcome is unknown, and its binding says that running it again does no harm")
        case Retried.IF_SAFE:
            return Exhausted(Reason.EXHAUSTED)
        case _ if failure.failure is FailureClass.PERMANENT:
            return Exhausted(Reason.PERMANENT_FAILURE)
        case _:
            return Blocked(Reason.EXHAUSTED)


def _by_policy(failure: Failure, policy: RetryPolicy, now: Instant, *, listed: bool) -> Decision:
    number, standing = failure.failures_before + 1, failure.kind is WorkKind.STANDING
    if not standing and (not listed or number >= policy.attempts_max):
        return Exhausted(Reason.EXHAUSTED)
    if failure.hint is not None and hint_fault(failure.hint, now) is None:
        return _hinted(failure.hint, now)
    if standing:
        return None
    wait_us = delay_us(policy, failure.work_id, number)
    return Arm(TimerKind.RETRY, wait_us, f"failure {number} of {policy.attempts_max}")


def delay_us(policy: RetryPolicy, work_id: WorkId, number: int) -> int:
    """The wait after the failure of this number, from 1 on, which must not be the policy's last."""
    if policy.exponential is None:
        return policy.delays_us[number - 1]
    return jittered_us(policy.exponential, work_id, number)


def jittered_us(policy: Exponential, work_id: WorkId, number: int) -> int:
    """Drawn evenly between 1 s and base · 2^(number - 1), at most `max_us`; the same for the same Work and number.

    The draw is a digest of both, so it is known before it is needed and no two Works of a burst come back together. Rule: F02.
    """
    ceiling_us = min(policy.max_us, policy.base_us << min(number - 1, 64))
    digest = hashlib.sha256(f"{work_id}:{number}".encode()).digest()
    drawn = int.from_bytes(digest[:8], "big")
    return EXPONENTIAL_MIN_US + drawn * (max(ceiling_us, EXPONENTIAL_MIN_US) - EXPONENTIAL_MIN_US) // (2**64 - 1)


def hint_fault(hint: RetryHint, now: Instant) -> str | None:
    """Why a hint is refused; None: it is good. The failure stands either way, and says so. Rule: O10."""
    reset_at_us = hint.reset_at_us
    if reset_at_us is None:
        return None
    if isinstance(reset_at_us, bool) or not isinstance(reset_at_us, int):
        return "its retry hint is no time"
    if reset_at_us <= now.wall_us:
        return "its retry hint lies in the past"
    if reset_at_us - now.wall_us > HINT_MAX_US:
        return "its retry hint lies more than 7 days ahead"
    return None


def _hinted(hint: RetryHint, now: Instant) -> Arm:
    if hint.reset_at_us is None:
        return Arm(TimerKind.HINT, HINT_UNKNOWN_US, "it asked to wait, and did not say how long")
    due_at_us = hint.reset_at_us + HINT_MARGIN_US
    return Arm(TimerKind.HINT, due_at_us - now.wall_us, "it named the time of its reset", due_at_us)


def admission_backoff_us(failures_before: int) -> int:
    """Delay before the next try after `failures_before` + 1 admission failures in a row."""
    return int(min(ADMISSION_BACKOFF_MAX_US, ADMISSION_BACKOFF_US << min(failures_before, 64)))
