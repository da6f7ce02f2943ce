"""The checkout the tests run from, and copies of it that a test may break."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("shared", "coordinator", "worker", "chaos")


def tool(name: str) -> Path:
    """Name a command of the environment that runs the tests."""
    return Path(sys.executable).parent / name


def copy_rooms(target: Path) -> Path:
    """Copy the rooms and pyproject.toml, nothing else; return the copy."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, target / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", target)
    return target
