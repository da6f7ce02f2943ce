"""The page for operators names what doctor can find, and what the unit files set."""

from __future__ import annotations

import ast
import re

from shared.commands.findings_store import WAITS
from tests.support.checkout import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text()
SOURCES = sorted((ROOT / "shared" / "commands").glob("findings_*.py"))
TABLE = PAGE[PAGE.index("## What doctor finds") :]


def codes() -> set[str]:
    """The first word of every finding that is made."""
    found = {code for code, _, _ in WAITS.values()}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                first = node.args[0]
                found |= {first.value} if isinstance(first, ast.Constant) and isinstance(first.value, str) else set()
    return found


def test_every_code_of_doctor_is_on_the_page_and_no_other() -> None:
    told = set(re.findall(r"`([a-z]+\.[a-z_]+)`", TABLE))

    assert told == codes()
    assert len(told) > 30


def test_units_set_what_the_page_says() -> None:
    settings = set(re.findall(r"^\| `([A-Z][A-Za-z]+=[a-z0-9-]+)`", PAGE, re.MULTILINE))

    assert settings == {"KillMode=process", "Delegate=yes", "OOMPolicy=continue", "Restart=on-failure",
                        "RestartPreventExitStatus=2", "TimeoutStopSec=30s"}  # fmt: skip
    for path in (ROOT / "scripts" / "units").glob("*/tenure-worker@.service"):
        assert settings <= set(path.read_text().splitlines())
