"""Fixtures of the process room's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.launch_host import Host
from tests.support.command_homes import Ask, CommandHome, Launch, asking, command_home
from tests.support.examinations import Found, finding, quiet_host
from tests.support.processes import Reaper
from tests.support.trials import Valve


@pytest.fixture
def host(tmp_path: Path, reaper: Reaper) -> Iterator[Host]:
    """A home whose launches are real; ended with the test."""
    host = Host(tmp_path, reaper)
    yield host
    host.close()


@pytest.fixture
def valve(tmp_path: Path) -> Iterator[Valve]:
    """What jobs wait for until the test opens it."""
    valve = Valve(tmp_path / "valve")
    yield valve
    valve.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CommandHome]:
    """A home for commands, whose store the test moves."""
    with command_home(tmp_path) as home:
        yield home


@pytest.fixture
def ask(home: CommandHome, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs a command of that home inside the test."""
    return asking(home, capsys)


@pytest.fixture
def found(ask: Ask) -> Found:
    """What doctor finds there."""
    return finding(ask)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this host itself is found by doctor."""
    quiet_host(monkeypatch)


@pytest.fixture
def uncertain(home: CommandHome) -> Iterator[Launch]:
    """An attempt nobody knows the outcome of."""
    launch = Launch(home, home.staff())
    home.abandon(launch.key)
    yield launch
    launch.close()
