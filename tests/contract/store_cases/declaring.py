"""What a running program declares: recorded under the fence, applied with the end that is seen, once."""

from __future__ import annotations

import json

import pytest

from shared.errors import DeclarationError, LeaseLostError
from shared.ids import WorkId, work_of
from shared.model.attempt import AttemptState
from shared.model.declaration import DECLARATIONS_MAX
from shared.model.outcome import Outcome
from shared.model.work import WorkKind
from tests.contract.store_cases import case
from tests.contract.store_cases.waiting import correlated, declare, events, finish, publish
from tests.support.declarations import CONSUMED, TURN, turn, wait
from tests.support.stores import FAILED, RETURNED, SUCCEEDED, World

S = AttemptState


@case(pytest.mark.req("O15"))
def a_declaration_is_recorded_and_changes_nothing_until_the_end_is_seen(world: World) -> None:
    key = world.running(world.worker())
    before = (world.attempt(key.attempt_id), world.work(work_of(key.attempt_id)))

    declare(world, key, TURN)

    assert (world.attempt(key.attempt_id), world.work(work_of(key.attempt_id))) == before
    [recorded] = world.store.read(lambda tx: tx.declarations(key.attempt_id))
    assert (recorded.declaration, recorded.epoch, recorded.applied_epoch) == (TURN, 1, None)
    assert events(world, "execution.turn") == []
    finish(world, key)
    [recorded] = world.store.read(lambda tx: tx.declarations(key.attempt_id))
    assert recorded.applied_epoch == 1
    assert [one.data["status"] for one in events(world, "execution.turn")] == ["done"]


@case(pytest.mark.req("O15"))
def the_same_declaration_again_writes_nothing(world: World) -> None:
    key = world.running(world.worker())
    declare(world, key, TURN)
    before = world.everything()

    declare(world, key, TURN)

    assert world.everything() == before
    with pytest.raises(DeclarationError, match="belongs to another declaration"):
        declare(world, key, turn("help"))
    assert world.everything() == before


@case(pytest.mark.req("O15"))
def a_segment_declares_no_more_than_the_bound(world: World) -> None:
    key = world.running(world.worker())
    declare(world, key, *(turn(key=f"t-{number}") for number in range(DECLARATIONS_MAX)))

    with pytest.raises(DeclarationError, match=str(DECLARATIONS_MAX)):
        declare(world, key, turn(key="one-more"))

    declare(world, key, turn(key="t-0"))  # the control: what is recorded is answered


@case(pytest.mark.req("O15", "R09"))
def only_the_live_lease_declares(world: World) -> None:
    owner, other = world.worker(), world.worker("worker-2")
    old = world.running(owner)
    world.release(old)
    new = world.take_over(old, other)
    before = world.everything()

    with pytest.raises(LeaseLostError):
        declare(world, old, TURN)

    assert world.everything() == before
    declare(world, new, TURN)


@case(pytest.mark.req("O15"))
def what_was_declared_is_carried_to_the_epoch_that_sees_the_end(world: World) -> None:
    owner, other = world.worker(), world.worker("worker-2")
    old = world.declared(owner, [TURN])
    world.release(old)
    new = world.take_over(old, other)
    world.store.write(lambda tx: tx.accept(new, invoke_isolated=None))
    world.store.write(lambda tx: tx.adopt(new, why="it runs"))

    finish(world, new)

    [recorded] = world.store.read(lambda tx: tx.declarations(new.attempt_id))
    assert (recorded.epoch, recorded.applied_epoch) == (1, 2)
    assert [(one.attempt_id, one.epoch) for one in events(world, "execution.turn")] == [(new.attempt_id, 2)]


@case(pytest.mark.req("O06"))
def a_turn_is_told_once_for_each_correlation_key_or_once_without(world: World) -> None:
    owner = world.worker()
    finish(world, world.declared(owner, [turn("help"), turn("done", "turn-2")], correlated(world, "pr-1", "pr-2")))
    finish(world, world.declared(owner, [TURN]))

    told = [(str(one.work_id), one.data["correlate"], one.data["status"]) for one in events(world, "execution.turn")]
    assert told == [("w1", "pr-1", "done"), ("w1", "pr-2", "done"), ("w2", None, "done")]


@case(pytest.mark.req("O06"))
def a_turn_is_told_whatever_the_outcome_s_kind(world: World) -> None:
    key = world.declared(world.worker(), [TURN])
    outcome = world.outcome(key)
    world.store.write(lambda tx: tx.finish(key, FAILED, RETURNED, outcome=outcome))
    assert len(events(world, "execution.turn")) == 1

    untold = world.declared(world.worker(), [TURN], WorkId("w1"))
    world.store.write(lambda tx: tx.finish(untold, FAILED, RETURNED))
    assert len(events(world, "execution.turn")) == 1, "control: what is not applied is not told"


@case(pytest.mark.req("O06", "E13"))
def a_resumed_attempt_s_next_turn_is_a_new_event(world: World) -> None:
    owner = world.worker()
    key = world.declared(owner, [TURN, wait(resume=True)])
    outcome = world.outcome(key)
    world.store.write(lambda tx: tx.park(key, outcome, proof="S1"))
    publish(world)
    again = world.resumed(key, owner)
    world.store.write(lambda tx: tx.accept(again, invoke_isolated=True))
    world.store.write(lambda tx: tx.pin(again, world.pin(again)))
    declare(world, again, turn(key="turn-2"))

    finish(world, again)

    assert [one.epoch for one in events(world, "execution.turn")] == [1, 2]


@case(pytest.mark.req("O01", "O15"))
def an_input_that_the_program_took_is_consumed_with_its_end(world: World) -> None:
    owner = world.worker()
    work_id = world.submit(kind=WorkKind.STANDING, input_=b"first")
    key = world.running(owner, work_id)
    world.store.write(lambda tx: tx.add_input(work_id, b"second", by="t"))
    world.store.write(lambda tx: tx.add_input(work_id, b"third", by="t"))
    taken = json.loads(CONSUMED.body)["inputs"]
    assert taken == [1]
    outcome = Outcome(consumed=(2, 2, 99))

    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, RETURNED, outcome=outcome))

    assert world.store.read(lambda tx: tx.pending_inputs(work_id, limit=9)) == [3], "what is unconfirmed is N+1's"
