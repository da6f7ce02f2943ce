"""Cases of an event that many wait for, and of an event that is published twice under one key. Rule: O06, O08, S01."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.errors import KeyReusedError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import LeaseKey
from shared.model.declaration import Declaration
from shared.model.event import NewEvent
from shared.model.instant import US_PER_S
from shared.model.wait import WAKES_MAX, WaitState
from shared.store.contract import Event, ReadTx, Tx
from tests.contract.store_cases import case
from tests.support.declarations import TICK, turn, wait
from tests.support.stores import COMPLETED, SUCCEEDED, World, new_work

MANY = WAKES_MAX + 6


def waiting(world: World, count: int, declaration: Declaration | None = None) -> list[LeaseKey]:
    owner = world.worker()
    told = declaration or wait(resume=True, timer=None)
    return [world.parked(owner, told) for _ in range(count)]


def go_on(world: World, limit: int = 64) -> bool:
    return world.as_leader(lambda tx: tx.wake_on(limit=limit))


def satisfied(world: World) -> list[Event]:
    return [
        one for one in world.store.read(lambda tx: tx.events(after=0, limit=10_000)) if one.kind == "wait.satisfied"
    ]


def woken_by(world: World, keys: list[LeaseKey]) -> list[int | None]:
    def read(tx: ReadTx) -> list[int | None]:
        found = [tx.awaited(work_of(key.attempt_id)) for key in keys]
        return [None if one is None else one.wake_seq for one in found]

    return world.store.read(read)


@case(pytest.mark.req("O08", "S01"))
def one_transaction_ends_a_bounded_number_of_waits_and_passes_end_the_rest(world: World) -> None:
    waiting(world, MANY)
    assert not world.store.read(lambda tx: tx.waking(limit=9))
    seq = world.store.write(lambda tx: tx.publish(TICK))
    assert len(satisfied(world)) == WAKES_MAX
    assert world.store.read(lambda tx: tx.waking(limit=9))
    assert "coordinator" in world.rung

    assert not go_on(world)

    told = satisfied(world)
    assert ({one.data["by_seq"] for one in told}, len({one.attempt_id for one in told}), len(told)) == (
        {seq},
        MANY,
        MANY,
    )
    assert not world.store.read(lambda tx: tx.waking(limit=9))


@case(pytest.mark.req("O08", "S01"))
def what_fits_one_transaction_leaves_nothing_to_passes(world: World) -> None:
    waiting(world, WAKES_MAX)

    world.store.write(lambda tx: tx.publish(TICK))

    assert len(satisfied(world)) == WAKES_MAX
    assert not world.store.read(lambda tx: tx.waking(limit=9))


@case(pytest.mark.req("O08", "S01"))
def a_pass_is_bounded_too_and_says_that_there_is_more(world: World) -> None:
    waiting(world, 2 * WAKES_MAX + 1)
    world.store.write(lambda tx: tx.publish(TICK))

    assert go_on(world)
    assert len(satisfied(world)) == 2 * WAKES_MAX
    assert not go_on(world)
    assert len(satisfied(world)) == 2 * WAKES_MAX + 1


@case(pytest.mark.req("O08", "S01"))
def several_events_of_one_transaction_share_its_bound(world: World) -> None:
    waiting(world, MANY, wait(resume=True, event="tock", timer=None))
    waiting(world, 3)

    def publish(tx: Tx) -> None:
        tx.publish(NewEvent("tock", None, "1", "me"))
        tx.publish(TICK)

    world.store.write(publish)

    assert len(satisfied(world)) == WAKES_MAX
    assert not go_on(world)
    assert len(satisfied(world)) == MANY + 3


@case(pytest.mark.req("O08"))
def each_wait_ends_by_the_first_event_it_waited_for(world: World) -> None:
    keys = waiting(world, MANY)
    first = world.store.write(lambda tx: tx.publish(TICK))
    world.store.write(lambda tx: tx.publish(TICK))
    assert len(satisfied(world)) == WAKES_MAX, "the second one queues behind the first"

    assert not go_on(world)

    assert set(woken_by(world, keys)) == {first}
    assert not world.store.read(lambda tx: tx.waking(limit=9))


@case(pytest.mark.req("O08"))
def a_timer_that_is_due_meanwhile_gives_way_to_the_event_that_had_come(world: World) -> None:
    keys = waiting(world, MANY, wait(resume=True, timer="60s"))
    seq = world.store.write(lambda tx: tx.publish(TICK))
    late = next(key for key, by in zip(keys, woken_by(world, keys), strict=True) if by is None)
    world.clock.advance(60 * US_PER_S)

    world.fire(work_of(late.attempt_id))

    awaited = world.store.read(lambda tx: tx.awaited(work_of(late.attempt_id)))
    assert awaited is not None
    assert (awaited.state, awaited.wake_seq) == (WaitState.SATISFIED, seq)
    assert not go_on(world)
    assert len(satisfied(world)) == MANY, "each once"


@case(pytest.mark.req("O08"))
def who_comes_to_wait_meanwhile_waits_for_what_comes_later(world: World) -> None:
    waiting(world, MANY)
    world.store.write(lambda tx: tx.publish(TICK))
    [late] = waiting(world, 1)

    assert not go_on(world)

    assert woken_by(world, [late]) == [None]
    second = world.store.write(lambda tx: tx.publish(TICK))
    assert woken_by(world, [late]) == [second], "control"


@case(pytest.mark.req("O08"))
def nobody_s_wait_is_lost_when_some_end_otherwise_meanwhile(world: World) -> None:
    keys = waiting(world, MANY)
    world.store.write(lambda tx: tx.publish(TICK))
    late = [key for key, by in zip(keys, woken_by(world, keys), strict=True) if by is None]
    gone = work_of(late[0].attempt_id)
    world.store.write(lambda tx: tx.cancel_work(gone, by="me", reason="not needed"))

    assert not go_on(world)

    assert len(satisfied(world)) == MANY - 1
    assert not world.store.read(lambda tx: tx.waking(limit=9))


@case(pytest.mark.req("O06", "O08"))
def a_turn_s_events_are_bounded_as_any_other_s_and_wake_not_their_own_work(world: World) -> None:
    waiting(world, MANY, wait(resume=True, event="execution.turn", timer=None))
    key = world.declared(world.store.read(lambda tx: tx.workers())[0].id, [turn()])
    outcome = world.outcome(key)

    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED, outcome=outcome))

    assert len(satisfied(world)) == WAKES_MAX
    assert not go_on(world)
    assert len(satisfied(world)) == MANY


# --- keys


@case(pytest.mark.req("O06"))
def an_event_published_again_under_its_key_is_the_same_event(world: World) -> None:
    owner = world.worker()
    event = NewEvent("tick", "pr-1", '{"n":1}', "me")
    first = world.store.write(lambda tx: tx.publish(event, key="build-7"))
    key = world.parked(owner, wait(resume=True, timer=None))
    before = world.everything()

    assert world.store.write(lambda tx: tx.publish(event, key="build-7")) == first
    assert world.store.write(lambda tx: tx.publish(NewEvent("tick", "pr-1", '{"n":1}', "you"), key="build-7")) == first

    assert world.everything() == before, "and wakes nobody a second time"
    assert world.store.write(lambda tx: tx.publish(event)) > first, "control"
    assert woken_by(world, [key]) != [None]


@case(pytest.mark.req("O06"))
def a_key_is_refused_for_another_event(world: World) -> None:
    event = NewEvent("tick", "pr-1", '{"n":1}', "me")
    first = world.store.write(lambda tx: tx.publish(event, key="build-7"))
    before = world.everything()

    for other in (replace(event, type="tock"), replace(event, correlate=None), replace(event, data='{"n":2}')):
        with pytest.raises(KeyReusedError, match=f"event {first}"):
            world.store.write(lambda tx, other=other: tx.publish(other, key="build-7"))  # type: ignore[misc]

    assert world.everything() == before
    assert world.store.write(lambda tx: tx.publish(event, key="build-8")) > first, "control"


@case(pytest.mark.req("O06"))
def keys_of_events_are_no_keys_of_works_and_take_no_derived_one(world: World) -> None:
    owner = world.worker()
    world.store.write(lambda tx: tx.publish(TICK, key="k"))
    assert world.store.write(lambda tx: tx.submit(new_work(), "jobs", key="k")) == WorkId("w1")
    world.store.write(lambda tx: tx.publish(TICK, key="turn/w1.1/1"))
    key = world.declared(owner, [turn()], WorkId("w1"))
    outcome = world.outcome(key)

    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED, outcome=outcome))

    turns = [one for one in world.store.read(lambda tx: tx.events(after=0, limit=999)) if one.kind == "execution.turn"]
    assert [one.attempt_id for one in turns] == [AttemptId("w1.1")]
