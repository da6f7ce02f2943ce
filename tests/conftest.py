"""Fixtures of every test; how Hypothesis behaves here."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support.processes import Reaper, become_subreaper

# No deadline: times never decide a test here. A failure prints the line that replays it.
settings.register_profile("tenure", deadline=None, print_blob=True)
settings.load_profile("tenure")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--drills", action="store_true", help="run the long drills too (marked `drills`)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without `--drills` the long drills are left out, and counted as deselected."""
    if config.getoption("--drills"):
        return
    left_out = [item for item in items if item.get_closest_marker("drills")]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker("drills")]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear what would lead a test to the home or the armed boundaries of whoever runs it."""
    for name in [name for name in os.environ if name.startswith("TENURE_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.fixture
def reaper() -> Iterator[Reaper]:
    """Start real processes; whatever is left at the end is killed, and named if nobody owned it."""
    with Reaper() as owner:
        yield owner


@pytest.fixture(scope="session", autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """The whole run leaves no process behind, whichever test forgot it."""
    become_subreaper()
    with Reaper():
        yield
