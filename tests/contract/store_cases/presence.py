"""Workers and coordinators that come, lead, beat and go."""

from __future__ import annotations

import pytest

from shared.errors import LeadershipLostError, RefusedError
from shared.ids import Incarnation
from shared.model.host import WorkerState
from shared.model.instant import US_PER_S
from shared.store.contract import Tx
from tests.contract.store_cases import case
from tests.support.stores import LEADERSHIP_US, LEASE_US, World, identity


@case(pytest.mark.req("R02"))
def incarnations_are_never_reused(world: World) -> None:
    names = [world.store.write(lambda tx: tx.next_incarnation("worker-1")) for _ in range(3)]
    other = world.store.write(lambda tx: tx.next_incarnation("coordinator"))

    assert (names, other) == (["worker-1.1", "worker-1.2", "worker-1.3"], "coordinator.1")


@case(pytest.mark.req("E05"))
def a_worker_is_listed_as_it_registered(world: World) -> None:
    owner = world.worker("worker-2", slots=3, pid=42)
    world.worker("worker-1")
    world.running(owner)

    _, second = world.store.read(lambda tx: tx.workers())

    assert (second.id, second.name, second.identity.pid, second.slots, second.executors) == (
        owner,
        "worker-2",
        42,
        3,
        ("shell@1",),
    )
    assert (second.state, second.in_use, second.overdue) == (WorkerState.LIVE, 1, False)
    assert second.beat_mono_us == world.clock.now().mono_us


@case(pytest.mark.req("E05"))
def a_beat_is_never_taken_back(world: World) -> None:
    owner = world.worker()
    world.clock.advance(US_PER_S)
    world.store.write(lambda tx: tx.beat(owner))
    at = world.clock.now().mono_us
    world.clock.advance(-US_PER_S // 2)

    world.store.write(lambda tx: tx.renew(owner, lease_us=LEASE_US))

    assert world.store.read(lambda tx: tx.workers())[0].beat_mono_us == at


@case(pytest.mark.req("R05", "R09"))
def a_buried_worker_is_refused_whatever_it_does(world: World) -> None:
    owner = world.worker()
    world.store.write(lambda tx: tx.beat(owner))
    world.as_leader(lambda tx: tx.retire_worker(owner, reason="proven_dead"))
    before = world.everything()

    with pytest.raises(RefusedError, match="take part"):
        world.store.write(lambda tx: tx.beat(owner))
    with pytest.raises(RefusedError, match="take part"):
        world.store.write(lambda tx: tx.renew(owner, lease_us=LEASE_US))

    assert world.everything() == before
    assert world.store.read(lambda tx: tx.workers()) == []
    [gone] = world.store.read(lambda tx: tx.workers(gone=True))
    assert gone.state is WorkerState.GONE


@case(pytest.mark.req("R05", "R09"))
def a_worker_of_another_boot_is_refused(world: World) -> None:
    owner = world.worker()
    world.clock.reboot("boot-2")

    with pytest.raises(RefusedError, match="take part"):
        world.store.write(lambda tx: tx.beat(owner))

    fresh = world.worker()
    world.store.write(lambda tx: tx.beat(fresh))


@case(pytest.mark.req("R07"))
def a_draining_worker_keeps_what_it_holds(world: World) -> None:
    owner = world.worker()
    key = world.running(owner)

    world.store.write(lambda tx: tx.drain_worker(owner))

    assert world.store.write(lambda tx: tx.renew(owner, lease_us=LEASE_US)) == {(key.attempt_id, 1)}
    assert world.store.read(lambda tx: tx.workers())[0].state is WorkerState.DRAINING
    world.store.write(lambda tx: tx.retire_worker(owner, reason="released"))
    world.store.write(lambda tx: tx.drain_worker(owner))
    assert world.store.read(lambda tx: tx.workers()) == []


@case(pytest.mark.req("L01", "L02"))
def leadership_is_taken_once_and_only_from_a_row_that_is_not_live(world: World) -> None:
    first = world.take_lead()
    other = world.store.write(lambda tx: tx.next_incarnation("coordinator"))

    def take(tx: Tx, proven_dead: int | None = None) -> object:
        return tx.take_leadership(
            other, process=identity(2), lock_device=1, lock_inode=9, duration_us=LEADERSHIP_US, proven_dead=proven_dead
        )

    assert world.store.write(take) is None
    world.clock.advance(LEADERSHIP_US - 1)
    assert world.store.write(take) is None
    leader = world.store.read(lambda tx: tx.leader())
    assert leader is not None
    assert (leader.owner, leader.generation) == (first, 1)

    world.clock.advance(1)
    assert world.store.write(take) is not None

    leader = world.store.read(lambda tx: tx.leader())
    assert leader is not None
    assert (leader.owner, leader.generation, leader.lock_inode) == (other, 2, 9)
    assert leader.process == identity(2, world.clock.now().boot_id), "whom to watch, by more than its pid"


@case(pytest.mark.req("L01", "L02"))
def a_proof_of_death_counts_for_its_own_generation_only(world: World) -> None:
    world.take_lead()
    world.take_lead(proven_dead=1)
    third = world.store.write(lambda tx: tx.next_incarnation("coordinator"))

    def take(tx: Tx, proven_dead: int) -> object:
        return tx.take_leadership(
            third, process=identity(3), lock_device=1, lock_inode=9, duration_us=LEADERSHIP_US, proven_dead=proven_dead
        )

    assert world.store.write(lambda tx: take(tx, 1)) is None
    assert world.store.write(lambda tx: take(tx, 2)) is not None


@case(pytest.mark.req("L01"))
def leadership_of_another_boot_is_not_live(world: World) -> None:
    world.take_lead()
    world.clock.reboot("boot-2")

    world.take_lead()

    assert world.generation == 2


@case(pytest.mark.req("L01"))
def taking_what_one_has_answers_with_the_row(world: World) -> None:
    """After an unknown commit the same call tells whether it happened."""
    owner = world.take_lead()

    again = world.store.write(
        lambda tx: tx.take_leadership(
            owner, process=identity(1), lock_device=1, lock_inode=1, duration_us=LEADERSHIP_US, proven_dead=None
        )
    )

    assert again == world.store.read(lambda tx: tx.leader())
    assert again is not None
    assert again.generation == 1


@case(pytest.mark.req("L01", "L02"))
def an_old_leader_writes_nothing_more(world: World) -> None:
    owner = world.worker()
    request = world.request(world.submit(), owner)
    old = world.take_lead()
    new = world.take_lead(proven_dead=1)
    before = world.everything()

    def claim_as(name: Incarnation, generation: int) -> None:
        def run(tx: Tx) -> None:
            tx.lead(name, generation, duration_us=LEADERSHIP_US, renew_after_us=US_PER_S)
            tx.claim(request)

        world.store.write(run)

    for name, generation in ((old, 1), (old, 2), (new, 1), (new, 3)):
        with pytest.raises(LeadershipLostError) as caught:
            claim_as(name, generation)
        assert caught.value.generation_current == 2
    assert world.everything() == before

    claim_as(new, 2)
    assert len(world.store.read(lambda tx: tx.assignments(owner, limit=9))) == 1


@case(pytest.mark.req("L01", "K01"))
def a_lapsed_leader_writes_nothing_more_even_unchallenged(world: World) -> None:
    owner = world.take_lead()
    lead = {"duration_us": LEADERSHIP_US, "renew_after_us": LEADERSHIP_US // 3}
    world.clock.advance(LEADERSHIP_US - 1)
    world.store.write(lambda tx: tx.lead(owner, 1, **lead))
    world.clock.advance(LEADERSHIP_US)

    with pytest.raises(LeadershipLostError):
        world.store.write(lambda tx: tx.lead(owner, 1, **lead))


@case(pytest.mark.req("L01"))
def leading_renews_after_a_third_and_never_shortens(world: World) -> None:
    owner = world.take_lead()

    def expiry() -> int:
        leader = world.store.read(lambda tx: tx.leader())
        assert leader is not None
        return leader.expires_mono_us

    def lead(duration_us: int = LEADERSHIP_US) -> None:
        world.store.write(lambda tx: tx.lead(owner, 1, duration_us=duration_us, renew_after_us=LEADERSHIP_US // 3))

    first = expiry()
    world.clock.advance(LEADERSHIP_US // 3)
    lead()
    assert expiry() == first
    world.clock.advance(1)
    lead()
    assert expiry() == world.clock.now().mono_us + LEADERSHIP_US
    later = expiry()
    world.clock.advance(-US_PER_S)
    lead()
    assert expiry() == later


@case(pytest.mark.req("L01"))
def resigning_frees_the_lead_and_anothers_is_left_alone(world: World) -> None:
    first = world.take_lead()
    second = world.take_lead(proven_dead=1)
    world.store.write(lambda tx: tx.resign(first, 1))
    world.store.write(lambda tx: tx.resign(second, 1))
    assert world.store.write(lambda tx: tx.lead(second, 2, duration_us=LEADERSHIP_US, renew_after_us=1)) is None

    world.store.write(lambda tx: tx.resign(second, 2))

    world.take_lead()
    assert world.generation == 3


@case(pytest.mark.req("L01"))
def losing_the_lead_touches_no_workers_lease(world: World) -> None:
    key = world.running(world.worker())
    lease = world.store.read(lambda tx: tx.lease(key.attempt_id))

    world.take_lead(proven_dead=world.generation)

    assert world.store.read(lambda tx: tx.lease(key.attempt_id)) == lease
