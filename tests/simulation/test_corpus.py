"""Histories that failed once, played again; and what happens to one that fails: it is made short, kept, and told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import worker.ending
from chaos.simulation import corpus
from chaos.simulation.corpus import CORPUS, Entry, entry_of
from chaos.simulation.run import Outcome, simulate
from chaos.simulation.shrink import Shrinker
from shared.policy.recovery import decide

CHECK = "nothing_that_ran_is_relaunched"


@pytest.mark.parametrize("entry", corpus.read(CORPUS), ids=lambda entry: f"{entry.seed}: {entry.cause}")
def test_what_failed_once_is_fixed(entry: Entry) -> None:
    assert simulate(entry.seed, entry.options).findings == ()


@pytest.fixture
def failed(monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """A history of a worker that overlooks the records of children, and so runs again what ran."""
    monkeypatch.setattr(
        worker.ending,
        "decide",
        lambda facts, evidence: decide(
            replace(facts, child_record_seen=False), evidence and replace(evidence, child=None, child_alive=None)
        ),
    )
    for seed in range(500):
        outcome = simulate(seed)
        if any(finding.check == CHECK for finding in outcome.findings):
            return outcome
    raise AssertionError("the removed guard was not noticed within 500 seeds")


def test_a_failing_history_is_made_short(failed: Outcome) -> None:
    small = Shrinker(failed).shrink()

    assert any(finding.check == CHECK for finding in small.findings)
    assert len(small.plan) < len(failed.plan) or len(failed.plan) == 1
    assert len(small.jobs) <= len(failed.jobs)
    assert simulate(small.seed, small.options).trace == small.trace


def test_a_failing_history_is_kept_and_read_back(failed: Outcome, tmp_path: Path) -> None:
    path = tmp_path / "corpus.json"

    path.write_text(corpus.to_json([entry_of(failed, "the record of the child was overlooked")]))
    (entry,) = corpus.read(path)
    again = simulate(entry.seed, entry.options)

    assert again.findings == failed.findings
    assert again.trace == failed.trace


def test_the_same_history_is_fine_where_the_guard_is_in_place(failed: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    assert simulate(failed.seed).findings == ()
