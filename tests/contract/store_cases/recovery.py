"""Recovery claims, and what the new holder may write."""

from __future__ import annotations

import pytest

from shared.ids import AttemptId, Incarnation
from shared.model.attempt import AttemptState, Invoke, LeaseKey
from shared.model.instant import US_PER_S
from shared.model.work import WorkState
from tests.contract.store_cases import case
from tests.support.stores import LEASE_US, TIMEOUT_US, World


def claim_recovery(world: World, key: LeaseKey, worker: Incarnation) -> int | None:
    return world.as_leader(
        lambda tx: tx.claim_recovery(key.attempt_id, epoch_seen=key.epoch, worker=worker, lease_us=LEASE_US)
    )


@case(pytest.mark.req("R02", "R07"))
def a_live_attempt_is_not_recovered_until_the_expiry_instant(world: World) -> None:
    """At the instant itself the holder is refused and the adopter wins: there is never a moment with two, or none."""
    key, other = world.running(world.worker()), world.worker("worker-2")
    world.clock.advance(LEASE_US - 1)
    assert world.store.read(lambda tx: tx.recoverable(after=None, limit=9)) == []
    assert claim_recovery(world, key, other) is None
    world.clock.advance(1)

    [found] = world.store.read(lambda tx: tx.recoverable(after=None, limit=9))

    assert (found.attempt.id, found.revoked, found.last_owner) == (key.attempt_id, None, key.owner)
    assert claim_recovery(world, key, other) == 2


@case(pytest.mark.req("R02", "E13", "E16"))
def a_recovery_keeps_the_attempt_its_pin_and_its_invoke(world: World) -> None:
    first, other = world.running(world.worker()), world.worker("worker-2")
    world.store.write(lambda tx: tx.release(first, reason="released"))
    world.rung.clear()

    second = world.take_over(first, other)

    attempt = world.attempt(first.attempt_id)
    assert (attempt.number, attempt.epoch, attempt.state, attempt.recovered_from) == (
        1,
        2,
        AttemptState.RECOVERING,
        AttemptState.RUNNING,
    )
    assert attempt.pin == world.pin(first)
    assert (attempt.invoke, attempt.isolated) == (Invoke.CALLED, True)
    old, new = world.store.read(lambda tx: tx.segments(first.attempt_id))
    assert old.ended_at_us == new.began_at_us
    assert (new.epoch, new.worker, new.invoke, new.recovered, new.relaunched) == (2, other, None, True, False)
    assert world.work(attempt.work_id).state is WorkState.RUNNING
    [assignment] = world.store.read(lambda tx: tx.assignments(other, limit=9))
    assert (assignment.key, assignment.recovery) == (second, True)
    assert other in world.rung


@case(pytest.mark.req("R02", "R04"))
def adopting_returns_to_running_and_keeps_the_pin(world: World) -> None:
    key = world.recovering(world.worker(), pinned=True)

    world.store.write(lambda tx: tx.adopt(key, why="its shim holds the lock"))

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.recovered_from, attempt.epoch) == (AttemptState.RUNNING, None, 2)
    assert attempt.pin is not None
    assert attempt.pin.epoch == 1


@case(pytest.mark.req("R03"))
def relaunching_returns_to_launching_and_marks_its_segment(world: World) -> None:
    key = world.recovering(world.worker(), pinned=False)
    assert world.attempt(key.attempt_id).recovered_from is AttemptState.LAUNCHING

    world.store.write(lambda tx: tx.relaunch(key, clear_pin=False, why="nothing ran"))

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.recovered_from, attempt.relaunches) == (AttemptState.LAUNCHING, None, 1)
    assert (attempt.invoke, attempt.isolated, attempt.pin) == (Invoke.CALLED, True, None)
    assert world.work(attempt.work_id).attempts_used == 1, "a relaunch spends no attempt"
    old, new = world.store.read(lambda tx: tx.segments(key.attempt_id))
    assert (old.relaunched, new.relaunched, new.recovered, new.invoke, new.isolated) == (
        False,
        True,
        True,
        Invoke.CALLED,
        True,
    )
    world.store.write(lambda tx: tx.pin(key, world.pin(key)))


@case(pytest.mark.req("R02", "R03"))
def what_was_unfinished_first_is_remembered_over_several_takeovers(world: World) -> None:
    """A recovery that is itself lost must not forget that the launch was unfinished."""
    owner = world.worker()
    key = world.recovering(owner, pinned=False)
    for _ in range(3):
        world.release(key)
        key = world.take_over(key, owner)
        attempt = world.attempt(key.attempt_id)
        assert (attempt.state, attempt.recovered_from) == (AttemptState.RECOVERING, AttemptState.LAUNCHING)

    assert key.epoch == 5
    assert [one.epoch for one in world.store.read(lambda tx: tx.segments(key.attempt_id))] == [1, 2, 3, 4, 5]
    names = world.store.read(lambda tx: tx.attempt_directories(key.attempt_id))
    assert names == [f"{key.attempt_id}.{epoch}" for epoch in (5, 4, 3, 2, 1)]


@case(pytest.mark.req("R02", "E07"))
def one_epoch_is_taken_over_once(world: World) -> None:
    key = world.running(world.worker())
    second, third = world.worker("worker-2"), world.worker("worker-3")
    world.store.write(lambda tx: tx.release(key, reason="released"))

    answers = [claim_recovery(world, key, owner) for owner in (second, third)]

    assert answers == [2, None]
    held = world.store.read(lambda tx: tx.lease(key.attempt_id))
    assert held is not None
    assert held.owner == second


@case(pytest.mark.req("R02", "E07"))
def a_takeover_decided_on_an_older_epoch_is_refused(world: World) -> None:
    first, other = world.running(world.worker()), world.worker("worker-2")
    world.release(first)
    second = world.take_over(first, other)
    world.release(second)

    assert claim_recovery(world, first, other) is None
    assert claim_recovery(world, second, other) == 3


@case(pytest.mark.req("R02"))
def recovery_goes_to_a_live_worker_only(world: World) -> None:
    key = world.running(world.worker())
    gone, draining, live = world.worker("worker-2"), world.worker("worker-3"), world.worker("worker-4")
    world.store.write(lambda tx: tx.release(key, reason="released"))
    world.store.write(lambda tx: tx.retire_worker(gone, reason="released"))
    world.store.write(lambda tx: tx.drain_worker(draining))

    answers = [claim_recovery(world, key, owner) for owner in (gone, draining, Incarnation("worker-9.9"), live)]

    assert answers == [None, None, None, 2]


@case(pytest.mark.req("R02", "E09"))
def recovery_goes_to_a_worker_with_the_pinned_executor_only(world: World) -> None:
    key = world.running(world.worker())
    other, same = world.worker("worker-2", executors=("shell@2",)), world.worker("worker-3", executors=("shell@1",))
    world.release(key)

    assert claim_recovery(world, key, other) is None
    assert claim_recovery(world, key, same) == 2
    [assignment] = world.store.read(lambda tx: tx.assignments(same, limit=9))
    assert assignment.snapshot.registration == "shell@1"


@case(pytest.mark.req("R02", "E14"))
def the_leader_itself_may_recover_to_end_an_attempt(world: World) -> None:
    key = world.running(world.worker())
    world.clock.advance(LEASE_US)
    world.as_leader(lambda tx: None)
    assert world.leader is not None

    assert claim_recovery(world, key, world.leader) == 2


@case(pytest.mark.req("R02"))
def what_waits_for_a_person_or_has_ended_is_not_recovered(world: World) -> None:
    owner, other = world.worker(), world.worker("worker-2")
    uncertain = world.running(owner)
    world.store.write(lambda tx: tx.require_recovery(uncertain, why="nobody saw its end", proof=None))
    ended = world.ended(owner)
    world.clock.advance(LEASE_US)

    assert world.store.read(lambda tx: tx.recoverable(after=None, limit=9)) == []

    assert claim_recovery(world, uncertain, other) is None
    assert claim_recovery(world, ended, other) is None


@case(pytest.mark.req("R02"))
def recoverable_attempts_are_listed_behind_a_cursor(world: World) -> None:
    owner = world.worker()
    keys = [world.running(owner) for _ in range(12)]
    world.clock.advance(LEASE_US)
    seen: list[AttemptId] = []
    after: AttemptId | None = None
    while found := world.recoverable(after=after, limit=5):
        assert len(found) <= 5
        seen += [one.attempt.id for one in found]
        after = seen[-1]

    assert sorted(seen) == sorted(key.attempt_id for key in keys)


@case(pytest.mark.req("R07", "E11"))
def a_takeover_charges_the_time_since_to_the_budget(world: World) -> None:
    owner = world.worker()
    first = world.running(owner)
    world.clock.advance(10 * US_PER_S)
    world.store.write(lambda tx: tx.release(first, reason="released"))
    world.clock.advance(5 * US_PER_S)

    second = world.take_over(first, owner)

    attempt = world.attempt(first.attempt_id)
    assert attempt.budget_us == TIMEOUT_US - 15 * US_PER_S
    assert attempt.budget_since_mono_us == world.clock.now().mono_us
    world.store.write(lambda tx: tx.release(second, reason="released"))
    world.clock.advance(TIMEOUT_US)
    world.take_over(second, owner)
    assert world.attempt(first.attempt_id).budget_us == 0


@case(pytest.mark.req("R07", "E11", "K01"))
def over_a_reboot_the_budget_is_charged_by_the_wall_and_never_gains(world: World) -> None:
    first, second = world.running(world.worker()), world.running(world.worker("worker-2"))
    world.clock.reboot("boot-2", down_us=30 * US_PER_S)
    fresh = world.worker()

    world.take_over(first, fresh)
    world.clock.step_wall(-86_400 * US_PER_S)
    world.take_over(second, fresh)

    assert world.attempt(first.attempt_id).budget_us == TIMEOUT_US - 30 * US_PER_S
    assert world.attempt(second.attempt_id).budget_us == TIMEOUT_US


@case(pytest.mark.req("R02", "R07"))
def leases_of_another_boot_are_revoked_at_once_and_recoverable(world: World) -> None:
    key = world.running(world.worker())
    assert world.as_leader(lambda tx: tx.revoke_foreign_boots()) == 0
    world.clock.reboot("boot-2")
    fresh = world.worker()

    assert world.as_leader(lambda tx: tx.revoke_foreign_boots()) == 1

    [found] = world.store.read(lambda tx: tx.recoverable(after=None, limit=9))
    assert found.revoked == "other_boot"
    assert claim_recovery(world, key, fresh) == 2
    assert world.as_leader(lambda tx: tx.revoke_foreign_boots()) == 0


@case(pytest.mark.req("R07", "R15"))
def a_dead_workers_leases_are_recoverable_at_once(world: World) -> None:
    dead, other = world.worker(), world.worker("worker-2")
    keys = [world.running(dead), world.claimed(dead)]
    kept = world.running(other)

    assert world.as_leader(lambda tx: tx.retire_worker(dead, reason="proven_dead")) == 2

    found = world.store.read(lambda tx: tx.recoverable(after=None, limit=9))
    assert [(one.attempt.id, one.revoked) for one in found] == [(key.attempt_id, "proven_dead") for key in keys]
    assert world.store.read(lambda tx: tx.held(other)) == [kept]
    assert world.as_leader(lambda tx: tx.retire_worker(dead, reason="proven_dead")) == 0


@case(pytest.mark.req("R07"))
def a_released_attempt_is_the_same_attempt_with_no_retry_spent(world: World) -> None:
    key = world.running(world.worker())
    world.store.write(lambda tx: tx.release(key, reason="drain"))

    second = world.take_over(key, key.owner)

    assert (second.attempt_id, world.work(world.attempt(key.attempt_id).work_id).attempts_used) == (key.attempt_id, 1)
