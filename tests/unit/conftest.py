"""Fixtures of the unit tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sites import Site, open_site


@pytest.fixture
def site() -> Iterator[Site]:
    """A home on a simulated host, under a virtual clock."""
    with open_site() as opened:
        yield opened
