"""What attempts report is staged with their end, settled once, and counts in the window in which it was staged."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from shared.errors import RefusedError
from shared.model.attempt import AttemptState, Ending
from shared.model.budget import Budget, Per, Period
from shared.model.instant import US_PER_S
from shared.model.usage import Usage, usage_of
from shared.policy.budget import US_PER_DAY
from tests.contract.store_cases import case
from tests.contract.store_cases.budgets import OVER, USD, claim, settle, spend, spending, used
from tests.support.stores import (
    COMPLETED,
    LEASE_US,
    RETURNED,
    SUCCEEDED,
    TIMEOUT_US,
    UNPROVEN,
    World,
)

LEFT = Ending(AttemptState.SUCCEEDED, 0, None, None, None, "t")


@case(pytest.mark.req("B03", "O02"))
def usage_is_staged_with_the_end_and_charged_once(world: World) -> None:
    world.configure(USD)
    owner = world.worker()

    name = spend(world, owner, "1.7")

    assert world.attempt(name).usage.amount("usd") == Decimal("1.7")
    assert used(world, USD) == {}
    assert settle(world) == 1
    assert used(world, USD) == {"": Decimal("1.7")}
    assert settle(world) == 0
    assert used(world, USD) == {"": Decimal("1.7")}


@case(pytest.mark.req("B03"))
def the_next_start_of_anything_settles_what_is_staged(world: World) -> None:
    world.configure(USD)
    owner = world.worker()
    spend(world, owner, "20")

    assert claim(world, world.submit(), owner) == OVER
    assert used(world, USD) == {"": Decimal(20)}


@case(pytest.mark.req("B03"))
def a_ledger_counts_from_when_its_budget_was_first_configured(world: World) -> None:
    tokens = Budget("tokens", Decimal(9), Per.ALL)
    world.configure(USD)
    owner = world.worker()
    world.ended(owner, replace(SUCCEEDED, usage=BOTH))
    world.configure(USD, tokens)

    settle(world)

    assert (used(world, USD), used(world, tokens)) == ({"": Decimal(5)}, {})
    world.ended(owner, replace(SUCCEEDED, usage=BOTH))
    settle(world)
    assert used(world, tokens) == {"": Decimal(3)}


BOTH = usage_of({"usd": 5, "tokens": 3})


@case(pytest.mark.req("B03"))
def a_settlement_under_another_configuration_writes_nothing(world: World) -> None:
    generation = world.configure(USD)
    owner = world.worker()
    spend(world, owner, "5")
    world.configure(replace(USD, limit=Decimal(30)))

    assert world.as_leader(lambda tx: tx.settle_usage((USD,), generation=generation, limit=9)) == 0

    assert world.store.read(lambda tx: tx.has_staged_usage())
    assert settle(world) == 1


@case(pytest.mark.req("B03"))
def once_no_budget_is_left_what_is_staged_is_dropped(world: World) -> None:
    world.configure(USD)
    spend(world, world.worker(), "5")
    generation = world.configure()

    world.as_leader(lambda tx: tx.settle_usage((), generation=generation, limit=9))

    assert not world.store.read(lambda tx: tx.has_staged_usage())
    assert used(world, USD) == {}


@case(pytest.mark.req("B03"))
def usage_belongs_to_the_window_in_which_it_was_staged(world: World) -> None:
    daily = replace(USD, period=Period.DAY, warn_at=None)
    world.configure(daily)
    spend(world, world.worker(), "5")
    world.clock.advance(US_PER_DAY)
    world.take_lead()

    settle(world)

    assert used(world, daily) == {}, "it was yesterday's"


@case(pytest.mark.req("B03"))
def an_end_that_is_refused_stages_nothing(world: World) -> None:
    world.configure(USD)
    key = world.running(world.worker())
    world.release(key)

    with pytest.raises(RefusedError):
        world.store.write(lambda tx: tx.finish(key, spending("5"), COMPLETED))

    assert not world.store.read(lambda tx: tx.has_staged_usage())


@case(pytest.mark.req("B02", "E13"))
def a_shell_attempt_reports_the_minutes_of_its_segments(world: World) -> None:
    minutes = Budget("minutes", Decimal(100), Per.ALL)
    world.configure(minutes)
    owner = world.worker()
    first = world.running(owner)
    world.clock.advance(90 * US_PER_S)
    key = world.take_over(first, owner)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=None))
    world.store.write(lambda tx: tx.adopt(key, why="t"))
    world.clock.advance(30 * US_PER_S)

    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))

    assert world.attempt(key.attempt_id).usage == Usage((("minutes", Decimal(2)),))
    settle(world)
    assert used(world, minutes) == {"": Decimal(2)}


@case(pytest.mark.req("B03"))
def every_way_to_end_is_charged(world: World) -> None:
    minutes = Budget("minutes", Decimal(1_000), Per.WORK)
    world.configure(minutes)
    owner = world.worker()
    cancelled, timed_out, settled, failed = (world.running(owner) for _ in range(4))
    world.store.write(lambda tx: tx.require_recovery(settled, why="?", proof=None))
    world.clock.advance(LEASE_US // 2)
    work_id = world.attempt(cancelled.attempt_id).work_id
    world.store.write(lambda tx: tx.cancel_work(work_id, by="t", reason="t"))
    world.store.write(lambda tx: tx.finish(failed, UNPROVEN, RETURNED))
    world.clock.advance(TIMEOUT_US - LEASE_US // 2)
    change = COMPLETED
    world.store.write(
        lambda tx: tx.reconcile(settled.attempt_id, expected_epoch=1, ending=LEFT, change=change, by="t", reason="t")
    )
    world.as_leader(lambda tx: tx.time_out_lapsed(timed_out.attempt_id, epoch_seen=1, why="t", change=RETURNED))

    settle(world)

    half = Decimal("0.5")
    ids = [world.attempt(key.attempt_id).work_id for key in (cancelled, failed, timed_out, settled)]
    assert [used(world, minutes).get(work_id) for work_id in ids] == [half, half, Decimal(60), None]
