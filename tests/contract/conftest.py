"""One world per test, on each backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stores import BACKENDS, Backend, World, ram_folder


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    chosen: Backend = request.param
    return chosen


@pytest.fixture
def world(backend: Backend) -> Iterator[World]:
    with ram_folder() as folder:
        made = World(backend, folder)
        yield made
        made.close()
