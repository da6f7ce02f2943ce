"""What the end of a Work means to whoever waits for it: an exit code, and a line when the code does not say it all. Pure.

Rule: design §12 ("`tenure run` alone: …").
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.model.attempt import Attempt, AttemptState, FailureClass
from shared.model.work import Work, WorkState
from shared.policy.steps import is_final_work

TENURE_FAILED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127
SIGNAL_BASE = 128

_NOT_FOUND_ERROR = "exec: ENOENT: "
_FOLDER_ERROR = "exec: ENOENT: working directory"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it went.

    Attributes:
        line: For a person; None when the job itself said all there is.
        advice: A command of tenure (without `tenure`) that says or does more; None when there is nothing to do.
    """

    code: int
    line: str | None = None
    advice: str | None = None


def outcome(work: Work, last: Attempt | None) -> Outcome | None:
    """How a Work ended, or that nobody can know; None while it goes on.

    Args:
        last: Its last attempt; None: it had none.
    """
    if last is not None and last.state is AttemptState.RECOVERY_REQUIRED:
        why = f": {last.error}" if last.error else ""
        line = f"what became of {last.id} is unknown, so a person decides; its slot stays held{why}"
        return Outcome(TENURE_FAILED, line, f"work show {work.id}")
    if not is_final_work(work.state):
        return None
    if work.state is WorkState.CANCELLED:
        return Outcome(TENURE_FAILED, f"{work.id} was cancelled", f"work show {work.id}")
    if last is None:
        return Outcome(TENURE_FAILED, f"{work.id} {work.state} without an attempt", f"work show {work.id}")
    return _of_attempt(last)


def _of_attempt(attempt: Attempt) -> Outcome:
    status = attempt.exit_status
    if status is not None:
        return Outcome(status if status >= 0 else SIGNAL_BASE - status)
    error = attempt.error or "no more is known"
    if attempt.failure is FailureClass.PERMANENT:
        if error.startswith(_NOT_FOUND_ERROR) and not error.startswith(_FOLDER_ERROR):
            return Outcome(NOT_FOUND, f"{attempt.id}: command not found ({error})")
        return Outcome(NOT_EXECUTABLE, f"{attempt.id}: the command could not be executed ({error})")
    return Outcome(TENURE_FAILED, f"{attempt.id} {attempt.state}: {error}", f"work show {attempt.work_id}")
