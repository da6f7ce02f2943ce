"""The table of requirements and the tests agree on their ids."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.support.checkout import ROOT

ROW = re.compile(r"^\| ([A-Z]\d\d) \|", re.MULTILINE)


def ids_used(source: str) -> set[str]:
    """List the ids in each `pytest.mark.req(…)` of a test file."""
    return {
        str(argument.value) if isinstance(argument, ast.Constant) else ast.unparse(argument)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "req"
        for argument in node.args
    }


def unknown_ids(rows: Iterable[str], sources: Iterable[str]) -> set[str]:
    return set().union(*(ids_used(source) for source in sources)) - set(rows)


def rows_of(table: str) -> list[str]:
    return ROW.findall(table)


def test_each_requirement_id_is_unique() -> None:
    rows = rows_of((ROOT / "docs" / "requirements.md").read_text())

    assert len(rows) > 100
    assert [row for row, count in Counter(rows).items() if count > 1] == []


def test_each_id_a_test_claims_to_prove_exists() -> None:
    rows = rows_of((ROOT / "docs" / "requirements.md").read_text())
    sources = [path.read_text() for path in Path(ROOT / "tests").rglob("*.py")]

    assert unknown_ids(rows, sources) == set()


def test_unknown_id_would_be_found() -> None:
    source = '@pytest.mark.req("E01", "Q99")\ndef test_it(): ...\n'

    assert unknown_ids(["E01"], [source]) == {"Q99"}


def test_every_row_of_the_table_is_read() -> None:
    assert rows_of("| id | the system … |\n|---|---|\n| E01 | starts |\n| E02 | ends |\n") == ["E01", "E02"]
