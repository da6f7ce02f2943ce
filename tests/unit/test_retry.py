"""The retry policy: what each class of failure may be followed by, how long the wait is, which hints are taken."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.ids import WorkId
from shared.model.attempt import FailureClass, RetryHint
from shared.model.instant import US_PER_MINUTE, US_PER_S, Instant
from shared.model.settings import ONE_ATTEMPT, RETRY_DELAYS_US, Exponential, RetryPolicy
from shared.model.timer import TimerKind
from shared.model.work import Reason, WorkKind
from shared.policy.retry import (
    ADMISSION_FAILURES_MAX,
    HINT_MAX_US,
    RETRIED,
    Again,
    Arm,
    Blocked,
    Exhausted,
    Failure,
    Retried,
    admission_backoff_us,
    decide,
    delay_us,
    hint_fault,
    jittered_us,
)

NOW = Instant(1_800_000_000 * US_PER_S, 50 * US_PER_S, "boot-1")
RUN_ONCE, STANDING = WorkKind
DEFAULT = RetryPolicy()
BOTH = RetryPolicy(on=("failure", "timeout"))
KNOWN = Failure(WorkId("w1"), RUN_ONCE, FailureClass.KNOWN)
UNKNOWN_RESET = RetryHint(None)


def after(decision: object) -> int:
    assert isinstance(decision, Arm), decision
    return decision.after_us


@pytest.mark.req("F01")
def test_each_class_says_what_may_be_tried_again() -> None:
    told = {
        "validation": "nothing", "authority": "nothing", "transient": "operation", "admission": "launch",
        "known": "by_policy", "permanent": "nothing", "timed_out": "if_listed", "cancelled": "nothing",
        "ambiguous": "if_safe", "delivery": "delivery",
    }  # fmt: skip

    assert {str(failure): str(what) for failure, what in RETRIED.items()} == told


@pytest.mark.req("F01")
@pytest.mark.parametrize("failure", FailureClass, ids=str)
def test_a_class_that_lets_nothing_of_a_work_be_tried_again_never_is(failure: FailureClass) -> None:
    never = RETRIED[failure] in (Retried.NOTHING, Retried.OPERATION, Retried.DELIVERY)
    for kind, hint, before in product(WorkKind, (None, UNKNOWN_RESET), (0, 50)):
        ended = Failure(WorkId("w1"), kind, failure, failures_before=before, hint=hint)

        decision = decide(ended, BOTH, NOW)

        if never:
            assert isinstance(decision, Exhausted | Blocked), "whatever hint it came with"
    if not never:
        assert isinstance(decide(Failure(WorkId("w1"), RUN_ONCE, failure), BOTH, NOW), Arm | Again), "control"


@pytest.mark.req("O09")
def test_the_default_waits_five_and_ten_minutes_and_four_attempts_add_fifteen() -> None:
    assert [delay / US_PER_MINUTE for delay in DEFAULT.delays_us] == [5, 10]
    assert [delay / US_PER_MINUTE for delay in RETRY_DELAYS_US] == [5, 10, 15]
    assert DEFAULT.attempts_max == 3
    decisions = [decide(replace(KNOWN, failures_before=before), DEFAULT, NOW) for before in range(4)]
    assert [after(one) for one in decisions[:2]] == [300 * US_PER_S, 600 * US_PER_S]
    assert decisions[2:] == [Exhausted(Reason.EXHAUSTED)] * 2


@pytest.mark.req("O09")
def test_a_hundred_delays_are_a_hundred_and_one_attempts() -> None:
    policy = RetryPolicy(delays_us=tuple(range(1, 101)))

    waits = [after(decide(replace(KNOWN, failures_before=before), policy, NOW)) for before in range(100)]

    assert waits == list(range(1, 101))
    assert decide(replace(KNOWN, failures_before=100), policy, NOW) == Exhausted(Reason.EXHAUSTED)


@pytest.mark.req("E12", "O09")
def test_without_a_policy_or_with_one_that_does_not_list_failures_one_attempt_settles_it() -> None:
    assert decide(KNOWN, ONE_ATTEMPT, NOW) == Exhausted(Reason.EXHAUSTED)
    assert decide(KNOWN, RetryPolicy(on=("timeout",)), NOW) == Exhausted(Reason.EXHAUSTED)
    assert after(decide(KNOWN, RetryPolicy(on=("failure",)), NOW)) > 0, "control"


@pytest.mark.req("O05", "F01")
def test_a_timeout_is_tried_again_only_where_it_is_listed() -> None:
    out_of_time = replace(KNOWN, failure=FailureClass.TIMED_OUT)
    for policy in (ONE_ATTEMPT, DEFAULT, replace(DEFAULT, exhausted="hold")):
        assert decide(out_of_time, policy, NOW) == Blocked(Reason.TIMED_OUT)
    assert after(decide(out_of_time, BOTH, NOW)) == BOTH.delays_us[0]
    assert decide(replace(out_of_time, failures_before=2), BOTH, NOW) == Exhausted(Reason.EXHAUSTED), "it is counted"


@pytest.mark.req("O11")
def test_a_permanent_failure_exhausts_at_once() -> None:
    for policy, hint in product((ONE_ATTEMPT, DEFAULT, BOTH), (None, UNKNOWN_RESET)):
        permanent = replace(KNOWN, failure=FailureClass.PERMANENT, hint=hint)
        assert decide(permanent, policy, NOW) == Exhausted(Reason.PERMANENT_FAILURE)
    assert isinstance(decide(KNOWN, DEFAULT, NOW), Arm), "control"


@pytest.mark.req("O10")
def test_a_hint_waits_until_its_reset_and_two_minutes_more() -> None:
    hinted = replace(KNOWN, hint=RetryHint(NOW.wall_us + 3600 * US_PER_S))

    arm = decide(hinted, DEFAULT, NOW)

    assert isinstance(arm, Arm)
    assert (arm.timer, arm.after_us, arm.due_at_us) == (
        TimerKind.HINT,
        3720 * US_PER_S,
        NOW.wall_us + 3720 * US_PER_S,
    )


@pytest.mark.req("O10")
def test_a_hint_without_a_reset_waits_thirty_minutes_of_elapsed_time() -> None:
    arm = decide(replace(KNOWN, hint=UNKNOWN_RESET), DEFAULT, NOW)

    assert isinstance(arm, Arm)
    assert (arm.timer, arm.after_us, arm.due_at_us) == (TimerKind.HINT, 1800 * US_PER_S, None)


@pytest.mark.req("O10")
def test_hinted_failures_use_the_budget_up() -> None:
    hinted = replace(KNOWN, hint=UNKNOWN_RESET, failures_before=2)

    assert decide(hinted, DEFAULT, NOW) == Exhausted(Reason.EXHAUSTED)
    assert isinstance(decide(replace(hinted, failures_before=1), DEFAULT, NOW), Arm), "control"


@pytest.mark.req("O10")
@pytest.mark.parametrize(
    ("reset_at_us", "fault"),
    [
        (NOW.wall_us, "in the past"),
        (NOW.wall_us - 1, "in the past"),
        (-1, "in the past"),
        (NOW.wall_us + HINT_MAX_US + 1, "more than 7 days"),
        (10**30, "more than 7 days"),
        (float("nan"), "is no time"),
        ("tomorrow", "is no time"),
        (True, "is no time"),
    ],
)
def test_a_hint_that_cannot_be_is_refused_and_counts_as_none(reset_at_us: object, fault: str) -> None:
    hint = RetryHint(reset_at_us)  # type: ignore[arg-type]

    assert fault in (hint_fault(hint, NOW) or "")

    assert decide(replace(KNOWN, hint=hint), DEFAULT, NOW) == decide(KNOWN, DEFAULT, NOW)
    assert decide(replace(KNOWN, hint=hint, kind=STANDING), DEFAULT, NOW) is None


@pytest.mark.req("O10")
def test_a_hint_within_the_bounds_is_taken() -> None:
    for reset_at_us in (NOW.wall_us + 1, NOW.wall_us + HINT_MAX_US, None):
        assert hint_fault(RetryHint(reset_at_us), NOW) is None


@pytest.mark.req("O12")
def test_standing_work_arms_for_a_hint_and_for_nothing_else_and_is_never_exhausted_by_count() -> None:
    standing = replace(KNOWN, kind=STANDING)
    for policy, before in product((ONE_ATTEMPT, DEFAULT, BOTH), (0, 1, 5_000)):
        failure = replace(standing, failures_before=before)
        assert decide(failure, policy, NOW) is None
        assert after(decide(replace(failure, hint=UNKNOWN_RESET), policy, NOW)) == 1800 * US_PER_S


@pytest.mark.req("F02")
@given(
    st.integers(1, 3_600),
    st.integers(0, 3_600),
    st.integers(1, 100),
    st.integers(1, 10**6),
)
def test_an_exponential_wait_lies_between_a_second_and_its_bound(
    base_s: int, more_s: int, number: int, work: int
) -> None:
    policy = Exponential(base_s * US_PER_S, (base_s + more_s) * US_PER_S, 101)

    wait_us = jittered_us(policy, WorkId(f"w{work}"), number)

    assert US_PER_S <= wait_us <= min(policy.max_us, policy.base_us * 2 ** (number - 1))
    assert wait_us == jittered_us(policy, WorkId(f"w{work}"), number), "known before it is needed"


@pytest.mark.req("F02")
def test_the_waits_of_many_works_are_spread_evenly_over_the_whole_range() -> None:
    policy = Exponential(100 * US_PER_S, 100 * US_PER_S, 3)

    waits = [jittered_us(policy, WorkId(f"w{number}"), 1) / US_PER_S for number in range(1, 2_001)]

    tenths = [sum(low <= wait < low + 9.9 for wait in waits) for low in (1 + 9.9 * tenth for tenth in range(10))]
    assert all(140 <= count <= 260 for count in tenths), tenths
    assert len(set(waits)) == len(waits)


@pytest.mark.req("F02")
def test_exponential_bounds_double_up_to_the_greatest() -> None:
    policy = RetryPolicy((), ("failure",), Exponential(US_PER_S, 8 * US_PER_S, 7))
    most = [
        max(delay_us(policy, WorkId(f"w{work}"), number) for work in range(1, 500)) / US_PER_S for number in range(1, 7)
    ]

    assert most[0] == 1
    assert all(0.9 * bound < found <= bound for found, bound in zip(most[1:], (2, 4, 8, 8, 8), strict=True)), most
    assert isinstance(decide(replace(KNOWN, failures_before=5), policy, NOW), Arm)
    assert decide(replace(KNOWN, failures_before=6), policy, NOW) == Exhausted(Reason.EXHAUSTED)


@given(st.integers(0, 10_000))
def test_a_backoff_never_shrinks_and_never_exceeds_a_minute(before: int) -> None:
    assert 1 * US_PER_S <= admission_backoff_us(before) <= admission_backoff_us(before + 1) <= 60 * US_PER_S


@pytest.mark.req("O01", "O12")
def test_standing_work_whose_launches_keep_failing_is_held_with_its_inputs() -> None:
    """It would rest otherwise as if they had been dealt with, though nothing ever ran."""
    ended = Failure(WorkId("w1"), STANDING, FailureClass.ADMISSION, admission_failures=ADMISSION_FAILURES_MAX)

    assert decide(ended, DEFAULT, NOW) == Exhausted(Reason.EXHAUSTED)
    assert isinstance(decide(replace(ended, admission_failures=ADMISSION_FAILURES_MAX - 1), DEFAULT, NOW), Arm), (
        "control"
    )
    assert decide(replace(ended, failure=FailureClass.KNOWN), DEFAULT, NOW) is None, "control: it ran"
