"""A user's folder full of namesakes does no harm, or gets one clear line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkout import ROOT, tool

LOAD_BY_PATH = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("rooms", {str(ROOT / "shared" / "rooms.py")!r})
rooms = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rooms)
rooms.require_one_folder()
print("one folder")
"""


@pytest.fixture
def users_folder(tmp_path: Path) -> Path:
    """A folder whose names are those of a room and of a module of the standard library."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "__init__.py").write_text("raise RuntimeError('the shared of the user was imported')\n")
    (tmp_path / "socket.py").write_text("raise RuntimeError('the socket of the user was imported')\n")
    return tmp_path


def run(folder: Path, *argv: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_command_works_in_a_folder_of_namesakes(users_folder: Path) -> None:
    result = run(users_folder, tool("tenure"), "--version")

    assert (result.returncode, result.stderr) == (0, "")


def test_module_works_in_a_folder_of_namesakes(users_folder: Path) -> None:
    result = run(users_folder, sys.executable, "-P", "-m", "shared.cli", "--version")

    assert (result.returncode, result.stderr) == (0, "")


def test_foreign_room_gets_one_line_that_names_its_folder(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text("")

    result = run(tmp_path, tool("tenure"), "--version", PYTHONPATH=str(tmp_path))

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"tenure: Python takes 'worker' from {tmp_path}, not from {ROOT}: leave that folder, or take it out of PYTHONPATH\n"
    )


def test_foreign_shared_gets_one_line_that_names_its_folder(users_folder: Path) -> None:
    (users_folder / "socket.py").unlink()

    result = run(users_folder, sys.executable, "-c", LOAD_BY_PATH)

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"tenure: Python takes 'shared' from {users_folder}, not from {ROOT}")
    assert result.stderr.count("\n") == 1


def test_rooms_of_one_folder_pass(users_folder: Path) -> None:
    result = run(users_folder, sys.executable, "-P", "-c", LOAD_BY_PATH)

    assert (result.returncode, result.stdout) == (0, "one folder\n")


def test_missing_room_is_named(tmp_path: Path) -> None:
    """Without the installation, in a folder with one room only, another room is found nowhere."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "rooms.py").write_bytes((ROOT / "shared" / "rooms.py").read_bytes())

    result = run(
        tmp_path,
        sys.executable,
        "-I",
        "-S",
        "-c",
        "import sys; sys.path.insert(0, '.'); import shared.rooms as r; r.require_one_folder()",
    )

    assert result.returncode == 1
    assert result.stderr == f"tenure: its package 'coordinator' is missing from {tmp_path}: install tenure again\n"
