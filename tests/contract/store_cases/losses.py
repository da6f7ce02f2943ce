"""Deaths of workers, counted on what they held; and the binding whose works cost too many. Rule: case C056."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import AttemptState, LeaseKey
from shared.policy.losses import QUICK_US
from shared.store.contract import Claimed
from tests.contract.store_cases import case
from tests.support.declarations import WAIT_TO_RESUME
from tests.support.stores import World, new_work


def dies(world: World, worker: Incarnation) -> None:
    """The leader has proof that the worker is dead."""
    world.as_leader(lambda tx: tx.retire_worker(worker, reason="worker died", died=True))


def lost(world: World, key: LeaseKey) -> tuple[int, int]:
    """Workers that the attempt lost in all, and in a row."""
    attempt = world.attempt(key.attempt_id)
    return attempt.workers_lost, attempt.workers_lost_in_row


def accepted_again(world: World, key: LeaseKey, number: int) -> LeaseKey:
    """Taken over, and accepted, by a new worker of that number."""
    key = world.take_over(key, world.worker(f"worker-{number}"))
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=None))
    return key


def of_binding(world: World, worker: Incarnation, binding: str | None, *, after: int = 5, most: int = 3) -> LeaseKey:
    """Running, of that binding; `after`, `most`: see `Snapshot.quarantine_after` and `workers_lost_max`."""
    work = replace(new_work(), binding=binding, command=None if binding else ("true",))
    work_id: WorkId = world.store.write(lambda tx: tx.submit(work, "jobs"))
    request = world.request(work_id, worker)
    snapshot = replace(request.snapshot, binding=binding, quarantine_after=after, workers_lost_max=most)
    answer = world.as_leader(lambda tx: tx.claim(replace(request, snapshot=snapshot)))
    assert isinstance(answer, Claimed)
    key = LeaseKey(answer.attempt_id, 1, worker)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
    world.store.write(lambda tx: tx.pin(key, world.pin(key)))
    return key


def quarantined(world: World) -> frozenset[str]:
    return world.store.read(lambda tx: tx.quarantined())


def told(world: World) -> list[tuple[AttemptId | None, object, object]]:
    found = world.store.read(lambda tx: tx.events(after=0, limit=1_000))
    return [(each.attempt_id, each.data["lost"], each.data["in_row"]) for each in found if each.kind == "worker.lost"]


@case(pytest.mark.req("F03"))
def each_death_of_a_holder_is_counted_on_what_it_held_before_anybody_takes_that_over(world: World) -> None:
    dead, other = world.worker(), world.worker("worker-2")
    launching, running, elsewhere = world.accepted(dead), world.running(dead), world.running(other)
    ended = world.ended(dead)

    dies(world, dead)

    assert [lost(world, key) for key in (launching, running, elsewhere, ended)] == [(1, 1), (1, 1), (0, 0), (0, 0)]
    assert told(world) == [(launching.attempt_id, 1, 1), (running.attempt_id, 1, 1)]
    dies(world, dead)
    assert lost(world, launching) == (1, 1), "once"
    assert world.attempt(launching.attempt_id).state is AttemptState.LAUNCHING, "nothing else is done to it"


@case(pytest.mark.req("F03"))
def what_is_no_death_of_the_holder_counts_as_none(world: World) -> None:
    claimed = world.claimed(world.worker("worker-1"))
    drained = world.running(world.worker("worker-2"))
    rebooted = world.running(world.worker("worker-3"))
    lapsed = world.running(world.worker("worker-4"))
    dies(world, claimed.owner)
    assert lost(world, claimed) == (0, 0), "it had not accepted: nothing was launched for it"
    world.store.write(lambda tx: tx.retire_worker(drained.owner, reason="released"))
    assert lost(world, drained) == (0, 0), "it left"
    world.clock.advance(world.store.read(lambda tx: tx.lease(lapsed.attempt_id).expires_mono_us))  # type: ignore[union-attr]
    accepted_again(world, lapsed, 5)
    dies(world, lapsed.owner)
    assert lost(world, lapsed) == (0, 0), "it was frozen, and another held it when it died"
    world.clock.reboot("boot-2")
    dies(world, rebooted.owner)
    assert lost(world, rebooted) == (0, 0), "its host restarted"

    control = world.running(world.worker("worker-6"))
    dies(world, control.owner)
    assert lost(world, control) == (1, 1), "control"


@case(pytest.mark.req("F03"))
def a_row_of_lost_workers_ends_with_a_pin_and_with_one_that_held_it_for_long(world: World) -> None:
    key = world.accepted(world.worker())
    dies(world, key.owner)
    key = accepted_again(world, key, 2)
    world.clock.advance(QUICK_US)
    dies(world, key.owner)
    assert lost(world, key) == (2, 2), "a launch is suspected however long it takes"
    key = accepted_again(world, key, 3)
    world.store.write(lambda tx: tx.relaunch(key, clear_pin=False, why="test"))
    world.store.write(lambda tx: tx.pin(key, world.pin(key)))
    assert lost(world, key) == (2, 0)

    dies(world, key.owner)
    key = accepted_again(world, key, 4)
    world.clock.advance(QUICK_US - 1)
    dies(world, key.owner)
    assert lost(world, key) == (4, 2), "soon, and again soon"
    key = accepted_again(world, key, 5)
    world.clock.advance(QUICK_US)
    dies(world, key.owner)

    assert lost(world, key) == (5, 1)


@case(pytest.mark.req("F03", "O08"))
def a_resumed_attempt_begins_its_row_anew(world: World) -> None:
    owner = world.worker()
    key = world.running(owner)
    dies(world, owner)
    key = accepted_again(world, key, 2)
    world.store.write(lambda tx: tx.adopt(key, why="test"))
    world.store.write(lambda tx: tx.declare(key, [WAIT_TO_RESUME]))
    outcome = world.outcome(key)
    world.store.write(lambda tx: tx.park(key, outcome, proof="S1"))
    world.clock.advance(3_600 * 1_000_000)
    world.fire(world.attempt(key.attempt_id).work_id)

    world.resumed(key, world.worker("worker-3"))

    assert lost(world, key) == (1, 0)


@case(pytest.mark.req("F03"))
def a_binding_that_costs_three_workers_is_quarantined_and_what_runs_of_it_is_left_alone(world: World) -> None:
    key = of_binding(world, world.worker(), "backup")
    for number in (2, 3):
        dies(world, key.owner)
        assert quarantined(world) == frozenset()
        key = accepted_again(world, key, number)

    dies(world, key.owner)

    assert quarantined(world) == {"backup"}
    [routine] = world.store.read(lambda tx: tx.routines(limit=9))
    assert routine.reason == "its works cost 3 workers in a row their lives"
    assert world.attempt(key.attempt_id).ended_at_us is None, "what runs is never punished"
    key = accepted_again(world, key, 4)
    world.store.write(lambda tx: tx.adopt(key, why="test"))
    world.store.write(lambda tx: tx.release_binding("backup", by="me", reason="mended"))
    world.clock.advance(QUICK_US)
    dies(world, key.owner)
    assert quarantined(world) == frozenset(), "the row began anew"


@case(pytest.mark.req("F03"))
def nobody_is_quarantined_for_deaths_that_several_may_have_caused_or_where_it_is_switched_off(world: World) -> None:
    first = world.worker()
    every = {
        "two bindings": [of_binding(world, first, "backup"), of_binding(world, first, "report")],
        "one of them with its own command": [of_binding(world, first, "mail"), of_binding(world, first, None, after=0)],
        "never": [of_binding(world, first, "idle", after=0)],
        "any number of workers": [of_binding(world, first, "wild", most=0)],
        "one that is about to end": [of_binding(world, first, "near"), world.accepted(first)],
        "control": [of_binding(world, first, "guilty"), of_binding(world, first, "guilty")],
    }
    for key in [key for keys in every.values() for key in keys]:
        world.release(key)

    for what, keys in every.items():
        _lose_three_workers(world, keys)
        assert quarantined(world) == ({"guilty"} if what == "control" else frozenset()), what


def _lose_three_workers(world: World, keys: list[LeaseKey]) -> None:
    """Each takes all of them over, accepts them, and dies."""
    for number in (2, 3, 4):
        owner = world.worker(f"worker-{number}")
        keys = [world.take_over(key, owner) for key in keys]
        for key in keys:
            world.store.write(lambda tx, held=key: tx.accept(held, invoke_isolated=None))  # type: ignore[misc]
        dies(world, owner)


@case(pytest.mark.req("F03"))
def suspects_are_listed_and_who_launches_one_is_known(world: World) -> None:
    first, second = world.worker(), world.worker("worker-2")
    launching, running = world.accepted(first), world.running(first)
    assert world.store.read(lambda tx: tx.suspects(limit=9)) == []
    dies(world, first)
    assert {each.id for each in world.store.read(lambda tx: tx.suspects(limit=9))} == {
        launching.attempt_id,
        running.attempt_id,
    }
    assert world.store.read(lambda tx: tx.suspects_launching()) == frozenset()
    world.take_over(running, second)
    assert world.store.read(lambda tx: tx.suspects_launching()) == frozenset(), "it has a pin"

    launching = world.take_over(launching, second)

    assert world.store.read(lambda tx: tx.suspects_launching()) == {second}
    world.store.write(lambda tx: tx.accept(launching, invoke_isolated=None))
    world.store.write(lambda tx: tx.relaunch(launching, clear_pin=False, why="test"))
    world.rung.clear()
    world.store.write(lambda tx: tx.pin(launching, world.pin(launching)))
    assert world.store.read(lambda tx: tx.suspects_launching()) == frozenset()
    assert world.rung == ["coordinator"], "the next suspect's turn"
