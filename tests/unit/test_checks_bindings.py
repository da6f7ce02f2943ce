"""Each check of bindings and of quiet agents fires on the one fault it is for, by name and alone, and on nothing without a fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.checks import examine
from chaos.history import History
from tests.support import binding_histories
from tests.support.binding_faults import BINDING_FAULTS, Fault

HISTORIES = (
    binding_histories.quiet,
    binding_histories.failing,
    binding_histories.costly,
    binding_histories.untellable,
    binding_histories.working,
)


@pytest.mark.req("F03", "T02")
@pytest.mark.parametrize("made", HISTORIES, ids=lambda made: made.__name__)
def test_nothing_fires_without_a_fault(made: Callable[[], History]) -> None:
    assert examine(made()) == []


@pytest.mark.parametrize(
    ("check", "made", "fault"),
    [
        pytest.param(check, made, fault, id=f"{check}-{fault.__name__}")
        for check, faults in BINDING_FAULTS.items()
        for made, fault in faults
    ],
)
def test_each_check_fires_alone_on_its_fault(check: str, made: Callable[[], History], fault: Fault) -> None:
    findings = examine(fault(made()))

    assert {finding.check for finding in findings} == {check}, [str(finding) for finding in findings]
