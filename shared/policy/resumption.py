"""What follows a resume whose launch came to nothing. Rule: requirements O08, F01, E13."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shared.model.attempt import Attempt, Ending, FailureClass, Snapshot
from shared.model.instant import Instant
from shared.model.timer import TimerKind
from shared.model.work import Work
from shared.policy import retry


@dataclass(frozen=True, slots=True)
class PutOff:
    """The attempt is parked again. `failed`: how it would have ended; `proof`: that nothing is left of its launch."""

    failed: Ending
    proof: str
    again: retry.Arm


def put_off(ending: Ending, attempt: Attempt, work: Work, pinned: Snapshot, now: Instant) -> retry.Arm | None:
    """How long an attempt that was resumed, and of whose resume nothing ran, is parked again; None: it ends.

    What it did before its wait took effect, so the next attempt would do it twice: the same one goes on, as soon as the host lets it.
    The waits are those of a start whose launch came to nothing, and are given up after as many in a row.
    """
    if ending.failure is not FailureClass.ADMISSION or not attempt.was_resumed:
        return None
    failure = retry.Failure(work.id, work.kind, ending.failure, work.failures_used, work.admission_failures)
    decision = retry.decide(failure, pinned.retry, now)
    if not isinstance(decision, retry.Arm) or decision.timer is not TimerKind.ADMISSION:
        return None
    told = "" if ending.error is None else f": {ending.error}"
    return replace(decision, timer=TimerKind.RESUME, why=f"resume: {decision.why}{told}")
