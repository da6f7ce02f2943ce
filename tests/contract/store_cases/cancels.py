"""Cancels from the request to the proven stop, and a person's word."""

from __future__ import annotations

import pytest

from shared.errors import NotFoundError, RefusedError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import AttemptState, Ending, Exclusion, FailureClass, LeaseKey
from shared.model.cancel import Cancellation
from shared.model.instant import US_PER_S
from shared.model.work import Reason, WorkChange, WorkState
from shared.store.contract import PERSON, Claimed, ClaimRefused, Event
from shared.wake import COORDINATOR
from tests.contract.store_cases import case
from tests.support.stores import (
    BACKED_OFF,
    COMPLETED,
    EXHAUSTED,
    FAILED,
    RETURNED,
    SUCCEEDED,
    UNPROVEN,
    World,
)

ORDER_LEASE_US = 30 * US_PER_S
CANCELLED = WorkChange(WorkState.CANCELLED, None, None, 0)
UNKNOWN = Ending(AttemptState.FAILED, None, FailureClass.AMBIGUOUS, "the outcome is unknown", "S5", "settled by hand")


def cancellations(world: World, work_id: WorkId) -> list[Cancellation]:
    return world.store.read(lambda tx: tx.cancellations(work_id))


def cancel_attempt(world: World, key: LeaseKey, change: WorkChange = CANCELLED) -> None:
    world.store.write(lambda tx: tx.cancel_attempt(key.attempt_id, by="uid 0", reason="wrong", change=change))


def events(world: World, prefix: str) -> list[Event]:
    found = world.store.read(lambda tx: tx.events(after=0, limit=1_000))
    return [event for event in found if event.kind.startswith(prefix)]


def uncertain(world: World, *, proof: str | None = None) -> LeaseKey:
    key = world.running(world.worker())
    world.store.write(lambda tx: tx.require_recovery(key, why="nobody saw its end", proof=proof))
    return key


def reconcile(world: World, key: LeaseKey, ending: Ending, change: WorkChange, *, epoch: int | None = None) -> None:
    expected = key.epoch if epoch is None else epoch
    world.store.write(
        lambda tx: tx.reconcile(
            key.attempt_id, expected_epoch=expected, ending=ending, change=change, by="uid 0", reason="I looked"
        )
    )


# --- requested, acknowledged, settled


@case(pytest.mark.req("X01", "T05"))
def a_cancel_of_a_running_work_goes_from_request_to_proven_stop(world: World) -> None:
    owner = world.worker()
    key = world.running(owner)
    work_id = work_of(key.attempt_id)
    asked = world.clock.now().wall_us
    outcome = world.store.write(lambda tx: tx.cancel_work(work_id, by="uid 0", reason="wrong branch"))
    [requested] = cancellations(world, work_id)
    assert requested == Cancellation(
        outcome.cancellation_id,
        work_id,
        key.attempt_id,
        1,
        "work",
        "uid 0",
        "wrong branch",
        asked,
        None,
        None,
        None,
        None,
    )
    world.clock.advance(US_PER_S)
    [order] = world.store.read(lambda tx: tx.stop_orders())

    for _ in range(2):
        world.store.write(lambda tx: tx.take_stop_order(order.id, owner, lease_us=ORDER_LEASE_US))
    [acknowledged] = cancellations(world, work_id)
    assert (acknowledged.acknowledged_at_us, acknowledged.acknowledged_by) == (asked + US_PER_S, owner)
    assert acknowledged.settled_at_us is None
    world.clock.advance(US_PER_S)
    world.confirm(key)

    [settled] = cancellations(world, work_id)
    assert (settled.settled_at_us, settled.result) == (asked + 2 * US_PER_S, "stopped S1")
    assert (settled.acknowledged_at_us, settled.acknowledged_by) == (asked + US_PER_S, owner)
    assert [event.kind for event in events(world, "cancel.")] == [
        "cancel.requested",
        "cancel.acknowledged",
        "cancel.settled",
    ]
    world.confirm(key, proof="S3")
    assert cancellations(world, work_id) == [settled], "it is settled once"


@case(pytest.mark.req("X01"))
def a_cancel_of_what_does_not_run_is_settled_at_once(world: World) -> None:
    work_id = world.submit()

    world.store.write(lambda tx: tx.cancel_work(work_id, by="uid 0", reason="wrong"))

    [one] = cancellations(world, work_id)
    assert (one.attempt_id, one.settled_at_us, one.result) == (None, one.requested_at_us, "nothing to stop")
    assert one.acknowledged_at_us is None


@case(pytest.mark.req("X01", "R10"))
def a_cancel_waits_for_the_stop_of_an_attempt_that_had_ended_unproven(world: World) -> None:
    owner = world.worker()
    key = world.ended(owner, UNPROVEN, BACKED_OFF)
    work_id = work_of(key.attempt_id)

    outcome = world.store.write(lambda tx: tx.cancel_work(work_id, by="uid 0", reason="wrong"))

    assert outcome.attempt_id is None, "it ended by itself"
    assert world.attempt(key.attempt_id).state is AttemptState.FAILED
    [one] = cancellations(world, work_id)
    assert (one.attempt_id, one.settled_at_us) == (key.attempt_id, None)
    world.confirm(key)
    assert cancellations(world, work_id)[0].result == "stopped S1"


@case(pytest.mark.req("X01", "R11"))
def a_cancel_of_what_was_proven_stopped_before_frees_it_at_once(world: World) -> None:
    key, control = uncertain(world, proof="S1"), uncertain(world)
    for one in (key, control):
        world.store.write(lambda tx, name=one.attempt_id: tx.cancel_work(work_of(name), by="t", reason="t"))  # type: ignore[misc]

    freed, held = world.attempt(key.attempt_id), world.attempt(control.attempt_id)

    assert (freed.state, freed.exclusion, freed.exclusion_proof) == (AttemptState.CANCELLED, Exclusion.RELEASED, "S1")
    assert cancellations(world, freed.work_id)[0].result == "stopped S1"
    assert (held.exclusion, cancellations(world, held.work_id)[0].result) == (Exclusion.HELD, None)
    assert [order.attempt_id for order in world.store.read(lambda tx: tx.stop_orders())] == [control.attempt_id]


@case(pytest.mark.req("X01", "R10"))
def a_cancel_of_one_attempt_ends_exactly_it_and_settles_its_work(world: World) -> None:
    owner = world.worker()
    work_id = world.submit(input_=b"data")
    key, other = world.running(owner, work_id), world.running(owner)
    world.rung.clear()

    cancel_attempt(world, key, RETURNED)

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.failure, attempt.exclusion) == (
        AttemptState.CANCELLED,
        FailureClass.CANCELLED,
        Exclusion.HELD,
    )
    assert attempt.error == "cancelled by uid 0: wrong"
    assert set(world.rung) == {COORDINATOR, owner}
    assert world.work(work_id).state is WorkState.READY
    assert world.attempt(other.attempt_id).state is AttemptState.RUNNING
    [one] = cancellations(world, work_id)
    assert (one.scope, one.attempt_id, one.epoch, one.settled_at_us) == ("attempt", key.attempt_id, 1, None)
    assert world.try_claim(work_id, owner) == ClaimRefused(None, Reason.STOP_UNPROVEN, None)
    world.confirm(key)
    assert world.try_claim(work_id, owner) == Claimed(AttemptId(f"{work_id}.2"))
    [assignment] = world.store.read(lambda tx: tx.assignments(owner, limit=9))
    assert [found.body for found in assignment.inputs] == [b"data"]


@case(pytest.mark.req("X01"))
def a_cancel_of_an_attempt_reaches_every_unfinished_state(world: World) -> None:
    owner = world.worker()
    keys = [world.claimed(owner), world.running(owner), world.recovering(owner, pinned=True), uncertain(world)]

    for key in keys:
        cancel_attempt(world, key)

    assert {world.attempt(key.attempt_id).state for key in keys} == {AttemptState.CANCELLED}
    assert {world.work(work_of(key.attempt_id)).state for key in keys} == {WorkState.CANCELLED}
    epochs = [cancellations(world, work_of(key.attempt_id))[0].epoch for key in keys]
    assert epochs == [1, 1, 2, 1]


@case(pytest.mark.req("X01"))
def an_attempt_that_has_ended_is_not_cancelled_and_neither_is_the_one_after_it(world: World) -> None:
    owner = world.worker()
    first = world.ended(owner, FAILED, RETURNED)
    second = world.running(owner, work_of(first.attempt_id))
    before = world.everything()

    with pytest.raises(RefusedError, match="already ended: failed"):
        cancel_attempt(world, first)
    with pytest.raises(NotFoundError):
        cancel_attempt(world, LeaseKey(AttemptId("w9.9"), 1, owner))

    assert world.everything() == before
    cancel_attempt(world, second)


@case(pytest.mark.req("X01"))
def the_last_cancels_of_a_work_are_listed_in_order(world: World) -> None:
    owner = world.worker()
    work_id = world.submit()
    for _ in range(3):
        key = world.running(owner, work_id)
        cancel_attempt(world, key, RETURNED)
        world.confirm(key)
    world.store.write(lambda tx: tx.cancel_work(work_id, by="t", reason="t"))

    assert [one.scope for one in cancellations(world, work_id)] == ["attempt", "attempt", "attempt", "work"]
    last = world.store.read(lambda tx: tx.cancellations(work_id, limit=2))
    assert [one.attempt_id for one in last] == [f"{work_id}.3", None]
    assert cancellations(world, WorkId("w9")) == []


# --- a person's word


@case(pytest.mark.req("R10", "R11", "E03"))
def a_person_settles_what_waits_for_one_with_the_recorded_proof(world: World) -> None:
    key = uncertain(world, proof="S1")
    world.rung.clear()

    reconcile(world, key, SUCCEEDED, COMPLETED)

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.exit_status, attempt.exclusion, attempt.exclusion_proof) == (
        AttemptState.SUCCEEDED,
        0,
        Exclusion.RELEASED,
        "S1",
    )
    assert world.work(attempt.work_id).state is WorkState.COMPLETED
    assert world.store.read(lambda tx: tx.stop_orders()) == []
    assert world.store.read(lambda tx: tx.needs_person(limit=9)) == []
    [told] = events(world, "attempt.succeeded")
    assert (told.data["by"], told.data["reason"], told.data["from"]) == ("uid 0", "I looked", "recovery_required")
    assert world.rung == [COORDINATOR]


@case(pytest.mark.req("R10", "R11"))
def without_a_recorded_proof_a_persons_settling_frees_nothing(world: World) -> None:
    """Not even when the ending that is given names a proof: how it ended is a person's to say, not that it is stopped."""
    key = uncertain(world)
    work_id = work_of(key.attempt_id)
    owner = world.worker("worker-2")

    reconcile(world, key, UNKNOWN, RETURNED)

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.exclusion, attempt.exclusion_proof) == (AttemptState.FAILED, Exclusion.HELD, None)
    [order] = world.store.read(lambda tx: tx.stop_orders())
    assert (order.attempt_id, order.ordered_by) == (key.attempt_id, "uid 0")
    assert world.try_claim(work_id, owner) == ClaimRefused(None, Reason.STOP_UNPROVEN, None)
    world.confirm(key)
    assert world.try_claim(work_id, owner) == Claimed(AttemptId(f"{work_id}.2"))


@case(pytest.mark.req("R10"))
def only_what_waits_for_a_person_at_that_epoch_is_reconciled(world: World) -> None:
    owner = world.worker()
    running, ended, waiting = world.running(owner), world.ended(owner), uncertain(world)
    before = world.everything()
    for key, state in ((running, "running"), (ended, "succeeded")):
        with pytest.raises(RefusedError, match=f"it is {state}"):
            reconcile(world, key, FAILED, EXHAUSTED)
    for epoch in (0, 2):
        with pytest.raises(RefusedError, match="epoch 1"):
            reconcile(world, waiting, FAILED, EXHAUSTED, epoch=epoch)
    with pytest.raises(NotFoundError):
        reconcile(world, LeaseKey(AttemptId("w9.9"), 1, owner), FAILED, EXHAUSTED)
    assert world.everything() == before

    reconcile(world, waiting, FAILED, EXHAUSTED)

    with pytest.raises(RefusedError, match="it is failed"):
        reconcile(world, waiting, SUCCEEDED, COMPLETED)


@case(pytest.mark.req("X03", "R11"))
def a_persons_word_confirms_a_stop_with_a_reason_at_exactly_that_epoch(world: World) -> None:
    key = world.ended(world.worker(), UNPROVEN, EXHAUSTED)

    def confirm(epoch: int, reason: str | None) -> None:
        world.store.write(
            lambda tx: tx.confirm_stopped(key.attempt_id, expected_epoch=epoch, proof=PERSON, by="uid 0", reason=reason)
        )

    before = world.everything()
    for reason in (None, ""):
        with pytest.raises(RefusedError, match="needs a reason"):
            confirm(1, reason)
    with pytest.raises(RefusedError, match="epoch 1"):
        confirm(2, "host was reinstalled")
    assert world.everything() == before

    confirm(1, "host was reinstalled")

    attempt = world.attempt(key.attempt_id)
    assert (attempt.exclusion, attempt.exclusion_proof) == (Exclusion.RELEASED, "person")
    [told] = events(world, "attempt.stop_confirmed")
    assert (told.data["proof"], told.data["by"], told.data["reason"]) == ("person", "uid 0", "host was reinstalled")
    with pytest.raises(RefusedError, match="proven already: person"):
        confirm(1, "again")
    world.confirm(key)
    assert world.attempt(key.attempt_id).exclusion_proof == "person", "a rule that comes later changes nothing"


@case(pytest.mark.req("X03", "R11"))
def a_persons_word_about_what_has_not_ended_is_refused(world: World) -> None:
    keys = [world.running(world.worker()), uncertain(world)]
    for key in keys:
        with pytest.raises(RefusedError, match="has not ended"):
            world.store.write(
                lambda tx, name=key.attempt_id: tx.confirm_stopped(  # type: ignore[misc]
                    name, expected_epoch=1, proof=PERSON, by="uid 0", reason="sure"
                )
            )
    assert {world.attempt(key.attempt_id).exclusion for key in keys} == {Exclusion.HELD}


@case(pytest.mark.req("X01", "X03"))
def a_persons_word_acknowledges_and_settles_a_cancel_nobody_took(world: World) -> None:
    key = world.running(world.worker())
    cancel_attempt(world, key)

    world.store.write(
        lambda tx: tx.confirm_stopped(key.attempt_id, expected_epoch=1, proof=PERSON, by="uid 0", reason="gone")
    )

    [one] = cancellations(world, work_of(key.attempt_id))
    assert (one.acknowledged_by, one.result) == ("uid 0", "stopped person")
