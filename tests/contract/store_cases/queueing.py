"""The queue of ready work: its order, its bounds, what is set aside, how it is counted."""

from __future__ import annotations

import pytest

from shared.ids import WorkId
from shared.model.instant import US_PER_S
from shared.model.work import Reason
from shared.policy.capacity import Wait
from shared.store.contract import ReadyPage, SetAside
from tests.contract.store_cases import case
from tests.support.stores import (
    EXHAUSTED,
    FAILED,
    UNPROVEN,
    World,
)


@case(pytest.mark.req("C02", "K01"))
def ready_work_comes_by_priority_then_age_behind_the_cursor(world: World) -> None:
    low = [world.submit(priority=0) for _ in range(3)]
    high = [world.submit(priority=9) for _ in range(2)]
    other = world.submit(pool="agents", priority=99)
    expected = [*high, *low]

    seen = []
    after: tuple[int, int] | None = None
    while found := world.ready(after=after, limit=2):
        seen += [work.id for work in found]
        after = (found[-1].priority, found[-1].ready_seq)

    assert seen == expected
    assert [work.id for work in world.store.read(lambda tx: tx.ready("agents", after=None, limit=9))] == [other]


@case(pytest.mark.req("C01"))
def ready_work_of_skipped_scopes_and_below_is_left_out(world: World) -> None:
    ids = {scope: world.submit(scope=scope) for scope in ("ops", "ops/backup", "opsy", "o", "o_s", "oxs", "")}

    found = world.store.read(lambda tx: tx.ready("jobs", after=None, limit=9, skip_scopes=("ops", "o_s")))

    assert [work.id for work in found] == [ids["opsy"], ids["o"], ids["oxs"], ids[""]]
    behind = world.store.read(lambda tx: tx.ready("jobs", after=(0, 4), limit=9, skip_scopes=("ops",)))
    assert [work.id for work in behind] == [ids["o_s"], ids["oxs"], ids[""]]


@case(pytest.mark.req("C01", "C02", "S01"))
def a_bounded_look_goes_on_where_it_ended(world: World) -> None:
    """However long the queue of skipped scopes is, and whatever its priority, what is behind it is found at last, also where there are
    too many scopes to look at each.
    """
    first = world.submit(priority=5)
    for number in range(20):
        world.submit(scope="full" if number % 2 else "full/below", priority=5 if number < 10 else 0)
    behind = [world.submit(scope="other"), world.submit(priority=-1)]
    world.submit(pool="agents")

    pages, after = [], None
    while True:
        page = world.store.read(
            lambda tx, at=after: tx.ready_page("jobs", after=at, limit=2, skip_scopes=("full",), look=7, scopes=0)  # type: ignore[misc]
        )
        pages.append([work.id for work in page.works])
        if page.end is None:
            break
        after = page.end

    assert pages == [[first], [], [], behind, []]
    every = world.store.read(lambda tx: tx.ready_page("jobs", after=None, limit=99, skip_scopes=("full",)))
    assert ([work.id for work in every.works], every.end) == ([first, *behind], None)
    unskipped = world.store.read(lambda tx: tx.ready_page("jobs", after=None, limit=99))
    assert list(unskipped.works) == world.ready(limit=99)
    assert world.store.read(lambda tx: tx.ready_page("none", after=None, limit=9)).end is None


@case(pytest.mark.req("C01", "C02", "S01"))
def what_lies_behind_full_scopes_is_found_in_one_look(world: World) -> None:
    """In the order of the queue, whatever scope it lies in, and with one Work to stand for each scope that was passed over."""
    hidden = [world.submit(scope=scope, priority=1) for scope in ("full", "full/below", "taken/a", "taken/b") * 3]
    free = [world.submit(scope=scope) for scope in ("open", "full.not", "", "open", "taken0")]
    urgent = world.submit(scope="open", priority=1)
    low = world.submit(scope="open", priority=-1)

    def page(after: tuple[int, int] | None, limit: int, scopes: int = 9) -> ReadyPage:
        return world.store.read(
            lambda tx: tx.ready_page(
                "jobs", after=after, limit=limit, skip_scopes=("full", "taken"), look=4, scopes=scopes
            )
        )

    first = page(None, 4)
    assert [work.id for work in first.works] == [urgent, *free[:3]]
    assert [work.id for work in first.passed] == [hidden[0], hidden[2]]
    second = page(first.end, 4)
    assert ([work.id for work in second.works], second.end) == ([*free[3:], low], None)
    walked = page(None, 4, scopes=2)
    assert (walked.works, walked.passed) == ((), ()), "the control: with too many scopes the queue is walked, so far"
    assert walked.end is not None


@case(pytest.mark.req("F03", "S01"))
def what_is_set_aside_lies_outside_the_queue_and_comes_back_at_its_place(world: World) -> None:
    before, gone, bad, capacity, after = (world.submit(scope=f"s{number}") for number in range(5))
    urgent = world.submit(priority=1)
    waits = [Wait(gone, Reason.UNSUPPORTED_GENERATION, None), Wait(bad, Reason.QUARANTINED, "bad")]
    waits += [Wait(capacity, Reason.CAPACITY_SCOPE, "full"), Wait(urgent, Reason.QUARANTINED, "bad")]

    def queue(*skip: str) -> list[str]:
        page = world.store.read(lambda tx: tx.ready_page("jobs", after=None, limit=9, skip_scopes=skip, look=2))
        return [work.id for work in page.works]

    def aside(at: tuple[int, int] | None, limit: int) -> SetAside:
        return world.store.read(lambda tx: tx.set_aside("jobs", after=at, limit=limit))

    everything = [urgent, before, gone, bad, capacity, after]
    assert [work.id for work in world.ready(limit=9)] == everything, "the control: nothing is set aside yet"
    world.as_leader(lambda tx: tx.hold_back(waits))

    assert [work.id for work in world.ready(limit=9)] == [before, capacity, after]
    assert queue("none") == [before, capacity, after], "also where scopes are passed over"
    first = aside(None, 2)
    assert (first.ids, [work.id for work in first.works]) == ((urgent, gone), [urgent, gone])
    assert (aside(first.end, 2).ids, aside(first.end, 2).end) == ((bad,), None)
    assert world.store.read(lambda tx: tx.set_aside("agents", after=None, limit=9)).ids == ()
    assert world.store.read(lambda tx: tx.ready_below("s1", cap=9)) == 0
    world.as_leader(lambda tx: tx.requeue([gone, bad, urgent, capacity, WorkId("w99")]))
    assert [work.id for work in world.ready(limit=9)] == everything
    told = [Reason.CAPACITY_SCOPE if work_id == capacity else None for work_id in everything]
    assert [world.work(work_id).reason for work_id in everything] == told, "what is in the queue keeps its reason"


@case(pytest.mark.req("F03", "S01"))
def what_was_set_aside_for_a_quarantine_that_has_ended_is_found(world: World) -> None:
    works = [world.submit() for _ in range(5)]
    for binding in ("bad", "worse"):
        world.store.write(lambda tx, name=binding: tx.quarantine_binding(name, by="t", reason="r"))  # type: ignore[misc]
    waits = [Wait(work_id, Reason.QUARANTINED, "worse" if work_id == works[0] else "bad") for work_id in works[:4]]
    world.as_leader(lambda tx: tx.hold_back([*waits, Wait(works[4], Reason.CAPACITY_SCOPE, "bad")]))

    def out(limit: int) -> list[str]:
        return world.store.read(lambda tx: list(tx.out_of_quarantine(limit=limit)))

    assert out(9) == [], "the control: both are in quarantine"
    world.store.write(lambda tx: tx.release_binding("bad", by="t", reason="r"))
    assert (out(9), out(2)) == (works[1:4], works[1:3])


@case(pytest.mark.req("C03", "C05"))
def holders_of_slots_are_listed_oldest_first(world: World) -> None:
    owner = world.worker()
    running = world.running(owner)
    world.clock.advance(US_PER_S)
    unproven = world.ended(owner, UNPROVEN, EXHAUSTED)
    world.ended(owner, FAILED, EXHAUSTED)
    world.clock.advance(US_PER_S)
    claimed = world.claimed(owner)

    def names(limit: int) -> list[str]:
        return [attempt.id for attempt in world.store.read(lambda tx: tx.holders(limit=limit))]

    assert names(9) == [key.attempt_id for key in (running, unproven, claimed)]
    assert names(1) == [running.attempt_id]
    world.confirm(unproven)
    assert names(9) == [key.attempt_id for key in (running, claimed)]


@case(pytest.mark.req("C04", "C05"))
def waiting_work_is_counted_by_the_limit_that_holds_it(world: World) -> None:
    jobs = [world.submit() for _ in range(5)]
    agent = world.submit(pool="agents")
    waits = [Wait(work_id, Reason.CAPACITY_SCOPE, "ops") for work_id in jobs[:2]]
    waits += [Wait(jobs[2], Reason.CAPACITY_JOB_CONCURRENCY, "jobs"), Wait(jobs[3], Reason.NO_WORKER, None)]
    waits.append(Wait(agent, Reason.CAPACITY_SCOPE, "ops"))
    world.as_leader(lambda tx: tx.hold_back(waits))

    assert world.store.read(lambda tx: tx.ready_limits(cap=100)) == {
        ("agents", "ops"): 1,
        ("jobs", "ops"): 2,
        ("jobs", "jobs"): 1,
    }
    assert world.store.read(lambda tx: tx.ready_limits(cap=1)) == {
        ("agents", "ops"): 1,
        ("jobs", "ops"): 1,
        ("jobs", "jobs"): 1,
    }


@case(pytest.mark.req("C02"))
def ready_counts_go_by_pool_and_reason_up_to_a_cap(world: World) -> None:
    jobs = [world.submit() for _ in range(5)]
    world.submit(pool="agents")
    world.as_leader(lambda tx: tx.hold_back([Wait(work_id, Reason.NO_WORKER, None) for work_id in jobs[:2]]))

    assert world.store.read(lambda tx: tx.ready_counts(cap=100)) == {
        ("agents", None): 1,
        ("jobs", None): 3,
        ("jobs", Reason.NO_WORKER): 2,
    }
    assert world.store.read(lambda tx: tx.ready_counts(cap=2)) == {
        ("agents", None): 1,
        ("jobs", None): 2,
        ("jobs", Reason.NO_WORKER): 2,
    }


@case(pytest.mark.req("C04"))
def what_is_ready_below_a_scope_is_counted_up_to_a_cap(world: World) -> None:
    for scope in ("ops", "ops/a", "ops/a/b", "ops.x", "ops0", "op", ""):
        world.submit(scope=scope)
    world.submit(scope="ops", pool="agents")
    world.running(world.worker(), world.submit(scope="ops"))

    assert world.store.read(lambda tx: tx.ready_below("ops", cap=9)) == 4
    assert world.store.read(lambda tx: tx.ready_below("ops/a", cap=9)) == 2
    assert world.store.read(lambda tx: tx.ready_below("none", cap=9)) == 0
    assert world.store.read(lambda tx: tx.ready_below("ops/a", cap=1)) == 1
