"""Which inputs a program may say it took: those it was handed, and by its belt what waits; a stranger is refused by itself."""

from __future__ import annotations

import pytest

from shared.errors import DeclarationError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import LeaseKey
from shared.model.declaration import Declaration, declaration_of
from shared.model.intent import Delivered
from shared.model.stream import Place, Refusal, RefusalCode, Said, Stream, Stretch, Took
from shared.model.usage import Usage
from shared.model.work import WorkKind
from shared.store.settling import change_after
from tests.contract.store_cases import case
from tests.support.agent_scenes import accepted, dispatched, injected, running_and_dropping
from tests.support.declarations import TICK, WAIT_TO_RESUME, turn
from tests.support.stores import COMPLETED, FAILED, RETURNED, SUCCEEDED, World

NOBODYS = 999


def taken(*numbers: int, key: str = "c-1") -> Declaration:
    return declaration_of(key, "consumed", {"inputs": list(numbers)})


def standing(world: World) -> LeaseKey:
    """It began with one input."""
    work_id = world.submit(kind=WorkKind.STANDING, input_=b"first")
    return world.running(world.worker(f"worker-{len(world.rung) + 1}"), work_id)


def given(world: World, name: AttemptId) -> int:
    pinned = world.store.read(lambda tx: tx.snapshot(name))
    assert pinned is not None
    return pinned.inputs[0]


def add_input(world: World, work_id: WorkId) -> int:
    return world.store.write(lambda tx: tx.add_input(work_id, b"more", by="t"))


def declare(world: World, key: LeaseKey, *declarations: Declaration) -> None:
    world.store.write(lambda tx: tx.declare(key, declarations))


def follow(world: World, key: LeaseKey, *took: Took, before: Place | None = None, **said: object) -> None:
    """So many lines of ten bytes."""
    place = before or Place()
    after = Place(place.offset + 10 * len(took), place.lines + len(took))
    found = Stretch(place, after, took, **said)  # type: ignore[arg-type]
    world.store.write(lambda tx: tx.follow(key, 1, found))


def stream(world: World, key: LeaseKey) -> Stream:
    found = world.store.read(lambda tx: tx.stream(key.attempt_id))
    assert found is not None
    return found


def pending(world: World, key: LeaseKey) -> list[int]:
    return world.store.read(lambda tx: tx.pending_inputs(work_of(key.attempt_id), limit=99))


# --- by the belt


@case(pytest.mark.req("O01", "O15"))
def a_belt_that_names_a_stranger_is_refused_and_keeps_nothing_of_that_word(world: World) -> None:
    key, other = standing(world), standing(world)
    waits, others = add_input(world, work_of(key.attempt_id)), add_input(world, work_of(other.attempt_id))
    before = world.everything()

    for stranger in (NOBODYS, others, given(world, other.attempt_id)):
        with pytest.raises(DeclarationError, match=f"input {stranger} is not {key.attempt_id}'s") as caught:
            declare(world, key, taken(waits, stranger))
        assert caught.value.code == RefusalCode.NOT_HANDED

    assert world.everything() == before
    declare(world, key, taken(waits, given(world, key.attempt_id)))  # the control: what waits, and what it began with


@case(pytest.mark.req("O01", "O15"))
def an_input_that_an_earlier_attempt_took_effect_with_is_a_stranger_by_the_belt(world: World) -> None:
    first = standing(world)
    work_id = work_of(first.attempt_id)
    spent = given(world, first.attempt_id)
    add_input(world, work_id)
    world.store.write(lambda tx: tx.finish(first, SUCCEEDED, RETURNED))
    second = world.running(first.owner, work_id)

    with pytest.raises(DeclarationError, match=f"input {spent} is not {second.attempt_id}'s"):
        declare(world, second, taken(spent))

    again = standing(world)
    back = given(world, again.attempt_id)
    world.store.write(lambda tx: tx.finish(again, FAILED, RETURNED))
    declare(world, world.running(again.owner, work_of(again.attempt_id)), taken(back))  # the control: it came again


@case(pytest.mark.req("O15"))
def a_word_that_counted_once_may_be_said_again_whoever_holds_the_attempt(world: World) -> None:
    key = standing(world)
    waits = add_input(world, work_of(key.attempt_id))
    declare(world, key, taken(waits))
    before = world.everything()

    declare(world, key, taken(waits))

    assert world.everything() == before, "the same key again writes nothing"
    world.store.write(lambda tx: tx.release(key, reason="released"))
    new = world.take_over(key, world.worker("worker-b"))
    world.store.write(lambda tx: tx.accept(new, invoke_isolated=None))
    world.store.write(lambda tx: tx.adopt(new, why="its shim holds the lock"))
    declare(world, new, taken(waits), taken(waits, key="c-2"))
    assert pending(world, new) == [waits], "it counts with the end"


@case(pytest.mark.req("O15", "O08"))
def what_was_taken_before_a_park_may_be_named_after_it(world: World) -> None:
    key = standing(world)
    waits = add_input(world, work_of(key.attempt_id))
    declare(world, key, taken(waits), WAIT_TO_RESUME)
    outcome = world.outcome(key)
    world.store.write(lambda tx: tx.park(key, outcome, proof="S1"))
    assert pending(world, key) == []
    world.store.write(lambda tx: tx.publish(TICK))
    again = world.resumed(key, key.owner)

    declare(world, again, taken(waits, key="c-2"))

    with pytest.raises(DeclarationError, match=f"input {NOBODYS} is"):
        declare(world, again, taken(NOBODYS, key="c-3"))


# --- by lines


@case(pytest.mark.req("O02", "O15", "T02"))
def a_line_that_names_a_stranger_is_refused_and_all_around_it_counts(world: World) -> None:
    key = standing(world)
    handed, queued = accepted(world, key), injected(world, key)
    assert handed.input is not None
    assert queued.input is not None
    own = given(world, key.attempt_id)
    used = Usage.from_plain({"usd": "1"})
    lines = (Took(1, (own,)), Took(2, (handed.input, NOBODYS)), Took(3, (queued.input,)), Took(4, (own, handed.input)))

    follow(world, key, *lines, usage=used, said=(Said(4, turn(key="out.1.4")),))

    found = stream(world, key)
    assert [(one.line, one.code) for one in found.refusals] == [
        (2, RefusalCode.NOT_HANDED),
        (3, RefusalCode.NOT_HANDED),
    ]
    assert found.refusals[0].why == f"consumed: {key.attempt_id} was never handed input {NOBODYS}"
    assert found.refusals[1].why == f"consumed: {key.attempt_id} was never handed input {queued.input}"
    assert (found.refused, found.place) == (2, Place(40, 4))
    assert pending(world, key) == [queued.input], "what else a refused line names counts, and no stranger is spent"
    assert world.store.read(lambda tx: tx.reported(key.attempt_id)) == used
    assert len(world.store.read(lambda tx: tx.declarations(key.attempt_id))) == 1
    [faulty] = world.store.read(lambda tx: tx.faulty_streams(since_at_us=0, limit=9))
    assert faulty.attempt_id == key.attempt_id
    change = world.store.read(lambda tx: change_after(tx, key.attempt_id, SUCCEEDED))
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, change))
    assert world.attempt(key.attempt_id).state == "succeeded"


@case(pytest.mark.req("T02", "O15"))
def an_input_may_be_named_again_by_a_later_line_and_a_later_holder(world: World) -> None:
    key = standing(world)
    handed = accepted(world, key)
    assert handed.input is not None
    own = given(world, key.attempt_id)
    follow(world, key, Took(1, (own, handed.input)))
    world.store.write(lambda tx: tx.release(key, reason="released"))
    new = world.take_over(key, world.worker("worker-b"))
    world.store.write(lambda tx: tx.accept(new, invoke_isolated=None))

    follow(world, new, Took(2, (own, handed.input)), before=Place(10, 1))

    assert stream(world, new).refused == 0
    follow(world, new, Took(3, (NOBODYS,)), before=Place(20, 2))
    assert stream(world, new).refused == 1, "control"


@case(pytest.mark.req("T02"))
def what_was_dropped_once_it_was_being_handed_over_may_be_named(world: World) -> None:
    """Nobody knows whether it had arrived: its program may be right that it did."""
    key = running_and_dropping(world)
    intent, token = dispatched(world, key)
    number = intent.input
    assert number is not None
    failed = Delivered.FAILED
    assert world.store.write(lambda tx: tx.acknowledge(key, intent.number, token=token, result=failed))
    assert world.store.read(lambda tx: tx.inputs([number])) == [], "it is gone"

    follow(world, key, Took(1, (number,)))

    assert stream(world, key).refused == 0


@case(pytest.mark.req("T02"))
def what_comes_again_may_be_named_by_the_next_attempt(world: World) -> None:
    key = standing(world)
    handed = accepted(world, key)
    world.store.write(lambda tx: tx.finish(key, FAILED, RETURNED))
    second = world.running(key.owner, work_of(key.attempt_id))
    assert handed.input is not None

    follow(world, second, Took(1, (handed.input,)))

    assert stream(world, second).refused == 0


@case(pytest.mark.req("O15"))
def what_its_belt_took_is_no_stranger_to_its_lines(world: World) -> None:
    key = standing(world)
    waits, later = (add_input(world, work_of(key.attempt_id)) for _ in range(2))
    declare(world, key, taken(waits))

    follow(world, key, Took(1, (waits,)), Took(2, (later,)))

    assert [one.line for one in stream(world, key).refusals] == [2]


# --- read late


@case(pytest.mark.req("T02", "B03"))
def a_stranger_that_is_read_late_is_refused_and_the_report_counts(world: World) -> None:
    key = standing(world)
    handed, queued = accepted(world, key), injected(world, key)
    own = given(world, key.attempt_id)
    world.store.write(lambda tx: tx.interrupt(work_of(key.attempt_id), by="t", reason="t"))
    assert handed.input is not None
    assert queued.input is not None
    assert own in pending(world, key), "it was given back"
    lines = (Took(1, (own, handed.input)), Took(2, (queued.input,)), Took(3, (NOBODYS,)))
    found = Stretch(Place(), Place(30, 3), lines, usage=Usage.from_plain({"usd": "1"}))

    world.store.write(lambda tx: tx.report_late(key.attempt_id, expected_epoch=1, pin_epoch=1, stretch=found))

    assert [(one.line, one.code) for one in stream(world, key).refusals] == [
        (2, RefusalCode.NOT_HANDED), (3, RefusalCode.NOT_HANDED),
    ]  # fmt: skip
    assert str(world.attempt(key.attempt_id).usage.amount("usd")) == "1"


@case(pytest.mark.req("O15"))
def a_crowd_of_strangers_is_one_short_line(world: World) -> None:
    key = world.running(world.worker())
    with pytest.raises(DeclarationError) as caught:
        declare(world, key, taken(*range(1_000, 2_000)))
    assert str(caught.value) == "inputs 1000, 1001, 1002, 1003, 1004 and more are not w1.1's, and not waiting for w1"

    follow(world, key, Took(1, tuple(range(1_000, 2_000))))

    [refusal] = stream(world, key).refusals
    why = "consumed: w1.1 was never handed input 1000, 1001, 1002, 1003, 1004"
    assert refusal == Refusal(1, RefusalCode.NOT_HANDED, why)
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))
