"""`tenure drill simulate`: what it prints, finds, keeps and leaves behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

import worker.ending
from chaos import cli, results
from chaos.simulation.run import simulate
from shared.errors import UsageError
from shared.policy.recovery import decide
from tests.support.checkout import ROOT


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Drills keep what they keep below it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left_in_memory(pid: int) -> set[str]:
    """What a simulation has there, or left."""
    memory = Path("/dev/shm")
    return {path.name for path in memory.glob(f"tenure-simulation-{pid}-*")} if memory.is_dir() else set()


def test_seeds_are_spread_over_processes_and_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(
        ["simulate", "--seed", "1", "--seeds", "24", "--jobs", "2", "--result", str(folder / "r.json")], home=None
    )

    told = capsys.readouterr().out
    result = results.read(folder / "r.json")
    assert code == 0
    assert "replay with: tenure drill simulate --seed 1 --seeds 24" in told
    assert (result.totals["histories"], result.totals["failed"]) == (24, 0)
    assert result.totals["steps"] == sum(simulate(seed).steps for seed in range(1, 25))
    assert any(row.before and row.after for row in result.coverage)
    assert sum(row.struck_before.killed + row.struck_after.killed for row in result.coverage) > 0
    never = re.search(r"never reached: (.*)", told)
    assert never is not None
    assert never[1].split(", ") == [row.boundary for row in result.coverage if not row.is_reached]
    assert result.totals["histories per second and processor"] > 0
    assert list(folder.iterdir()) == [folder / "r.json"]


def test_one_seed_is_told_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["simulate", "--seed", "7"], home=None) == 0

    told = capsys.readouterr().out
    assert all(str(step) in told for step in simulate(7).trace)


def test_a_failing_seed_is_shrunk_kept_and_replayed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setattr(
            worker.ending,
            "decide",
            lambda facts, evidence: decide(
                replace(facts, child_record_seen=False), evidence and replace(evidence, child=None, child_alive=None)
            ),
        )
        seed = next(seed for seed in range(500) if simulate(seed).findings)
        code = cli.main(["simulate", "--seed", str(seed)], home=None)
        told = capsys.readouterr().out
        kept = re.search(r"--corpus (\S+)", told)
        assert kept is not None
        again = cli.main(["simulate", "--corpus", kept[1]], home=None)

    assert (code, again) == (1, 1)
    assert f"replay with: tenure drill simulate --seed {seed}" in told
    assert "shrunk to" in told
    assert cli.main(["simulate", "--corpus", kept[1]], home=None) == 0, "with the guard in place nothing is found"


def test_an_interrupt_leaves_what_was_done_and_nothing_else(tmp_path: Path) -> None:
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "shared.cli",
            "drill",
            "simulate",
            "--seeds",
            "1000000",
            "--result",
            tmp_path / "r.json",
        ],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        first = next(line for line in run.stdout if "histories/s" in line)
        had = left_in_memory(run.pid)
        os.killpg(run.pid, signal.SIGINT)
        rest = run.stdout.read()

    assert run.returncode == 130
    assert "0 failed" in first
    assert "boundaries reached" in rest
    assert results.read(tmp_path / "r.json").totals["histories"] > 0
    assert left_in_memory(run.pid) == set()
    assert had or not Path("/dev/shm").is_dir(), "control: it had something there"


@pytest.mark.parametrize("words", [["--seeds", "0"], ["--steps", "x"], ["--corpus", "/nowhere"], ["--seed", "-1"]])
def test_a_wrong_command_line_does_nothing(words: list[str]) -> None:
    with pytest.raises(UsageError):
        cli.main(["simulate", *words], home=None)
