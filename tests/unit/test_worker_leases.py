"""Holding and losing leases: a lost lease stops the looking, never the process; a newer epoch replaces the holder."""

from __future__ import annotations

import pytest

from shared.errors import IndeterminateError, RefusedError, StoreBusyError
from shared.model.attempt import AttemptState
from shared.model.host import WorkerState
from shared.model.instant import US_PER_S
from shared.model.settings import Config, Settings
from shared.model.work import WorkState
from shared.policy.lease import renewal_due_us
from tests.support.sites import Site
from tests.support.stores import LEASE_US


@pytest.mark.req("R08", "R09")
def test_a_lost_lease_ends_the_looking_and_kills_nothing(site: Site) -> None:
    bench, other = site.bench("worker-1"), site.bench("worker-2")
    key, shim = site.running(bench)
    assert key in bench.watcher.watched, "control"
    site.world.release(key)
    newer = site.world.take_over(key, other.me)

    site.clock.advance(renewal_due_us(LEASE_US))
    bench.settle()

    assert (bench.worker.held, bench.watcher.watched) == (0, {})
    assert (shim.alive, shim.child_alive, site.host.stopped) == (True, True, [])
    assert site.attempt(key.attempt_id).epoch == newer.epoch


@pytest.mark.req("R08", "R09", "R04")
def test_whoever_takes_over_adopts_what_the_loser_left_running(site: Site) -> None:
    bench, other = site.bench("worker-1"), site.bench("worker-2")
    key, shim = site.running(bench)
    site.world.release(key)
    newer = site.world.take_over(key, other.me)
    site.clock.advance(renewal_due_us(LEASE_US))
    bench.settle()

    other.settle()
    shim.end(7)
    bench.settle()
    other.settle()

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.epoch, attempt.exit_status) == (AttemptState.FAILED, newer.epoch, 7)
    assert site.done(other.me, "adopt", "finish") == ["adopt", "finish"]
    assert "finish" not in site.done(bench.me)
    assert site.host.runs(key.attempt_id) == 1


@pytest.mark.req("R09")
def test_an_end_seen_by_an_old_holder_that_does_not_know_yet_is_refused(site: Site) -> None:
    bench, other = site.bench("worker-1"), site.bench("worker-2")
    key, shim = site.running(bench)
    site.world.release(key)
    site.world.take_over(key, other.me)

    shim.end(0)
    bench.settle()

    assert bench.worker.held == 0
    assert "finish" not in site.done(bench.me)
    assert site.attempt(key.attempt_id).state is AttemptState.RECOVERING

    other.settle()
    assert site.attempt(key.attempt_id).state is AttemptState.SUCCEEDED, "control: the new holder's is written"


def test_a_worker_handed_a_newer_epoch_of_what_it_holds_drops_its_old_holder_first(site: Site) -> None:
    bench = site.bench()
    key, shim = site.running(bench)
    old = bench.ports.holdings[key.attempt_id]
    site.world.release(key)
    newer = site.world.take_over(key, bench.me)
    bench.store.busy_writes = 1
    site.clock.advance(1)

    with pytest.raises(StoreBusyError):  # its acceptance is still to be written …
        bench.step()

    assert bench.ports.holdings[key.attempt_id] is not old
    assert key not in bench.watcher.watched, "… and the old holder is gone already"
    bench.settle()
    assert list(bench.watcher.watched) == [newer]
    assert (site.attempt(key.attempt_id).state, shim.alive) == (AttemptState.RUNNING, True)


def test_a_launch_of_an_epoch_that_was_replaced_meanwhile_is_shut_when_it_comes_in(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    bench.step()
    bench.launches.run()  # READY, but not yet seen
    site.world.release(key)
    site.world.take_over(key, bench.me)

    bench.settle()

    assert (site.host.shim(key.attempt_id, 1).gate, site.host.shim(key.attempt_id, 1).ran) == ("shut", False)
    assert site.host.shim(key.attempt_id, 2).ran, "the relaunch is let go"


@pytest.mark.req("E05")
def test_what_is_held_beyond_the_renewed_is_lost_and_the_rest_is_kept(site: Site) -> None:
    bench = site.bench()
    lost, _ = site.running(bench)
    kept, _ = site.running(bench)
    site.world.release(lost)

    site.clock.advance(renewal_due_us(LEASE_US))
    bench.settle()

    assert list(bench.ports.holdings) == [kept.attempt_id]
    assert site.lease_is_live(kept)


def test_a_claim_whose_lease_is_gone_by_its_acceptance_is_let_be(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    sound = site.claim(bench)
    bench.store.busy_writes = 1
    with pytest.raises(StoreBusyError):
        bench.step()  # taken in, not accepted
    site.world.release(key)

    bench.settle()

    assert site.attempt(key.attempt_id).state is AttemptState.LAUNCHING
    assert f"{key.attempt_id}.1" not in site.host.shims
    assert site.attempt(sound.attempt_id).state is AttemptState.RUNNING, "one refusal undoes nothing else"


@pytest.mark.parametrize("reached", [True, False])
@pytest.mark.req("M05")
def test_an_acceptance_that_was_not_answered_is_looked_up_and_the_job_runs_once(site: Site, reached: bool) -> None:
    bench = site.bench()
    key = site.claim(bench)
    bench.store.unanswered = ("accept", reached)

    bench.settle()
    bench.settle()

    assert site.attempt(key.attempt_id).state is AttemptState.RUNNING
    assert site.host.runs(key.attempt_id) == 1


@pytest.mark.parametrize("reached", [True, False])
@pytest.mark.req("M05")
def test_an_end_that_was_not_answered_is_settled_once(site: Site, reached: bool) -> None:
    bench, _ = site.bench(), site.head()
    key, shim = site.running(bench)
    shim.end(3)
    bench.store.unanswered = ("finish", reached)

    bench.settle()
    site.elapse(2 * LEASE_US / US_PER_S)

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.exit_status) == (AttemptState.FAILED, 3)
    assert site.done(bench.me, "finish") == ["finish"]
    assert site.host.runs(key.attempt_id) == 1


def test_a_renewal_that_was_not_answered_ends_the_step(site: Site) -> None:
    bench = site.bench()
    key, _ = site.running(bench)
    site.clock.advance(renewal_due_us(LEASE_US))
    bench.store.unanswered = ("renew", False)

    with pytest.raises(IndeterminateError):
        bench.step()

    bench.settle()
    assert site.lease_is_live(key), "and the next one renews"


def test_a_busy_store_costs_a_step_and_no_lease(site: Site) -> None:
    bench = site.bench()
    key, _ = site.running(bench)
    site.clock.advance(renewal_due_us(LEASE_US))
    bench.store.busy_writes = 3

    for _ in range(3):
        with pytest.raises(StoreBusyError):
            bench.step()
        site.clock.advance(US_PER_S)
    bench.step()

    site.clock.advance(LEASE_US - US_PER_S)
    assert site.lease_is_live(key)


def test_a_worker_that_was_declared_gone_is_told_so(site: Site) -> None:
    bench = site.bench()
    site.world.as_leader(lambda tx: tx.retire_worker(bench.me, reason="worker died"))
    site.clock.advance(LEASE_US)

    with pytest.raises(RefusedError, match="does not take part"):
        bench.step()


def test_a_draining_worker_takes_nothing_new_and_goes_on_holding(site: Site) -> None:
    bench, head = site.bench(), site.head()
    site.settle()
    work_id = site.world.submit()
    site.settle()
    running = site.work(work_id)
    assert running.state is WorkState.RUNNING, "control"

    bench.worker.drain()
    bench.worker.drain()
    later = site.world.submit()
    site.elapse(2 * LEASE_US / US_PER_S)

    assert [worker.state for worker in site.workers()] == [WorkerState.DRAINING]
    assert site.work(later).state is WorkState.READY
    assert site.attempt(f"{work_id}.1").epoch == 1
    assert site.done(bench.me, "drain_worker") == ["drain_worker"]
    site.host.shim(f"{work_id}.1").end(0)
    bench.settle()
    assert site.work(work_id).state is WorkState.COMPLETED
    assert head.coordinator.leads


@pytest.mark.req("R07", "X05")
def test_a_worker_that_leaves_releases_what_it_holds_and_kills_nothing(site: Site) -> None:
    bench, other, _ = site.bench("worker-1"), site.bench("worker-2"), site.head()
    key, shim = site.running(bench)
    held = site.claim(bench)
    bench.step()
    bench.launches.run()
    bench.step()  # pinned or about to be

    bench.worker.leave()
    site.kill(bench)

    assert (bench.worker.held, bench.watcher.watched) == (0, {})
    assert site.attempt(key.attempt_id).state is AttemptState.RUNNING, "released is not ended"
    site.clock.advance(20 * US_PER_S)  # until the leadership the claims were made with is over
    site.settle()
    for attempt_id in (key.attempt_id, held.attempt_id):
        attempt = site.attempt(attempt_id)
        assert (attempt.state, attempt.epoch) == (AttemptState.RUNNING, 2)
        assert site.host.runs(attempt_id) == 1
    assert (shim.alive, other.worker.held) == (True, 2)


def test_a_worker_follows_the_lease_of_the_active_configuration(site: Site) -> None:
    bench = site.bench()
    site.running(bench)
    site.configure(Config(settings=Settings(lease_us=6 * US_PER_S)))
    site.clock.advance(US_PER_S)
    bench.settle()
    site.journal.clear()

    for _ in range(12):
        site.clock.advance(US_PER_S)
        bench.settle()

    assert len(site.done(bench.me, "renew")) == 6, "every third of six seconds"
