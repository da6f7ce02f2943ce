"""What one step costs a store: statements, commits, and steps of SQLite's own machine, which no other process can disturb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaos.crowd.site import Site


@dataclass(frozen=True, slots=True)
class Cost:
    """Counted on one connection.

    Attributes:
        steps: Instructions of SQLite's machine; each row looked at takes several.
    """

    statements: int
    commits: int
    steps: int


def cost_of(site: Site, act: Callable[[], object]) -> Cost:
    """Do it once, and count."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    store = site.store
    statements, commits = store.statements, store.commits
    site.raw.set_progress_handler(step, 1)
    try:
        act()
    finally:
        site.raw.set_progress_handler(None, 1)
    return Cost(store.statements - statements, store.commits - commits, steps)
