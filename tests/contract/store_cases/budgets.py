"""Budgets: turns charged where they are admitted, usage charged once, holds, what a release lets through, what is told."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from shared.errors import RefusedError
from shared.ids import AttemptId, Incarnation, WorkId, work_of
from shared.model.attempt import AttemptState, Ending
from shared.model.budget import Budget, Per, Period
from shared.model.declaration import declaration_of
from shared.model.event import NewEvent
from shared.model.instant import US_PER_S
from shared.model.usage import Usage, usage_of
from shared.model.work import Permit, Reason, WorkKind, WorkState
from shared.policy.budget import US_PER_DAY, window_of
from shared.store.contract import Claimed, ClaimRefused, ReadTx
from shared.store.values import ClaimHeld
from tests.contract.store_cases import case
from tests.support.declarations import TICK, wait
from tests.support.stores import (
    COMPLETED,
    EXHAUSTED,
    FAILED,
    LEASE_US,
    RETURNED,
    SUCCEEDED,
    TIMEOUT_US,
    UNPROVEN,
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


# --- release


def over(world: World, owner: Incarnation, *budgets: Budget, **what: Any) -> WorkId:
    """A Work that is held because two others used all turns up."""
    world.configure(*(budgets or (TWO_TURNS,)))
    for _ in range(2):
        world.ended(owner)
    work_id = world.submit(**what)
    assert claim(world, work_id, owner) == OVER
    return work_id


def release(world: World, work_id: WorkId) -> None:
    world.store.write(lambda tx: tx.release_work(work_id, by="me", reason="go on"))


@case(pytest.mark.req("B02", "B04", "O08"))
def a_resume_over_budget_is_held_where_it_waits_until_a_person_lets_it_go(world: World) -> None:
    world.configure(TWO_TURNS)
    owner = world.worker()
    key = world.parked(owner)
    world.ended(owner)
    work_id = work_of(key.attempt_id)
    world.store.write(lambda tx: tx.publish(TICK))
    request = replace(world.resume_request(key.attempt_id, owner), budgets=(TWO_TURNS,))

    answers = [world.as_leader(lambda tx: tx.claim_resume(request)) for _ in range(2)]

    assert answers == 2 * [ClaimRefused(None, Reason.OVER_BUDGET, "turns")]
    assert [data["used"] for data in told(world, "budget.held")] == ["2"], "told once"
    assert (world.work(work_id).state, world.work(work_id).reason) == (S.WAITING, Reason.OVER_BUDGET)
    assert [work.id for work in world.store.read(lambda tx: tx.held_for([Reason.OVER_BUDGET], limit=9))] == [work_id]
    world.configure(replace(TWO_TURNS, limit=Decimal(3)))
    assert world.as_leader(lambda tx: tx.claim_resume(request)) == answers[0], "as every hold, it stays"
    release(world, work_id)
    assert world.store.read(lambda tx: tx.held_for([Reason.OVER_BUDGET], limit=9)) == []
    assert isinstance(world.as_leader(lambda tx: tx.claim_resume(request)), Claimed)
    assert (world.work(work_id).state, world.work(work_id).permits) == (S.RUNNING, frozenset())
    assert used(world, TWO_TURNS) == {"": Decimal(3)}


@case(pytest.mark.req("B02", "B04"))
def a_resume_within_its_budget_goes_on(world: World) -> None:
    """The control of the case above."""
    world.configure(TWO_TURNS)
    owner = world.worker()
    key = world.parked(owner)
    world.store.write(lambda tx: tx.publish(TICK))
    request = replace(world.resume_request(key.attempt_id, owner), budgets=(TWO_TURNS,))

    assert isinstance(world.as_leader(lambda tx: tx.claim_resume(request)), Claimed)

    assert told(world, "budget.held") == []
    with pytest.raises(RefusedError, match="no person holds"):
        release(world, work_of(key.attempt_id))


@case(pytest.mark.req("B04", "O14"))
def a_persons_retry_does_not_lift_what_a_budget_holds(world: World) -> None:
    world.configure(TWO_TURNS)
    owner = world.worker()
    world.ended(owner)
    work_id = work_of(world.ended(owner, FAILED, RETURNED).attempt_id)
    assert claim(world, work_id, owner) == OVER
    before = world.everything()

    with pytest.raises(RefusedError, match="2 of 2 turns of all scopes are used") as caught:
        world.store.write(lambda tx: tx.retry_work(work_id, by="me", reason="go on"))

    assert caught.value.hint == f"`tenure work release {work_id}`"
    assert world.everything() == before
    release(world, work_id)
    key = world.running(owner, work_id)
    world.store.write(lambda tx: tx.finish(key, FAILED, EXHAUSTED))
    world.store.write(lambda tx: tx.retry_work(work_id, by="me", reason="go on"))
    assert world.work(work_id).state is S.READY, "control: what failed is tried again"


@case(pytest.mark.req("B04"))
def a_release_admits_exactly_one_turn_and_it_is_charged(world: World) -> None:
    owner = world.worker()
    work_id = over(world, owner)

    release(world, work_id)

    assert (world.work(work_id).state, world.work(work_id).permits) == (S.READY, frozenset({Permit.BUDGET}))
    assert told(world, "budget.released")[0]["by"] == "me"
    key = world.running(owner, work_id)
    assert used(world, TWO_TURNS) == {"": Decimal(3)}
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, RETURNED))
    assert claim(world, work_id, owner) == OVER, "the turn after it is checked again"
    with pytest.raises(RefusedError, match="no person holds"):
        release(world, world.submit())


@case(pytest.mark.req("B04"))
def a_pass_is_spent_by_the_next_admission_even_within_the_budget(world: World) -> None:
    owner = world.worker()
    work_id = over(world, owner)
    release(world, work_id)
    world.configure(replace(TWO_TURNS, limit=Decimal(3)))

    key = world.running(owner, work_id)

    assert world.work(work_id).permits == frozenset()
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, RETURNED))
    assert claim(world, work_id, owner) == OVER, "no pass was left over for a later limit"


@case(pytest.mark.req("B04", "O01"))
def input_queues_while_it_is_held(world: World) -> None:
    owner = world.worker()
    work_id = over(world, owner, kind=WorkKind.STANDING, input_=b"one")

    world.store.write(lambda tx: tx.add_input(work_id, b"two", by="t"))

    assert world.work(work_id).state is S.HELD
    release(world, work_id)
    key = world.claimed(owner, work_id)
    assert len(world.store.read(lambda tx: tx.snapshot(key.attempt_id)).inputs) == 2  # type: ignore[union-attr]


@case(pytest.mark.req("B04"))
def a_persons_hold_on_top_is_lifted_on_its_own(world: World) -> None:
    owner = world.worker()
    work_id = over(world, owner)
    world.store.write(lambda tx: tx.hold_work(work_id, by="me", reason="mine too"))

    release(world, work_id)

    assert (world.work(work_id).state, world.work(work_id).reason) == (S.HELD, Reason.OVER_BUDGET)
    release(world, work_id)
    assert world.work(work_id).state is S.READY


@case(pytest.mark.req("B04"))
def cancelling_what_is_held_ends_the_hold(world: World) -> None:
    work_id = over(world, world.worker())

    world.store.write(lambda tx: tx.cancel_work(work_id, by="t", reason="t"))

    found = world.work(work_id)
    assert (found.state, found.start_hold, found.permits) == (S.CANCELLED, None, frozenset())


# --- what an attempt reports


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


LEFT = Ending(AttemptState.SUCCEEDED, 0, None, None, None, "t")


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
