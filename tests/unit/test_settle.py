"""What an observed end means: for the attempt, then for its Work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.attempt import AttemptState, Ending, FailureClass
from shared.model.evidence import ExitRecord
from shared.model.instant import US_PER_S
from shared.model.work import Reason, WorkState
from shared.policy.settle import (
    RELAUNCHES_MAX,
    admission_backoff_us,
    ending_of_evidence,
    ending_of_exit,
    ending_of_status,
    settle_run_once,
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


@pytest.mark.req("E12", "M02")
@pytest.mark.parametrize(
    ("failure", "state", "reason"),
    [
        (None, WorkState.COMPLETED, None),
        (FailureClass.KNOWN, WorkState.FAILED, Reason.EXHAUSTED),
        (FailureClass.AMBIGUOUS, WorkState.READY, None),
        (FailureClass.PERMANENT, WorkState.FAILED, Reason.PERMANENT_FAILURE),
        (FailureClass.TIMED_OUT, WorkState.FAILED, Reason.TIMED_OUT),
        (FailureClass.CANCELLED, WorkState.CANCELLED, None),
        (FailureClass.ADMISSION, WorkState.BACKOFF, None),
    ],
)
def test_the_end_of_its_one_attempt_settles_a_run_once_work(
    failure: FailureClass | None, state: WorkState, reason: Reason | None
) -> None:
    change = settle_run_once(replace(ADMISSION, failure=failure), admission_failures=0)

    assert (change.state, change.reason) == (state, reason)


@pytest.mark.req("F01")
def test_an_unknown_outcome_that_may_be_repeated_is_tried_three_times_in_all() -> None:
    unknown = replace(ADMISSION, failure=FailureClass.AMBIGUOUS)

    states = [settle_run_once(unknown, 0, attempts).state for attempts in (1, 2, 3)]

    assert states == [WorkState.READY, WorkState.READY, WorkState.FAILED]
    assert settle_run_once(unknown, 0, 3).reason is Reason.EXHAUSTED


@pytest.mark.parametrize("failure", [*FailureClass, None], ids=str)
@pytest.mark.parametrize("before", range(13))
def test_what_was_settled_is_a_step_of_a_running_work(failure: FailureClass | None, before: int) -> None:
    change = settle_run_once(replace(ADMISSION, failure=failure), before)

    assert step_work(WorkState.RUNNING, WORK_EVENT_OF_STATE[change.state]) is change.state
    assert (change.backoff_us is not None) == (change.state is WorkState.BACKOFF)


@pytest.mark.req("F01")
def test_ten_failed_launches_in_a_row_back_off_doubling_to_a_minute_and_the_eleventh_counts() -> None:
    delays_s, before = [], 0
    while (change := settle_run_once(ADMISSION, before)).state is WorkState.BACKOFF:
        assert change.admission_failures == before + 1
        assert change.backoff_us is not None
        delays_s.append(change.backoff_us / US_PER_S)
        before = change.admission_failures

    assert delays_s == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    assert (change.state, change.reason) == (WorkState.FAILED, Reason.EXHAUSTED)


def test_a_launch_that_worked_ends_the_row_of_failed_ones() -> None:
    assert settle_run_once(replace(ADMISSION, failure=None), 9).admission_failures == 0
    assert settle_run_once(ADMISSION, 9).admission_failures == 10, "control"


@given(st.integers(0, 10_000))
def test_a_backoff_never_shrinks_and_never_exceeds_a_minute(before: int) -> None:
    assert 1 * US_PER_S <= admission_backoff_us(before) <= admission_backoff_us(before + 1) <= 60 * US_PER_S


def test_five_relaunches_without_a_pin_are_the_most() -> None:
    assert RELAUNCHES_MAX == 5


@pytest.mark.parametrize("status", [None, 0, 3, -9])
def test_an_ending_is_a_final_state(status: int | None) -> None:
    assert is_final_attempt(ending_of_status(status, None).state)
