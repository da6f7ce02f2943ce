"""The exit code of `tenure run`, for every way a work can end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.commands.outcome import outcome
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt, AttemptState, Exclusion, FailureClass
from shared.model.work import Reason, Work, WorkState

WORK = Work(
    id=WorkId("w1"),
    number=1,
    scope="default",
    binding=None,
    command=("true",),
    env=(),
    cwd="/",
    pool="jobs",
    state=WorkState.RUNNING,
    reason=None,
    priority=0,
    revision=1,
    ready_seq=1,
    attempts_used=1,
    admission_failures=0,
    backoff_since=None,
    backoff_us=None,
    submitted_by="a test",
    submitted_at_us=0,
    ended_at_us=None,
)
ATTEMPT = Attempt(
    id=AttemptId("w1.1"),
    work_id=WorkId("w1"),
    number=1,
    epoch=1,
    state=AttemptState.RUNNING,
    recovered_from=None,
    exclusion=Exclusion.HELD,
    exclusion_proof=None,
    invoke=None,
    isolated=True,
    pin=None,
    relaunches=0,
    pool="jobs",
    scope="default",
    budget_us=1,
    budget_since_mono_us=1,
    budget_boot_id="boot-1",
    budget_since_at_us=1,
    exit_status=None,
    failure=None,
    error=None,
    started_at_us=0,
    ended_at_us=None,
)


def failed(status: int | None, failure: FailureClass, error: str) -> Attempt:
    return replace(ATTEMPT, state=AttemptState.FAILED, exit_status=status, failure=failure, error=error)


NOT_FOUND = "exec: ENOENT: No such file or directory: /bin/nosuch"
NO_FOLDER = "exec: ENOENT: working directory: No such file or directory: /gone"


@pytest.mark.parametrize(
    ("state", "attempt", "code", "line"),
    [
        (WorkState.COMPLETED, replace(ATTEMPT, state=AttemptState.SUCCEEDED, exit_status=0), 0, None),
        (WorkState.FAILED, failed(7, FailureClass.KNOWN, "exit status 7"), 7, None),
        (WorkState.FAILED, failed(255, FailureClass.KNOWN, "exit status 255"), 255, None),
        (WorkState.FAILED, failed(-9, FailureClass.KNOWN, "killed by signal 9"), 137, None),
        (WorkState.FAILED, failed(-15, FailureClass.KNOWN, "killed by signal 15"), 143, None),
        (WorkState.FAILED, failed(None, FailureClass.PERMANENT, NOT_FOUND), 127, "w1.1: command not found"),
        (
            WorkState.FAILED,
            failed(None, FailureClass.PERMANENT, NO_FOLDER),
            126,
            "w1.1: the command could not be executed",
        ),
        (
            WorkState.FAILED,
            failed(None, FailureClass.PERMANENT, "exec: EACCES: Permission denied"),
            126,
            "w1.1: the command",
        ),
        (
            WorkState.FAILED,
            failed(None, FailureClass.PERMANENT, "exec: ENOEXEC: Exec format error"),
            126,
            "w1.1: the command",
        ),
        (
            WorkState.FAILED,
            failed(None, FailureClass.ADMISSION, "register: EIO: broken"),
            125,
            "w1.1 failed: register: EIO",
        ),
        (
            WorkState.FAILED,
            failed(None, FailureClass.AMBIGUOUS, "exit status unknown"),
            125,
            "w1.1 failed: exit status unknown",
        ),
        (
            WorkState.FAILED,
            replace(ATTEMPT, state=AttemptState.TIMED_OUT, failure=FailureClass.TIMED_OUT, error="out of time"),
            125,
            "w1.1 timed_out: out of time",
        ),
        (
            WorkState.CANCELLED,
            replace(ATTEMPT, state=AttemptState.CANCELLED, failure=FailureClass.CANCELLED),
            125,
            "w1 was cancelled",
        ),
        (
            WorkState.RUNNING,
            replace(ATTEMPT, state=AttemptState.RECOVERY_REQUIRED, error="its shim died with it"),
            125,
            "what became of w1.1 is unknown, so a person decides; its slot stays held: its shim died with it",
        ),
    ],
)
def test_end_of_a_work_is_an_exit_code(state: WorkState, attempt: Attempt, code: int, line: str | None) -> None:
    end = outcome(replace(WORK, state=state, reason=Reason.EXHAUSTED), attempt)

    assert end is not None
    assert end.code == code
    if line is None:
        assert (end.line, end.advice) == (None, None)
    else:
        assert (end.line or "").startswith(line)


@pytest.mark.parametrize("state", [state for state in WorkState if state not in {"completed", "failed", "cancelled"}])
def test_work_that_goes_on_has_no_outcome(state: WorkState) -> None:
    assert outcome(replace(WORK, state=state), ATTEMPT) is None
    assert outcome(replace(WORK, state=state), None) is None


def test_work_cancelled_before_any_attempt_is_tenures_end_not_the_jobs() -> None:
    end = outcome(replace(WORK, state=WorkState.CANCELLED), None)

    assert end is not None
    assert (end.code, end.line) == (125, "w1 was cancelled")
