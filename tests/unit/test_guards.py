"""What each guard that a simulation cannot miss refuses by itself, and that it does so no more once it is taken away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import worker.ending
from chaos.guards import GUARDS, guard
from shared.errors import FenceViolationError, LeaseLostError, RefusedError, StoreBusyError, StoreUnavailableError
from shared.model.attempt import AttemptState, Invoke
from shared.model.instant import US_PER_S
from shared.model.work import Reason
from shared.policy.capacity import Usage
from shared.policy.recovery import Decision, LaunchFacts, Verdict
from shared.store.contract import Claimed, ClaimRefused
from shared.store.sqlite.driver import sqlite3
from tests.support.stores import (
    ACCEPT_US,
    COMPLETED,
    LEASE_US,
    RETURNED,
    SQLITE,
    SUCCEEDED,
    UNPROVEN,
    World,
    ram_folder,
)
from worker.batch import Batch, Change


@pytest.fixture
def world() -> Iterator[World]:
    with ram_folder() as folder:
        made = World(SQLITE, folder)
        yield made
        made.close()


def test_fence(world: World) -> None:
    first, second = world.worker("worker-1"), world.worker("worker-2")
    old = world.running(first)
    world.release(old)
    world.take_over(old, second)

    with pytest.raises(LeaseLostError):
        world.store.write(lambda tx: tx.finish(old, SUCCEEDED, COMPLETED))

    with guard("fence").removed():
        world.store.write(lambda tx: tx.finish(old, SUCCEEDED, COMPLETED))
    assert world.attempt(old.attempt_id).state is AttemptState.SUCCEEDED


def test_unexcluded_recheck(world: World) -> None:
    """Behind it, the unique index refuses."""
    one = world.worker()
    ended = world.ended(one, UNPROVEN, RETURNED)
    work = world.attempt(ended.attempt_id).work_id

    assert world.try_claim(work, one) == ClaimRefused(None, Reason.STOP_UNPROVEN, None)
    with guard("unexcluded_recheck").removed(), pytest.raises(FenceViolationError, match="UNIQUE"):
        world.try_claim(work, one)


def test_one_unexcluded() -> None:
    with guard("one_unexcluded").removed(), ram_folder() as folder:
        world = World(replace(SQLITE, create=_create_anew), folder)
        one = world.worker()
        ended = world.ended(one, UNPROVEN, RETURNED)

        assert isinstance(world.try_claim(world.attempt(ended.attempt_id).work_id, one), Claimed)
        world.close()


def _create_anew(home: object, clock: object) -> None:
    from shared.store.sqlite.store import create

    create(home, clock)  # type: ignore[arg-type]


def test_claim_recheck(world: World) -> None:
    """Behind it, the state tables refuse."""
    one, work = world.worker(), world.submit()
    request = world.request(work, one)
    world.store.write(lambda tx: tx.cancel_work(work, by="t", reason="t"))

    assert world.as_leader(lambda tx: tx.claim(request)) == ClaimRefused("work", None, None)
    with guard("claim_recheck").removed(), pytest.raises(ValueError, match="no step from cancelled on claimed"):
        world.as_leader(lambda tx: tx.claim(request))


def test_capacity_recheck(world: World) -> None:
    one, work = world.worker(), world.submit()

    def full(_usage: Usage) -> tuple[Reason, str | None]:
        return Reason.CAPACITY_JOB_CONCURRENCY, "jobs"

    assert world.try_claim(work, one, refusal=full) == ClaimRefused(None, Reason.CAPACITY_JOB_CONCURRENCY, "jobs")
    with guard("capacity_recheck").removed():
        assert isinstance(world.try_claim(work, one, refusal=full), Claimed)


def test_live_lease(world: World) -> None:
    first, second = world.worker("worker-1"), world.worker("worker-2")
    held = world.running(first)

    def take(tx: object) -> int | None:
        return tx.claim_recovery(held.attempt_id, epoch_seen=1, worker=second, lease_us=LEASE_US)  # type: ignore[attr-defined, no-any-return]

    assert world.recoverable() == []
    assert world.as_leader(take) is None
    with guard("live_lease").removed():
        assert [item.attempt.id for item in world.recoverable()] == [held.attempt_id]
        assert world.as_leader(take) == 2


def test_accept_timeout(world: World) -> None:
    """Behind it, the lease lapses."""
    one = world.worker()
    world.claimed(one)
    world.clock.advance(ACCEPT_US)

    with guard("accept_timeout").removed():
        world.as_leader(lambda tx: tx.revoke_unaccepted(accept_timeout_us=ACCEPT_US))
        assert world.recoverable() == []
        world.clock.advance(LEASE_US)
        assert len(world.recoverable()) == 1


def test_accept_timeout_in_place(world: World) -> None:
    world.claimed(world.worker())
    world.clock.advance(ACCEPT_US)

    world.as_leader(lambda tx: tx.revoke_unaccepted(accept_timeout_us=ACCEPT_US))

    assert len(world.recoverable()) == 1


def test_confirmed_epoch(world: World) -> None:
    first, second = world.worker("worker-1"), world.worker("worker-2")
    old = world.running(first)
    world.release(old)
    taken = world.take_over(old, second)
    world.store.write(lambda tx: tx.accept(taken, invoke_isolated=None))
    world.store.write(lambda tx: tx.finish(taken, replace(SUCCEEDED, proof=None), COMPLETED))

    with pytest.raises(RefusedError, match="epoch"):
        world.confirm(old)
    with guard("confirmed_epoch").removed():
        world.confirm(old)
    assert world.attempt(old.attempt_id).exclusion == "released"


def test_renewal_never_shorter(world: World) -> None:
    """Behind it, a trigger refuses."""
    one = world.worker()
    world.running(one)

    assert world.store.write(lambda tx: tx.renew(one, lease_us=US_PER_S))
    with guard("renewal_never_shorter").removed(), pytest.raises(FenceViolationError, match="shortened"):
        world.store.write(lambda tx: tx.renew(one, lease_us=US_PER_S))


def test_same_store(world: World) -> None:
    world.submit()
    with sqlite3.connect(world.home / "store.db") as other:
        other.execute("UPDATE meta SET value = value + 1 WHERE key = 'incarnation'")
    other.close()

    with pytest.raises(StoreUnavailableError) as caught:
        world.submit()
    assert caught.value.code == "store_replaced"
    with guard("same_store").removed():
        world.submit()


def test_queue(world: World) -> None:
    """Behind it, SQLite lets one in at a time too; but it says nothing of who is next."""
    other = world.open()

    def meanwhile(_tx: object) -> None:
        other.write(lambda tx: tx.next_incarnation("second"))

    with pytest.raises(StoreBusyError, match="queue"):
        world.store.write(meanwhile)
    with guard("queue").removed(), pytest.raises(StoreBusyError, match="another program"):
        world.store.write(meanwhile)


UNPINNED = LaunchFacts(AttemptState.LAUNCHING, None, Invoke.CALLED, isolated=True, child_record_seen=True)


def decided() -> Verdict:
    """What the worker's own name for the decision gives."""
    decision: Decision = vars(worker.ending)["decide"](UNPINNED, None)
    return decision.verdict


def test_child_record() -> None:
    """Behind it, nothing runs that was not pinned."""
    assert decided() is Verdict.RECOVERY_REQUIRED
    with guard("child_record").removed():
        assert decided() is Verdict.RELAUNCH


@pytest.mark.parametrize(("name", "told"), [("unknown_commit", "done"), ("unknown_commit_kept", "refused")])
def test_unknown_commits(world: World, name: str, told: str) -> None:
    """What is assumed of a commit whose answer was lost; in place, the store is asked."""
    said: list[str] = []
    truth = told == "refused"  # the opposite of what is assumed without the guard
    change = Change(
        lambda _tx: None, lambda: said.append("done"), lambda _error: said.append("refused"), lambda _: truth
    )

    def commit() -> None:
        batch = Batch(world.store)
        batch._unknown = [change]
        batch.commit()

    commit()
    with guard(name).removed():
        commit()

    assert said == ["done" if truth else "refused", told]


def test_what_is_not_there_cannot_be_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that moved elsewhere fails its control, instead of being kept by accident."""
    monkeypatch.setattr("shared.store.sqlite.holding.RENEW", "")

    with pytest.raises(LookupError, match="no statement"), guard("renewal_never_shorter").removed():
        pass


def test_no_guard_has_another_name() -> None:
    with pytest.raises(LookupError):
        guard("none")
    assert all(one.keeps for one in GUARDS)
