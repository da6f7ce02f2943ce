"""docs/drills.md speaks of the drills there are, and of options that they take."""

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
