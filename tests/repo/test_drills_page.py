"""docs/drills.md speaks of the drills there are, and of options that they take; the room's own page, of every file in it."""

from __future__ import annotations

import re

import pytest

from chaos import cli
from tests.support.checkout import ROOT

TEXT = (ROOT / "docs" / "drills.md").read_text("utf-8")
COMMANDS = re.findall(r"^    tenure drill (\S+)(.*)$", TEXT, flags=re.MULTILINE)


def test_every_drill_is_described_and_no_other() -> None:
    assert {name for name, _ in COMMANDS} == set(cli.DRILLS)


@pytest.mark.parametrize(("name", "rest"), COMMANDS)
def test_every_option_named_is_one_that_the_drill_takes(
    name: str, rest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"], home=None)

    taken = capsys.readouterr().out
    assert ended.value.code == 0
    for option in re.findall(r"--[a-z-]+", rest):
        assert option in taken


def test_every_part_of_the_room_has_its_line() -> None:
    lines = [line for line in (ROOT / "chaos" / "README.md").read_text("utf-8").splitlines() if line.startswith("| `")]
    named = {name.rstrip("/") for line in lines for name in re.findall(r"`([\w./]+)`", line.split("|")[1])}
    there = {
        path.name for path in (ROOT / "chaos").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }

    assert named == there - {"__init__.py"}
