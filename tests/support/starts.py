"""Works that are to start on a simulated host: handed in many at a time, and looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordinator.starts import WINDOW_MAX, WINDOW_MIN, WINDOWS_MAX, Candidates
from shared.ids import WorkId
from shared.model.work import NewWork, Reason, WorkState
from tests.support.sites import Head, Site

MANY = 3 * WINDOWS_MAX * WINDOW_MIN
A_PASS = WINDOWS_MAX * WINDOW_MAX
"""More than one pass looks at."""


def submit(site: Site, count: int, *, scope: str = "", binding: str | None = None, priority: int = 0) -> list[WorkId]:
    command = ("true",) if binding is None else None
    work = NewWork(scope, binding, command, (), "/", None, "test", priority)
    return [site.world.store.write(lambda tx: tx.submit(work, "jobs")) for _ in range(count)]


def states(site: Site, works: list[WorkId]) -> list[tuple[WorkState, Reason | None]]:
    return [(site.work(work_id).state, site.work(work_id).reason) for work_id in works]


def running(site: Site, works: list[WorkId]) -> list[WorkId]:
    return [work_id for work_id in works if site.work(work_id).state is WorkState.RUNNING]


def between_look_and_claim(head: Head, happen: Callable[[], object]) -> None:
    """Let something happen once, after the leader looked at what is ready and before it claims."""
    read = head.store.read
    happened: list[object] = []

    def read_then_happen(fn: Callable[[Any], Any]) -> Any:
        found = read(fn)
        if isinstance(found, Candidates) and found.ready and not happened:
            happened.append(happen())
        return found

    head.store.read = read_then_happen  # type: ignore[method-assign]
