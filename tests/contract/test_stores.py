"""Every backend passes every case; what a backend cannot do is skipped and counted."""

from __future__ import annotations

import pytest

from tests.contract.store_cases import (
    CASES,
    Listed,
    agents,
    budget_holds,
    budgets,
    cancels,
    chains,
    charges,
    claims,
    convergence,
    declaring,
    endings,
    fences,
    gates,
    handoffs,
    late_reports,
    losses,
    presence,
    queueing,
    reading,
    recovery,
    reports,
    resuming,
    retries,
    segments,
    standing,
    taking,
    transactions,
    waiting,
    wakes,
)
from tests.support.stores import World

MODULES = (
    late_reports,
    losses,
    budget_holds,
    budgets,
    agents,
    cancels,
    chains,
    charges,
    claims,
    convergence,
    declaring,
    endings,
    fences,
    gates,
    handoffs,
    presence,
    queueing,
    reading,
    recovery,
    reports,
    resuming,
    retries,
    segments,
    standing,
    taking,
    transactions,
    waiting,
    wakes,
)  # each lists its cases when it is imported


@pytest.mark.parametrize("listed", [pytest.param(case, id=case.name, marks=case.marks) for case in CASES.values()])
def test_case(listed: Listed, world: World) -> None:
    if listed.needs is not None and listed.needs not in world.backend.capabilities:
        pytest.skip(f"{world.backend.name} has no {listed.needs}")
    listed.run(world)
