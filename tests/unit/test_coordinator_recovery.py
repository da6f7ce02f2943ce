"""Taking back what was lost: at once on proof of a death, else when the lease is over; each attempt to one worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from coordinator.recovery import BOUND
from shared.errors import StoreBusyError
from shared.model.attempt import AttemptState
from shared.model.evidence import LockState
from shared.model.instant import US_PER_S
from shared.model.settings import Config, Settings
from shared.model.work import WorkState
from shared.policy.lease import accept_timeout_us
from shared.process.launcher import LaunchError
from tests.support.hosts import PID_NAMESPACE
from tests.support.sites import Bench, Head, Site
from tests.support.stores import LEASE_US


@pytest.fixture
def head(site: Site) -> Head:
    """Who leads."""
    head = site.head()
    head.settle()
    return head


@pytest.fixture
def pair(site: Site, head: Head) -> tuple[Bench, Bench]:
    """A worker that will be lost, and another."""
    first, second = site.bench("worker-1"), site.bench("worker-2")
    site.settle()
    return first, second


@contextmanager
def only(site: Site, bench: Bench) -> Iterator[None]:
    """Of all workers, the leader gives claims to this one alone."""
    others = [other.me for other in site.benches if other is not bench]
    site.locks.update(dict.fromkeys(others, LockState.UNPROVEN))
    yield
    site.locks.update(dict.fromkeys(others, LockState.HELD))


def running_on(site: Site, bench: Bench, count: int = 1) -> list[str]:
    """Jobs that the leader gave to that worker."""
    site.configure(Config(settings=Settings(job_concurrency=0)))
    with only(site, bench):
        attempts = [f"{site.world.submit()}.1" for _ in range(count)]
        site.settle()
    assert set(attempts) <= set(bench.ports.holdings)
    return attempts


@pytest.mark.req("R15")
def test_the_attempts_of_a_worker_that_is_provably_dead_are_recovered_at_once(
    site: Site, head: Head, pair: tuple[Bench, Bench]
) -> None:
    dead, other = pair
    (attempt_id,) = running_on(site, dead)
    began = site.clock.now()
    site.kill(dead)
    head.coordinator.notice_death()  # as the watcher of its process does

    site.settle()

    attempt = site.attempt(attempt_id)
    assert (attempt.state, attempt.epoch) == (AttemptState.RUNNING, 2)
    assert attempt_id in other.ports.holdings
    assert site.clock.now() == began, "no time had to pass"
    assert [worker.id for worker in site.workers()] == [other.me]
    assert site.host.runs(attempt_id) == 1


@pytest.mark.req("R15", "K03")
def test_a_death_of_which_nobody_was_told_is_found_within_a_poll(
    site: Site, head: Head, pair: tuple[Bench, Bench]
) -> None:
    dead, other = pair
    (attempt_id,) = running_on(site, dead)
    site.kill(dead)

    site.elapse(1)

    assert (site.attempt(attempt_id).epoch, attempt_id in other.ports.holdings) == (2, True)


@pytest.mark.req("R15")
@pytest.mark.parametrize("lock", [LockState.HELD, LockState.UNPROVEN])
def test_control_without_that_proof_a_silent_worker_keeps_its_attempts_until_its_lease_is_over(
    site: Site, head: Head, pair: tuple[Bench, Bench], lock: LockState
) -> None:
    silent, other = pair
    (attempt_id,) = running_on(site, silent)
    site.stall(silent)
    site.locks[silent.me] = lock
    head.coordinator.notice_death()

    site.elapse(LEASE_US / US_PER_S - 1)
    assert site.attempt(attempt_id).epoch == 1
    assert len(site.workers()) == 2, "and nobody is declared dead"

    site.elapse(2)
    assert (site.attempt(attempt_id).epoch, attempt_id in other.ports.holdings) == (2, True)
    assert site.host.runs(attempt_id) == 1


def test_a_worker_s_process_is_watched_while_it_takes_part(site: Site, head: Head, pair: tuple[Bench, Bench]) -> None:
    first, second = pair
    assert set(head.watched) == {first.me, second.me}

    site.kill(first)
    site.settle()
    site.world.submit()  # the pass after the one that buried it
    site.settle()

    assert set(head.watched) == {second.me}


def test_a_claim_that_is_not_accepted_in_time_goes_to_another_worker(
    site: Site, head: Head, pair: tuple[Bench, Bench]
) -> None:
    deaf, other = pair
    running_on(site, other, 2)  # the other one is the busier
    with only(site, deaf):
        work_id = site.world.submit()
        head.settle()
    assert site.attempt(f"{work_id}.1").state is AttemptState.LAUNCHING
    site.stall(deaf)

    site.elapse(accept_timeout_us(LEASE_US) / US_PER_S - 0.000001, poll_s=1)
    assert site.attempt(f"{work_id}.1").epoch == 1, "control: not a microsecond early"

    site.elapse(1)
    attempt = site.attempt(f"{work_id}.1")
    assert (attempt.state, attempt.epoch) == (AttemptState.RUNNING, 2)
    assert f"{work_id}.1" in other.ports.holdings
    assert site.work(work_id).attempts_used == 1, "no retry is spent"


def test_a_claim_that_is_not_accepted_returns_to_the_only_worker_there_is(site: Site, head: Head) -> None:
    bench = site.bench()
    site.settle()
    work_id = site.world.submit()
    head.settle()
    site.stall(bench)
    for _ in range(6):
        site.clock.advance(US_PER_S)
        bench.store.write(lambda tx: tx.beat(bench.me))
        site.settle()

    site.benches.append(bench)
    site.settle()

    attempt = site.attempt(f"{work_id}.1")
    assert (attempt.state, attempt.epoch) == (AttemptState.RUNNING, 2)


def test_an_attempt_that_nobody_can_take_waits_and_is_claimed_at_once_when_somebody_registers(
    site: Site, head: Head
) -> None:
    only = site.bench("worker-1")
    site.settle()
    work_id = site.world.submit()
    site.settle()
    site.kill(only)
    site.elapse(2 * LEASE_US / US_PER_S)
    assert site.attempt(f"{work_id}.1").epoch == 1

    late = site.bench("worker-2")
    site.settle()

    assert (site.attempt(f"{work_id}.1").epoch, f"{work_id}.1" in late.ports.holdings) == (2, True)


@pytest.mark.req("R07")
def test_what_a_worker_released_is_recovered_at_once(site: Site, head: Head, pair: tuple[Bench, Bench]) -> None:
    leaving, other = pair
    (attempt_id,) = running_on(site, leaving)
    leaving.worker.leave()
    site.kill(leaving)

    site.settle()

    assert (site.attempt(attempt_id).epoch, attempt_id in other.ports.holdings) == (2, True)


@pytest.mark.req("R15", "S01")
def test_more_attempts_than_a_pass_takes_are_all_recovered_without_time_passing(site: Site, head: Head) -> None:
    dead = site.bench("worker-1", slots=1_000)
    attempts = running_on(site, dead, BOUND + 5)
    other = site.bench("worker-2")
    site.kill(dead)

    site.settle()

    assert {site.attempt(attempt_id).epoch for attempt_id in attempts} == {2}
    assert other.worker.held == BOUND + 5


@pytest.mark.req("S01")
def test_attempts_that_nobody_can_take_do_not_starve_those_behind_them(site: Site, head: Head) -> None:
    """The first ones in order are pinned in another pid namespace, where no worker is."""
    blind, dead = site.bench("worker-1", slots=1_000), site.bench("worker-2")
    site.host.pid_namespace = 1
    unseen = running_on(site, blind, BOUND + 30)  # w1 to w94; those behind them come last in any order of names
    site.host.pid_namespace = PID_NAMESPACE
    seen = running_on(site, dead, 3)
    site.bench("worker-3")
    site.kill(blind)
    site.kill(dead)

    site.settle()

    assert {site.attempt(attempt_id).epoch for attempt_id in seen} == {2}
    assert {site.attempt(attempt_id).epoch for attempt_id in unseen} == {1}


@pytest.mark.req("R03", "R04")
def test_the_first_pass_after_a_reboot_revokes_what_another_boot_held(site: Site, head: Head) -> None:
    old = site.bench("worker-1")
    site.settle()
    work_id = site.world.submit()
    site.settle()
    site.stall(old)
    site.stall(head)
    site.host.restart()
    site.clock.reboot("boot-2", down_us=60 * US_PER_S)
    site.locks[old.me] = LockState.UNPROVEN  # its lock file went with the boot

    site.head()
    site.bench("worker-2")
    site.settle()

    attempt = site.attempt(f"{work_id}.1")
    assert (attempt.state, attempt.epoch) == (AttemptState.RECOVERY_REQUIRED, 2)
    assert site.host.runs(f"{work_id}.1") == 1


def test_a_backoff_ends_on_time_without_a_bell(site: Site, head: Head) -> None:
    site.bench()
    site.host.failing = [LaunchError("spawn", "no more processes")]
    work_id = site.world.submit()
    site.settle()
    assert site.work(work_id).state is WorkState.BACKOFF

    due = head.step()
    assert due - site.clock.now().mono_us <= US_PER_S
    site.clock.wait(due, None)
    site.settle()

    assert site.work(work_id).state is WorkState.RUNNING


@pytest.mark.req("M05")
def test_a_busy_store_delays_a_recovery_by_a_step(site: Site, head: Head, pair: tuple[Bench, Bench]) -> None:
    dead, _ = pair
    (attempt_id,) = running_on(site, dead)
    site.kill(dead)
    head.coordinator.notice_death()
    head.store.busy_writes = 1
    with pytest.raises(StoreBusyError):
        head.step()

    site.settle()

    assert site.attempt(attempt_id).epoch == 2
