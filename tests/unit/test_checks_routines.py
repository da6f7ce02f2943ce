"""Each check of bindings in quarantine fires on the one fault it is for, by name and alone; see `test_checks.py` for the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.checks import examine
from chaos.history import History
from tests.support.routine_faults import ROUTINE_FAULTS, routine_history


@pytest.fixture(scope="module")
def history() -> History:
    return routine_history()


@pytest.mark.req("F03")
def test_nothing_fires_where_bindings_are_quarantined_as_they_should(history: History) -> None:
    assert examine(history) == []
    quarantines = [event for event in history.events if event.kind == "binding.quarantined"]
    assert [event.work_id for event in quarantines] == ["w2", None], "for its failures, then for the workers it cost"


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        pytest.param(check, fault, id=f"{check}-{fault.__name__}")
        for check, faults in ROUTINE_FAULTS.items()
        for fault in faults
    ],
)
def test_each_check_fires_alone_on_its_fault(history: History, check: str, fault: Callable[[History], History]) -> None:
    findings = examine(fault(history))

    assert {finding.check for finding in findings} == {check}, [str(finding) for finding in findings]
