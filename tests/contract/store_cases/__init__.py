"""The conformance cases of a store: each is a function of a World, named for what it claims.

Its `req` mark names the requirement rows it proves, `needs` a capability that not every backend has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import pytest

from tests.support.stores import World

Case = Callable[[World], None]
C = TypeVar("C", bound=Case)


@dataclass(frozen=True)
class Listed:
    """A case with what it proves and needs."""

    name: str
    run: Case
    marks: tuple[pytest.MarkDecorator, ...]
    needs: str | None


CASES: dict[str, Listed] = {}


def case(*marks: pytest.MarkDecorator, needs: str | None = None) -> Callable[[C], C]:
    """List the function below as a case."""

    def enlist(function: C) -> C:
        add(function.__name__, function, *marks, needs=needs)
        return function

    return enlist


def add(name: str, run: Case, *marks: pytest.MarkDecorator, needs: str | None = None) -> None:
    """List a case that is made from a table."""
    assert name not in CASES, f"two cases are called {name}"
    CASES[name] = Listed(name, run, marks, needs)
