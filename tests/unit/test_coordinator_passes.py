"""Passes: their order, when they are made, what they leave behind, and that no clock and no lost bell can harm them."""

from __future__ import annotations

import pytest

from coordinator.coordinator import POLL_US, REPASS_US
from shared.model.attempt import AttemptState
from shared.model.host import PassRecord
from shared.model.instant import US_PER_S
from shared.model.settings import Config, Settings
from shared.model.work import Reason, WorkState
from shared.process.launcher import LaunchError
from tests.support.sites import Head, Site
from tests.support.stores import LEASE_US

YEAR_US = 365 * 86_400 * US_PER_S


@pytest.fixture
def head(site: Site) -> Head:
    """Who leads."""
    head = site.head()
    head.settle()
    return head


def last_pass(site: Site) -> PassRecord:
    record = site.world.store.read(lambda tx: tx.last_pass())
    assert record is not None
    return record


@pytest.mark.req("K04")
def test_the_first_step_of_a_leader_reconciles_everything_in_order_before_it_waits(site: Site) -> None:
    """Everything there is to do at once: a dead worker's job, a claim nobody took, a backoff that is over, a ready Work."""
    dead, live = site.bench("worker-1"), site.bench("worker-2")
    running, _ = site.running(dead)
    unaccepted = site.claim(live)
    site.host.failing = [LaunchError("spawn", "no")]
    failed = site.claim(dead)
    dead.settle()
    ready = site.world.submit()
    site.kill(dead)
    site.clock.advance(16 * US_PER_S)  # the leadership the claims were made with is over
    live.store.write(lambda tx: tx.beat(live.me))
    head = site.head()
    before = site.clock.now()

    due = head.step()

    order = ["take_leadership", "revoke_foreign_boots", "retire_worker", "revoke_unaccepted", "claim_recovery"]
    order += ["fire_timer", "claim"]
    done = [what for what in site.done(head.me) if what in order]
    assert list(dict.fromkeys(done)) == order
    assert site.clock.now() == before
    assert due >= before.mono_us
    assert [site.attempt(key.attempt_id).epoch for key in (running, unaccepted)] == [2, 2]
    head.settle()
    assert [site.work(work_id).state for work_id in (ready, site.attempt(failed.attempt_id).work_id)] == [
        WorkState.RUNNING, WorkState.RUNNING,
    ]  # fmt: skip


@pytest.mark.req("K04")
def test_the_next_leader_reconciles_at_once_too(site: Site, head: Head) -> None:
    site.bench()
    second = site.head()
    site.settle()
    site.kill(head)
    work_id = site.world.submit()

    second.step()

    assert (site.work(work_id).state, second.coordinator.leads) == (WorkState.RUNNING, True)


@pytest.mark.req("K03")
def test_without_any_bell_a_job_starts_runs_and_ends_by_polling_alone(site: Site, head: Head) -> None:
    bench = site.bench()
    site.elapse(5)
    work_id = site.world.submit()

    # Each looks only when the time it named has come, the latest there may be.
    began = site.clock.now().mono_us
    dues = dict.fromkeys((head.me, bench.me), began + POLL_US)
    for _ in range(40):
        site.clock.wait(min(dues.values()), None)
        for one in (head, bench):
            if dues[one.me] <= site.clock.now().mono_us:
                dues[one.me] = one.step()
                bench.launches.run()
        shim = site.host.shims.get(f"{work_id}.1.1")
        if shim is not None and shim.ran and shim.alive:
            shim.end(0)
        if site.work(work_id).state is WorkState.COMPLETED:
            break

    assert site.work(work_id).state is WorkState.COMPLETED
    assert site.clock.now().mono_us - began <= 4 * POLL_US


@pytest.mark.req("K03")
def test_nobody_sleeps_longer_than_a_poll(site: Site, head: Head) -> None:
    bench = site.bench()
    for _ in range(5):
        for step in (head.step, bench.step):
            assert step() - site.clock.now().mono_us <= POLL_US
        site.clock.advance(POLL_US)


@pytest.mark.req("S02")
def test_while_nothing_changes_no_pass_is_made_and_nothing_is_written_but_signs_of_life(site: Site, head: Head) -> None:
    site.elapse(3)
    site.journal.clear()

    for _ in range(30):
        site.clock.advance(POLL_US)
        head.settle()

    assert set(site.done(head.me)) == {"lead"}
    assert len(site.done(head.me)) == 6, "its own leadership, each five seconds"


@pytest.mark.parametrize("is_something_due", [False, True])
def test_a_pass_is_made_now_and_then_even_when_nothing_seems_to_have_changed(
    site: Site, head: Head, is_something_due: bool
) -> None:
    site.configure(Config(settings=Settings(lease_us=3600 * US_PER_S)))
    if is_something_due:  # a lease that ends in an hour
        bench = site.bench()
        site.world.submit()
        site.settle()
        site.stall(bench)
    site.elapse(3)
    site.journal.clear()

    site.elapse(REPASS_US / US_PER_S + 2)

    assert len(site.done(head.me, "record_pass")) == 1
    assert last_pass(site).trigger == "deadline"


@pytest.mark.req("K05")
def test_the_counts_of_a_pass_are_those_of_what_it_committed(site: Site, head: Head) -> None:
    site.configure(Config(settings=Settings(job_concurrency=2)))
    site.bench()
    site.settle()
    site.elapse(2)
    for _ in range(5):
        site.world.submit()
    site.journal.clear()

    head.step()
    head.coordinator._notes.flush()

    record = last_pass(site)
    assert (record.trigger, record.claimed, record.recovered, record.revoked) == ("wake", 2, 0, 0)
    assert (record.waiting_jobs, record.waiting_agents) == (3, 0)
    assert (record.duration_us, record.started_at_us) == (0, site.clock.now().wall_us)
    assert record.due_at_us <= record.started_at_us
    assert len(site.done(head.me, "claim")) == 2


@pytest.mark.req("C04", "K05")
def test_reasons_and_records_are_written_late_and_with_the_next_commit_if_there_is_one(site: Site, head: Head) -> None:
    site.elapse(2)
    waiting = site.world.submit()
    site.journal.clear()

    head.settle()
    assert site.done(head.me) == [], "nothing starts, and nothing is written yet"
    assert site.work(waiting).reason is None

    site.clock.advance(US_PER_S)
    head.settle()
    assert site.done(head.me) == ["lead", "hold_back", "record_pass", "mark_clock"]
    assert site.work(waiting).reason is Reason.NO_WORKER


def test_notes_ride_on_a_claim(site: Site, head: Head) -> None:
    site.elapse(2)
    for _ in range(6):
        site.world.submit()
    head.settle()
    site.journal.clear()

    site.bench()
    head.step()

    assert site.done(head.me)[:2] == ["lead", "claim"]
    assert "record_pass" in site.done(head.me), "of the pass before, in the same commit"
    assert site.done(head.me).count("lead") == 1


def test_a_leader_that_leaves_writes_what_it_kept(site: Site, head: Head) -> None:
    site.elapse(2)
    waiting = site.world.submit()
    head.settle()

    head.coordinator.leave()

    assert site.work(waiting).reason is Reason.NO_WORKER


@pytest.mark.req("K02")
@pytest.mark.parametrize("step_us", [-YEAR_US, YEAR_US])
def test_steps_of_the_wall_clock_lose_no_lease_start_nothing_twice_and_delay_nothing(
    site: Site, head: Head, step_us: int
) -> None:
    bench, other = site.bench("worker-1"), site.bench("worker-2")
    site.settle()
    running = site.world.submit()
    site.settle()
    site.host.failing = [LaunchError("spawn", "no")]
    failed = site.world.submit()
    site.settle()
    assert site.work(failed).state is WorkState.BACKOFF

    site.clock.step_wall(step_us)
    site.settle()
    assert site.work(failed).state is WorkState.BACKOFF, "a backoff is elapsed time"
    late = site.world.submit()
    site.elapse(3 * LEASE_US / US_PER_S)

    attempt = site.attempt(f"{running}.1")
    assert (attempt.state, attempt.epoch) == (AttemptState.RUNNING, 1)
    assert [site.work(work_id).state for work_id in (running, failed, late)] == [WorkState.RUNNING] * 3
    assert [site.host.runs(f"{work_id}.{number}") for work_id, number in ((running, 1), (failed, 2), (late, 1))] == [
        1,
        1,
        1,
    ]
    assert (head.coordinator.leads, bench.worker.held + other.worker.held) == (True, 3)


def test_a_new_configuration_is_followed_from_the_next_pass_on(site: Site, head: Head) -> None:
    site.configure(Config(settings=Settings(job_concurrency=1)))
    site.bench()
    works = [site.world.submit() for _ in range(3)]
    site.settle()
    assert [site.work(work_id).state for work_id in works].count(WorkState.RUNNING) == 1

    site.configure(Config(settings=Settings(job_concurrency=2)))
    site.settle()

    assert [site.work(work_id).state for work_id in works].count(WorkState.RUNNING) == 2
