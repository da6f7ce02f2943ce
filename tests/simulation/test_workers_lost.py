"""A launch that is the death of whoever makes it: case C056 on the simulated host, by the production coordinator and worker."""

from __future__ import annotations

import pytest

from chaos.simulation.harm import Harm, Kind
from chaos.simulation.jobs import Job
from chaos.simulation.run import Options, Outcome, simulate
from shared.boundary import Boundary, Side
from shared.model.attempt import AttemptState, FailureClass
from shared.model.instant import US_PER_S
from shared.model.work import WorkState

SEEDS = range(5)
DEATHS = tuple(Harm(Kind.CRASH, "worker", Boundary.SHIM_SPAWN, Side.AFTER, nth=nth) for nth in range(1, 10))
"""Each worker that spawns a shim for it dies over that, for as long as anybody tries."""


def play(seed: int, *, most: int, harms: int = len(DEATHS)) -> Outcome:
    job = Job(US_PER_S, 7)
    return simulate(seed, Options(jobs=(job,), plan=DEATHS[:harms], keeps_status=True, workers_lost_max=most))


@pytest.mark.req("F03", "M01")
@pytest.mark.parametrize("seed", SEEDS)
def test_three_workers_are_the_most_that_a_launch_costs(seed: int) -> None:
    played = play(seed, most=3)

    [attempt] = played.history.attempts.values()
    assert len(played.struck) == 3
    assert (attempt.state, attempt.failure) == (AttemptState.FAILED, FailureClass.KNOWN)
    assert attempt.error == "worker lost: launching it cost 3 workers in a row their lives"
    assert played.history.works[attempt.work_id].state is WorkState.FAILED
    assert attempt.exclusion_proof == "S0", "its slot is free on proof"
    counted = [event.data["in_row"] for event in played.history.events if event.kind == "worker.lost"]
    assert counted == [1, 2, 3]
    assert played.history.lines == (), "it never ran"
    assert played.findings == ()


@pytest.mark.parametrize(("most", "harms"), [(3, 2), (0, 5), (5, 4)])
def test_fewer_deaths_than_that_cost_the_job_nothing(most: int, harms: int) -> None:
    for seed in SEEDS:
        played = play(seed, most=most, harms=harms)

        [attempt] = played.history.attempts.values()
        assert (attempt.exit_status, attempt.workers_lost) == (7, harms), seed
        assert played.findings == (), seed


def test_any_number_is_bounded_by_launches_that_come_to_nothing() -> None:
    """Switched off, the older bound holds: five relaunches, and the next attempt after a pause, for which no retry is spent."""
    played = play(0, most=0)

    first = min(played.history.attempts.values(), key=lambda attempt: attempt.number)
    assert (first.failure, first.relaunches) == (FailureClass.ADMISSION, 5)
