"""Random tests take their seed back: they read it where it still is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

SEED = "TENURE_SEED"


def asked_within(tree: ast.AST) -> Iterator[int]:
    """Lines of functions that ask the environment for the seed, from which a fixture has taken it by then."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and any(
                    isinstance(word, ast.Constant) and word.value == SEED for word in call.args
                ):
                    yield call.lineno


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=lambda path: path.name)
def test_no_test_asks_for_its_seed_once_the_environment_is_cleared(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert SEED not in text or list(asked_within(ast.parse(text))) == []


def test_one_that_asks_too_late_is_seen() -> None:
    late = f"import os\ndef test_it() -> None:\n    seed = os.environ.get({SEED!r}, '1')\n"
    early = f"import os\nseed = os.environ.get({SEED!r}, '1')\n"

    assert [list(asked_within(ast.parse(text))) for text in (late, early)] == [[3], []]
