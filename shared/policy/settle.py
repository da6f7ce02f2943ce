"""What an observed end means for the attempt and for its Work."""

from __future__ import annotations

from shared.model.attempt import AttemptState, Ending, FailureClass
from shared.model.evidence import Evidence, ExitRecord
from shared.model.work import Reason, WorkChange, WorkState

PERMANENT_ERRORS = frozenset({"ENOENT", "EACCES", "ENOEXEC", "E2BIG"})
ADMISSION_FAILURES_MAX = 10
ADMISSION_BACKOFF_US = 1_000_000
ADMISSION_BACKOFF_MAX_US = 60_000_000
RELAUNCHES_MAX = 5
ATTEMPTS_MAX = 3
"""Attempts in all, by default. Rule: E01."""


OUT_OF_TIME = Ending(AttemptState.TIMED_OUT, None, FailureClass.TIMED_OUT, "out of time", None, "timed out")
"""How an attempt ends that used its time up: its stop is ordered, its exclusion held until that is proven. Rule: O05."""


def ending_of_exit(record: ExitRecord, proof: str | None) -> Ending:
    """How an attempt ended whose shim recorded its end.

    Args:
        proof: `S1` when the record says the tree is empty and the lock was seen free; else None (exclusion stays held).
    """
    if not record.ran:
        return _ending_of_error(record.error or "register: the child died", proof)
    return ending_of_status(record.status, proof)


def ending_of_status(status: int | None, proof: str | None) -> Ending:
    """How an attempt ended whose main process's exit status is known; never success without one."""
    if status == 0:
        return Ending(AttemptState.SUCCEEDED, 0, None, None, proof, "ended")
    if status is None:
        return Ending(AttemptState.FAILED, None, FailureClass.AMBIGUOUS, "exit status unknown", proof, "ended")
    told = f"exit status {status}" if status > 0 else f"killed by signal {-status}"
    return Ending(AttemptState.FAILED, status, FailureClass.KNOWN, told, proof, "ended")


def _ending_of_error(error: str, proof: str | None) -> Ending:
    """Rule: design §7: an error names its stage; permanent are only four errors at `exec`."""
    stage, _, rest = error.partition(": ")
    name = rest.partition(":")[0]
    permanent = stage == "exec" and name in PERMANENT_ERRORS
    failure = FailureClass.PERMANENT if permanent else FailureClass.ADMISSION
    return Ending(AttemptState.FAILED, None, failure, error, proof, "nothing ran")


def ending_of_evidence(evidence: Evidence, proof: str | None) -> Ending:
    """How a recovered attempt ended whose verdict was FINISHED."""
    if evidence.exit is not None:
        return ending_of_exit(evidence.exit, proof)
    return ending_of_status(evidence.child_status, proof)


def settle_run_once(ending: Ending, admission_failures: int, attempts_used: int = 1) -> WorkChange:
    """What the end of its attempt means for a run-once Work.

    An admission failure spends no retry: the Work backs off (1 s, doubled, at most 1 min) and is tried again, ten times in a
    row; the eleventh counts as a known failure. An unknown outcome ends an attempt only where its binding declared that running
    it again is safe: the next attempt follows, up to three in all. Everything else settles it, as no retry policy is acted on
    yet.
    Rule: design §7 (F01), §11; requirement E12.
    """
    match ending.failure:
        case None:
            return WorkChange(WorkState.COMPLETED, None, None, 0)
        case FailureClass.CANCELLED:
            return WorkChange(WorkState.CANCELLED, None, None, admission_failures)
        case FailureClass.ADMISSION if admission_failures < ADMISSION_FAILURES_MAX:
            return WorkChange(WorkState.BACKOFF, None, admission_backoff_us(admission_failures), admission_failures + 1)
        case FailureClass.AMBIGUOUS if attempts_used < ATTEMPTS_MAX:
            return WorkChange(WorkState.READY, None, None, 0)
        case FailureClass.PERMANENT:
            return WorkChange(WorkState.FAILED, Reason.PERMANENT_FAILURE, None, admission_failures)
        case FailureClass.TIMED_OUT:
            return WorkChange(WorkState.FAILED, Reason.TIMED_OUT, None, admission_failures)
        case _:
            return WorkChange(WorkState.FAILED, Reason.EXHAUSTED, None, admission_failures)


def admission_backoff_us(failures_before: int) -> int:
    """Delay before the next try after `failures_before` + 1 admission failures in a row."""
    return int(min(ADMISSION_BACKOFF_MAX_US, ADMISSION_BACKOFF_US * 2**failures_before))
