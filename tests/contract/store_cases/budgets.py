"""Budgets: turns charged where they are admitted, usage charged once, holds, what a release lets through, what is told."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from shared.ids import AttemptId, Incarnation, WorkId, work_of
from shared.model.attempt import Ending
from shared.model.budget import Budget, Per, Period
from shared.model.declaration import declaration_of
from shared.model.event import NewEvent
from shared.model.instant import US_PER_S
from shared.model.usage import usage_of
from shared.model.work import Reason, WorkState
from shared.policy.budget import US_PER_DAY, window_of
from shared.store.contract import Claimed, ReadTx
from shared.store.values import ClaimHeld
from tests.contract.store_cases import case
from tests.support.declarations import wait
from tests.support.stores import (
    COMPLETED,
    RETURNED,
    SUCCEEDED,
    World,
)

S = WorkState
OVER = ClaimHeld(Reason.OVER_BUDGET)
TWO_TURNS = Budget("turns", Decimal(2), Per.ALL)
USD = Budget("usd", Decimal(20), Per.ALL, warn_at=Decimal("0.8"))


def spending(amount: str, unit: str = "usd") -> Ending:
    return replace(SUCCEEDED, usage=usage_of({unit: amount}))


def spend(world: World, owner: Incarnation, amount: str, unit: str = "usd") -> AttemptId:
    """A Work that runs to its end and reports what it used."""
    return world.ended(owner, spending(amount, unit)).attempt_id


def settle(world: World) -> int:
    active = world.store.read(lambda tx: tx.config())
    assert active is not None
    budgets = world.request(world.submit(), Incarnation("nobody.1")).budgets
    return world.as_leader(lambda tx: tx.settle_usage(budgets, generation=active.number, limit=99))


def used(world: World, budget: Budget) -> dict[str, Decimal]:
    """What its ledgers have come to in this window, by subject."""

    def read(tx: ReadTx) -> dict[str, Decimal]:
        window = window_of(budget.period, tx.now.wall_us)
        return {ledger.subject: amount for ledger, amount in tx.ledgers(budget, window, limit=99)}

    return world.store.read(read)


def told(world: World, kind: str) -> list[dict[str, object]]:
    found = world.store.read(lambda tx: tx.events(after=0, limit=1_000))
    return [dict(event.data) for event in found if event.kind == kind]


def claim(world: World, work_id: WorkId, owner: Incarnation) -> object:
    return world.try_claim(work_id, owner)


# --- turns


@case(pytest.mark.req("B02", "B04"))
def starts_stop_at_the_limit_counting_what_is_in_flight(world: World) -> None:
    world.configure(TWO_TURNS)
    owner = world.worker()
    works = [world.submit() for _ in range(3)]

    answers = [claim(world, work_id, owner) for work_id in works]

    assert [isinstance(answer, Claimed) for answer in answers] == [True, True, False]
    assert answers[2] == OVER
    assert used(world, TWO_TURNS) == {"": Decimal(2)}
    held = world.work(works[2])
    assert (held.state, held.reason) == (S.HELD, Reason.OVER_BUDGET)
    assert held.start_hold is not None
    assert held.start_hold.reason == "2 of 2 turns of all scopes are used"
    assert [data["why"] for data in told(world, "budget.held")] == ["2 of 2 turns of all scopes are used"]


@case(pytest.mark.req("B02"))
def without_budgets_every_start_is_admitted_and_nothing_is_counted(world: World) -> None:
    world.configure()
    owner = world.worker()

    assert all(isinstance(claim(world, world.submit(), owner), Claimed) for _ in range(5))
    spend(world, owner, "7")

    assert used(world, TWO_TURNS) == {}
    assert not world.store.read(lambda tx: tx.has_staged_usage()), (
        "dropped: there is nothing that it could be charged to"
    )


@case(pytest.mark.req("B02"))
def a_relaunch_and_an_adoption_are_no_turns(world: World) -> None:
    world.configure(TWO_TURNS)
    owner = world.worker()
    key = world.recovering(owner, pinned=False)

    world.store.write(lambda tx: tx.relaunch(key, clear_pin=False, why="t"))
    adopted = world.recovering(owner, pinned=True)
    world.store.write(lambda tx: tx.adopt(adopted, why="t"))

    assert used(world, TWO_TURNS) == {"": Decimal(2)}, "one for each of the two attempts"


@case(pytest.mark.req("B02"))
def an_attempt_counts_as_one_execution_each_time(world: World) -> None:
    attempts = Budget("attempts", Decimal(9), Per.WORK)
    world.configure(attempts)
    owner = world.worker()
    key = world.running(owner)
    work_id = world.attempt(key.attempt_id).work_id
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, RETURNED))

    world.claimed(owner, work_id)

    assert used(world, attempts) == {work_id: Decimal(2)}


@case(pytest.mark.req("B01"))
def each_scope_has_a_ledger_of_its_own_unless_one_is_named(world: World) -> None:
    each, named = Budget("turns", Decimal(9)), Budget("turns", Decimal(9), scope="ops")
    world.configure(each, named)
    owner = world.worker()

    for scope in ("ops", "ops/backup", "lab"):
        world.claimed(owner, world.submit(scope=scope))

    assert used(world, each) == {"ops": Decimal(1), "ops/backup": Decimal(1), "lab": Decimal(1)}
    assert used(world, named) == {"ops": Decimal(2)}


@case(pytest.mark.req("B01"))
def a_day_ends_at_midnight_utc_and_a_turn_counts_in_the_window_of_its_admission(world: World) -> None:
    daily = Budget("turns", Decimal(1), Per.ALL, Period.DAY)
    world.configure(daily)
    owner = world.worker()
    now = world.clock.now().wall_us
    world.clock.advance(US_PER_DAY - now % US_PER_DAY - US_PER_S // 10)  # 23:59:59.9
    late, refused, early = (world.submit() for _ in range(3))

    assert isinstance(claim(world, late, owner), Claimed)
    assert claim(world, refused, owner) == OVER
    world.clock.advance(US_PER_S // 10)  # midnight itself begins the new day

    assert used(world, daily) == {}
    assert isinstance(claim(world, early, owner), Claimed)
    assert used(world, daily) == {"": Decimal(1)}


# --- the order of what may refuse


@case(pytest.mark.req("B04"))
def what_a_limit_refuses_is_neither_held_nor_charged(world: World) -> None:
    world.configure(TWO_TURNS)
    owner, work_id = world.worker(), world.submit()

    answer = world.try_claim(work_id, owner, refusal=lambda _: (Reason.CAPACITY_SCOPE, "ops"))

    assert getattr(answer, "reason", None) is Reason.CAPACITY_SCOPE
    assert (world.work(work_id).state, used(world, TWO_TURNS)) == (S.READY, {})


# --- notices


@case(pytest.mark.req("B05"))
def crossing_a_line_is_told_once_naming_the_work_as_data(world: World) -> None:
    world.configure(USD)
    owner = world.worker()
    name, *rest = (world.running(owner) for _ in range(4))
    world.store.write(lambda tx: tx.finish(name, spending("16"), COMPLETED))
    settle(world)
    [warning] = told(world, "budget.warning")
    assert (warning["of_work"], warning["used"], warning["limit"]) == (
        world.attempt(name.attempt_id).work_id,
        "16",
        "20",
    )
    seen = [event for event in world.store.read(lambda tx: tx.events(after=0, limit=999)) if "warning" in event.kind]
    assert (seen[0].work_id, seen[0].attempt_id) == (None, None), "it is addressed to nobody, so it is nobody's input"

    for key in rest:
        world.store.write(lambda tx, key=key: tx.finish(key, spending("3"), COMPLETED))  # type: ignore[misc]
        settle(world)

    assert len(told(world, "budget.warning")) == 1
    assert [data["used"] for data in told(world, "budget.exceeded")] == ["22"]


@case(pytest.mark.req("B05", "O08"))
def a_notice_wakes_who_waits_for_it_and_never_the_work_it_names(world: World) -> None:
    world.configure(USD)
    owner = world.worker()
    anybody = world.parked(owner, wait(event="budget.exceeded", resume=True))
    of_scope = world.parked(owner, wait(event="budget.exceeded", correlate="ops", resume=True))
    elsewhere = world.parked(owner, wait(event="budget.exceeded", correlate="lab", resume=True))
    named = world.declared(
        owner,
        [
            declaration_of("used", "usage", {"units": {"usd": 21}}),
            wait(event="budget.exceeded", resume=True),
        ],
        world.submit(scope="ops"),
    )
    outcome = world.outcome(named)
    world.store.write(lambda tx: tx.park(named, outcome, proof="S1"))
    settle(world)

    assert [data["of_work"] for data in told(world, "budget.exceeded")] == [work_of(named.attempt_id)]
    woken = [one.attempt.id for one in world.store.read(lambda tx: tx.woken("jobs", limit=9).woken)]
    assert sorted(woken) == sorted([anybody.attempt_id, of_scope.attempt_id])
    world.store.write(lambda tx: tx.publish(NewEvent("budget.exceeded", "lab", "null", "tenure")))
    woken = [one.attempt.id for one in world.store.read(lambda tx: tx.woken("jobs", limit=9).woken)]
    assert sorted(woken) == sorted(key.attempt_id for key in (anybody, of_scope, elsewhere, named)), "control"


@case(pytest.mark.req("B05"))
def a_limit_lowered_below_what_is_used_is_told_by_the_hold(world: World) -> None:
    world.configure(replace(USD, warn_at=None))
    owner = world.worker()
    spend(world, owner, "15")
    settle(world)
    assert told(world, "budget.exceeded") == []
    world.configure(replace(USD, limit=Decimal(10), warn_at=None))

    assert claim(world, world.submit(), owner) == OVER
    assert claim(world, world.submit(), owner) == OVER

    assert [(data["limit"], data["used"]) for data in told(world, "budget.exceeded")] == [("10", "15")]


@case(pytest.mark.req("B05"))
def a_budget_of_all_scopes_is_told_in_each_scope_that_meets_it(world: World) -> None:
    world.configure(TWO_TURNS)
    owner = world.worker()
    for scope in ("ops", "ops", "lab", "lab", "ops"):
        claim(world, world.submit(scope=scope), owner)

    assert [data["in_scope"] for data in told(world, "budget.exceeded")] == ["ops", "lab"]
