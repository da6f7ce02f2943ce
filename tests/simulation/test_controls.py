"""Negative controls: without a guard the simulation finds the check that is for it, by name, and with it nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from chaos import cli, results
from chaos.checks import CHECKS
from chaos.commands import guards as command
from chaos.guards import GUARDS, Guard, guard
from chaos.simulation.controls import SCENES, WrongCheckError, hunt, hunted, play
from shared.store.sqlite import holding

SEEDS = 500
SEEDS_OF_COVERED = 4
FIRST = int(os.environ.get("TENURE_SEED", "0"))
COVERED = [one for one in GUARDS if one.caught_by is None and one.name != "queue"]  # whose lock is another here


@pytest.mark.req("M03", "W01")
@pytest.mark.parametrize("one", hunted(), ids=lambda one: one.name)
def test_a_removed_guard_is_caught_by_its_check(one: Guard) -> None:
    caught = hunt(one, first=FIRST, seeds=SEEDS)
    print(f"TENURE_SEED={FIRST}: {one.name} after {caught.seeds} seeds: {caught.finding}")

    assert caught.outcome is not None
    assert caught.finding is not None
    assert play(one, caught.outcome.seed).findings == (), "the same history with the guard in place"


@pytest.mark.parametrize("one", COVERED, ids=lambda one: one.name)
def test_nothing_happens_without_a_guard_that_another_stands_behind(one: Guard) -> None:
    with one.removed():
        found = {seed: play(one, seed).findings for seed in range(FIRST, FIRST + SEEDS_OF_COVERED)}

    assert all(findings == () for findings in found.values()), found


def test_another_check_than_the_one_that_is_meant_fails_the_control() -> None:
    mistaken = replace(guard("lease_at_go"), caught_by="epochs_only_rise")

    with pytest.raises(WrongCheckError, match="gates_open_under_a_live_pin"):
        hunt(mistaken, seeds=20)


def test_a_control_that_finds_nothing_says_so() -> None:
    harmless = replace(guard("accept_timeout"), caught_by="epochs_only_rise")

    assert hunt(harmless, seeds=2).outcome is None


def test_guards_are_back_afterwards() -> None:
    before = {name: value for name, value in vars(holding).items() if isinstance(value, str)}
    with guard("fence").removed():
        assert before["FINISH"] != holding.FINISH

    assert {name: value for name, value in vars(holding).items() if isinstance(value, str)} == before


def test_scenes_and_checks_are_named_as_they_are() -> None:
    checks = {check.__name__ for check in CHECKS} | {"never_at_rest"}

    assert set(SCENES) <= {one.name for one in GUARDS}
    assert len({one.name for one in GUARDS}) == len(GUARDS)
    for one in GUARDS:
        assert (one.caught_by is None) == (one.covered_by is not None), one.name
        assert {*one.entails, *([one.caught_by] if one.caught_by else [])} <= checks, one.name


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two guards are enough for a command."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(command, "hunted", lambda: [guard("lease_at_go"), guard("proof_of_stop")])


@pytest.mark.usefixtures("two")
def test_the_command_tells_what_noticed_each_guard(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = tmp_path / "result.json"

    assert cli.main(["simulate", "--guards", "--seeds", "50", "--result", str(place)], home=None) == 0

    told = capsys.readouterr().out
    assert "replay with: tenure drill simulate --guards --seed 0 --seeds 50" in told
    assert "gates_open_under_a_live_pin fired after" in told
    assert "not hunted: behind it stands the fence" in told
    noticed = [(one.name, one.check) for one in results.read(place).guards if one.seeds is not None]
    assert noticed == [
        ("lease_at_go", "gates_open_under_a_live_pin"),
        ("proof_of_stop", "slots_are_freed_on_proof"),
    ]


@pytest.mark.usefixtures("two")
def test_a_guard_that_nobody_misses_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unmissed = replace(guard("accept_timeout"), caught_by="epochs_only_rise")
    mistaken = replace(guard("lease_at_go"), caught_by="epochs_only_rise")
    monkeypatch.setattr(command, "hunted", lambda: [unmissed])
    assert cli.main(["simulate", "--guards", "--seeds", "1"], home=None) == 1
    assert "epochs_only_rise fired never" in capsys.readouterr().out

    monkeypatch.setattr(command, "hunted", lambda: [mistaken])
    assert cli.main(["simulate", "--guards", "--seeds", "20"], home=None) == 1
    assert "without lease_at_go, seed" in capsys.readouterr().out
