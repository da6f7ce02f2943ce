"""What a job costs the store, counted: five commits of its own, and so many statements."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shared import boundary
from shared.boundary import Boundary, Side
from tests.support.stores import COMPLETED, LEASE_US, SQLITE, SUCCEEDED, World, ram_folder

COMMITS_PER_JOB = 5
STATEMENTS_PER_JOB_MAX = 66


@pytest.fixture
def world() -> Iterator[World]:
    with ram_folder() as folder:
        made = World(SQLITE, folder)
        yield made
        made.close()


@pytest.mark.req("E03")
def test_a_job_costs_five_commits_and_few_statements(world: World) -> None:
    owner = world.worker()
    world.as_leader(lambda tx: None)
    world.ended(owner)
    crossed: list[Boundary] = []
    boundary.install(
        lambda at, side: crossed.append(at) if side is Side.AFTER and at is not Boundary.QUEUE_LOCK else None
    )
    store = world.store
    before = store.commits, store.statements  # type: ignore[attr-defined]

    try:
        work_id = world.submit(input_=b"data")
        request = world.request(work_id, owner)
        world.as_leader(lambda tx: tx.claim(request))
        [assignment] = store.read(lambda tx: tx.assignments(owner, limit=16))
        key = assignment.key
        store.write(lambda tx: tx.accept(key, invoke_isolated=True))
        store.write(lambda tx: tx.pin(key, world.pin(key)))
        store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))
    finally:
        boundary.install(None)

    assert crossed == [
        Boundary.SUBMIT_COMMIT,
        Boundary.CLAIM_COMMIT,
        Boundary.ACCEPT_COMMIT,
        Boundary.PIN_COMMIT,
        Boundary.FINISH_COMMIT,
    ]
    assert store.commits - before[0] == COMMITS_PER_JOB  # type: ignore[attr-defined]
    assert store.statements - before[1] <= STATEMENTS_PER_JOB_MAX  # type: ignore[attr-defined]


@pytest.mark.req("E05")
def test_renewing_a_hundred_leases_costs_as_many_statements_as_one(world: World) -> None:
    owner = world.worker()
    counts = []
    for wanted in (1, 100):
        while len(world.store.read(lambda tx: tx.held(owner))) < wanted:
            world.accepted(owner)
        before = world.store.statements  # type: ignore[attr-defined]
        kept = world.store.write(lambda tx: tx.renew(owner, lease_us=LEASE_US))
        assert len(kept) == wanted
        counts.append(world.store.statements - before)  # type: ignore[attr-defined]

    assert counts[0] == counts[1]


@pytest.mark.req("S02", "C03")
def test_the_cost_of_a_pass_does_not_grow_with_history(world: World) -> None:
    """Counted in steps of SQLite's machine, which no other process can disturb."""
    owner = world.worker()
    world.running(owner)

    def cost() -> int:
        steps = 0

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        raw = world.store._db.raw  # type: ignore[attr-defined]
        raw.set_progress_handler(step, 1)
        world.store.read(
            lambda tx: (
                tx.ready("jobs", after=None, limit=64),
                tx.usage(),
                tx.workers(),
                tx.recoverable(after=None, limit=64),
                tx.backoff_due(limit=64),
                tx.next_due_mono_us(),
                tx.stop_orders(),
                tx.held(owner),
                tx.assignments(owner, limit=16),
            )
        )
        raw.set_progress_handler(None, 1)
        return steps

    cost()  # once, so that every statement is prepared
    few = cost()
    for _ in range(300):
        world.ended(owner)

    assert cost() == few
