"""The kill-point table of the launch protocol, played on the simulated host by the production coordinator and worker.

The same table is played with real processes by `tests/process/test_launch_kills.py`: what differs is a fault of the simulation.
"""

from __future__ import annotations

import pytest

import worker.ending
from chaos.points import ADDED, TABLE, KillPoint, Outcome
from chaos.simulation.harm import Harm, Kind
from chaos.simulation.jobs import Job
from chaos.simulation.run import Options, simulate
from chaos.simulation.run import Outcome as Played
from chaos.witness import Mark
from shared.boundary import Boundary, Side, Victims
from shared.model.attempt import AttemptState, FailureClass
from shared.model.evidence import Evidence
from shared.model.instant import US_PER_S
from shared.policy.recovery import Decision, LaunchFacts, Verdict, decide

STATUS = 7
LASTS_US = 5 * US_PER_S
"""Longer than a successor takes to come, so that an orphan is still there to be adopted."""
SEEDS = range(3)
TAKEOVERS_HIT = 3
CHILDS = (Boundary.TREE_LOCK, Boundary.CHILD_RENAME, Boundary.CHILD_SYNC, Boundary.CHILD_DIRECTORY_SYNC)


def role_of(point: KillPoint) -> str:
    """Whose process comes to that point."""
    if point.boundary in CHILDS:
        return "child"
    return "worker" if _is_workers(point) else "shim"


def _is_workers(point: KillPoint) -> bool:
    shims = ("SHIM_", "READY_SEND", "GO_RECEIVE", "CHILD_", "EXIT_")
    return point.boundary is Boundary.SHIM_SPAWN or not point.boundary.name.startswith(shims)


def boundary_of(point: KillPoint) -> Boundary:
    """The point as this worker has it: claims are the coordinator's, the worker's own begin with its accept."""
    return Boundary.ACCEPT_COMMIT if point.boundary is Boundary.CLAIM_COMMIT else point.boundary


def plan(point: KillPoint) -> tuple[Harm, ...]:
    """Whoever comes there dies, and whoever takes over and comes there again, too."""
    return tuple(
        Harm(Kind.CRASH, role_of(point), boundary_of(point), point.side, nth=nth, victims=point.victims)
        for nth in range(1, TAKEOVERS_HIT + 1)
    )


def play(point: KillPoint, seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Played, list[Verdict]]:
    decided: list[Verdict] = []

    def noted(facts: LaunchFacts, evidence: Evidence | None) -> Decision:
        decision = decide(facts, evidence)
        decided.append(decision.verdict)
        return decision

    monkeypatch.setattr(worker.ending, "decide", noted)
    options = Options(jobs=(Job(LASTS_US, STATUS),), plan=plan(point), keeps_status=True)
    return simulate(seed, options), decided


def is_told_at_once(point: KillPoint) -> bool:
    """The shim dies before READY, and its worker lives to see that: the launch failed, and nobody has to take it over."""
    early = ((Boundary.SHIM_LOCK, Side.AFTER), (Boundary.READY_SEND, Side.BEFORE))
    return point.victims is Victims.SELF and (point.boundary, point.side) in early


def ended(played: Played) -> Outcome | str:
    """How the attempt ended, in the words of the table."""
    starts = sum(line.mark is Mark.START for line in played.history.lines)
    *before, attempt = played.history.attempts.values()
    assert all(each.failure is FailureClass.ADMISSION and each.exclusion_proof == "S0" for each in before)
    if any(event.kind == "attempt.recovery_required" for event in played.history.events):
        return Outcome.HELD if starts == 1 else f"{starts} starts, left to a person"
    match (attempt.state, attempt.exit_status, starts):
        case (AttemptState.FAILED, 7, 1):
            return Outcome.RAN
        case (AttemptState.FAILED, -9, 0):
            return Outcome.KILLED
        case other:
            return str(other)


@pytest.mark.req("R02", "R03", "R04", "M01")
@pytest.mark.parametrize("point", [*TABLE, *ADDED], ids=str)
def test_the_kill_point_table_holds_on_the_simulated_host(point: KillPoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in SEEDS:
        played, decided = play(point, seed, monkeypatch)

        assert played.struck, f"{point} was not reached, seed {seed}"
        assert played.findings == (), seed
        assert ended(played) == point.outcome, (seed, decided)
        if not is_told_at_once(point):
            assert decided[0] in point.first, (seed, decided)
        assert set(decided) <= point.later, (seed, decided)
