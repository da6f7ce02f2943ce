"""Every transition of a holder, against everything that takes its lease away; and each one's control."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shared.errors import FenceViolationError, LeaseLostError, RefusedError
from shared.model.attempt import AttemptState, LeaseKey, Phase
from shared.model.instant import US_PER_S
from shared.model.intent import Delivered
from shared.store.contract import Tx
from tests.contract.store_cases import add, case
from tests.support.agent_scenes import FIRST, dispatched, injected
from tests.support.stores import ACCEPT_US, AGAIN, COMPLETED, EXHAUSTED, FAILED, LEASE_US, NOTHING_RAN, SUCCEEDED, World

Transition = Callable[[Tx, World, LeaseKey], None]


def _told(world: World, key: LeaseKey, *, is_dispatched: bool = False) -> LeaseKey:
    """The first intent there is, for that attempt."""
    if is_dispatched:
        dispatched(world, key)
    else:
        injected(world, key)
    return key


def _dispatch(tx: Tx, key: LeaseKey) -> None:
    assert tx.dispatch(key, 1) is not None


def _acknowledge(tx: Tx, key: LeaseKey) -> None:
    assert tx.acknowledge(key, 1, token=1, result=Delivered.ACCEPTED)


# Each transition with the state it starts from, and what it does.
TRANSITIONS: dict[str, tuple[Callable[[World, str], LeaseKey], Transition]] = {
    "accept": (
        lambda world, owner: world.claimed(world.worker(owner)),
        lambda tx, _, key: tx.accept(key, invoke_isolated=True),
    ),
    "pin": (
        lambda world, owner: world.accepted(world.worker(owner)),
        lambda tx, world, key: tx.pin(key, world.pin(key)),
    ),
    "adopt": (
        lambda world, owner: world.recovering(world.worker(owner), pinned=True),
        lambda tx, _, key: tx.adopt(key, why="its shim holds the lock"),
    ),
    "relaunch": (
        lambda world, owner: world.recovering(world.worker(owner), pinned=False),
        lambda tx, _, key: tx.relaunch(key, clear_pin=False, why="nothing ran"),
    ),
    "record_phases": (
        lambda world, owner: world.running(world.worker(owner)),
        lambda tx, _, key: tx.record_phases(key, [Phase("sandbox", 1, 2, "ok")]),
    ),
    "finish": (
        lambda world, owner: world.running(world.worker(owner)),
        lambda tx, _, key: tx.finish(key, SUCCEEDED, COMPLETED),
    ),
    "put_off": (
        lambda world, owner: world.resuming(world.worker(owner)),
        lambda tx, _, key: tx.put_off(key, NOTHING_RAN, proof="S0", again=AGAIN),
    ),
    "require_recovery": (
        lambda world, owner: world.running(world.worker(owner)),
        lambda tx, _, key: tx.require_recovery(key, why="nobody saw its end", proof=None),
    ),
    "follow": (
        lambda world, owner: world.running(world.worker(owner)),
        lambda tx, _, key: tx.follow(key, 1, FIRST),
    ),
    "dispatch": (
        lambda world, owner: _told(world, world.running(world.worker(owner))),
        lambda tx, _, key: _dispatch(tx, key),
    ),
    "acknowledge": (
        lambda world, owner: _told(world, world.running(world.worker(owner)), is_dispatched=True),
        lambda tx, _, key: _acknowledge(tx, key),
    ),
    "release": (
        lambda world, owner: world.running(world.worker(owner)),
        lambda tx, _, key: tx.release(key, reason="released"),
    ),
}


def _stranger(world: World, key: LeaseKey) -> LeaseKey:
    return LeaseKey(key.attempt_id, key.epoch, world.worker("worker-2"))


def _older_epoch(_: World, key: LeaseKey) -> LeaseKey:
    return LeaseKey(key.attempt_id, key.epoch - 1, key.owner)


def _newer_epoch(_: World, key: LeaseKey) -> LeaseKey:
    return LeaseKey(key.attempt_id, key.epoch + 1, key.owner)


def _expired(world: World, key: LeaseKey) -> LeaseKey:
    world.clock.advance(LEASE_US + 1)
    return key


def _expiring(world: World, key: LeaseKey) -> LeaseKey:
    world.clock.advance(LEASE_US)
    return key


def _released(world: World, key: LeaseKey) -> LeaseKey:
    world.store.write(lambda tx: tx.release(key, reason="released"))
    return key


def _retired(world: World, key: LeaseKey) -> LeaseKey:
    world.as_leader(lambda tx: tx.retire_worker(key.owner, reason="proven_dead"))
    return key


def _cancelled(world: World, key: LeaseKey) -> LeaseKey:
    work_id = world.attempt(key.attempt_id).work_id
    world.store.write(lambda tx: tx.cancel_work(work_id, by="test", reason="wrong branch"))
    return key


def _taken_over(world: World, key: LeaseKey) -> LeaseKey:
    other = world.worker("worker-2")
    world.store.write(lambda tx: tx.release(key, reason="released"))
    world.take_over(key, other)
    return key


def _rebooted(world: World, key: LeaseKey) -> LeaseKey:
    world.clock.reboot("boot-2")
    return key


SPOILERS: dict[str, Callable[[World, LeaseKey], LeaseKey]] = {
    "by_a_stranger": _stranger,
    "at_an_older_epoch": _older_epoch,
    "at_a_newer_epoch": _newer_epoch,
    "after_expiry": _expired,
    "at_the_expiry_instant": _expiring,
    "after_release": _released,
    "after_proven_death": _retired,
    "after_cancel": _cancelled,
    "after_takeover": _taken_over,
    "after_reboot": _rebooted,
}


def _refusal(transition: str, spoiler: str) -> Callable[[World], None]:
    begin, run = TRANSITIONS[transition]

    def refused(world: World) -> None:
        key = SPOILERS[spoiler](world, begin(world, "worker-1"))
        before = world.everything()

        with pytest.raises(LeaseLostError) as caught:
            world.store.write(lambda tx: run(tx, world, key))

        assert caught.value.attempt_id == key.attempt_id
        assert caught.value.epoch_held == key.epoch
        assert caught.value.epoch_current == world.attempt(key.attempt_id).epoch
        assert world.everything() == before

    return refused


def _control(transition: str) -> Callable[[World], None]:
    begin, run = TRANSITIONS[transition]

    def accepted(world: World) -> None:
        key = begin(world, "worker-1")
        world.clock.advance(LEASE_US - 1)
        before = world.everything()

        world.store.write(lambda tx: run(tx, world, key))

        assert world.everything() != before

    return accepted


for _transition in TRANSITIONS:
    add(f"{_transition}_is_accepted_until_just_before_expiry", _control(_transition), pytest.mark.req("R07", "R09"))
    for _spoiler in SPOILERS:
        add(
            f"{_transition}_{_spoiler}_is_refused",
            _refusal(_transition, _spoiler),
            pytest.mark.req("R05", "R07", "R09"),
        )


def _not_renewed(spoiler: str) -> Callable[[World], None]:
    def lost(world: World) -> None:
        key = SPOILERS[spoiler](world, world.running(world.worker()))
        lease = world.store.read(lambda tx: tx.lease(key.attempt_id))
        others = world.worker("worker-3") if spoiler in ("after_proven_death", "after_reboot") else key.owner

        kept = world.store.write(lambda tx: tx.renew(others, lease_us=LEASE_US))

        assert (key.attempt_id, key.epoch) not in kept
        assert world.store.read(lambda tx: tx.lease(key.attempt_id)) == lease

    return lost


for _spoiler in ("by_a_stranger", "after_expiry", "at_the_expiry_instant", "after_release", "after_proven_death", "after_cancel",
                 "after_takeover", "after_reboot"):  # fmt: skip
    add(f"renew_{_spoiler}_extends_nothing", _not_renewed(_spoiler), pytest.mark.req("R07", "R09", "E05"))


@case(pytest.mark.req("R07", "E05"))
def renew_extends_accepted_live_leases(world: World) -> None:
    owner = world.worker()
    first, second = world.running(owner), world.accepted(owner)
    unaccepted = world.claimed(owner)
    world.clock.advance(LEASE_US - 1)

    kept = world.store.write(lambda tx: tx.renew(owner, lease_us=LEASE_US))

    assert kept == {(first.attempt_id, 1), (second.attempt_id, 1)}
    world.clock.advance(LEASE_US - 1)
    assert set(world.store.read(lambda tx: tx.held(owner))) == {first, second}
    assert world.store.read(lambda tx: tx.assignments(owner, limit=10)) == []
    assert world.attempt(unaccepted.attempt_id).state is AttemptState.LAUNCHING


@case(pytest.mark.req("R07", "K01"))
def renew_survives_clock_step_back(world: World) -> None:
    """Whatever the clock does, a renewal keeps the later expiry."""
    key = world.running(world.worker())
    before = world.store.read(lambda tx: tx.lease(key.attempt_id))
    assert before is not None
    world.clock.advance(-30 * US_PER_S)

    kept = world.store.write(lambda tx: tx.renew(key.owner, lease_us=LEASE_US))

    assert kept == {(key.attempt_id, 1)}
    after = world.store.read(lambda tx: tx.lease(key.attempt_id))
    assert after is not None
    assert after.expires_mono_us == before.expires_mono_us


@case(pytest.mark.req("R07"))
def renew_with_a_shorter_lease_shortens_nothing(world: World) -> None:
    key = world.running(world.worker())

    world.store.write(lambda tx: tx.renew(key.owner, lease_us=US_PER_S))

    world.clock.advance(LEASE_US - 1)
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))


@case(pytest.mark.req("K01"))
def wall_steps_touch_no_lease(world: World) -> None:
    key = world.running(world.worker())
    world.clock.step_wall(10 * 365 * 86_400 * US_PER_S)
    assert world.store.read(lambda tx: tx.held(key.owner)) == [key]
    world.clock.step_wall(-20 * 365 * 86_400 * US_PER_S)

    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))


@case(pytest.mark.req("R07"))
def accept_twice_is_refused(world: World) -> None:
    key = world.accepted(world.worker())
    before = world.everything()

    with pytest.raises(RefusedError, match="accepted already"):
        world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))

    assert world.everything() == before


@case(pytest.mark.req("R05", "R09"))
def a_claim_not_accepted_in_time_is_revoked_and_its_late_accept_refused(world: World) -> None:
    key = world.claimed(world.worker())
    world.clock.advance(ACCEPT_US - 1)
    assert world.as_leader(lambda tx: tx.revoke_unaccepted(accept_timeout_us=ACCEPT_US)) == []
    world.clock.advance(1)
    assert world.store.read(lambda tx: tx.workers())[0].overdue

    assert world.as_leader(lambda tx: tx.revoke_unaccepted(accept_timeout_us=ACCEPT_US)) == [key.attempt_id]

    with pytest.raises(LeaseLostError, match="not_accepted"):
        world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))


@case(pytest.mark.req("R05"))
def an_accepted_claim_is_never_revoked_as_unaccepted(world: World) -> None:
    key = world.accepted(world.worker())
    world.clock.advance(ACCEPT_US * 2)

    assert world.as_leader(lambda tx: tx.revoke_unaccepted(accept_timeout_us=ACCEPT_US)) == []

    assert world.store.read(lambda tx: tx.held(key.owner)) == [key]


@case(pytest.mark.req("R05"))
def a_pin_of_another_epoch_is_refused(world: World) -> None:
    """The pin of an old launch must not be stored under a newer lease; that of the present epoch may."""
    key = world.recovering(world.worker(), pinned=False)
    world.store.write(lambda tx: tx.relaunch(key, clear_pin=False, why="nothing ran"))
    old = world.pin(LeaseKey(key.attempt_id, 1, key.owner))

    with pytest.raises(RefusedError, match="epoch 1"):
        world.store.write(lambda tx: tx.pin(key, old))

    world.store.write(lambda tx: tx.pin(key, world.pin(key)))
    assert world.attempt(key.attempt_id).pin == world.pin(key)


@case(pytest.mark.req("R05"))
def a_second_pin_of_one_epoch_is_refused(world: World) -> None:
    key = world.running(world.worker())

    with pytest.raises(RefusedError, match="pin of epoch 1 already"):
        world.store.write(lambda tx: tx.pin(key, world.pin(key, pid=501)))

    assert world.attempt(key.attempt_id).pin == world.pin(key)


@case(pytest.mark.req("R04"))
def adopting_without_a_pin_is_refused(world: World) -> None:
    key = world.recovering(world.worker(), pinned=False)

    with pytest.raises(RefusedError, match="nothing to adopt"):
        world.store.write(lambda tx: tx.adopt(key, why="guess"))


@case(pytest.mark.req("R04"))
def relaunching_over_a_pin_needs_evidence(world: World) -> None:
    key = world.recovering(world.worker(), pinned=True)

    with pytest.raises(RefusedError, match="nothing ran"):
        world.store.write(lambda tx: tx.relaunch(key, clear_pin=False, why="guess"))

    world.store.write(lambda tx: tx.relaunch(key, clear_pin=True, why="no child ever registered"))
    assert world.attempt(key.attempt_id).pin is None


@case(pytest.mark.req("E07"))
def an_illegal_step_is_a_bug_and_keeps_nothing(world: World) -> None:
    key = world.accepted(world.worker())
    before = world.everything()

    with pytest.raises(FenceViolationError, match="no step from launching on succeeded"):
        world.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))

    assert world.everything() == before
    world.store.write(lambda tx: tx.finish(key, FAILED, EXHAUSTED))
