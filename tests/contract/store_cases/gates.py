"""Holds of start gates: where they join a claim, who settles them, what a settlement leaves behind."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from shared.errors import KeyReusedError, NotFoundError, RefusedError
from shared.ids import Incarnation, WorkId
from shared.model.budget import Budget, Per
from shared.model.work import Permit, Reason, WorkKind, WorkState
from shared.store.contract import Claimed, ClaimRefused
from shared.store.values import ClaimHeld, GateHold
from shared.wake import COORDINATOR
from tests.contract.store_cases import case
from tests.support.stores import COMPLETED, RETURNED, SUCCEEDED, World

S = WorkState
ASK = GateHold("approval", "needs approval of a person")
HELD = ClaimHeld(Reason.GATE_HELD)
NO_TURNS = Budget("turns", Decimal(1), Per.ALL)


def held(world: World, owner: Incarnation, **what: Any) -> WorkId:
    work_id = world.submit(**what)
    assert world.try_claim(work_id, owner, gate_hold=ASK) == HELD
    return work_id


def admit(world: World, work_id: WorkId, *, holder: str = "approval", key: str | None = None) -> None:
    world.store.write(
        lambda tx: tx.settle_gate(work_id, holder=holder, verdict="admitted", by="me", reason="fine", key=key)
    )


def refuse(world: World, work_id: WorkId, *, key: str | None = None) -> None:
    world.store.write(
        lambda tx: tx.settle_gate(work_id, holder="approval", verdict="refused", by="me", reason="no", key=key)
    )


def told(world: World, kind: str) -> list[dict[str, object]]:
    found = world.store.read(lambda tx: tx.events(after=0, limit=1_000))
    return [dict(event.data) for event in found if event.kind == kind]


@case(pytest.mark.req("G03"))
def a_gates_hold_is_made_in_the_claim_with_its_control_event(world: World) -> None:
    work_id = held(world, world.worker())

    found = world.work(work_id)

    assert (found.state, found.reason, found.attempts_used) == (S.HELD, Reason.GATE_HELD, 0)
    assert found.start_hold is not None
    assert (found.start_hold.by, found.start_hold.reason) == ("approval", ASK.reason)
    assert told(world, "gate.held") == [{"gate": "approval", "why": ASK.reason, "generation": world.generation}]
    assert world.store.read(lambda tx: tx.held_for([Reason.GATE_HELD], limit=9)) == [found]
    assert world.store.read(lambda tx: tx.held_for([Reason.OVER_BUDGET], limit=9)) == []


@case(pytest.mark.req("G03"))
def a_gate_holds_after_capacity_and_before_a_budget_counts(world: World) -> None:
    world.configure(NO_TURNS)
    owner = world.worker()
    full = world.submit()

    refused = world.try_claim(full, owner, gate_hold=ASK, refusal=lambda _: (Reason.CAPACITY_SCOPE, "ops"))

    assert refused == ClaimRefused(None, Reason.CAPACITY_SCOPE, "ops")
    assert world.work(full).state is S.READY
    world.claimed(owner)  # the only turn
    work_id = held(world, owner)
    assert world.work(work_id).reason is Reason.GATE_HELD, "and not over budget, which it is too"


@case(pytest.mark.req("G03"))
def what_a_gate_said_to_another_state_of_the_work_holds_nothing(world: World) -> None:
    owner = world.worker()
    work_id = world.submit(kind=WorkKind.STANDING, input_=b"one")
    request = world.request(work_id, owner, gate_hold=ASK)
    world.store.write(lambda tx: tx.add_input(work_id, b"two", by="t"))

    assert world.as_leader(lambda tx: tx.claim(request)) == ClaimRefused("input", None, None)

    assert world.work(work_id).state is S.READY


@case(pytest.mark.req("G03", "O01"))
def input_queues_at_a_gate(world: World) -> None:
    work_id = held(world, world.worker(), kind=WorkKind.STANDING, input_=b"one")

    world.store.write(lambda tx: tx.add_input(work_id, b"two", by="t"))

    assert world.work(work_id).state is S.HELD
    assert len(world.store.read(lambda tx: tx.pending_inputs(work_id, limit=9))) == 2


@case(pytest.mark.req("G04"))
def admitting_leaves_a_pass_that_one_start_spends(world: World) -> None:
    owner = world.worker()
    work_id = held(world, owner)
    world.rung.clear()

    admit(world, work_id)

    found = world.work(work_id)
    assert (found.state, found.start_hold, found.permits, world.rung) == (
        S.READY,
        None,
        frozenset({Permit.GATE}),
        [COORDINATOR],
    )
    assert told(world, "gate.released")[0]["by"] == "me"
    assert isinstance(world.try_claim(work_id, owner, by_permit=True), Claimed)
    assert world.work(work_id).permits == frozenset()


@case(pytest.mark.req("G04"))
def a_claim_by_a_pass_that_is_not_there_is_refused(world: World) -> None:
    owner, work_id = world.worker(), world.submit()

    assert world.try_claim(work_id, owner, by_permit=True) == ClaimRefused("work", None, None)

    assert isinstance(world.try_claim(work_id, owner), Claimed), "the control"


@case(pytest.mark.req("G04", "B04"))
def a_budgets_hold_does_not_spend_the_gates_pass(world: World) -> None:
    world.configure(NO_TURNS)
    owner = world.worker()
    work_id = held(world, owner)
    admit(world, work_id)
    world.claimed(owner)  # the only turn

    assert world.try_claim(work_id, owner, by_permit=True) == ClaimHeld(Reason.OVER_BUDGET)

    assert world.work(work_id).permits == {Permit.GATE}
    world.store.write(lambda tx: tx.release_work(work_id, by="me", reason="go on"))
    assert isinstance(world.try_claim(work_id, owner, by_permit=True), Claimed)
    assert world.work(work_id).permits == frozenset()


@case(pytest.mark.req("G04"))
def refusing_cancels_the_work_in_one_commit(world: World) -> None:
    work_id = held(world, world.worker())

    refuse(world, work_id)

    found = world.work(work_id)
    assert (found.state, found.start_hold) == (S.CANCELLED, None)
    [record] = world.store.read(lambda tx: tx.cancellations(work_id))
    assert (record.reason, record.result) == ("refused at gate approval: no", "nothing to stop")
    assert told(world, "gate.refused")[0]["reason"] == "no"


@case(pytest.mark.req("G04"))
def only_the_gate_that_holds_settles(world: World) -> None:
    owner = world.worker()
    work_id, free = held(world, owner), world.submit()
    before = world.everything()

    for name, holder, error, why in (
        (work_id, "audit", RefusedError, "held by gate approval, which alone settles it"),
        (free, "approval", RefusedError, "no gate holds"),
        (WorkId("w99"), "approval", NotFoundError, "no work w99"),
    ):
        with pytest.raises(error, match=why):
            admit(world, name, holder=holder)
    with pytest.raises(RefusedError, match="gate approval holds"):
        world.store.write(lambda tx: tx.release_work(work_id, by="me", reason="please"))

    assert world.everything() == before
    admit(world, work_id)


@case(pytest.mark.req("G04"))
def a_settlement_is_idempotent_by_its_key(world: World) -> None:
    owner = world.worker()
    work_id, other = held(world, owner), held(world, owner)
    admit(world, work_id, key="k1")
    key = world.claimed(owner, work_id)
    before = world.everything()

    admit(world, work_id, key="k1")

    assert world.everything() == before, "also once it has started"
    with pytest.raises(KeyReusedError):
        refuse(world, work_id, key="k1")
    with pytest.raises(KeyReusedError):
        admit(world, other, key="k1")
    with pytest.raises(RefusedError, match="no gate holds"):
        admit(world, work_id, key="k2")
    assert key.epoch == 1


@case(pytest.mark.req("G04"))
def cancelling_at_a_gate_is_allowed(world: World) -> None:
    work_id = held(world, world.worker())

    world.store.write(lambda tx: tx.cancel_work(work_id, by="t", reason="t"))

    assert world.work(work_id).state is S.CANCELLED
    with pytest.raises(RefusedError, match="already ended"):
        admit(world, work_id)


@case(pytest.mark.req("G04"))
def a_persons_hold_outlasts_the_gates_word(world: World) -> None:
    owner = world.worker()
    work_id = held(world, owner)
    world.store.write(lambda tx: tx.hold_work(work_id, by="me", reason="mine"))

    admit(world, work_id)

    assert (world.work(work_id).state, world.work(work_id).reason) == (S.HELD, Reason.HOLD)
    world.store.write(lambda tx: tx.release_work(work_id, by="me", reason="now"))
    assert isinstance(world.try_claim(work_id, owner, by_permit=True), Claimed)


@case(pytest.mark.req("G01"))
def a_gates_pass_does_not_outlive_the_first_start(world: World) -> None:
    owner = world.worker()
    work_id = held(world, owner)
    admit(world, work_id)
    key = world.running(owner, work_id)
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, RETURNED))

    key = world.running(owner, work_id)

    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))
    assert world.work(work_id).state is S.COMPLETED
