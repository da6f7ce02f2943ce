"""What came of a job is read from the store's own record of it, the strongest word that holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.history import History
from chaos.matrix.cell import CameTo
from chaos.matrix.outcome import came_to
from chaos.witness import Mark
from shared.ids import AttemptId, WorkId
from shared.model.attempt import FailureClass
from tests.support.clean_histories import clean_history, with_event, without_lines
from tests.support.history_faults import with_attempt


@pytest.fixture(scope="module")
def history() -> History:
    return clean_history()


@pytest.mark.parametrize(
    ("work", "word"),
    [
        ("w1", CameTo.ADOPTED),
        ("w2", CameTo.UNDISTURBED),
        ("w3", CameTo.CANCELLED),
        ("w5", CameTo.RETRIED),
        ("w6", CameTo.RELAUNCHED),
    ],
)
def test_each_way_is_told_from_the_others(history: History, work: str, word: CameTo) -> None:
    assert came_to(history, WorkId(work)) is word


def test_an_end_that_another_holder_read_is_no_adoption(history: History) -> None:
    without = replace(history, events=tuple(event for event in history.events if event.kind != "attempt.adopted"))

    assert came_to(without, WorkId("w1")) is CameTo.FINISHED


def test_a_job_that_waited_and_went_on_is_told_unless_more_befell_it(history: History) -> None:
    def woken(work: str) -> History:
        return with_event(history, "attempt.woken", work_id=WorkId(work), attempt_id=AttemptId(f"{work}.1"))

    assert came_to(woken("w2"), WorkId("w2")) is CameTo.RESUMED
    assert came_to(woken("w1"), WorkId("w1")) is CameTo.ADOPTED
    assert came_to(woken("w6"), WorkId("w6")) is CameTo.RELAUNCHED


def test_who_was_asked_is_told_whatever_they_said(history: History) -> None:
    asked = with_event(history, "attempt.recovery_required", work_id=WorkId("w2"), attempt_id=AttemptId("w2.1"))

    assert came_to(asked, WorkId("w2")) is CameTo.ASKED


def test_a_signal_before_the_first_line_killed_what_was_no_job_yet(history: History) -> None:
    killed = with_attempt(history, AttemptId("w2.1"), exit_status=-9)

    assert came_to(killed, WorkId("w2")) is CameTo.UNDISTURBED, "the control: it had begun"
    assert came_to(without_lines(killed, "w2.1", Mark.START, Mark.END), WorkId("w2")) is CameTo.KILLED


def test_a_job_that_was_never_attempted_came_to_nothing(history: History) -> None:
    never = replace(history, attempts={name: each for name, each in history.attempts.items() if each.work_id != "w2"})

    with pytest.raises(AssertionError, match="w2 was never attempted"):
        came_to(never, WorkId("w2"))


def test_a_retry_by_policy_is_told_from_a_launch_that_came_to_nothing(history: History) -> None:
    failed = with_attempt(history, AttemptId("w5.1"), failure=FailureClass.KNOWN)
    once_more = replace(failed.attempts[AttemptId("w5.2")], id=AttemptId("w5.3"), number=3)

    assert came_to(failed, WorkId("w5")) is CameTo.TRIED_AGAIN
    with pytest.raises(AssertionError, match="w5 was tried 3 times"):
        came_to(
            replace(
                failed,
                attempts={**failed.attempts, once_more.id: once_more},
                segments={**failed.segments, once_more.id: ()},
            ),
            WorkId("w5"),
        )
