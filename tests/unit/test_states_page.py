"""The page of the states is what the tables say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from shared.policy.steps import ATTEMPT_STEPS, WORK_STEPS
from tests.support.checkout import ROOT

SCRIPT = ROOT / "scripts" / "draw_states.py"
PAGE = ROOT / "docs" / "states.md"


def draw(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_page_in_the_checkout_is_drawn_from_the_tables() -> None:
    told = draw("--check")

    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_a_stale_page_is_found_and_a_drawn_one_is_not(tmp_path: Path) -> None:
    page = tmp_path / "states.md"
    page.write_text(PAGE.read_text().replace("launching --> running: pinned\n", ""))

    stale = draw("--check", "--page", page)

    assert (stale.returncode, stale.stdout) == (1, f"{page} is stale: run scripts/draw_states.py\n")
    assert draw("--page", page).returncode == 0
    assert page.read_text() == PAGE.read_text()
    assert draw("--check", "--page", page).returncode == 0


def test_a_missing_page_is_stale(tmp_path: Path) -> None:
    assert draw("--check", "--page", tmp_path / "none.md").returncode == 1


def test_every_step_is_an_arrow_of_the_page() -> None:
    page = PAGE.read_text()
    for steps in (ATTEMPT_STEPS, WORK_STEPS):
        for (source, event), target in steps.items():
            arrow = next(line for line in page.splitlines() if line.startswith(f"    {source} --> {target}: "))
            assert event.value in arrow.split(": ")[1].split(", ")
