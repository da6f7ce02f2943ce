"""What reads answer: order, bounds, cursors, counts, dues."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.ids import AttemptId, WorkId
from shared.model.host import ClockMark, StopOrder
from shared.model.instant import US_PER_S
from shared.model.settings import DEFAULT
from shared.model.work import Reason, WorkState
from shared.policy.capacity import Wait
from shared.store.contract import Tx
from tests.contract.store_cases import case
from tests.support.passes import pass_record
from tests.support.stores import (
    ACCEPT_US,
    BACKED_OFF,
    EXHAUSTED,
    FAILED,
    LEASE_US,
    RETURNED,
    TIMEOUT_US,
    UNPROVEN,
    World,
    new_work,
)


@case(pytest.mark.req("S02"))
def the_last_attempts_of_a_work_are_read_page_by_page(world: World) -> None:
    owner, work_id = world.worker(), world.submit()
    for _ in range(5):
        key = world.running(owner, work_id)
        world.store.write(lambda tx, key=key: tx.finish(key, FAILED, RETURNED))  # type: ignore[misc]
    world.ended(owner)

    def numbers(before: int | None, limit: int) -> list[int]:
        found = world.store.read(lambda tx: tx.last_attempts(work_id, before=before, limit=limit))
        return [attempt.number for attempt in found]

    assert numbers(None, 9) == [1, 2, 3, 4, 5]
    assert numbers(None, 2) == [4, 5]
    assert numbers(4, 2) == [2, 3]
    assert numbers(1, 2) == []

    def following(after: int, limit: int) -> list[int]:
        found = world.store.read(lambda tx: tx.next_attempts(work_id, after=after, limit=limit))
        return [attempt.number for attempt in found]

    assert following(0, 9) == [1, 2, 3, 4, 5]
    assert following(1, 2) == [2, 3]
    assert following(5, 2) == []


@case(pytest.mark.req("R10"))
def the_open_stop_order_of_an_attempt_is_found_by_its_name(world: World) -> None:
    owner = world.worker()
    key, other = world.ended(owner, UNPROVEN, EXHAUSTED), world.ended(owner, UNPROVEN, EXHAUSTED)
    proven = world.ended(owner)

    def order(name: AttemptId) -> StopOrder | None:
        return world.store.read(lambda tx: tx.open_stop_order(name))

    assert [order(each.attempt_id) for each in (key, other)] == world.store.read(lambda tx: tx.stop_orders())
    assert order(proven.attempt_id) is None
    world.confirm(key)
    assert order(key.attempt_id) is None


@case(pytest.mark.req("V01"))
def works_are_listed_by_number_state_and_cursor(world: World) -> None:
    owner = world.worker()
    done = world.attempt(world.ended(owner, FAILED, EXHAUSTED).attempt_id).work_id
    running = world.attempt(world.running(owner).attempt_id).work_id
    ready = world.submit()

    def ids(states: tuple[WorkState, ...], after: int = 0, limit: int = 9) -> list[str]:
        return [work.id for work in world.store.read(lambda tx: tx.works(states=states, after=after, limit=limit))]

    assert ids(()) == [done, running, ready]
    assert ids((), after=1, limit=1) == [running]
    assert ids((WorkState.RUNNING, WorkState.READY)) == [running, ready]
    assert ids((WorkState.FAILED,)) == [done]
    assert ids((WorkState.FAILED, WorkState.READY), after=1) == [ready]


@case(pytest.mark.req("V01", "C04"))
def works_are_listed_by_reason_scope_binding_and_range(world: World) -> None:
    works = [world.submit(scope=scope) for scope in ("ops", "ops/backup", "opsy", "o_s", "ops", "oxs", "")]
    world.as_leader(
        lambda tx: tx.hold_back([Wait(works[4], Reason.CAPACITY_SCOPE, "ops"), Wait(works[2], Reason.NO_WORKER, None)])
    )
    named = world.store.write(lambda tx: tx.submit(replace(new_work(), binding="backup", command=None), "jobs"))
    running = world.attempt(world.running(world.worker(), works[0]).attempt_id).work_id

    def ids(*, states: tuple[WorkState, ...] = (), after: int = 0, limit: int = 9, **like: Any) -> list[str]:
        return [
            one.id for one in world.store.read(lambda tx: tx.works(states=states, after=after, limit=limit, **like))
        ]

    assert ids(scope="ops") == [running, works[1], works[4]]
    assert ids(scope="o_s") == [works[3]], "a name is no pattern"
    assert ids(scope="ops", limit=2) == [running, works[1]]
    assert ids(scope="ops", states=(WorkState.READY,)) == ids(scope="ops", after=1) == [works[1], works[4]]
    assert ids(scope="ops", to=4) == [running, works[1]]
    assert ids(reasons=[Reason.NO_WORKER, Reason.CAPACITY_SCOPE]) == [works[2], works[4]]
    assert ids(reasons=[Reason.NO_WORKER], scope="ops") == []
    assert ids(binding="backup") == [named]
    assert ids(states=(WorkState.READY, WorkState.RUNNING), to=2) == [running, works[1]]


@case(pytest.mark.req("K01"))
def the_next_due_is_the_earliest_of_lapse_overdue_claim_and_backoff(world: World) -> None:
    def due_in() -> int | None:
        due = world.store.read(lambda tx: tx.next_due_mono_us())
        return None if due is None else due - world.clock.now().mono_us

    owner = world.worker()
    assert due_in() is None
    world.running(owner)
    assert due_in() == LEASE_US
    key = world.claimed(owner)
    assert due_in() == ACCEPT_US
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=None))
    assert due_in() == LEASE_US
    world.ended(owner, FAILED, BACKED_OFF)
    assert due_in() == US_PER_S
    world.clock.advance(LEASE_US)
    assert due_in() == US_PER_S - LEASE_US, "a backoff that is over stays due until it is fired"
    work_id = world.due()[0]
    world.fire(work_id)
    assert due_in() == TIMEOUT_US - LEASE_US, "what has lapsed waits for a worker, or for its time to be used up"
    world.clock.advance(TIMEOUT_US - LEASE_US)
    assert due_in() is None


@case(pytest.mark.req("V01"))
def idle_state_tells_what_is_live_waiting_and_left_for_a_person(world: World) -> None:
    owner = world.worker()
    assert world.store.read(lambda tx: tx.idle_state()).live == 0
    world.running(owner)
    unproven = world.ended(owner, UNPROVEN, EXHAUSTED)
    world.ended(owner, FAILED, BACKED_OFF)
    world.submit()

    state = world.store.read(lambda tx: tx.idle_state())

    assert (state.live, state.waiting, state.needs_person) == (2, 2, ())
    world.confirm(unproven)
    assert world.store.read(lambda tx: tx.idle_state()).live == 1


@case(pytest.mark.req("K05"))
def the_last_thousand_passes_are_kept(world: World) -> None:
    def many(count: int) -> None:
        def record_all(tx: Tx) -> None:
            for number in range(count):
                tx.record_pass(pass_record(duration_us=number))

        world.as_leader(record_all)

    assert world.store.read(lambda tx: tx.last_pass()) is None
    many(1_003)

    assert world.store.read(lambda tx: tx.last_pass()) == pass_record(duration_us=1_002)
    kept = world.store.read(lambda tx: tx._db.value("SELECT count(*) FROM pass"))  # type: ignore[attr-defined]
    assert kept == 1_000


@case(pytest.mark.req("K05"))
def what_a_pass_did_not_come_to_is_unknown_not_nothing(world: World) -> None:
    failed = pass_record(claimed=None, waiting_jobs=None, recovered=3, dispatched=2, cut_short=True, error="store_busy")

    world.as_leader(lambda tx: tx.record_pass(failed))

    assert world.store.read(lambda tx: tx.last_pass()) == failed


@case(pytest.mark.req("K02"))
def a_jump_of_the_clock_is_told_and_the_last_one_is_remembered(world: World) -> None:
    def jumps() -> list[object]:
        events = world.store.read(lambda tx: tx.events(after=0, limit=100))
        return [event.data["by_us"] for event in events if event.kind == "clock.jumped"]

    assert world.store.read(lambda tx: tx.clock_mark()) is None
    world.as_leader(lambda tx: tx.mark_clock(offset_us=5))
    assert world.store.read(lambda tx: tx.clock_mark()) == ClockMark("boot-1", 5)
    assert jumps() == []

    world.as_leader(lambda tx: tx.record_clock_jump(-7, offset_us=-2))
    told_at_us = world.clock.now().wall_us
    world.clock.reboot("boot-2")
    world.as_leader(lambda tx: tx.mark_clock(offset_us=9))

    assert jumps() == [-7]
    assert world.store.read(lambda tx: tx.clock_mark()) == ClockMark("boot-2", 9, told_at_us, -7)


@case(pytest.mark.req("E09"))
def configurations_are_generations(world: World) -> None:
    assert world.store.read(lambda tx: tx.config()) is None
    body, digest = DEFAULT.to_json(), DEFAULT.digest
    first = world.store.write(lambda tx: tx.activate_config(body, digest, "/t.toml"))
    same = world.store.write(lambda tx: tx.activate_config(body, digest, "/t.toml"))
    moved = world.store.write(lambda tx: tx.activate_config(body, digest, "/u.toml"))
    back = world.store.write(lambda tx: tx.activate_config(body, digest, "/t.toml"))

    assert (first, same, moved, back) == (1, 1, 2, 3)
    active, old = world.store.read(lambda tx: (tx.config(), tx.config(2)))
    assert active is not None
    assert old is not None
    assert (active.number, old.source_path) == (3, "/u.toml")
    assert world.store.read(lambda tx: tx.config(9)) is None


@case(pytest.mark.req("E10"))
def what_is_no_text_is_stored_and_given_back(world: World) -> None:
    """An argument need not be UTF-8: Python carries such bytes as lone surrogates."""
    odd = "\udcff\x00é"
    work_id = world.store.write(lambda tx: tx.submit(new_work(), "jobs"))
    strange = replace(
        new_work(input_=bytes(range(256))), command=("echo", odd), env=(("K", odd),), grants=("deploy", "net")
    )
    other = world.store.write(lambda tx: tx.submit(strange, "jobs"))

    work = world.work(other)

    assert (work.command, work.env, work.grants) == (("echo", odd), (("K", odd),), ("deploy", "net"))
    [one] = world.store.read(lambda tx: tx.inputs(tx.pending_inputs(other, limit=9)))
    assert one.body == bytes(range(256))
    assert (world.work(work_id).command, world.work(work_id).grants) == (("true",), ())


@case(pytest.mark.req("D02"))
def the_changefeed_is_read_behind_a_cursor_without_gaps(world: World) -> None:
    world.ended(world.worker())

    events = world.store.read(lambda tx: tx.events(after=0, limit=1_000))

    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert world.store.read(lambda tx: tx.events(after=3, limit=2)) == events[3:5]
    assert [event.kind for event in events if event.attempt_id] == [
        "attempt.claimed",
        "attempt.accepted",
        "attempt.pinned",
        "lease.revoked",
        "attempt.succeeded",
    ]
    finished = events[-2]
    assert (finished.kind, finished.epoch, finished.data["from"], finished.data["to"]) == (
        "attempt.succeeded",
        1,
        "running",
        "succeeded",
    )


@case(pytest.mark.req("V02"))
def events_of_one_attempt_are_the_last_ones_in_order(world: World) -> None:
    worker = world.worker()
    keys = [world.running(worker) for _ in range(2)]
    world.store.write(lambda tx: tx.finish(keys[1], FAILED, EXHAUSTED))
    world.store.write(lambda tx: tx.finish(keys[0], FAILED, EXHAUSTED))

    every = world.store.read(lambda tx: tx.events(after=0, limit=1_000))
    own = [event for event in every if event.attempt_id == keys[0].attempt_id]

    assert len(own) > 4
    assert world.store.read(lambda tx: tx.attempt_events(keys[0].attempt_id, limit=1_000)) == own
    assert world.store.read(lambda tx: tx.attempt_events(keys[0].attempt_id, limit=2)) == own[-2:]
    assert world.store.read(lambda tx: tx.attempt_events(AttemptId("w9.9"), limit=2)) == []


@case(pytest.mark.req("V01"))
def what_does_not_exist_reads_as_none(world: World) -> None:
    nothing = AttemptId("w9.9")
    assert world.store.read(
        lambda tx: (tx.work(WorkId("w9")), tx.attempt(nothing), tx.snapshot(nothing), tx.lease(nothing), tx.leader())
    ) == (None, None, None, None, None)
    assert world.store.read(lambda tx: (tx.segments(nothing), tx.attempt_directories(nothing), tx.inputs([5]))) == (
        [],
        [],
        [],
    )
