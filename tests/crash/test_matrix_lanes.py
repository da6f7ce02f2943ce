"""Lanes of the matrix: several cells at once, none waited for without end, nothing left behind however they end."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from chaos.matrix import lanes, recovery
from chaos.matrix.cell import Cell
from chaos.matrix.every import every_cell
from chaos.matrix.lanes import Lanes
from tests.support.processes import Reaper
from tests.support.waiting import wait_until


def cells(*names: str) -> list[Cell]:
    return [cell for cell in every_cell() if str(cell) in names]


COMMAND = cells("command-submit_commit-before-kill-self", "command-store_link-after-kill-self")


def test_cells_are_played_on_several_lanes_and_told_each_with_its_own_end(tmp_path: Path) -> None:
    with Lanes(tmp_path, 2) as both:
        played = dict(both.play(COMMAND))

    assert {str(cell): (result.came_to, result.findings) for cell, result in played.items()} == {
        str(cell): ("repeated", ()) for cell in COMMAND
    }


def test_a_lane_that_dies_fails_its_cell_and_another_goes_on(tmp_path: Path) -> None:
    with Lanes(tmp_path, 1) as one:
        os.kill(one.pids[0], signal.SIGKILL)

        results = [result for _, result in one.play(COMMAND)]

    assert [result.findings for result in results] == [("play: the lane ended",), ()]


def test_a_lane_that_hangs_is_ended_with_its_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "CELL_BOUND_S", 1.0)
    with Lanes(tmp_path, 1) as one:
        os.kill(one.pids[0], signal.SIGSTOP)

        first = next(one.play(COMMAND))[1]

    assert first.findings == ("play: it was not over within 1 s",)


@pytest.mark.timeout(180)
def test_an_interrupt_ends_every_lane_and_shows_what_was_played(reaper: Reaper, tmp_path: Path) -> None:
    """The reaper fails this test if a process is left."""
    told = tmp_path / "told"
    with told.open("wb") as out:
        drill = reaper.start(
            [sys.executable, "-P", "-m", "shared.cli", "drill", "matrix", "--lanes", "2", "--only", "worker-accept"],
            env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)},
            stdout=out,
        )
    wait_until(lambda: "  ok  " in told.read_text(), "a cell was played")

    drill.send_signal(signal.SIGINT)

    assert drill.wait(30) == 130
    last = told.read_text().splitlines()[-1]
    assert "cells:" in last
    assert ", 0 failed" in last
    assert [path.name for path in tmp_path.iterdir()] == ["told"]


@pytest.mark.timeout(180)
@pytest.mark.req("W02")
@pytest.mark.parametrize("role", list(recovery.Role))
def test_each_recovery_is_timed_from_the_kill_to_the_commit(tmp_path: Path, role: recovery.Role) -> None:
    """That it is measured, not how long it takes: times never decide a test here."""
    took_ms = recovery.measure(tmp_path / "home", role, 2)

    assert len(took_ms) == 2
    assert min(took_ms) > 0
