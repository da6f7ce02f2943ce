"""Taking over what another held: adopt what runs, settle what ended, relaunch what never ran, show what nobody can know."""

from __future__ import annotations

import pytest

from shared.model.attempt import Attempt, AttemptState, Exclusion, FailureClass, LeaseKey
from shared.model.instant import US_PER_S
from shared.model.work import Reason, WorkState
from tests.support.hosts import Shim
from tests.support.sites import Bench, Site
from tests.support.stores import LEASE_US, TIMEOUT_US


def taken_over(site: Site, key: LeaseKey, bench: Bench) -> Attempt:
    """The old holder is gone without a word; `bench` recovers."""
    site.world.release(key)
    site.world.take_over(key, bench.me)
    bench.settle()
    return site.attempt(key.attempt_id)


def lapsed(site: Site, key: LeaseKey, bench: Bench) -> Attempt:
    """The lease ran out by itself; `bench` recovers."""
    site.world.take_over(key, bench.me)
    bench.settle()
    return site.attempt(key.attempt_id)


@pytest.fixture
def bench(site: Site) -> Bench:
    """Whoever recovers."""
    return site.bench("worker-2")


@pytest.fixture
def running(site: Site) -> tuple[LeaseKey, Shim]:
    """A job whose worker has died."""
    old = site.bench("worker-1")
    running = site.running(old)
    site.kill(old)
    return running


@pytest.mark.req("R02", "R04")
def test_a_running_job_is_adopted_under_the_next_epoch_and_never_run_again(
    site: Site, bench: Bench, running: tuple[LeaseKey, Shim]
) -> None:
    key, shim = running

    attempt = taken_over(site, key, bench)

    assert (attempt.id, attempt.state, attempt.epoch) == (key.attempt_id, AttemptState.RUNNING, 2)
    assert attempt.pin == shim.pin, "the pin stays the attempt's"
    assert site.host.runs(key.attempt_id) == 1
    assert site.done(bench.me, "accept", "adopt", "relaunch") == ["accept", "adopt"]
    shim.end(0)
    bench.settle()
    assert site.work(attempt.work_id).state is WorkState.COMPLETED


@pytest.mark.req("R02")
def test_recovering_is_durable_before_anything_is_looked_at(
    site: Site, bench: Bench, running: tuple[LeaseKey, Shim]
) -> None:
    key, _ = running
    site.world.release(key)
    site.world.take_over(key, bench.me)

    bench.step()

    assert site.attempt(key.attempt_id).state is AttemptState.RECOVERING
    assert len(bench.launches.tasks) == 1, "the evidence is read after that, on the pool"


@pytest.mark.req("R04")
@pytest.mark.parametrize(
    ("status", "state"), [(0, AttemptState.SUCCEEDED), (7, AttemptState.FAILED), (-9, AttemptState.FAILED)]
)
def test_a_job_that_ended_while_nobody_was_alive_is_settled_with_its_true_status(
    site: Site, bench: Bench, running: tuple[LeaseKey, Shim], status: int, state: AttemptState
) -> None:
    key, shim = running
    shim.end(status)

    attempt = taken_over(site, key, bench)

    assert (attempt.state, attempt.exit_status) == (state, status)
    assert (attempt.exclusion, attempt.exclusion_proof) == (Exclusion.RELEASED, "S1")
    assert site.host.runs(key.attempt_id) == 1


@pytest.mark.req("R03")
@pytest.mark.parametrize("stage", ["claimed", "accepted", "launched"])
def test_a_launch_that_died_before_its_pin_is_relaunched_and_spends_no_retry(
    site: Site, bench: Bench, stage: str
) -> None:
    old = site.bench("worker-1")
    key = site.claim(old)
    if stage != "claimed":
        old.step()
    if stage == "launched":
        old.launches.run()
    site.kill(old)

    attempt = taken_over(site, key, bench)

    assert (attempt.number, attempt.state, attempt.epoch) == (1, AttemptState.RUNNING, 2)
    assert attempt.relaunches == 1
    assert site.host.runs(key.attempt_id) == 1
    work = site.work(attempt.work_id)
    assert (work.state, work.admission_failures, work.attempts_used) == (WorkState.RUNNING, 0, 1)
    segments = site.world.store.read(lambda tx: tx.segments(key.attempt_id))
    assert [(segment.recovered, segment.relaunched) for segment in segments] == [(False, False), (True, True)]


@pytest.mark.req("R04")
def test_a_pinned_launch_that_never_got_its_go_is_relaunched_on_the_evidence(site: Site, bench: Bench) -> None:
    old = site.bench("worker-1")
    key = site.claim(old)
    old.step()
    old.launches.run()
    shim = site.host.shim(key.attempt_id)
    site.world.store.write(lambda tx: tx.pin(key, shim.pin))
    site.kill(old)

    held = taken_over(site, key, bench)
    assert held.state is AttemptState.RUNNING, "its shim lives: adopted, never killed"
    shim.close()  # the gate's end-of-file, or its timeout
    bench.settle()
    released = site.attempt(key.attempt_id)
    assert (released.state, released.epoch) == (AttemptState.RUNNING, 2)
    site.world.take_over(LeaseKey(key.attempt_id, 2, bench.me), bench.me)
    bench.settle()

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.epoch, site.host.runs(key.attempt_id)) == (AttemptState.RUNNING, 3, 1)


@pytest.mark.req("R03")
def test_a_launch_lost_five_times_is_given_up_as_an_admission_failure(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    bench.step()
    for _ in range(5):
        bench.launches.tasks.clear()
        site.world.release(key)
        key = site.world.take_over(key, bench.me)
        bench.step()
        bench.launches.run()
        bench.step()
    assert site.attempt(key.attempt_id).relaunches == 5, "control: five are allowed"

    bench.launches.tasks.clear()
    site.world.release(key)
    site.world.take_over(key, bench.me)
    bench.settle()

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.failure) == (AttemptState.FAILED, FailureClass.ADMISSION)
    assert attempt.exclusion_proof == "S0"
    assert site.work(attempt.work_id).state is WorkState.BACKOFF
    assert site.host.runs(key.attempt_id) == 0


@pytest.mark.req("R04")
@pytest.mark.parametrize("is_kept", [True, False])
def test_the_child_of_a_dead_shim_is_adopted_and_its_status_used_if_the_kernel_kept_it(
    site: Site, bench: Bench, running: tuple[LeaseKey, Shim], is_kept: bool
) -> None:
    key, shim = running
    shim.die()
    attempt = taken_over(site, key, bench)
    assert attempt.state is AttemptState.RUNNING

    shim.end_orphan(7, is_kept=is_kept)
    bench.settle()

    attempt = site.attempt(key.attempt_id)
    if is_kept:
        assert (attempt.state, attempt.exit_status) == (AttemptState.FAILED, 7)
    else:
        assert (attempt.state, attempt.exit_status) == (AttemptState.RECOVERY_REQUIRED, None)
    assert site.host.runs(key.attempt_id) == 1


@pytest.mark.req("R10", "X03", "M02")
def test_what_nobody_can_know_is_shown_and_holds_its_slot_and_is_recovered_no_more(
    site: Site, bench: Bench, running: tuple[LeaseKey, Shim]
) -> None:
    key, shim = running
    shim.die()
    shim.child_alive = False

    attempt = taken_over(site, key, bench)

    assert attempt.state is AttemptState.RECOVERY_REQUIRED
    assert (attempt.exclusion, attempt.ended_at_us) == (Exclusion.HELD, None)
    assert (bench.worker.held, site.world.recoverable()) == (0, [])
    assert sum(site.world.store.read(lambda tx: tx.usage()).counts.values()) == 1
    assert site.work(attempt.work_id).state is WorkState.RUNNING


@pytest.mark.req("R04")
def test_the_shim_of_a_job_of_ours_dies_and_its_child_is_watched_on(site: Site, bench: Bench) -> None:
    key, shim = site.running(bench)

    shim.die()
    bench.settle()
    assert site.attempt(key.attempt_id).state is AttemptState.RUNNING
    assert list(bench.watcher.watched.values()) == [shim.child]

    shim.end_orphan(0, is_kept=True)
    bench.settle()
    assert site.attempt(key.attempt_id).state is AttemptState.SUCCEEDED


@pytest.mark.req("R03", "R04")
def test_after_a_reboot_what_had_run_is_shown_and_what_had_not_is_relaunched(site: Site) -> None:
    old = site.bench("worker-1")
    ran, _ = site.running(old)
    ended, ended_shim = site.running(old)
    claimed = site.claim(old)
    site.kill(old)
    ended_shim.end(5)
    site.host.restart()
    site.clock.reboot("boot-2", down_us=30 * US_PER_S)
    bench = site.bench("worker-2")

    for key in (ran, ended, claimed):
        site.world.take_over(key, bench.me)
    bench.settle()

    assert site.attempt(ran.attempt_id).state is AttemptState.RECOVERY_REQUIRED
    assert site.attempt(ran.attempt_id).exclusion_proof == "S3", "how it ended is unknown, that it stopped is proven"
    assert (site.attempt(ended.attempt_id).state, site.attempt(ended.attempt_id).exit_status) == (
        AttemptState.FAILED,
        5,
    )
    assert site.attempt(claimed.attempt_id).state is AttemptState.RUNNING
    assert [site.host.runs(key.attempt_id) for key in (ran, ended, claimed)] == [1, 1, 1]


@pytest.mark.req("O05", "E14")
def test_a_job_out_of_time_is_timed_out_keeps_its_slot_and_is_stopped(site: Site) -> None:
    bench = site.bench()
    key, shim = site.running(bench)
    until = site.clock.now().mono_us + TIMEOUT_US
    while site.clock.now().mono_us < until - 1:
        site.clock.advance(min(LEASE_US // 3, until - 1 - site.clock.now().mono_us))
        bench.step()
    assert site.attempt(key.attempt_id).state is AttemptState.RUNNING, "control: not a microsecond early"

    site.clock.advance(1)
    bench.step()

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.exclusion) == (AttemptState.TIMED_OUT, Exclusion.HELD)
    work = site.work(attempt.work_id)
    assert (work.state, work.reason) == (WorkState.FAILED, Reason.TIMED_OUT)
    bench.settle()
    assert site.host.stopped == [key.attempt_id]
    assert (shim.alive, site.attempt(key.attempt_id).exclusion_proof) == (False, "S1")


@pytest.mark.req("R06")
def test_an_attempt_recovered_out_of_time_is_ended_and_not_relaunched(site: Site, bench: Bench) -> None:
    old = site.bench("worker-1")
    key = site.claim(old)
    site.kill(old)
    site.clock.advance(TIMEOUT_US)

    attempt = lapsed(site, key, bench)

    assert attempt.state is AttemptState.TIMED_OUT
    assert site.host.runs(key.attempt_id) == 0
    assert site.attempt(key.attempt_id).exclusion_proof == "S0"


@pytest.mark.req("E13")
def test_a_recovery_keeps_what_was_left_of_the_time(site: Site, bench: Bench, running: tuple[LeaseKey, Shim]) -> None:
    key, _ = running
    site.clock.advance(TIMEOUT_US - 10 * US_PER_S)
    lapsed(site, key, bench)
    assert site.attempt(key.attempt_id).state is AttemptState.RUNNING, "control: ten seconds are left"

    site.clock.advance(10 * US_PER_S)
    bench.settle()

    assert site.attempt(key.attempt_id).state is AttemptState.TIMED_OUT
