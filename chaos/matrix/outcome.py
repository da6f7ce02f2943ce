"""What came of a job, read from what the store recorded of it; never from what was done to it."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.history import History
from chaos.matrix.cell import CameTo, Cell
from chaos.matrix.kept import broken
from chaos.matrix.stage import Stage
from chaos.witness import Mark
from shared.ids import WorkId
from shared.model.attempt import FailureClass
from shared.model.work import WorkState

ADOPTED_EVENT, ASKED_EVENT, WOKEN_EVENT = "attempt.adopted", "attempt.recovery_required", "attempt.woken"
RETRIED_ATTEMPTS = 2
"""Of a job whose binding retries it once."""


@dataclass(frozen=True, slots=True)
class Came:
    """What a cell came to. `broken`: what of all that it keeps was not kept."""

    word: CameTo
    broken: tuple[str, ...] = ()


def came(stage: Stage, cell: Cell, word: CameTo | None = None) -> Came:
    """What a cell came to whose Work is settled, by the store and the notes of its programs.

    Args:
        word: Of a command; None: what the store says of the Work.
    """
    work_id = stage.about
    if work_id is None:
        assert word is not None, "a command tells what it came to"
        return Came(word)
    history = stage.harness.history()
    return Came(word or came_to(history, work_id), tuple(broken(history, work_id, cell.keeps)))


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
    if WOKEN_EVENT in kinds:
        return CameTo.RESUMED
    return CameTo.UNDISTURBED
