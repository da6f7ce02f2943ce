"""What came of a job, read from what the store recorded of it; never from what was done to it."""

from __future__ import annotations

from chaos.history import History
from chaos.matrix.cell import CameTo
from chaos.witness import Mark
from shared.ids import WorkId
from shared.model.attempt import FailureClass
from shared.model.work import WorkState

ADOPTED_EVENT, ASKED_EVENT = "attempt.adopted", "attempt.recovery_required"
RETRIED_ATTEMPTS = 2
"""Of a job whose binding retries it once."""


def came_to(history: History, work_id: WorkId) -> CameTo:
    """What the store says of a settled job, the strongest word that holds.

    Raises:
        AssertionError: it was never attempted, and not cancelled either.
    """
    work, attempts = history.works[work_id], history.attempts_of(work_id)
    if work.state is WorkState.CANCELLED:
        return CameTo.CANCELLED
    assert attempts, f"{work_id} was never attempted"
    last = attempts[-1]
    kinds = {event.kind for event in history.events if event.attempt_id == last.id}
    segments = history.segments[last.id]
    if ASKED_EVENT in kinds:
        return CameTo.ASKED
    if last.exit_status is not None and last.exit_status < 0 and not history.lines_of(work_id, Mark.START):
        return CameTo.KILLED
    if attempts[0].failure is FailureClass.KNOWN and len(attempts) > 1:
        assert len(attempts) == RETRIED_ATTEMPTS, f"{work_id} was tried {len(attempts)} times"
        return CameTo.TRIED_AGAIN
    if len(attempts) > 1:
        return CameTo.RETRIED
    if any(segment.relaunched for segment in segments):
        return CameTo.RELAUNCHED
    if ADOPTED_EVENT in kinds:
        return CameTo.ADOPTED
    if any(segment.recovered for segment in segments):
        return CameTo.FINISHED
    return CameTo.UNDISTURBED
