"""What running agents are told, and what was read of them: intents, tokens, consumed inputs, offsets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shared.errors import KeyReusedError, NotFoundError, RefusedError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import AttemptState, Exclusion, LeaseKey
from shared.model.intent import Delivered, Fate, Intent
from shared.model.stream import OTHER, REFUSALS_KEPT, TYPES_KEPT, Place, Refusal, RefusalCode, Stream, Stretch, Took
from shared.model.work import WorkChange, WorkKind, WorkState
from shared.store.contract import Tx
from shared.store.settling import change_after
from shared.wake import COORDINATOR
from tests.contract.store_cases import case
from tests.support.agent_scenes import FIRST, accepted, dispatched, injected, running_and_dropping
from tests.support.stores import COMPLETED, FAILED, RETURNED, SUCCEEDED, World

S = WorkState


def running(world: World, kind: WorkKind = WorkKind.RUN_ONCE) -> LeaseKey:
    return world.running(world.worker(), world.submit(kind=kind, input_=b"first"))


def fate(world: World, intent: Intent) -> Fate:
    found = world.store.read(lambda tx: tx.intent(intent.number))
    assert found is not None
    return found.fate


def pending(world: World, key: LeaseKey) -> list[int]:
    return world.store.read(lambda tx: tx.pending_inputs(work_of(key.attempt_id), limit=99))


def due(world: World, key: LeaseKey) -> list[int]:
    return [one.intent.number for one in world.store.read(lambda tx: tx.due_intents(key.owner, limit=99))]


def consume(world: World, key: LeaseKey, *numbers: int, before: Place | None = None) -> Place:
    """The program says that it took these."""
    place = before or Place()
    after = Place(place.offset + 10, place.lines + 1)
    world.store.write(lambda tx: tx.follow(key, 1, Stretch(place, after, (Took(after.lines, numbers),))))
    return after


def acknowledge(world: World, key: LeaseKey, intent: Intent, token: int, result: Delivered) -> bool:
    return world.store.write(lambda tx: tx.acknowledge(key, intent.number, token=token, result=result))


def _following(key: LeaseKey, stretch: Stretch) -> Callable[[Tx], None]:
    return lambda tx: tx.follow(key, 1, stretch)


def finish_as_policy_says(world: World, key: LeaseKey) -> WorkState:
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, change_after(tx, key.attempt_id, SUCCEEDED)))
    return world.work(work_of(key.attempt_id)).state


# --- inject


@case(pytest.mark.req("T01", "T02", "O01"))
def an_injected_input_is_pending_until_the_program_says_that_it_took_it(world: World) -> None:
    key = running(world)
    world.rung.clear()

    intent = injected(world, key)

    assert (intent.fate, intent.attempt_id, intent.id) == (Fate.QUEUED, key.attempt_id, "i1")
    assert sorted(world.rung) == sorted([COORDINATOR, key.owner])
    assert due(world, key) == [intent.number]
    token = world.store.write(lambda tx: tx.dispatch(key, intent.number))
    assert token is not None
    assert due(world, key) == [], "it is being handed over under this lease"
    assert acknowledge(world, key, intent, token, Delivered.ACCEPTED)
    assert (fate(world, intent), pending(world, key)) == (Fate.ACCEPTED, [intent.input]), "accepted is not consumed"
    assert intent.input is not None
    consume(world, key, intent.input)
    assert (fate(world, intent), pending(world, key)) == (Fate.CONSUMED, [])


@case(pytest.mark.req("O01", "T02"))
def work_goes_on_with_attempt_2_while_an_accepted_input_is_not_consumed(world: World) -> None:
    key = running(world)
    intent = accepted(world, key)

    assert finish_as_policy_says(world, key) is S.READY
    assert (fate(world, intent), pending(world, key)) == (Fate.RETURNED, [intent.input])

    other = running(world)
    taken = accepted(world, other)
    assert taken.input is not None
    consume(world, other, taken.input)
    assert finish_as_policy_says(world, other) is S.COMPLETED, "control: it was consumed"


@case(pytest.mark.req("T02"))
def an_input_taken_while_its_acknowledgement_is_under_way_is_settled(world: World) -> None:
    key = running(world)
    intent, token = dispatched(world, key)
    assert intent.input is not None

    consume(world, key, intent.input)

    assert fate(world, intent) is Fate.CONSUMED
    assert acknowledge(world, key, intent, token, Delivered.ACCEPTED) is False, "it comes too late to say anything"
    assert acknowledge(world, key, intent, token, Delivered.FAILED) is False
    assert (fate(world, intent), pending(world, key)) == (Fate.CONSUMED, [])


@case(pytest.mark.req("T02"))
def a_program_cannot_take_what_it_was_never_handed(world: World) -> None:
    key = running(world)
    intent = injected(world, key)
    assert intent.input is not None

    place = consume(world, key, intent.input, 12345)

    assert (fate(world, intent), pending(world, key)) == (Fate.QUEUED, [intent.input])
    world.store.write(lambda tx: tx.dispatch(key, intent.number))
    consume(world, key, intent.input, before=place)
    assert fate(world, intent) is Fate.CONSUMED, "control"


@case(pytest.mark.req("T01"))
def a_result_under_an_older_token_changes_nothing(world: World) -> None:
    key = running(world)
    intent, token = dispatched(world, key)
    world.store.write(lambda tx: tx.release(key, reason="released"))
    new = world.take_over(key, world.worker("worker-2"))
    world.store.write(lambda tx: tx.accept(new, invoke_isolated=None))
    assert due(world, new) == [], "it is being recovered: the intent waits"
    world.store.write(lambda tx: tx.adopt(new, why="its shim holds the lock"))
    assert due(world, new) == [intent.number], "under the new lease the same intent is due again"
    again = world.store.write(lambda tx: tx.dispatch(new, intent.number))
    assert again is not None

    assert acknowledge(world, new, intent, token, Delivered.ACCEPTED) is False

    assert fate(world, intent) is Fate.DISPATCHED
    assert acknowledge(world, new, intent, again, Delivered.ACCEPTED)
    found = world.store.read(lambda tx: tx.intent(intent.number))
    assert found is not None
    assert (found.fate, found.tries) == (Fate.ACCEPTED, 2)


@case(pytest.mark.req("T03"))
def an_intent_for_a_launching_attempt_waits(world: World) -> None:
    key = world.accepted(world.worker())
    intent = injected(world, key)

    assert due(world, key) == []
    assert world.store.write(lambda tx: tx.dispatch(key, intent.number)) is None

    world.store.write(lambda tx: tx.pin(key, world.pin(key)))
    assert due(world, key) == [intent.number]


@case(pytest.mark.req("T03", "O01"))
def an_intent_is_never_told_to_a_later_attempt(world: World) -> None:
    key = running(world)
    waiting, told = injected(world, key), accepted(world, key)
    world.store.write(lambda tx: tx.finish(key, FAILED, RETURNED))
    second = world.running(key.owner, work_of(key.attempt_id))

    assert (fate(world, waiting), fate(world, told)) == (Fate.RETURNED, Fate.RETURNED)
    assert due(world, second) == []
    assert world.store.write(lambda tx: tx.dispatch(second, waiting.number)) is None
    snapshot = world.store.read(lambda tx: tx.snapshot(second.attempt_id))
    assert snapshot is not None
    assert {waiting.input, told.input} <= set(snapshot.inputs), "the inputs themselves are the next attempt's"
    assert list(snapshot.inputs) == sorted(snapshot.inputs), "in their order"


@case(pytest.mark.req("T02"))
def a_program_that_takes_nothing_settles_the_intent_and_the_input_waits(world: World) -> None:
    key = running(world)
    intent, token = dispatched(world, key)
    assert acknowledge(world, key, intent, token, Delivered.NOT_ACCEPTING)
    assert (fate(world, intent), pending(world, key)) == (Fate.NOT_ACCEPTING, [intent.input])

    said = accepted(world, key)
    stretch = Stretch(Place(), Place(10, 1), declined=(said.id, "i999", "nonsense"))
    world.store.write(lambda tx: tx.follow(key, 1, stretch))
    assert (fate(world, said), pending(world, key)) == (Fate.NOT_ACCEPTING, [intent.input, said.input])


@case(pytest.mark.req("T02"))
def what_could_not_be_told_goes_as_the_binding_says(world: World) -> None:
    key = running(world)
    later, token = dispatched(world, key)
    assert acknowledge(world, key, later, token, Delivered.LATER)
    assert (fate(world, later), due(world, key)) == (Fate.QUEUED, [later.number])

    intent, token = dispatched(world, key)
    assert acknowledge(world, key, intent, token, Delivered.FAILED)
    assert (fate(world, intent), intent.input in pending(world, key)) == (Fate.RETURNED, True)

    other = running_and_dropping(world)
    dropped, token = dispatched(world, other)
    assert acknowledge(world, other, dropped, token, Delivered.FAILED)
    assert (fate(world, dropped), pending(world, other)) == (Fate.DROPPED, [])


@case(pytest.mark.req("O01", "T03"))
def an_input_for_work_that_does_not_run_waits_for_its_next_attempt(world: World) -> None:
    resting = world.submit(kind=WorkKind.STANDING)
    ready = world.submit()

    first = world.store.write(lambda tx: tx.inject(resting, b"x", by="t"))
    second = world.store.write(lambda tx: tx.inject(ready, b"x", by="t"))

    assert (first.fate, first.attempt_id, second.fate) == (Fate.RETURNED, None, Fate.RETURNED)
    assert world.work(resting).state is S.READY
    ended = work_of(world.ended(world.worker(), SUCCEEDED, COMPLETED).attempt_id)
    with pytest.raises(RefusedError, match="already ended"):
        world.store.write(lambda tx: tx.inject(ended, b"x", by="t"))
    with pytest.raises(NotFoundError):
        world.store.write(lambda tx: tx.inject(WorkId("w999"), b"x", by="t"))


@case(pytest.mark.req("T01"))
def an_inject_under_the_same_key_is_one_intent(world: World) -> None:
    key = running(world)
    work_id = work_of(key.attempt_id)
    first = world.store.write(lambda tx: tx.inject(work_id, b"x", by="t", key="k1"))

    assert world.store.write(lambda tx: tx.inject(work_id, b"x", by="t", key="k1")) == first
    assert pending(world, key) == [first.input]
    with pytest.raises(KeyReusedError):
        world.store.write(lambda tx: tx.inject(work_id, b"y", by="t", key="k1"))
    other = world.store.write(lambda tx: tx.inject(work_id, b"x", by="t", key="k2"))
    assert other.number != first.number, "control"


# --- interrupt


@case(pytest.mark.req("T04"))
def an_interrupt_fences_the_attempt_and_leaves_its_work_ready_with_every_input(world: World) -> None:
    key = running(world)
    intent = accepted(world, key)
    work_id = work_of(key.attempt_id)
    before = world.store.read(lambda tx: tx.snapshot(key.attempt_id))
    assert before is not None

    told = world.store.write(lambda tx: tx.interrupt(work_id, by="me", reason="wrong branch"))

    attempt = world.attempt(key.attempt_id)
    assert (told.kind, told.fate, told.attempt_id) == ("interrupt", Fate.ACCEPTED, key.attempt_id)
    assert (attempt.state, attempt.exclusion) == (AttemptState.INTERRUPTED, Exclusion.HELD)
    assert world.work(work_id).state is S.READY
    assert pending(world, key) == [*before.inputs, intent.input], "it drops nothing"
    orders = world.store.read(lambda tx: tx.stop_orders())
    assert [(order.attempt_id, order.why) for order in orders] == [(key.attempt_id, "interrupted")]
    assert world.store.read(lambda tx: tx.unexcluded(work_id)) == key.attempt_id, "nothing starts before the proof"
    assert world.store.read(lambda tx: tx.held(key.owner)) == []


@case(pytest.mark.req("T04"))
def there_is_nothing_to_interrupt_where_nothing_runs(world: World) -> None:
    work_id = world.submit()
    before = world.everything()

    with pytest.raises(RefusedError, match="nothing of it runs"):
        world.store.write(lambda tx: tx.interrupt(work_id, by="me", reason="x"))

    assert world.everything() == before


@case(pytest.mark.req("T05", "T03"))
def a_cancel_returns_what_its_attempt_was_still_to_be_told(world: World) -> None:
    key = running(world)
    intent = injected(world, key)

    world.store.write(lambda tx: tx.cancel_work(work_of(key.attempt_id), by="me", reason="x"))

    assert (fate(world, intent), due(world, key)) == (Fate.RETURNED, [])


# --- streams


@case(pytest.mark.req("O15"))
def a_stretch_is_recorded_once_and_where_the_last_one_ended(world: World) -> None:
    key = running(world)
    world.store.write(lambda tx: tx.follow(key, 1, FIRST))
    before = world.everything()

    for wrong in (FIRST, Stretch(Place(20, 2), Place(30, 3)), Stretch(Place(10, 1, is_skipping=True), Place(30, 3))):
        with pytest.raises(RefusedError, match="read up to 10"):
            world.store.write(_following(key, wrong))

    assert world.everything() == before
    world.store.write(lambda tx: tx.follow(key, 1, Stretch(Place(10, 1), Place(30, 2))))
    stream = world.store.read(lambda tx: tx.stream(key.attempt_id))
    assert stream == Stream(1, Place(30, 2))


@case()
def what_is_no_message_is_counted_and_the_last_of_it_is_kept(world: World) -> None:
    key = running(world)
    many = TYPES_KEPT + 4
    refusals = tuple(Refusal(number, RefusalCode.NOT_JSON, "it is no JSON") for number in range(1, REFUSALS_KEPT + 4))
    unknown = tuple((f"type-{number}", 2) for number in range(many))
    stretch = Stretch(Place(), Place(10, 40), unknown=unknown, refusals=refusals)

    world.store.write(lambda tx: tx.follow(key, 1, stretch))

    stream = world.store.read(lambda tx: tx.stream(key.attempt_id))
    assert stream is not None
    assert (stream.refused, stream.refusals) == (len(refusals), refusals[-REFUSALS_KEPT:])
    assert (len(stream.unknown), stream.unknown[OTHER]) == (TYPES_KEPT + 1, 2 * (many - TYPES_KEPT))


@case()
def an_attempt_without_a_word_has_no_stream(world: World) -> None:
    key = running(world)

    assert world.store.read(lambda tx: tx.stream(key.attempt_id)) is None
    assert world.store.read(lambda tx: tx.intents(work_of(key.attempt_id))) == []


RESTED = WorkChange(S.IDLE, None, None, 0, spends_inputs=True)


@case(pytest.mark.req("O01", "T02"))
def an_intent_says_which_attempt_has_its_input(world: World) -> None:
    key = running(world)
    taken, untold = accepted(world, key), injected(world, key)
    assert taken.input is not None
    assert given_to(world, taken, untold) == [None, None]

    consume(world, key, taken.input)
    assert given_to(world, taken, untold) == [key.attempt_id, None]

    world.store.write(lambda tx: tx.finish(key, FAILED, RETURNED))
    assert given_to(world, taken, untold) == [None, None], "given back, for the next one"

    second = world.running(key.owner, work_of(key.attempt_id))
    assert given_to(world, taken, untold) == [second.attempt_id, second.attempt_id]


def given_to(world: World, *intents: Intent) -> list[AttemptId | None]:
    [work_id] = {one.work_id for one in intents}
    told = {one.number: one.given_to for one in world.store.read(lambda tx: tx.intents(work_id))}
    return [told[one.number] for one in intents]


@case(pytest.mark.req("O01"))
def an_input_that_a_failed_attempt_took_is_pending_for_the_next_one(world: World) -> None:
    key = running(world)
    intent = accepted(world, key)
    assert intent.input is not None
    consume(world, key, intent.input)

    world.store.write(lambda tx: tx.finish(key, FAILED, RETURNED))

    assert intent.input in pending(world, key)
    other = running(world, WorkKind.STANDING)
    taken = accepted(world, other)
    assert taken.input is not None
    consume(world, other, taken.input)
    world.store.write(lambda tx: tx.finish(other, SUCCEEDED, RESTED))
    assert pending(world, other) == [], "control: a success spends what it took"
