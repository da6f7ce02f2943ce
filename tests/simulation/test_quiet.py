"""Agents that may not be quiet for long: who is quiet is ended, and who speaks is not, however its worker was frozen. Case C061 (d)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.simulation.harm import Harm, Kind
from chaos.simulation.jobs import Job
from chaos.simulation.programs import AGENT, Act, Deed, Part
from chaos.simulation.run import Options, Outcome, simulate
from chaos.simulation.spoken_scenes import SILENT
from shared.model.attempt import AttemptState, FailureClass
from shared.model.instant import US_PER_MS, US_PER_S

WORD = (Deed(Act.NOISE, count=1), Deed(Act.SLEEP, us=300 * US_PER_MS))
TALKS = Job(1, voice=AGENT, idle_us=US_PER_S, parts=(Part((*WORD * 40, Deed(Act.RESULT, word="completed"))),))
FROZEN = (Harm(Kind.PAUSE, "worker", step=262, us=1_732_901), Harm(Kind.PAUSE, "worker", step=232, us=1_936_711))


def idle_ends(outcome: Outcome) -> list[str]:
    return [one.error or "" for one in outcome.history.attempts.values() if (one.error or "").startswith("idle")]


@pytest.mark.req("M04")
def test_words_read_after_a_freeze_are_not_taken_for_as_old_as_the_look_before_it() -> None:
    """The worker was frozen between its look at the clock and its look at an output, for longer than an agent may be quiet."""
    outcome = simulate(100, Options(jobs=(TALKS,) * 3, plan=FROZEN, workers=1))

    assert len(outcome.struck) == 2
    assert idle_ends(outcome) == []
    assert outcome.findings == ()


@pytest.mark.req("T02", "O05")
def test_who_is_quiet_for_too_long_is_ended() -> None:
    outcome = simulate(1, Options(jobs=(SILENT,), plan=()))

    [attempt] = outcome.history.attempts.values()
    assert (attempt.state, attempt.failure) == (AttemptState.FAILED, FailureClass.TIMED_OUT)
    assert idle_ends(outcome) == ["idle: no output for 1 s"]
    assert outcome.findings == ()


def test_who_may_be_quiet_is_left_alone() -> None:
    """The control: the same agent, and no bound."""
    outcome = simulate(1, Options(jobs=(replace(SILENT, idle_us=0),), plan=()))

    assert idle_ends(outcome) == []
    assert outcome.findings == ()
