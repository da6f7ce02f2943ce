"""Cases of what outcomes derive: turns and handoffs that go on, once each, and only so deep. Rule: O06, O07, O09."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.errors import ChainTooLongError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import AttemptState, Ending, LeaseKey
from shared.model.causality import Derived
from shared.model.declaration import Declaration, declaration_of
from shared.model.event import HANDOFF_EVENT, TURN_EVENT, NewEvent
from shared.model.instant import US_PER_S
from shared.model.work import NewWork, WorkKind, WorkState
from shared.store.contract import Claimed, Event, Tx
from shared.store.settling import change_after
from tests.contract.store_cases import case
from tests.support.declarations import HANDED_OFF, TICK, TURN, WAIT_TO_RESUME, turn, wait
from tests.support.stores import BACKED_OFF, FAILED, SUCCEEDED, World, new_work

S, W = AttemptState, WorkState


def handoff(summary: str = "half of it") -> Declaration:
    """The end of a segment that another attempt goes on from."""
    return declaration_of("outcome-1", "outcome", {"kind": "handoff", "summary": summary})


def standing(world: World, *keys: str) -> WorkId:
    work = NewWork("", None, ("true",), (), "/", b"begin", "test", kind=WorkKind.STANDING, correlate=keys)
    return world.store.write(lambda tx: tx.submit(work, "jobs"))


def started(world: World, work_id: WorkId, *, continues: bool = False, depth_max: int = 100) -> LeaseKey:
    """The next attempt of that Work, running, with that pinned."""
    owner = world.store.read(lambda tx: tx.workers())[0].id
    request = world.request(work_id, owner)
    pinned = replace(request.snapshot, continues=continues, depth_max=depth_max, kind=WorkKind.STANDING)
    answer = world.as_leader(lambda tx: tx.claim(replace(request, snapshot=pinned)))
    assert isinstance(answer, Claimed), answer
    key = LeaseKey(answer.attempt_id, 1, owner)
    return launched(world, key)


def launched(world: World, key: LeaseKey) -> LeaseKey:
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
    world.store.write(lambda tx: tx.pin(key, world.pin(key)))
    return key


def end(world: World, key: LeaseKey, *declarations: Declaration, ending: Ending = HANDED_OFF) -> None:
    """Declare that, and end with it as a worker does: what becomes of the Work is decided in the same transaction."""
    if declarations:
        world.store.write(lambda tx: tx.declare(key, declarations))
    outcome = world.outcome(key)

    def finish(tx: Tx) -> None:
        change = change_after(tx, key.attempt_id, ending, None, outcome)
        tx.finish(key, ending, change, outcome=outcome)

    world.store.write(finish)


def park(world: World, key: LeaseKey, *declarations: Declaration) -> None:
    world.store.write(lambda tx: tx.declare(key, declarations))
    outcome = world.outcome(key)
    world.store.write(lambda tx: tx.park(key, outcome, proof="S1"))


def events(world: World, kind: str) -> list[Event]:
    return [one for one in world.store.read(lambda tx: tx.events(after=0, limit=10_000)) if one.kind == kind]


def pending(world: World, work_id: WorkId) -> list[int]:
    return world.store.read(lambda tx: tx.pending_inputs(work_id, limit=99))


def depth(world: World, attempt_id: AttemptId) -> int:
    return world.attempt(attempt_id).depth


# --- chains


@case(pytest.mark.req("O07"))
def a_chain_of_handoffs_stops_at_the_limit_with_its_outcome_kept(world: World) -> None:
    world.worker()
    work_id, other = standing(world), standing(world)

    depths = []
    for _ in range(2):
        first = started(world, work_id, continues=True, depth_max=2)
        depths.append(depth(world, first.attempt_id))
        end(world, first, handoff())
    key = started(world, work_id, continues=True, depth_max=2)
    depths.append(depth(world, key.attempt_id))
    end(world, key, handoff())

    assert depths == [0, 1, 2]
    assert (world.attempt(key.attempt_id).state, world.work(work_id).state) == (S.HANDED_OFF, W.IDLE)
    assert (len(events(world, HANDOFF_EVENT)), pending(world, work_id)) == (2, [])
    [refused] = events(world, "causality.refused")
    assert (refused.attempt_id, refused.epoch) == ("w1.3", 1)
    assert dict(refused.data) == {"derived": "handoff", "depth": 3, "limit": 2}
    [kept] = world.store.read(lambda tx: tx.chain_refusals(key.attempt_id))
    assert (kept.derived, kept.depth, kept.depth_max) == (Derived.HANDOFF, 3, 2)
    assert world.store.read(lambda tx: tx.chains_stopped(limit=9)) == [kept]
    end(world, started(world, other, continues=True, depth_max=2), handoff())
    assert world.work(other).state is W.READY, "that branch alone stops"


@case(pytest.mark.req("O07"))
def a_new_root_begins_a_new_chain_where_one_had_stopped(world: World) -> None:
    world.worker()
    work_id = standing(world)
    for _ in (1, 2):
        end(world, started(world, work_id, continues=True, depth_max=1), handoff())
    assert len(world.store.read(lambda tx: tx.chains_stopped(limit=9))) == 1
    world.store.write(lambda tx: tx.add_input(work_id, b"go on", by="me"))

    key = started(world, work_id, continues=True, depth_max=1)
    end(world, key, handoff())

    assert (depth(world, key.attempt_id), world.work(work_id).state) == (0, W.READY)
    assert world.store.read(lambda tx: tx.chains_stopped(limit=9)) == []


@case(pytest.mark.req("O06"))
def a_chain_too_long_skips_the_turn_and_keeps_the_outcome(world: World) -> None:
    world.worker()
    work_id = standing(world, "a", "b")
    end(world, started(world, work_id, continues=True, depth_max=2), handoff())
    allowed = started(world, work_id, continues=True, depth_max=2)
    end(world, allowed, TURN, handoff())
    assert [one.data["depth"] for one in events(world, TURN_EVENT)] == [2, 2], "control: the limit itself is allowed"

    key = started(world, work_id, continues=True, depth_max=2)
    end(world, key, turn("help"), handoff("the rest"))

    assert len(events(world, TURN_EVENT)) == 2
    assert [one.data["derived"] for one in events(world, "causality.refused")] == ["turn", "handoff"]
    assert world.attempt(key.attempt_id).state is S.HANDED_OFF
    applied = events(world, "outcome.applied")[-1]
    assert (applied.attempt_id, applied.data["summary"]) == (key.attempt_id, "the rest")


def _ping_pong(world: World, *, depth_max: int, turns_max: int) -> list[Event]:
    """Two Works, each of which ends a turn, and waits for the other's and resumes; the turns they told."""
    works = standing(world, "a"), standing(world, "b")
    keys = [started(world, work_id, depth_max=depth_max) for work_id in works]
    waits = [wait(resume=True, event=TURN_EVENT, correlate=of, timer=None, key="w-0") for of in ("b", "a")]
    park(world, keys[0], waits[0])
    park(world, keys[1], turn(key="t-0"), waits[1])
    for step in range(1, turns_max):
        woken = world.store.read(lambda tx: tx.woken("jobs", limit=9).woken)
        if not woken:
            break
        [one] = woken
        who = works.index(one.work.id)
        keys[who] = launched(world, world.resumed(keys[who], keys[who].owner))
        again = replace(waits[who], key=f"w-{step}")
        park(world, keys[who], turn(key=f"t-{step}"), again)
    return events(world, TURN_EVENT)


@case(pytest.mark.req("O06", "O08"))
def two_works_that_wake_each_other_for_ever_stop_at_the_limit(world: World) -> None:
    world.worker()

    told = _ping_pong(world, depth_max=5, turns_max=50)

    assert [one.data["depth"] for one in told] == [1, 2, 3, 4, 5]
    [refused] = events(world, "causality.refused")
    assert dict(refused.data) == {"derived": "turn", "depth": 6, "limit": 5}
    assert [world.work(work_id).state for work_id in (WorkId("w1"), WorkId("w2"))] == [W.WAITING, W.WAITING]
    world.store.write(lambda tx: tx.publish(NewEvent(TURN_EVENT, "b", "{}", "a person")))
    [woken] = world.store.read(lambda tx: tx.woken("jobs", limit=9).woken)
    key = LeaseKey(woken.attempt.id, woken.attempt.epoch, world.store.read(lambda tx: tx.workers())[0].id)
    assert depth(world, world.resumed(key, key.owner).attempt_id) == 0, "control: a root wakes them anew"


@case(pytest.mark.req("O06", "O08"))
def two_works_that_wake_each_other_go_on_within_the_limit(world: World) -> None:
    world.worker()

    told = _ping_pong(world, depth_max=50, turns_max=20)

    assert [one.data["depth"] for one in told] == list(range(1, 21))
    assert events(world, "causality.refused") == []


@case(pytest.mark.req("O08", "O09"))
def time_is_no_link_of_a_chain(world: World) -> None:
    world.worker()
    work_id = standing(world)
    end(world, started(world, work_id, continues=True), handoff())
    key = started(world, work_id)
    park(world, key, wait(resume=True, event=None, timer="60s"))
    world.clock.advance(60 * US_PER_S)
    world.fire(work_id)
    key = launched(world, world.resumed(key, key.owner))
    assert depth(world, key.attempt_id) == 1
    end(world, key, wait(resume=False, event=None, timer="60s", key="wait-2"))
    world.clock.advance(60 * US_PER_S)
    world.fire(work_id)

    assert depth(world, started(world, work_id).attempt_id) == 1


@case(pytest.mark.req("O09"))
def a_retry_is_as_deep_as_what_it_tries_again(world: World) -> None:
    """Also when the attempt that failed had been made deeper by what woke it: its inputs alone were roots."""
    world.worker()
    work_id, other = standing(world), standing(world)
    end(world, started(world, other, continues=True), handoff())
    key = started(world, work_id)
    park(world, key, wait(resume=True, event=TURN_EVENT, timer=None))
    end(world, started(world, other), TURN, ending=SUCCEEDED)
    key = launched(world, world.resumed(key, key.owner))
    assert depth(world, key.attempt_id) == 2
    world.store.write(lambda tx: tx.finish(key, FAILED, BACKED_OFF))
    world.clock.advance(US_PER_S)
    world.fire(work_id)

    again = started(world, work_id)

    assert (again.attempt_id, depth(world, again.attempt_id)) == ("w1.2", 2)
    end(world, again, ending=SUCCEEDED)
    world.store.write(lambda tx: tx.add_input(work_id, b"more", by="me"))
    assert depth(world, started(world, work_id).attempt_id) == 0, "control: what has a cause of its own"


@case(pytest.mark.req("O09"))
def a_lost_launch_is_as_deep_as_before(world: World) -> None:
    world.worker()
    other = world.worker("worker-2")
    work_id = standing(world)
    end(world, started(world, work_id, continues=True), handoff())
    key = started(world, work_id)
    world.release(key)

    world.take_over(key, other)

    assert (world.attempt(key.attempt_id).epoch, depth(world, key.attempt_id)) == (2, 1)


@case(pytest.mark.req("O07"))
def a_batch_is_as_deep_as_the_deepest_of_it(world: World) -> None:
    """A root that waits in the same batch does not make the chain look short."""
    world.worker()
    work_id = standing(world)
    key = started(world, work_id, continues=True)
    world.store.write(lambda tx: tx.add_input(work_id, b"a root", by="me"))
    end(world, key, handoff())
    assert len(pending(world, work_id)) == 2

    assert depth(world, started(world, work_id).attempt_id) == 1


@case(pytest.mark.req("O08"))
def what_a_person_publishes_is_a_root(world: World) -> None:
    owner = world.worker()
    key = world.parked(owner)
    world.store.write(lambda tx: tx.publish(TICK))

    world.resumed(key, owner)

    assert depth(world, key.attempt_id) == 0
    assert work_of(key.attempt_id) == "w1"


# --- what is asked for from inside an attempt


@case(pytest.mark.req("O06", "O07"))
def what_an_attempt_hands_in_or_publishes_is_a_link_deeper_than_it(world: World) -> None:
    owner = world.worker()
    work_id = standing(world)
    end(world, started(world, work_id, continues=True), handoff())
    cause = started(world, work_id).attempt_id
    parked = world.parked(owner)

    new = world.store.write(lambda tx: tx.submit(new_work(), "jobs", cause=cause))
    rests = world.submit(kind=WorkKind.STANDING)
    world.store.write(lambda tx: tx.add_input(rests, b"more", by="a job", cause=cause))
    fed = world.submit(kind=WorkKind.STANDING)
    world.store.write(lambda tx: tx.inject(fed, b"more", by="a job", cause=cause))
    world.store.write(lambda tx: tx.publish(TICK, cause=cause))

    assert depth(world, cause) == 1
    assert depth(world, started(world, new).attempt_id) == 2
    assert depth(world, started(world, rests).attempt_id) == 2
    assert depth(world, started(world, fed).attempt_id) == 2
    assert depth(world, world.resumed(parked, owner).attempt_id) == 2
    told = [(one.kind, one.data["cause"], one.data["depth"]) for one in events_with(world, "cause", cause)]
    assert told == [
        (kind, cause, 2) for kind in ("work.submitted", "input.accepted", "input.accepted", "event.published")
    ]


@case(pytest.mark.req("O06", "O08"))
def what_an_attempt_publishes_wakes_others_and_never_its_own_work(world: World) -> None:
    """Else a program that asks a person could give the answer itself."""
    owner = world.worker()
    other = world.parked(owner)
    key = world.declared(owner, [WAIT_TO_RESUME])

    world.store.write(lambda tx: tx.publish(TICK, cause=key.attempt_id))
    outcome = world.outcome(key)
    world.store.write(lambda tx: tx.park(key, outcome, proof="S1"))
    world.store.write(lambda tx: tx.publish(TICK, key="again", cause=key.attempt_id))

    assert woken(world) == [other.attempt_id]
    world.store.write(lambda tx: tx.publish(TICK))
    assert woken(world) == [other.attempt_id, key.attempt_id], "control: somebody else's"


def woken(world: World) -> list[str]:
    return [one.attempt.id for one in world.store.read(lambda tx: tx.woken("jobs", limit=9).woken)]


def events_with(world: World, name: str, value: object) -> list[Event]:
    return [one for one in world.store.read(lambda tx: tx.events(after=0, limit=10_000)) if one.data.get(name) == value]


@case(pytest.mark.req("O06", "O07"))
def an_attempt_at_the_limit_asks_for_nothing_more(world: World) -> None:
    world.worker()
    work_id, rests = standing(world), world.submit(kind=WorkKind.STANDING)
    cause = started(world, work_id, depth_max=0).attempt_id
    before = world.everything()

    for ask in (
        lambda tx: tx.submit(new_work(), "jobs", cause=cause),
        lambda tx: tx.add_input(rests, b"more", by="a job", cause=cause),
        lambda tx: tx.inject(rests, b"more", by="a job", cause=cause),
        lambda tx: tx.publish(TICK, cause=cause),
    ):
        with pytest.raises(
            ChainTooLongError, match=f"what {cause} asks for would be link 1 of a chain that may have 0"
        ):
            world.store.write(ask)

    assert world.everything() == before
    world.store.write(lambda tx: tx.add_input(rests, b"more", by="me"))
    assert depth(world, started(world, rests).attempt_id) == 0, "control: somebody outside"


@case(pytest.mark.req("O06"))
def an_attempt_that_is_not_there_is_nobody_of_ours(world: World) -> None:
    world.worker()

    work_id = world.store.write(lambda tx: tx.submit(new_work(), "jobs", cause=AttemptId("w77.1")))

    assert depth(world, started(world, work_id).attempt_id) == 0


@case(pytest.mark.req("O01", "O06"))
def a_key_that_was_accepted_is_answered_whoever_asks_again(world: World) -> None:
    world.worker()
    work_id = standing(world)
    first = world.store.write(lambda tx: tx.submit(new_work(), "jobs", key="k"))
    cause = started(world, work_id, depth_max=0).attempt_id

    assert world.store.write(lambda tx: tx.submit(new_work(), "jobs", key="k", cause=cause)) == first
