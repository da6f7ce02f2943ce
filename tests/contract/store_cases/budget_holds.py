"""What a budget holds: until a person lets it go, for exactly one turn."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from shared.errors import RefusedError
from shared.ids import Incarnation, WorkId, work_of
from shared.model.budget import Budget
from shared.model.work import Permit, Reason, WorkKind, WorkState
from shared.store.contract import Claimed, ClaimRefused
from tests.contract.store_cases import case
from tests.contract.store_cases.budgets import OVER, TWO_TURNS, claim, told, used
from tests.support.declarations import TICK
from tests.support.stores import (
    EXHAUSTED,
    FAILED,
    RETURNED,
    SUCCEEDED,
    World,
)

S = WorkState


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
