"""Each check of overheard programs fires on the one fault it is for, by name and alone, and on nothing in a history without faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.checks import examine
from chaos.history import History
from shared.model.attempt import AttemptState
from tests.support.speech_faults import SPEECH_FAULTS
from tests.support.speech_histories import A3, overheard, told_of


@pytest.fixture(scope="module")
def history() -> History:
    return overheard().history


@pytest.mark.req("O15", "T02", "T04")
def test_nothing_fires_without_a_fault(history: History) -> None:
    """And everything happened: something was handed over and taken, waited for and woken, interrupted and told so."""
    assert examine(history) == []
    assert history.attempts[A3].state is AttemptState.INTERRUPTED
    assert told_of(history, "interrupt", A3)
    assert {event.kind for event in history.events} >= {
        "intent.consumed",
        "wait.satisfied",
        "execution.turn",
        "stream.refused",
    }


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        pytest.param(check, fault, id=f"{check}-{fault.__name__}")
        for check, faults in SPEECH_FAULTS.items()
        for fault in faults
    ],
)
def test_each_check_fires_alone_on_its_fault(history: History, check: str, fault: Callable[[History], History]) -> None:
    findings = examine(fault(history))

    assert {finding.check for finding in findings} == {check}, [str(finding) for finding in findings]
