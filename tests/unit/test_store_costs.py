"""What a job costs the store, counted: five commits of its own, and so many statements."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shared import boundary
from shared.boundary import Boundary, Side
from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.work import Reason
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

    world.ended(owner)
    cost(world, owner)  # once, so that every statement is prepared
    few = cost(world, owner)
    for _ in range(300):
        world.ended(owner)

    assert cost(world, owner) == few


@pytest.mark.req("S02", "C03", "C05")
def test_the_cost_of_a_pass_is_the_same_with_a_hundred_thousand_ready_and_finished(world: World) -> None:
    owner = world.worker()
    world.running(owner)
    for _ in range(2):
        world.ended(owner)
    like = world.submit()
    add_copies(world, COPY_WORK, like, 12_000)  # more than anything counts
    cost(world, owner)
    few = cost(world, owner)

    add_copies(world, COPY_WORK, like, 88_000)
    add_finished(world, 100_000)
    cost(world, owner)  # the schema was touched: prepared anew

    assert cost(world, owner) == few
    assert len(world.store.read(lambda tx: tx.works(states=(), after=200_000, limit=9))) == 4, "they are all there"


def cost(world: World, owner: Incarnation) -> int:
    """Steps of SQLite's machine for what a pass, a worker's step and `tenure capacity` read."""
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
            tx.ready_page("jobs", after=None, limit=64, skip_scopes=("full",)),
            tx.usage(),
            tx.workers(),
            tx.recoverable(after=None, limit=64),
            tx.timers_due(limit=64),
            tx.quarantined(),
            tx.next_due_mono_us(),
            tx.stop_orders(),
            tx.held(owner),
            tx.assignments(owner, limit=16),
            tx.holders(limit=64),
            tx.ready_counts(cap=10_000),
            tx.ready_limits(cap=10_000),
            tx.idle_state(),
            tx.needs_person(limit=64),
            tx.cancellations(WorkId("w2")),
            tx.attempt_events(AttemptId("w2.1"), limit=64),
            tx.unexcluded(WorkId("w2")),
            tx.held_for([Reason.GATE_HELD], limit=64),
            tx.has_staged_usage(),
        )
    )
    raw.set_progress_handler(None, 1)
    return steps


NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)"
COPY_WORK = f"""{NUMBERS} INSERT INTO work SELECT 'w' || (:first + i), :first + i, 'full', binding, command, env, cwd, pool, state,
  reason, reason_limit, priority, revision, :first + i, attempts_used, admission_failures, backoff_since_mono_us, backoff_boot_id,
  backoff_since_at_us, backoff_us, submitted_by, submitted_at_us, ended_at_us, grants, kind, failures_used, hold_by,
  hold_reason, hold_at_us, start_hold_by, start_hold_reason, start_hold_at_us, permits FROM n JOIN work ON work.id = :like"""


def add_finished(world: World, count: int) -> None:
    """That many finished Works with all that an attempt leaves."""
    first = add_copies(world, COPY_WORK, "w2", count)
    params = {"first": first, "count": count}
    with world.outsider() as outsider:
        outsider.execute("DROP TRIGGER attempt_number")  # it keeps an end from being inserted
        for table, columns in (
            ("attempt", "'w' || (:first + i) || '.1', 'w' || (:first + i)"),
            ("lease", "'w' || (:first + i) || '.1'"),
            ("snapshot", "'w' || (:first + i) || '.1'"),
            ("segment", "'w' || (:first + i) || '.1'"),
        ):
            names = [row["name"] for row in outsider.execute(f"SELECT name FROM pragma_table_info('{table}')")]
            rest = ", ".join(names[columns.count("|| (") :])
            key = "id" if table == "attempt" else "attempt_id"
            outsider.execute(
                f"{NUMBERS} INSERT INTO {table} SELECT {columns}, {rest} FROM n JOIN {table} ON {table}.{key} = 'w2.1'",
                params,
            )


def add_copies(world: World, sql: str, like: str, count: int) -> int:
    """Copy a row, with numbers of their own behind all others; the number before the first copy."""
    with world.outsider() as outsider:
        first: int = outsider.execute("SELECT max(number) FROM work").fetchone()[0]
        outsider.execute(sql, {"first": first, "count": count, "like": like})
        outsider.execute("UPDATE counter SET value = ? WHERE name IN ('work', 'ready')", (first + count,))
    return first
