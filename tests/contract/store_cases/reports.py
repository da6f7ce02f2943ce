"""What programs report to have used and taken: added up while they run, charged by whatever ends them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from shared.errors import DeclarationError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import AttemptState, Ending, FailureClass, LeaseKey
from shared.model.budget import Budget, Per
from shared.model.declaration import DECLARATIONS_MAX, Declaration, declaration_of
from shared.model.event import NewEvent
from shared.model.stream import BELT, REFUSALS_KEPT, Place, Refusal, RefusalCode, Said, Stretch
from shared.model.usage import UNITS_KEPT, Usage
from shared.model.work import WorkChange, WorkKind, WorkState
from shared.policy.settle import OUT_OF_TIME
from shared.store.settling import change_after
from tests.contract.store_cases import case
from tests.contract.store_cases.budgets import settle, told, used
from tests.support.declarations import TICK, turn, wait
from tests.support.stores import COMPLETED, RETURNED, SUCCEEDED, TIMEOUT_US, UNPROVEN, World

USD = Budget("usd", Decimal(20), Per.ALL)
FAILED = Ending(AttemptState.FAILED, None, FailureClass.TIMED_OUT, "idle", None, "idle")
GIVEN_UP = Ending(AttemptState.CANCELLED, None, FailureClass.CANCELLED, "enough", None, "cancelled")
RESTED = WorkChange(WorkState.IDLE, None, None, 0, spends_inputs=True)
BY = {"by": "me", "reason": "enough"}
OUTCOME = declaration_of("o-1", "outcome", {"kind": "completed", "summary": "so it went"})


def usage(amount: str, key: str = "u-1", unit: str = "usd") -> Declaration:
    return declaration_of(key, "usage", {"units": {unit: amount}})


def usd(amount: str) -> Usage:
    return Usage.from_plain({"usd": amount})


def stretch(begin: int, end: int, **said: object) -> Stretch:
    """So many lines of ten bytes each."""
    return Stretch(Place(begin * 10, begin), Place(end * 10, end), **said)  # type: ignore[arg-type]


def report_late(world: World, name: AttemptId, found: Stretch, *, epoch: int = 1, pin_epoch: int = 1) -> None:
    world.store.write(lambda tx: tx.report_late(name, expected_epoch=epoch, pin_epoch=pin_epoch, stretch=found))


def pending(world: World, name: AttemptId) -> list[int]:
    return world.store.read(lambda tx: tx.pending_inputs(work_of(name), limit=99))


def confirm(world: World, name: AttemptId) -> None:
    world.store.write(lambda tx: tx.confirm_stopped(name, expected_epoch=1, proof="S1", by="t"))


# --- every end charges what was reported


def interrupted(world: World, key: LeaseKey) -> None:
    world.store.write(lambda tx: tx.interrupt(work_of(key.attempt_id), **BY))


def _cancelled(world: World, key: LeaseKey) -> None:
    world.store.write(lambda tx: tx.cancel_work(work_of(key.attempt_id), **BY))


def _attempt_cancelled(world: World, key: LeaseKey) -> None:
    world.store.write(lambda tx: tx.cancel_attempt(key.attempt_id, change=RETURNED, **BY))


def _timed_out_by_the_leader(world: World, key: LeaseKey) -> None:
    world.clock.advance(2 * TIMEOUT_US)
    change = world.store.read(lambda tx: change_after(tx, key.attempt_id, OUT_OF_TIME))
    assert world.as_leader(lambda tx: tx.time_out_lapsed(key.attempt_id, epoch_seen=1, why="t", change=change))


def _timed_out_by_its_holder(world: World, key: LeaseKey) -> None:
    world.store.write(lambda tx: tx.finish(key, OUT_OF_TIME, change_after(tx, key.attempt_id, OUT_OF_TIME)))


def _settled_by_a_person(world: World, key: LeaseKey) -> None:
    world.store.write(lambda tx: tx.require_recovery(key, why="nobody saw it", proof=None))
    world.store.write(lambda tx: tx.reconcile(key.attempt_id, expected_epoch=1, ending=UNPROVEN, change=RETURNED, **BY))


def _ended(world: World, key: LeaseKey) -> None:
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))


ENDS: tuple[Callable[[World, LeaseKey], None], ...] = (
    *(interrupted, _cancelled, _attempt_cancelled, _timed_out_by_the_leader, _timed_out_by_its_holder),
    *(_settled_by_a_person, _ended),
)


@case(pytest.mark.req("B03", "O02", "O05", "T04", "T05"))
def whoever_ends_an_attempt_charges_what_its_program_had_reported(world: World) -> None:
    for number, end in enumerate(ENDS, 1):
        world.configure(USD)
        owner = world.worker(f"worker-{number}")
        key = world.running(owner)
        before = used(world, USD).get("", Decimal(0))
        world.store.write(lambda tx, key=key: tx.declare(key, [usage("0.5")]))  # type: ignore[misc]
        world.store.write(lambda tx, key=key: tx.follow(key, 1, stretch(0, 1, usage=usd("1"))))  # type: ignore[misc]

        end(world, key)
        settle(world)

        assert world.attempt(key.attempt_id).usage.amount("usd") == Decimal("1.5"), end.__name__
        assert used(world, USD)[""] - before == Decimal("1.5"), end.__name__
        settle(world)
        assert used(world, USD)[""] - before == Decimal("1.5"), f"once: {end.__name__}"


@case(pytest.mark.req("B03"))
def what_a_park_charged_is_not_charged_by_the_end_again(world: World) -> None:
    world.configure(USD)
    owner = world.worker()
    key = world.declared(owner, [wait(resume=True)])
    world.store.write(lambda tx: tx.declare(key, [usage("0.5", "before")]))
    parked = world.outcome(key)
    world.store.write(lambda tx: tx.park(key, parked, proof="S1"))
    assert world.attempt(key.attempt_id).usage.amount("usd") == Decimal("0.5")
    world.store.write(lambda tx: tx.publish(TICK))
    again = world.resumed(key, owner)
    world.store.write(lambda tx: tx.accept(again, invoke_isolated=True))
    world.store.write(lambda tx: tx.pin(again, world.pin(again)))
    world.store.write(lambda tx: tx.declare(again, [usage("0.25", "after")]))

    _ended(world, again)
    settle(world)

    assert used(world, USD) == {"": Decimal("0.75")}


# --- how much a program may say


@case(pytest.mark.req("O15", "B03"))
def usage_and_consumed_have_no_number(world: World) -> None:
    key = world.running(world.worker())
    many = 3 * DECLARATIONS_MAX
    world.store.write(lambda tx: tx.declare(key, [usage("0.01", f"u-{number}") for number in range(many)]))
    taken = [declaration_of(f"c-{number}", "consumed", {"inputs": [1]}) for number in range(many)]
    world.store.write(lambda tx: tx.declare(key, taken))

    assert world.store.read(lambda tx: tx.reported(key.attempt_id)) == usd("7.68")
    world.store.write(lambda tx: tx.declare(key, [usage("0.01", "u-0")]))
    assert world.store.read(lambda tx: tx.reported(key.attempt_id)) == usd("7.68"), "said again, it counts once"
    world.store.write(lambda tx: tx.declare(key, [OUTCOME]))


@case(pytest.mark.req("O15"))
def one_kind_that_is_full_leaves_room_for_the_others(world: World) -> None:
    key = world.running(world.worker())
    world.store.write(lambda tx: tx.declare(key, [turn(key=f"t-{number}") for number in range(DECLARATIONS_MAX)]))
    before = world.everything()

    with pytest.raises(DeclarationError, match="256 turns") as caught:
        world.store.write(lambda tx: tx.declare(key, [turn(key="one-more")]))

    assert caught.value.code == "too_many"
    assert world.everything() == before
    world.store.write(lambda tx: tx.declare(key, [OUTCOME]))


@case(pytest.mark.req("O15"))
def a_line_beyond_the_bound_is_refused_by_itself_and_the_rest_of_the_stretch_counts(world: World) -> None:
    key = world.running(world.worker())
    said = [Said(number, turn(key=f"out.1.{number}")) for number in range(1, DECLARATIONS_MAX + 3)]
    said.append(Said(300, OUTCOME))

    world.store.write(lambda tx: tx.follow(key, 1, stretch(0, 300, said=tuple(said), usage=usd("2"))))

    stream = world.store.read(lambda tx: tx.stream(key.attempt_id))
    assert stream is not None
    assert [(one.line, one.code) for one in stream.refusals] == [
        (DECLARATIONS_MAX + 1, RefusalCode.TOO_MANY), (DECLARATIONS_MAX + 2, RefusalCode.TOO_MANY),
    ]  # fmt: skip
    assert world.outcome(key).summary == "so it went"
    assert world.store.read(lambda tx: tx.reported(key.attempt_id)) == usd("2")


@case(pytest.mark.req("B02"))
def units_beyond_the_bound_are_refused_and_told(world: World) -> None:
    key = world.running(world.worker())
    for number in range(UNITS_KEPT):
        world.store.write(lambda tx, number=number: tx.declare(key, [usage("1", f"u-{number}", f"u{number}")]))  # type: ignore[misc]
    before = world.everything()

    with pytest.raises(DeclarationError, match="64 units already: no room for usd"):
        world.store.write(lambda tx: tx.declare(key, [usage("1", "u-x", "usd")]))

    assert world.everything() == before
    both = Usage.from_plain({"u0": "1", "usd": "1"})
    world.store.write(lambda tx: tx.follow(key, 1, stretch(0, 1, usage=both)))
    stream = world.store.read(lambda tx: tx.stream(key.attempt_id))
    assert stream is not None
    assert [(one.line, one.code) for one in stream.refusals] == [(1, RefusalCode.TOO_MANY)]
    assert "usd" in stream.refusals[0].why
    assert world.store.read(lambda tx: tx.reported(key.attempt_id)).amount("u0") == 2, "what there is room for counts"


@case()
def lines_that_are_no_message_are_events_up_to_a_bound_and_counted_beyond_it(world: World) -> None:
    key = world.running(world.worker())
    noise = tuple(Refusal(number, RefusalCode.NOT_JSON, "it is no JSON") for number in range(1, 41))

    world.store.write(lambda tx: tx.follow(key, 1, stretch(0, 40, refusals=noise)))
    world.store.write(lambda tx: tx.follow(key, 1, stretch(40, 80, refusals=noise)))

    stream = world.store.read(lambda tx: tx.stream(key.attempt_id))
    assert stream is not None
    assert stream.refused == 80
    assert len(told(world, "stream.refused")) == REFUSALS_KEPT


@case(pytest.mark.req("O15"))
def what_there_was_no_room_for_by_the_belt_is_told_and_moves_no_reading(world: World) -> None:
    key = world.running(world.worker())
    world.store.write(lambda tx: tx.follow(key, 1, stretch(0, 3)))

    world.store.write(lambda tx: tx.note_refusal(key, Refusal(BELT, RefusalCode.TOO_MANY, "no room")))

    stream = world.store.read(lambda tx: tx.stream(key.attempt_id))
    assert stream is not None
    assert (stream.place, stream.refused, stream.refusals[0].line) == (Place(30, 3), 1, BELT)
    world.store.write(lambda tx: tx.follow(key, 1, stretch(3, 4)))
    [faulty] = world.store.read(lambda tx: tx.faulty_streams(since_at_us=0, limit=9))
    assert (faulty.attempt_id, faulty.is_live) == (key.attempt_id, True)


@case(pytest.mark.req("O08", "V01"))
def what_waits_for_an_answer_alone_is_left_to_a_person(world: World) -> None:
    def asking(key: str, timer: str | None, *, resume: bool) -> Declaration:
        event = {"type": "answer.given", "correlate": key}
        return declaration_of("w-1", "wait", {"ask": "deploy?", "event": event, "timer": timer, "resume": resume})

    for resume in (True, False):
        owner = world.worker(f"worker-{1 + resume}")
        begun = world.parked if resume else world.awaiting
        alone, timed = begun(owner, asking("a", None, resume=resume)), begun(owner, asking("b", "1h", resume=resume))

        idle = world.store.read(lambda tx: tx.idle_state())

        assert idle.needs_person == (alone.attempt_id,)
        assert idle.live + idle.waiting == 1, "the other one goes on by itself"
        asked = world.store.read(lambda tx: tx.asked(limit=9))
        assert [(one.attempt_id, one.ask) for one in asked] == [
            (alone.attempt_id, "deploy?"), (timed.attempt_id, "deploy?"),
        ]  # fmt: skip
        for word in ("a", "b"):
            world.store.write(lambda tx, word=word: tx.publish(NewEvent("answer.given", word, "1", "me")))  # type: ignore[misc]
        assert world.store.read(lambda tx: tx.asked(limit=9)) == []
        assert world.store.read(lambda tx: tx.idle_state()).needs_person == ()
        for key in (alone, timed):
            world.store.write(lambda tx, key=key: tx.cancel_work(work_of(key.attempt_id), **BY))  # type: ignore[misc]


@case(pytest.mark.req("O01", "T02"))
def what_a_belt_said_was_taken_counts_whatever_ends_the_attempt(world: World) -> None:
    for ending, change in ((FAILED, RESTED), (FAILED, RETURNED)):
        key = standing(world)
        waits = world.store.write(lambda tx, key=key: tx.add_input(work_of(key.attempt_id), b"more", by="t"))  # type: ignore[misc]
        taken = declaration_of("c-1", "consumed", {"inputs": [waits]})
        world.store.write(lambda tx, key=key, taken=taken: tx.declare(key, [taken]))  # type: ignore[misc]

        world.store.write(lambda tx, key=key, end=ending, to=change: tx.finish(key, end, to))  # type: ignore[misc]

        assert (waits in pending(world, key.attempt_id)) is (change is RETURNED)
        assert told(world, "inputs.taken")[-1] == {"consumed": [waits]}


@case(pytest.mark.req("O01"))
def what_a_belt_said_was_taken_is_no_reason_to_run_again(world: World) -> None:
    key = standing(world)
    waits = world.store.write(lambda tx: tx.add_input(work_of(key.attempt_id), b"more", by="t"))

    def state() -> WorkState:
        return world.store.read(lambda tx: change_after(tx, key.attempt_id, GIVEN_UP)).state

    assert state() is WorkState.READY, "control"
    world.store.write(lambda tx: tx.declare(key, [declaration_of("c-1", "consumed", {"inputs": [waits]})]))
    assert state() is WorkState.IDLE


def standing(world: World) -> LeaseKey:
    work: WorkId = world.submit(kind=WorkKind.STANDING, input_=b"first")
    return world.running(world.worker(f"worker-{len(world.rung) + 1}"), work)
