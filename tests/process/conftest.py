"""Fixtures of the process room's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.launch_host import Host
from tests.support.processes import Reaper


@pytest.fixture
def host(tmp_path: Path, reaper: Reaper) -> Iterator[Host]:
    """A home whose launches are real; ended with the test."""
    host = Host(tmp_path, reaper)
    yield host
    host.close()
