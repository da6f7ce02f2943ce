"""Budgets as coordinators and workers keep them: whatever the interleaving, and across deaths between a result and its charge."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from shared.ids import WorkId, work_of
from shared.model.budget import Budget, Per, Period
from shared.model.instant import US_PER_S
from shared.model.settings import Config, Settings
from shared.model.work import Reason, WorkState
from shared.policy.budget import window_of
from tests.support.sites import Site
from tests.support.stores import new_work

TEN_TURNS = Budget("turns", Decimal(10), Per.SCOPE, Period.DAY)
MINUTES = Budget("minutes", Decimal(60), Per.ALL)


def submit(site: Site, count: int, scope: str = "ops") -> list[WorkId]:
    return [site.world.store.write(lambda tx: tx.submit(new_work(scope=scope), "jobs")) for _ in range(count)]


def used(site: Site, budget: Budget) -> Decimal:
    """What all ledgers of a budget have come to in this window."""
    window = window_of(budget.period, site.clock.now().wall_us)
    return sum((amount for _, amount in site.world.store.read(lambda tx: tx.ledgers(budget, window, limit=99))), ZERO)


ZERO = Decimal(0)


def held(site: Site) -> list[WorkId]:
    return [work.id for work in site.world.store.read(lambda tx: tx.held_for([Reason.OVER_BUDGET], limit=99))]


@pytest.mark.req("B02", "B04", "C04")
def test_twenty_works_and_two_coordinators_take_the_ten_turns_there_are(site: Site) -> None:
    """Case C063: in flight counts, whoever leads; a restart resets nothing."""
    site.configure(Config(Settings(job_concurrency=8), budgets=(TEN_TURNS,)))
    first = site.head()
    second = site.head()
    bench = site.bench()
    works = submit(site, 20)
    for step in range(3):
        (first, second)[step % 2].step()
    site.settle()
    assert used(site, TEN_TURNS) == 8, "as many as may run at once"
    for work_id in works[:5]:
        site.host.shim(f"{work_id}.1").end(0)
    site.kill(first)
    site.kill(bench)
    site.bench("worker-2")
    site.settle()

    for work_id in works[5:10]:
        site.host.shim(f"{work_id}.1").end(0)
    site.settle()

    assert used(site, TEN_TURNS) == 10
    assert held(site) == works[10:]
    started = [work_id for work_id in works if site.work(work_id).attempts_used]
    assert started == works[:10]


@pytest.mark.req("B04")
def test_a_released_work_takes_one_turn_more(site: Site) -> None:
    site.configure(Config(budgets=(replace(TEN_TURNS, limit=Decimal(1)),)))
    site.head()
    site.bench()
    one, two, three = submit(site, 3)
    site.settle()
    assert held(site) == [two, three]

    site.world.store.write(lambda tx: tx.release_work(three, by="t", reason="t"))
    site.settle()

    assert (site.work(three).state, held(site)) == (WorkState.RUNNING, [two])
    assert site.work(one).state is WorkState.RUNNING


@pytest.mark.req("B01")
def test_the_next_day_admits_again_once_released_or_new(site: Site) -> None:
    """What is held stays held until a person releases it; what is new starts."""
    site.configure(Config(budgets=(replace(TEN_TURNS, limit=Decimal(1)),)))
    site.head()
    site.bench()
    [_, late] = submit(site, 2)
    site.settle()
    assert held(site) == [late]

    site.elapse(86_400, poll_s=43_200)
    [fresh] = submit(site, 1)
    site.settle()

    assert site.work(fresh).state is WorkState.RUNNING
    assert held(site) == [late]


@pytest.mark.req("B03", "B02", "O02")
def test_minutes_of_an_attempt_are_charged_once_though_both_sides_die_between_result_and_charge(site: Site) -> None:
    site.configure(Config(budgets=(MINUTES,)))
    head = site.head()
    head.settle()
    bench = site.bench()
    [work_id] = submit(site, 1)
    site.settle()
    shim = site.host.shim(f"{work_id}.1")
    for _ in range(3):
        site.elapse(30)
    shim.end(0)
    bench.settle()  # the end is committed, and nothing charged
    site.kill(head)
    site.kill(bench)
    assert used(site, MINUTES) == 0
    assert site.attempt(f"{work_id}.1").usage.amount("minutes") == Decimal("1.5")

    site.head()
    site.settle()
    site.elapse(120, poll_s=10)

    assert used(site, MINUTES) == Decimal("1.5")


@pytest.mark.req("B03")
def test_an_attempt_that_changed_hands_is_charged_for_all_its_segments_once(site: Site) -> None:
    site.configure(Config(budgets=(MINUTES,)))
    site.head()
    old = site.bench()
    [work_id] = submit(site, 1)
    site.settle()
    shim = site.host.shim(f"{work_id}.1")
    site.elapse(30)
    site.kill(old)
    site.bench("worker-2")
    site.heads[0].coordinator.notice_death()
    site.settle()
    site.elapse(30)
    assert len(site.segments(f"{work_id}.1")) == 2

    shim.end(0)
    site.settle()
    site.elapse(1)

    assert work_of(site.attempt(f"{work_id}.1").id) == work_id
    assert used(site, MINUTES) == 1


@pytest.mark.req("B02")
def test_an_attempt_charged_beyond_the_limit_overshoots_by_itself_alone(site: Site) -> None:
    """What an attempt used is known at its end: each slot may overshoot once, and then nothing more starts."""
    site.configure(Config(Settings(job_concurrency=2), budgets=(replace(MINUTES, limit=Decimal(1)),)))
    site.head()
    site.bench()
    works = submit(site, 5)
    site.settle()
    site.elapse(120, poll_s=10)

    for work_id in works[:2]:
        site.host.shim(f"{work_id}.1").end(0)
    site.settle()

    assert used(site, MINUTES) == 4
    assert held(site) == works[2:]
    assert site.clock.now().mono_us > 120 * US_PER_S
