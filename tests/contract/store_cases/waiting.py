"""Parks, what is published, wakes and resumes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shared.errors import RefusedError
from shared.ids import WorkId, work_of
from shared.model.attempt import AttemptState, Exclusion, Invoke, LeaseKey
from shared.model.declaration import Declaration
from shared.model.event import NewEvent
from shared.model.instant import US_PER_S
from shared.model.outcome import Outcome, OutcomeKind
from shared.model.wait import WaitState
from shared.model.work import NewWork, Reason, WorkState
from shared.policy.capacity import Usage
from shared.store.contract import Claimed, ClaimRefused, Event, Tx
from tests.contract.store_cases import case
from tests.support.declarations import TICK, TURN, WAIT, wait
from tests.support.stores import COMPLETED, SUCCEEDED, TIMEOUT_US, World

S, W = AttemptState, WorkState


def declare(world: World, key: LeaseKey, *declarations: Declaration) -> None:
    world.store.write(lambda tx: tx.declare(key, declarations))


def publish(world: World, kind: str = "tick", correlate: str | None = None, data: str = "1") -> int:
    return world.store.write(lambda tx: tx.publish(NewEvent(kind, correlate, data, "me")))


def events(world: World, kind: str) -> list[Event]:
    return [one for one in world.store.read(lambda tx: tx.events(after=0, limit=10_000)) if one.kind == kind]


def woken(world: World) -> list[str]:
    return [one.attempt.id for one in world.store.read(lambda tx: tx.woken("jobs", limit=99).woken)]


def correlated(world: World, *keys: str) -> WorkId:
    work = NewWork("", None, ("true",), (), "/", None, "test", correlate=keys)
    return world.store.write(lambda tx: tx.submit(work, "jobs"))


def finish(world: World, key: LeaseKey) -> None:
    outcome = world.outcome(key)
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED, outcome=outcome))


# --- parks


@case(pytest.mark.req("O08", "E13", "C03"))
def a_parked_attempt_holds_no_slot_no_lease_and_no_pin(world: World) -> None:
    owner = world.worker()
    key = world.running(owner)
    world.clock.advance(10 * US_PER_S)
    declare(world, key, wait(resume=True))
    outcome = world.outcome(key)
    assert world.store.read(lambda tx: tx.usage()).counts == {("jobs", ""): 1}, "control"

    world.store.write(lambda tx: tx.park(key, outcome, proof="S1"))

    attempt, [segment] = world.attempt(key.attempt_id), world.store.read(lambda tx: tx.segments(key.attempt_id))
    assert (attempt.state, attempt.pin, attempt.invoke, attempt.exclusion) == (S.PARKED, None, None, Exclusion.HELD)
    assert (segment.active_us, attempt.budget_us) == (10 * US_PER_S, TIMEOUT_US - 10 * US_PER_S)
    assert world.store.read(lambda tx: tx.usage()) == Usage({})
    assert world.work(attempt.work_id).state is W.WAITING
    assert world.recoverable() == []
    lease = world.store.read(lambda tx: tx.lease(key.attempt_id))
    assert lease is not None
    assert lease.revoked_reason == "parked"
    world.clock.advance(3 * TIMEOUT_US)
    assert world.attempt(key.attempt_id).budget_us == TIMEOUT_US - 10 * US_PER_S, "time parked is not charged"


@case(pytest.mark.req("O08"))
def nothing_is_parked_without_a_wait_to_resume_from(world: World) -> None:
    key = world.running(world.worker())
    before = world.everything()

    for outcome in (Outcome(), Outcome(OutcomeKind.WAITING)):
        with pytest.raises(RefusedError, match="nothing to wait for"):
            world.store.write(lambda tx, outcome=outcome: tx.park(key, outcome, proof="S1"))  # type: ignore[misc]

    assert world.everything() == before


@case(pytest.mark.req("O08", "E11", "E13"))
def a_wake_resumes_the_same_attempt_with_what_was_left_of_its_time(world: World) -> None:
    owner, other = world.worker(), world.worker("worker-2")
    key = world.parked(owner)
    left_us = world.attempt(key.attempt_id).budget_us
    world.clock.advance(TIMEOUT_US)
    seq = publish(world, data='{"answer": 42}')
    assert world.work(work_of(key.attempt_id)).state is W.WAITING, "until a worker is chosen"
    assert woken(world) == [key.attempt_id]

    again = world.resumed(key, other)

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.epoch, attempt.launch_epoch, attempt.budget_us) == (S.RESUMING, 2, 2, left_us)
    assert (attempt.invoke, attempt.exclusion_proof) == (Invoke.PENDING, None)
    segment = world.store.read(lambda tx: tx.segments(key.attempt_id))[-1]
    assert (segment.epoch, segment.wake_event, segment.recovered, segment.invoke) == (2, seq, False, Invoke.PENDING)
    assert (world.work(attempt.work_id).state, woken(world)) == (W.RUNNING, [])
    [assignment] = world.store.read(lambda tx: tx.assignments(other, limit=9))
    assert (assignment.key, assignment.recovery) == (again, False)
    assert assignment.wake is not None
    assert json.loads(assignment.wake.to_json()) == {
        "seq": seq, "type": "tick", "correlate": None, "data": {"answer": 42},
    }  # fmt: skip
    world.store.write(lambda tx: tx.accept(again, invoke_isolated=True))
    world.store.write(lambda tx: tx.pin(again, world.pin(again)))
    finish(world, again)
    assert world.attempt(key.attempt_id).state is S.SUCCEEDED


@case(pytest.mark.req("O08", "R03"))
def a_lost_resume_is_taken_over_and_resumed_again(world: World) -> None:
    owner, other = world.worker(), world.worker("worker-2")
    key = world.parked(owner)
    publish(world)
    lost = world.resumed(key, owner)
    world.store.write(lambda tx: tx.accept(lost, invoke_isolated=True))
    world.release(lost)
    new = world.take_over(lost, other)
    world.store.write(lambda tx: tx.accept(new, invoke_isolated=None))

    world.store.write(lambda tx: tx.relaunch(new, clear_pin=False, why="nothing ran"))

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.epoch, attempt.launch_epoch) == (S.RESUMING, 3, 2)
    wake = world.store.read(lambda tx: tx.wake(attempt))
    assert wake is not None
    assert wake.type == "tick", "it is told what woke it, however often its launch is lost"


@case(pytest.mark.req("O08", "C01", "C03"))
def a_resume_needs_a_slot_a_worker_and_nobody_s_hold(world: World) -> None:
    owner, away = world.worker(), world.worker("worker-2", executors=("agent@1",))
    key = world.parked(owner)
    publish(world)
    request = world.resume_request(key.attempt_id, owner)
    full = (Reason.CAPACITY_JOB_CONCURRENCY, "jobs")

    def ask(**changes: object) -> Claimed | ClaimRefused:
        changed = replace(request, **changes)  # type: ignore[arg-type]
        return world.as_leader(lambda tx: tx.claim_resume(changed))

    before = world.everything()
    assert ask(refusal=lambda _usage: full) == ClaimRefused(None, *full)
    assert ask(worker=away) == ClaimRefused("worker", None, None)
    assert ask(epoch_seen=7) == ClaimRefused("work", None, None)
    assert world.everything() == before
    work_id = work_of(key.attempt_id)
    world.store.write(lambda tx: tx.hold_work(work_id, by="me", reason="not now"))
    assert ask() == ClaimRefused(None, Reason.HOLD, None)
    world.store.write(lambda tx: tx.release_work(work_id, by="me", reason="now"))
    assert ask() == Claimed(key.attempt_id), "control"
    assert ask() == ClaimRefused("work", None, None), "once"


# --- events and timers


@case(pytest.mark.req("O08"))
def an_event_between_declaration_and_park_is_not_lost(world: World) -> None:
    owner = world.worker()
    too_early = publish(world)
    key = world.declared(owner, [wait(resume=True, timer=None)])
    outcome = world.outcome(key)
    seq = publish(world)

    world.store.write(lambda tx: tx.park(key, outcome, proof="S1"))

    awaited = world.store.read(lambda tx: tx.awaited(work_of(key.attempt_id)))
    assert awaited is not None
    assert (awaited.state, awaited.wake_seq) == (WaitState.SATISFIED, seq)
    assert too_early < awaited.since_seq < seq, "what came before it was declared counts for nothing"


@case(pytest.mark.req("O08"))
def an_event_matches_by_type_and_key(world: World) -> None:
    owner = world.worker()
    keyed = world.parked(owner, wait(resume=True, correlate="pr-1", timer=None))
    any_key = world.parked(owner, wait(resume=True, timer=None))
    publish(world, "tock")
    assert woken(world) == []
    publish(world, correlate="pr-2")
    assert woken(world) == [any_key.attempt_id]
    publish(world)
    assert woken(world) == [any_key.attempt_id]
    publish(world, correlate="pr-1")
    assert woken(world) == [any_key.attempt_id, keyed.attempt_id]


@case(pytest.mark.req("O08"))
def one_event_wakes_everybody_who_waits_and_a_second_nobody(world: World) -> None:
    owner = world.worker()
    first, second = world.parked(owner), world.parked(owner)
    seq = publish(world)

    publish(world)

    assert woken(world) == [first.attempt_id, second.attempt_id]
    assert {one.awaited.wake_seq for one in world.store.read(lambda tx: tx.woken("jobs", limit=9).woken)} == {seq}
    assert len(events(world, "wait.satisfied")) == 2


@case(pytest.mark.req("O06", "O08"))
def a_turn_wakes_other_works_and_never_its_own(world: World) -> None:
    owner = world.worker()
    waits = wait(resume=True, event="execution.turn", correlate="pr-1", timer=None)
    other = world.parked(owner, waits, correlated(world, "pr-1"))
    assert woken(world) == []

    own = world.declared(owner, [TURN, waits], correlated(world, "pr-1"))
    outcome = world.outcome(own)
    world.store.write(lambda tx: tx.park(own, outcome, proof="S1"))

    assert woken(world) == [other.attempt_id], "its own turn, told with its own park, is none of what it waits for"
    finish(world, world.declared(owner, [TURN], correlated(world, "pr-1")))
    assert woken(world) == [other.attempt_id, own.attempt_id], "control"


@case(pytest.mark.req("O08", "O13"))
def a_timer_wakes_by_an_event_of_its_own_in_one_transaction(world: World) -> None:
    owner = world.worker()
    key = world.parked(owner, wait(resume=True, timer="60s"))
    work_id = work_of(key.attempt_id)
    world.clock.advance(60 * US_PER_S - 1)
    assert world.due() == []
    world.clock.advance(1)
    assert world.due() == [work_id]
    assert woken(world) == [], "a due clock alone changes nothing"

    world.fire(work_id)

    assert woken(world) == [key.attempt_id]
    [elapsed] = events(world, "wait.elapsed")
    timer = world.store.read(lambda tx: tx.last_timer(work_id))
    assert timer is not None
    assert timer.fired_seq == elapsed.seq
    publish(world)
    assert [one.awaited.wake_seq for one in world.store.read(lambda tx: tx.woken("jobs", limit=9).woken)] == [
        elapsed.seq
    ]
    with pytest.raises(RefusedError, match="not armed"):
        world.fire(work_id)


@case(pytest.mark.req("O08"))
def an_event_that_comes_first_takes_the_timer_back(world: World) -> None:
    key = world.parked(world.worker(), wait(resume=True, timer="60s"))
    work_id = work_of(key.attempt_id)
    publish(world)
    world.clock.advance(60 * US_PER_S)

    assert world.due() == []
    with pytest.raises(RefusedError, match="not armed"):
        world.fire(work_id)
    assert len(events(world, "wait.satisfied")) == 1


@case(pytest.mark.req("O08"))
def event_and_timer_in_one_transaction_wake_once(world: World) -> None:
    key = world.parked(world.worker(), wait(resume=True, timer="60s"))
    world.clock.advance(60 * US_PER_S)
    timer = world.store.read(lambda tx: tx.timer(work_of(key.attempt_id)))
    assert timer is not None

    def both(tx: Tx) -> None:
        tx.fire_timer(timer.id)
        tx.publish(TICK)

    world.as_leader(both)

    assert woken(world) == [key.attempt_id]
    assert len(events(world, "wait.satisfied")) == 1


@case(pytest.mark.req("O08", "K02"))
def a_wait_goes_on_over_a_reboot(world: World) -> None:
    key = world.parked(world.worker(), wait(resume=True, timer="60s"))
    work_id = work_of(key.attempt_id)
    world.clock.reboot("boot-2", down_us=40 * US_PER_S)
    world.as_leader(lambda tx: (tx.revoke_foreign_boots(), tx.carry_timers(limit=9)))
    assert world.due() == []
    world.clock.advance(20 * US_PER_S)

    world.fire(work_id)

    assert woken(world) == [key.attempt_id]
    again = world.resumed(key, world.worker())
    assert world.attempt(again.attempt_id).state is S.RESUMING


# --- waits without a resume


@case(pytest.mark.req("O08"))
def a_wait_without_resume_ends_the_attempt_and_its_wake_readies_the_next(world: World) -> None:
    owner = world.worker()
    key = world.awaiting(owner, wait(resume=False, timer=None))
    work_id = work_of(key.attempt_id)
    assert (world.attempt(key.attempt_id).state, world.work(work_id).state) == (S.HANDED_OFF, W.WAITING)
    assert world.ready() == []
    assert world.store.read(lambda tx: tx.idle_state()).waiting == 1, "a home that waits is not idle"

    seq = publish(world, data='"go"')

    assert world.work(work_id).state is W.READY
    [number] = world.store.read(lambda tx: tx.pending_inputs(work_id, limit=9))
    [given] = world.store.read(lambda tx: tx.inputs([number]))
    assert json.loads(given.body) == {"seq": seq, "type": "tick", "correlate": None, "data": "go"}
    assert world.claimed(owner, work_id).attempt_id == f"{work_id}.2"
    assert woken(world) == []


@case(pytest.mark.req("O08"))
def a_work_whose_next_attempt_waits_keeps_its_home_from_being_idle(world: World) -> None:
    def waiting() -> tuple[int, int]:
        state = world.store.read(lambda tx: tx.idle_state())
        return state.live, state.waiting

    owner = world.worker()
    assert waiting() == (0, 0)
    key = world.awaiting(owner)
    assert waiting() == (0, 1)
    world.parked(owner)
    assert waiting() == (1, 1), "control: what is parked is live, and not counted twice"

    world.store.write(lambda tx: tx.cancel_work(work_of(key.attempt_id), by="me", reason="no more"))

    assert waiting() == (1, 0)


@case(pytest.mark.req("O08", "V01"))
def a_wake_of_a_held_work_leaves_it_held(world: World) -> None:
    key = world.awaiting(world.worker())
    work_id = work_of(key.attempt_id)
    world.store.write(lambda tx: tx.hold_work(work_id, by="me", reason="not now"))

    publish(world)

    assert (world.work(work_id).state, world.work(work_id).reason) == (W.HELD, Reason.HOLD)
    world.store.write(lambda tx: tx.release_work(work_id, by="me", reason="now"))
    assert world.work(work_id).state is W.READY


# --- cancels


@case(pytest.mark.req("T05", "O08"))
def cancelling_a_parked_work_ends_wait_timer_and_work_at_once(world: World) -> None:
    owner = world.worker()
    key = world.parked(owner)
    work_id = work_of(key.attempt_id)

    world.store.write(lambda tx: tx.cancel_work(work_id, by="me", reason="no more"))

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.exclusion, attempt.exclusion_proof) == (S.CANCELLED, Exclusion.RELEASED, "S1")
    assert world.work(work_id).state is W.CANCELLED
    assert world.store.read(lambda tx: (tx.awaited(work_id), tx.timer(work_id), tx.stop_orders())) == (None, None, [])
    publish(world)
    assert woken(world) == []
    assert len(events(world, "wait.cancelled")) == 1


@case(pytest.mark.req("T05", "O08"))
def cancelling_what_waits_for_the_next_attempt_ends_its_wait_too(world: World) -> None:
    key = world.awaiting(world.worker(), WAIT)
    work_id = work_of(key.attempt_id)

    world.store.write(lambda tx: tx.cancel_work(work_id, by="me", reason="no more"))

    publish(world)
    assert world.work(work_id).state is W.CANCELLED
    assert world.store.read(lambda tx: (tx.awaited(work_id), tx.timer(work_id))) == (None, None)


@case(pytest.mark.req("T05", "O08"))
def cancelling_after_the_wake_and_before_the_resume_leaves_nothing_to_resume(world: World) -> None:
    owner = world.worker()
    key = world.parked(owner)
    publish(world)
    request = world.resume_request(key.attempt_id, owner)

    world.store.write(lambda tx: tx.cancel_work(work_of(key.attempt_id), by="me", reason="no more"))

    assert woken(world) == []
    assert world.as_leader(lambda tx: tx.claim_resume(request)) == ClaimRefused("work", None, None)
