"""Two hundred kills of workers and coordinators at random times: every job runs once, every status is true."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from chaos import kills
from chaos.kills import Harm

# Read before the fixtures clear the environment of whoever runs this.
SEED = int(os.environ.get("TENURE_SEED") or random.SystemRandom().randrange(2**32))
JOBS_OF_EXTRA_SEEDS = 100


@pytest.mark.timeout(300)
@pytest.mark.req("E06", "R02", "R03", "R04", "R05", "R09", "R15", "L01", "K04")
def test_200_kills_lose_nothing_and_run_nothing_twice(tmp_path: Path) -> None:
    print(f"replay with: TENURE_SEED={SEED} ./scripts/test tests/crash/test_kill_drill.py")

    outcome = kills.run(tmp_path / "drill", SEED, say=print)

    print(outcome)
    assert outcome.findings == []
    assert outcome.kills >= kills.KILLS
    assert outcome.recovered > 0, "no kill hit a worker that held something: the drill has shown nothing"


@pytest.mark.drills
@pytest.mark.timeout(300)
@pytest.mark.parametrize("offset", range(1, 6))
def test_more_seeds(tmp_path: Path, offset: int) -> None:
    outcome = kills.run(tmp_path / "drill", SEED + offset, jobs=JOBS_OF_EXTRA_SEEDS)

    print(outcome)
    assert outcome.findings == []


def test_a_seed_plans_the_same_harm_each_time() -> None:
    assert kills.plan(7, kills=50, jobs=60) == kills.plan(7, kills=50, jobs=60)
    assert kills.plan(7, kills=50, jobs=60) != kills.plan(8, kills=50, jobs=60)


@pytest.mark.parametrize(("wanted", "jobs"), [(1, 1), (50, 60), (200, 200)])
def test_a_plan_has_the_kills_and_jobs_that_were_asked_for(wanted: int, jobs: int) -> None:
    steps = kills.plan(3, kills=wanted, jobs=jobs)

    harms = Counter(step.harm for step in steps)
    killed = harms[Harm.WORKER] + harms[Harm.COORDINATOR] + 2 * harms[Harm.PAIR] + 3 * harms[Harm.EVERYONE]
    assert killed >= wanted
    assert sum(len(step.jobs) for step in steps) == jobs
