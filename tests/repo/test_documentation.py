"""What the pages tell people to type: configurations that are valid, keys and defaults as they are, commands and options that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.cli import load
from shared.config.loader import parse
from shared.config.schema import table_keys
from shared.errors import UsageError
from tests.support.checkout import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
REFERENCE = (ROOT / "docs" / "configuration.md").read_text("utf-8")
BINDING = '[binding.it]\ncommand = ["true"]\n'
TABLES = {
    "settings": ("`[settings]`", "[settings]\n{}"),
    "scope": ('`[scope."a/b"]`', "[scope.ops]\n{}"),
    "binding": ("`[binding.NAME]`", BINDING + "{}"),
    "retry": ("`retry`", BINDING + "retry = {{ {} }}"),
    "exponential": ("`exponential`", ""),
    "sandbox": ("`sandbox`", BINDING + "sandbox = {{ {} }}"),
    "grant": ("`[binding.NAME.grant.GRANT]`", BINDING + "[binding.it.grant.one]\n{}"),
    "budget": ("`[[budget]]`", '[[budget]]\nunit = "usd"\nmax = 1\n{}'),
}
"""Of each kind of table: its heading in the reference, and a file in which a line of it can be written."""
SUBCOMMANDS = ("work", "binding", "attempt", "gate", "budget", "event", "store", "tool", "drill")


def told_of(table: str) -> dict[str, str]:
    """What the reference says of a table: each key's default, as it is written there."""
    heading, _ = TABLES[table]
    [section] = re.findall(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##|\Z)", REFERENCE, flags=re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^\| `(\w+)` \| (\S.*?) \| ", section, flags=re.MULTILINE))


def written_defaults() -> list[tuple[str, str, str]]:
    rows = [(table, key, default) for table in TABLES for key, default in told_of(table).items()]
    return [(table, key, default.strip("`")) for table, key, default in rows if default != "—"]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def calls(page: Path) -> list[str]:
    """The command lines of a page's indented blocks, up to what is told beside them; `work list|show` stands for two."""
    lines = re.findall(r"^    (tenure [a-z].*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    shown = [part for line in lines for part in re.split(r"  +| · ", line) if part.startswith("tenure ")]
    return [each for call in shown for each in _spelt_out(call)]


def _spelt_out(call: str) -> list[str]:
    words = call.removesuffix(" NAME").split()
    if len(words) < 3 or "|" not in words[2]:
        return [" ".join(words)]
    return [" ".join([*words[:2], name, *words[3:]]) for name in words[2].split("|")]


@pytest.mark.parametrize("table", TABLES)
def test_the_reference_tells_every_key_of_a_table_and_no_other(table: str) -> None:
    assert set(told_of(table)) == set(table_keys()[table])


def test_the_reference_tells_of_every_table() -> None:
    assert set(TABLES) == set(table_keys()) - {""}


@pytest.mark.parametrize(("table", "key", "default"), written_defaults())
def test_a_default_that_is_written_out_changes_nothing(table: str, key: str, default: str) -> None:
    _, frame = TABLES[table]
    left_out = parse(frame.format(""), source="left out", folder=ROOT)

    written = parse(frame.format(f"{key} = {default}"), source="written", folder=ROOT)

    assert written == left_out


def test_another_value_than_the_default_would_be_noticed() -> None:
    _, frame = TABLES["binding"]

    assert parse(frame.format('grace = "11s"'), source="", folder=ROOT) != parse(
        frame.format(""), source="", folder=ROOT
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_configuration_shown_is_valid(page: Path) -> None:
    for block in blocks(page):
        parse(block, source=page.name, folder=ROOT)


def test_configurations_are_found_where_they_are() -> None:
    assert sum(len(blocks(page)) for page in PAGES) >= 3


@pytest.mark.parametrize("line", sorted({call for page in PAGES for call in calls(page)}))
def test_every_command_shown_exists_and_takes_its_options(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = line.split(" -- ", maxsplit=1)[0].split()[1:]
    depth = 2 if words[0] in SUBCOMMANDS and len(words) > 1 else 1

    taken = _help(words[:depth], capsys)

    for option in re.findall(r"(?<!\S)\[?(--[a-z-]+)", " ".join(words)):
        assert option in taken


@pytest.mark.parametrize("words", [["wrok"], ["work", "shwo"], ["tool", "trun"], ["drill", "matrices"]])
def test_a_command_that_does_not_exist_would_be_noticed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError):
        _help(words, capsys)


def _help(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says of itself. Raises UsageError: there is none of that name."""
    try:
        code: object = load(words[0])([*words[1:], "--help"], home=None)
    except SystemExit as ended:
        code = ended.code
    assert code == 0
    return capsys.readouterr().out
