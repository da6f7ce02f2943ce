"""A power cut takes the ends of outputs that were not synced; an end that is known is known with all that was said before it."""

from __future__ import annotations

import os
import random

import pytest

from chaos.simulation.controls import SCENES
from chaos.simulation.harm import Harm, Kind
from chaos.simulation.jobs import Job
from chaos.simulation.programs import AGENT, Act, Deed, Part
from chaos.simulation.run import Options, Outcome, simulate
from shared.boundary import Boundary, Side
from shared.model.attempt import AttemptState, FailureClass
from shared.model.instant import US_PER_MS, US_PER_S

FIRST = int(os.environ.get("TENURE_SEED", "1"))
SEEDS = 30
TALKS = Job(1, voice=AGENT, parts=(Part((Deed(Act.USAGE, count=1), Deed(Act.SLEEP, us=20 * US_PER_MS)) * 40),))


def cut(boundary: Boundary, seed: int) -> Outcome:
    """The host loses its power when the second shim comes to that boundary."""
    harm = Harm(Kind.REBOOT, "shim", boundary, Side.AFTER, nth=2, us=US_PER_S)
    return simulate(seed, Options(jobs=(TALKS,) * 3, plan=(harm,)))


@pytest.mark.req("M02", "O02", "B03")
def test_an_end_that_outlived_a_power_cut_is_known_with_its_last_word() -> None:
    print(f"TENURE_SEED={FIRST}")
    scene = SCENES["durable_words"]
    for seed in range(FIRST, FIRST + SEEDS):
        played = simulate(seed, scene(random.Random(f"{seed}/scene")))

        assert played.struck, seed
        assert played.findings == (), seed
        failures = [one.failure for one in played.history.attempts.values() if one.state is AttemptState.FAILED]
        assert set(failures) <= {FailureClass.KNOWN, FailureClass.ADMISSION, FailureClass.AMBIGUOUS}
        assert not any(one.exit_status == 0 and one.failure is None for one in played.history.attempts.values()), seed


@pytest.mark.req("M02", "O02", "B03")
def test_what_was_cut_from_an_output_counts_once_or_not_at_all() -> None:
    print(f"TENURE_SEED={FIRST}")
    played = [
        cut(boundary, FIRST + n) for n in range(SEEDS // 2) for boundary in (Boundary.CHILD_EXEC, Boundary.CHILD_REAP)
    ]

    assert {one.seed: one.findings for one in played if one.findings} == {}
    assert any(said.is_cut for one in played for said in one.history.said), "control: some lines were cut"
