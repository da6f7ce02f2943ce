"""What an observed end means: for the attempt, then for its Work."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.ids import WorkId
from shared.model.attempt import AttemptState, Ending, FailureClass, RetryHint, Snapshot
from shared.model.evidence import ExitRecord
from shared.model.instant import US_PER_S, Instant
from shared.model.settings import Exponential
from shared.model.timer import TimerKind
from shared.model.work import Hold, Reason, RoutineNews, Work, WorkChange, WorkKind, WorkState
from shared.policy.settle import (
    RELAUNCHES_MAX,
    Before,
    ending_of_evidence,
    ending_of_exit,
    ending_of_status,
    settle,
)
from shared.policy.steps import WORK_EVENT_OF_STATE, is_final_attempt, step_work
from tests.support.evidence import CHILD, NOTHING_LEFT, RAN

PROOFS = (None, "S1", "S3")
ADMISSION = Ending(
    AttemptState.FAILED, None, FailureClass.ADMISSION, "register: ENOSPC: child.json", "S0", "nothing ran"
)


@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize(
    ("status", "state", "failure", "told"),
    [
        (0, AttemptState.SUCCEEDED, None, None),
        (1, AttemptState.FAILED, FailureClass.KNOWN, "exit status 1"),
        (7, AttemptState.FAILED, FailureClass.KNOWN, "exit status 7"),
        (255, AttemptState.FAILED, FailureClass.KNOWN, "exit status 255"),
        (-9, AttemptState.FAILED, FailureClass.KNOWN, "killed by signal 9"),
        (-15, AttemptState.FAILED, FailureClass.KNOWN, "killed by signal 15"),
        (None, AttemptState.FAILED, FailureClass.AMBIGUOUS, "exit status unknown"),
    ],
)
def test_a_status_is_told_and_classified(
    status: int | None, state: AttemptState, failure: FailureClass | None, told: str | None, proof: str | None
) -> None:
    assert ending_of_status(status, proof) == Ending(state, status, failure, told, proof, "ended")
    record = ExitRecord(status=status, ran=True, error=None, stop=None, tree_empty=True)
    assert ending_of_exit(record, proof) == ending_of_status(status, proof)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (-9, "out of memory (signal 9)"),
        (1, "exit status 1; out of memory: the kernel killed some of it"),
        (-15, "killed by signal 15; out of memory: the kernel killed some of it"),
        (0, None),
        (None, "exit status unknown"),
    ],
)
def test_want_of_memory_is_told_with_a_failure_and_makes_none(status: int | None, told: str | None) -> None:
    record = ExitRecord(status=status, ran=True, error=None, stop=None, tree_empty=True, oom=True)

    ending = ending_of_exit(record, "S1")

    assert ending == replace(ending_of_status(status, "S1"), error=told)


@pytest.mark.req("M02")
@given(st.none() | st.integers(-64, 255))
def test_nothing_but_status_0_succeeds(status: int | None) -> None:
    assert (ending_of_status(status, "S1").state is AttemptState.SUCCEEDED) == (status == 0)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        *((f"exec: {name}: why", FailureClass.PERMANENT) for name in ("ENOENT", "EACCES", "ENOEXEC", "E2BIG")),
        *((f"exec: {name}: why", FailureClass.ADMISSION) for name in ("ENOMEM", "EAGAIN", "ETXTBSY", "EIO", "EPERM")),
        # The same four errors before exec are the host's, not the command's.
        *((f"register: {name}: why", FailureClass.ADMISSION) for name in ("ENOENT", "EACCES", "ENOEXEC", "E2BIG", "ENOSPC")),
        ("exec: ENOENTIAL: no such name", FailureClass.ADMISSION),
        ("exec: ENOENT", FailureClass.PERMANENT),
        ("ENOENT", FailureClass.ADMISSION),
        ("exec", FailureClass.ADMISSION),
        ("", FailureClass.ADMISSION),
        (None, FailureClass.ADMISSION),
    ],
)  # fmt: skip
def test_only_four_errors_of_exec_itself_are_permanent(error: str | None, failure: FailureClass) -> None:
    record = ExitRecord(status=None, ran=False, error=error, stop=None, tree_empty=True)

    ending = ending_of_exit(record, "S1")

    assert (ending.state, ending.exit_status, ending.failure, ending.proof) == (
        AttemptState.FAILED,
        None,
        failure,
        "S1",
    )
    assert ending.error == (error or "register: the child died")


def test_the_record_of_the_shim_goes_before_the_kernel_s_status() -> None:
    both = replace(NOTHING_LEFT, exit=RAN, child=CHILD, child_alive=False, child_status=0)

    assert ending_of_evidence(both, None).exit_status == RAN.status
    assert ending_of_evidence(replace(both, exit=None), None).exit_status == 0


S = WorkState
NOW = Instant(1_800_000_000 * US_PER_S, 50 * US_PER_S, "boot-1")
WORK = Work(
    WorkId("w1"), 1, "", None, ("true",), (), "/", "jobs", S.RUNNING, None, 0, 2, 1, 1, 0, None, None, "test", 0, None
)
PINNED = Snapshot(
    1, "backup", "", "jobs", "shell", True, ("true",), (), "/", 9, 9, (), "never", (1,), quarantine_after=5
)
SUCCESS = ending_of_status(0, "S1")
KNOWN = ending_of_status(7, "S1")
HINTED = replace(KNOWN, hint=RetryHint(None))


def settled(ending: Ending, *, inputs_wait: bool = False, pinned: Snapshot = PINNED, **work: Any) -> WorkChange:
    return settle(ending, Before(replace(WORK, **work), pinned, inputs_wait), NOW)


def failed(failure: FailureClass | None) -> Ending:
    return replace(ADMISSION, failure=failure)


# What becomes of a Work whose policy has nothing (left), by the class of the failure; None is a success.
RUN_ONCE: dict[FailureClass | None, tuple[WorkState, Reason | None]] = {
    None: (S.COMPLETED, None),
    FailureClass.VALIDATION: (S.FAILED, Reason.EXHAUSTED),
    FailureClass.AUTHORITY: (S.FAILED, Reason.EXHAUSTED),
    FailureClass.TRANSIENT: (S.FAILED, Reason.EXHAUSTED),
    FailureClass.ADMISSION: (S.BACKOFF, None),
    FailureClass.KNOWN: (S.FAILED, Reason.EXHAUSTED),
    FailureClass.PERMANENT: (S.FAILED, Reason.PERMANENT_FAILURE),
    FailureClass.TIMED_OUT: (S.FAILED, Reason.TIMED_OUT),
    FailureClass.CANCELLED: (S.CANCELLED, None),
    FailureClass.AMBIGUOUS: (S.READY, None),
    FailureClass.DELIVERY: (S.FAILED, Reason.EXHAUSTED),
}
STANDING = {failure: (S.HELD if state is S.FAILED else state, reason) for failure, (state, reason) in RUN_ONCE.items()}
STANDING |= {None: (S.IDLE, None), FailureClass.KNOWN: (S.IDLE, None), FailureClass.CANCELLED: (S.IDLE, None)}


@pytest.mark.req("E12", "M02", "F01", "O05", "O11", "O12")
@pytest.mark.parametrize("failure", [*FailureClass, None], ids=str)
def test_an_end_without_a_retry_policy_settles_each_kind_of_work(failure: FailureClass | None) -> None:
    for kind, table in ((WorkKind.RUN_ONCE, RUN_ONCE), (WorkKind.STANDING, STANDING)):
        change = settled(failed(failure), kind=kind)

        assert (change.state, change.reason) == table[failure]


@pytest.mark.req("O03")
@pytest.mark.parametrize("failure", [*FailureClass, None], ids=str)
def test_a_policy_that_holds_keeps_for_a_person_exactly_what_would_have_failed(failure: FailureClass | None) -> None:
    state, reason = RUN_ONCE[failure]

    change = settled(failed(failure), pinned=replace(PINNED, retry_exhausted="hold"))

    assert (change.state, change.reason) == (S.HELD if state is S.FAILED else state, reason)


@pytest.mark.req("O01", "E12")
def test_input_that_nobody_was_given_leaves_a_work_ready_for_the_next_attempt() -> None:
    for kind in WorkKind:
        assert settled(SUCCESS, kind=kind, inputs_wait=True).state is S.READY
    assert settled(SUCCESS).state is S.COMPLETED, "control"
    assert settled(SUCCESS, kind=WorkKind.STANDING).state is S.IDLE, "control"


@pytest.mark.req("E12", "O12")
def test_standing_work_does_not_repeat_an_input_after_a_failure_without_a_hint() -> None:
    for waits, state in ((False, S.IDLE), (True, S.READY)):
        change = settled(KNOWN, kind=WorkKind.STANDING, inputs_wait=waits, failures_used=7)
        assert (change.state, change.spends_inputs, change.failures_used) == (state, True, 8)

    hinted = settled(HINTED, kind=WorkKind.STANDING, failures_used=700)
    assert (hinted.state, hinted.spends_inputs, hinted.timer) == (S.BACKOFF, False, TimerKind.HINT), "control"


@pytest.mark.req("O09", "O14")
def test_each_failure_waits_for_its_delay_and_the_last_exhausts() -> None:
    policy = replace(PINNED, retry_delays_us=(5, 10), retry_on=("failure",))

    changes = [settled(KNOWN, pinned=policy, failures_used=before) for before in range(3)]

    assert [(change.state, change.backoff_us, change.failures_used) for change in changes] == [
        (S.BACKOFF, 5, 1),
        (S.BACKOFF, 10, 2),
        (S.FAILED, None, 3),
    ]
    assert changes[0].why == "failure 1 of 3"
    assert settled(SUCCESS, pinned=policy, failures_used=2).failures_used == 0, "a success begins anew"


@pytest.mark.req("F01")
def test_an_unknown_outcome_that_may_be_repeated_is_tried_three_times_in_all() -> None:
    changes = [settled(failed(FailureClass.AMBIGUOUS), failures_used=before) for before in range(3)]

    assert [change.state for change in changes] == [S.READY, S.READY, S.FAILED]
    assert changes[2].reason is Reason.EXHAUSTED


@pytest.mark.parametrize("failure", [*FailureClass, None], ids=str)
@pytest.mark.parametrize("before", range(13))
def test_what_was_settled_is_a_step_of_a_running_work(failure: FailureClass | None, before: int) -> None:
    listed = replace(PINNED, retry_delays_us=(1, 2), retry_on=("failure", "timeout"))
    held = replace(listed, retry_exhausted="hold", retry_exponential=Exponential(US_PER_S, US_PER_S, 9))
    for pinned, kind, hold, hint, waits in product(
        (PINNED, listed, held), WorkKind, (None, Hold("me", "why", 0)), (None, RetryHint(None)), (True, False)
    ):
        ending = replace(failed(failure), hint=hint)
        facts = {"kind": kind, "hold": hold, "admission_failures": before, "failures_used": before}

        change = settled(ending, pinned=pinned, inputs_wait=waits, **facts)

        assert step_work(S.RUNNING, WORK_EVENT_OF_STATE[change.state]) is change.state
        assert (change.backoff_us is not None) == (change.state is S.BACKOFF)
        assert (change.reason is not None) == (change.state in (S.HELD, S.FAILED))
        assert hold is None or change.state not in (S.READY, S.IDLE, S.BACKOFF), "what a person holds never goes on"


@pytest.mark.req("F01")
def test_ten_failed_launches_in_a_row_back_off_doubling_to_a_minute_and_the_eleventh_counts() -> None:
    delays_s, before = [], 0
    while (change := settled(ADMISSION, admission_failures=before)).state is S.BACKOFF:
        assert (change.admission_failures, change.failures_used) == (before + 1, 0), "no retry is spent"
        assert change.backoff_us is not None
        delays_s.append(change.backoff_us / US_PER_S)
        before = change.admission_failures

    assert delays_s == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    assert (change.state, change.reason, change.failures_used) == (S.FAILED, Reason.EXHAUSTED, 1)


def test_a_launch_that_worked_ends_the_row_of_failed_ones() -> None:
    assert settled(SUCCESS, admission_failures=9).admission_failures == 0
    assert settled(ADMISSION, admission_failures=9).admission_failures == 10, "control"


@pytest.mark.req("F03")
def test_only_what_came_to_nothing_or_worked_says_something_of_its_binding() -> None:
    lasting = replace(PINNED, retry_delays_us=(5,), retry_on=("failure",))
    assert settled(KNOWN).routine == RoutineNews("backup", worked=False, quarantine_after=5)
    assert settled(SUCCESS).routine == RoutineNews("backup", worked=True, quarantine_after=5)
    assert settled(KNOWN, kind=WorkKind.STANDING).routine == RoutineNews("backup", worked=False, quarantine_after=5)

    assert settled(KNOWN, pinned=lasting).routine is None, "it is tried again"
    assert settled(failed(FailureClass.CANCELLED)).routine is None
    assert settled(ADMISSION).routine is None
    assert settled(KNOWN, pinned=replace(PINNED, quarantine_after=0)).routine is None
    assert settled(KNOWN, pinned=replace(PINNED, binding=None)).routine is None


def test_five_relaunches_without_a_pin_are_the_most() -> None:
    assert RELAUNCHES_MAX == 5


@pytest.mark.parametrize("status", [None, 0, 3, -9])
def test_an_ending_is_a_final_state(status: int | None) -> None:
    assert is_final_attempt(ending_of_status(status, None).state)
