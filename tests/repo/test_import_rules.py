"""Each import rule is tried with one deliberate violation; a copy without it passes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.checkout import ROOMS, ROOT, copy_rooms, tool

VIOLATIONS = [
    ("rooms", "coordinator/violation.py", "import worker"),
    ("rooms", "worker/violation.py", "import coordinator"),
    ("rooms", "shared/violation.py", "import worker"),
    ("rooms", "coordinator/violation.py", "import chaos"),
    ("decisions", "shared/policy/violation.py", "import shared.store"),
    ("decisions", "shared/model/violation.py", "import shared.policy"),
    ("decisions", "shared/errors.py", "import shared.model"),
    ("decisions", "shared/boundary.py", "import shared.errors"),
    ("decisions", "shared/undeclared.py", "import os"),
    ("pure-policy", "shared/policy/violation.py", "import os"),
    ("pure-policy", "shared/policy/violation.py", "import time"),
    ("pure-policy", "shared/policy/violation.py", "import subprocess"),
    ("pure-policy", "shared/policy/violation.py", "import pydantic"),
    ("pure-policy", "shared/model/violation.py", "import psutil"),
    ("owner-sqlite", "coordinator/violation.py", "import sqlite3"),
    ("owner-sqlite", "shared/commands/violation.py", "import sqlite_utils"),
    ("owner-processes", "worker/violation.py", "import psutil"),
    ("owner-interleaving", "chaos/violation.py", "import greenlet"),
    ("owner-interleaving", "worker/violation.py", "import greenlet"),
    ("owner-logging", "shared/commands/violation.py", "import multiprocessing_logging"),
    ("owner-pydantic", "worker/violation.py", "import pydantic"),
    ("concrete-store", "coordinator/violation.py", "import shared.store.sqlite"),
]


@pytest.fixture
def rooms(tmp_path: Path) -> Path:
    return copy_rooms(tmp_path)


def lint_imports(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tool("lint-imports"), "--no-cache", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_import_rule_is_kept(rooms: Path) -> None:
    result = lint_imports(rooms)

    assert result.returncode == 0, result.stdout


def test_no_folder_hides_from_the_import_rules() -> None:
    """The rules see packages only: a folder of modules without `__init__.py` would be free to import anything."""
    folders = {path.parent for room in ROOMS for path in (ROOT / room).rglob("*.py")}

    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize(("rule", "file", "line"), VIOLATIONS)
def test_import_rule_refuses(rooms: Path, rule: str, file: str, line: str) -> None:
    violation = rooms / file
    violation.write_text((violation.read_text() if violation.exists() else "") + f"\n{line}\n")

    result = lint_imports(rooms, "--contract", rule)

    assert result.returncode == 1
    assert "1 broken" in result.stdout
    assert file.removesuffix(".py").replace("/", ".") in result.stdout


@pytest.mark.parametrize(
    ("rule", "file", "line"),
    [
        ("rooms", "chaos/permitted.py", "import coordinator, worker"),
        ("decisions", "shared/policy/permitted.py", "import shared.model, shared.errors, shared.ids"),
        ("pure-policy", "shared/policy/permitted.py", "import dataclasses, enum, math"),
        ("owner-sqlite", "shared/store/sqlite/permitted.py", "import sqlite3"),
        ("owner-processes", "shared/process/permitted.py", "import psutil"),
        ("concrete-store", "chaos/permitted.py", "import shared.store.sqlite"),
    ],
)
def test_import_rule_lets_the_owner_pass(rooms: Path, rule: str, file: str, line: str) -> None:
    (rooms / file).write_text(line + "\n")

    result = lint_imports(rooms, "--contract", rule)

    assert result.returncode == 0, result.stdout
