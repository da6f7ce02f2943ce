"""The part of a pass that resumes what has woken: whom it looks at, and what it costs. Rule: O08, C01, C02, S01."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coordinator.resumes import PAGE, PAGES_MAX
from shared.ids import WorkId, work_of
from shared.model.attempt import AttemptState
from shared.model.settings import Config, ScopeConfig, Settings
from shared.model.work import Reason, WorkState
from shared.store.sqlite.connection import Connection, Params, Row
from tests.support.declarations import TICK
from tests.support.sites import Site, open_site

MANY = PAGE * PAGES_MAX + 9
"""More than one pass looks at."""


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as site:
        yield site


def crowd(site: Site, count: int) -> tuple[list[WorkId], WorkId]:
    """So many parked attempts in a scope that is full, and one behind them that could go on; all of them have woken."""
    site.configure(Config(Settings(), scopes=(ScopeConfig("narrow", 1),)))
    owner = site.world.worker("worker-9")
    works = [
        work_of(site.world.parked(owner, work_id=site.world.submit(scope="narrow")).attempt_id) for _ in range(count)
    ]
    site.world.running(owner, site.world.submit(scope="narrow"))
    free = work_of(site.world.parked(owner).attempt_id)
    leader, generation = site.world.leader, site.world.generation
    assert leader is not None
    site.world.store.write(lambda tx: tx.resign(leader, generation))
    site.world.store.write(lambda tx: tx.publish(TICK))
    return works, free


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that is run."""
    run: list[str] = []
    original = Connection.rows

    def rows(self: Connection, sql: str, params: Params = ()) -> list[Row]:
        run.append(sql)
        return original(self, sql, params)

    monkeypatch.setattr(Connection, "rows", rows)
    return run


@pytest.mark.req("C02", "O08")
def test_a_crowd_that_may_not_go_on_hides_nobody_behind_it(site: Site) -> None:
    site.bench()
    works, free = crowd(site, MANY)
    site.head()

    site.settle()

    assert site.attempt(f"{free}.1").state is AttemptState.RUNNING
    site.elapse(2)  # what holds them back is noted
    told = {(site.work(work).state, site.work(work).reason, site.work(work).reason_limit) for work in works}
    assert told == {(WorkState.WAITING, Reason.CAPACITY_SCOPE, "narrow")}


@pytest.mark.req("S01", "C02")
def test_a_pass_costs_the_same_however_many_wait_for_a_slot(statements: list[str]) -> None:
    costs = []
    for count in (PAGE // 8, MANY):
        with open_site() as site:
            site.bench()
            crowd(site, count)
            head = site.head()
            site.settle()
            site.elapse(2)
            site.world.store.write(lambda tx: tx.publish(TICK))
            statements.clear()
            head.step()
            costs.append(len(statements))

    assert 0 < costs[1] <= costs[0] + PAGES_MAX, costs


@pytest.mark.req("C01", "C02")
def test_a_pool_without_a_slot_keeps_the_other_pool_from_nothing(site: Site) -> None:
    site.configure(Config(Settings(job_concurrency=1)))
    bench = site.bench()
    owner = site.world.worker("worker-9")
    jobs = [work_of(site.world.parked(owner).attempt_id) for _ in range(PAGE + 1)]
    agent = work_of(site.world.parked(owner, work_id=site.world.submit(pool="agents")).attempt_id)
    leader, generation = site.world.leader, site.world.generation
    assert leader is not None
    site.world.store.write(lambda tx: tx.resign(leader, generation))
    site.world.store.write(lambda tx: tx.publish(TICK))
    site.head()

    site.settle()

    states = [site.attempt(f"{work}.1").state for work in jobs]
    assert states.count(AttemptState.RUNNING) == 1, states
    assert site.attempt(f"{agent}.1").state is AttemptState.RUNNING
    assert bench.worker.held == 2
