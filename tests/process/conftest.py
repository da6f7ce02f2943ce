"""Fixtures of the process room's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.launch_host import Host
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
