"""Drain: a worker that is asked to end takes nothing, renews to the last, and leaves what is left to be taken over."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from shared.child import ChildOptions
from shared.clock import WaitEnd, Wake
from shared.ids import AttemptId
from shared.model.attempt import AttemptState, LeaseKey
from shared.model.host import WorkerState
from shared.model.instant import US_PER_S, Instant
from shared.model.settings import Config, Settings
from shared.model.work import WorkState
from shared.wake import Bell
from tests.support.sites import Bench, Head, Site
from worker.bootstrap import run

LEASE_US = 6 * US_PER_S


class Drain:
    """The loop of a worker's process from the wish that it ends on, as its clock: while it waits, everybody else acts.

    Attributes:
        meanwhile: Called at each of its waits, with the seconds since it was asked.
    """

    def __init__(self, site: Site, bench: Bench) -> None:
        self._site = site
        self._bench = bench
        self._asked = site.clock.now()
        self.meanwhile: Callable[[float], object] = lambda _s: None

    def now(self) -> Instant:
        """See `Clock.now`."""
        return self._site.clock.now()

    def wait(self, until_mono_us: int, wake: Wake | None) -> WaitEnd:
        """See `Clock.wait`; a second at most, so that the others poll, and not at all when something has come in."""
        self._bench.launches.run()
        self._bench.stops.run()
        if not self._bench.completions.empty():
            return WaitEnd.WOKEN
        left_us = max(0, until_mono_us - self.now().mono_us)
        self._site.clock.advance(min(left_us, US_PER_S))
        self._site.settle()
        self.meanwhile(self.seconds)
        return WaitEnd.DEADLINE

    @property
    def seconds(self) -> float:
        """Since it was asked."""
        return (self.now().mono_us - self._asked.mono_us) / US_PER_S

    def run(self, bound_s: float) -> float:
        """Ask, and return after how many seconds the process was gone; its lock goes with it."""
        self._asked = self.now()
        self._site.stall(self._bench)
        options = ChildOptions(home=str(self._site.world.home), name="worker-1")
        options.stop.ask(bound_s, "SIGTERM")
        with closing(Bell(self._site.world.home / "run", self._bench.me)) as bell:
            run(self._bench.worker, self, bell, options.stop)
        gone_after_s = self.seconds
        self._site.benches.append(self._bench)
        self._site.kill(self._bench)
        self._site.settle()
        return gone_after_s


@pytest.fixture
def head(site: Site) -> Head:
    site.configure(Config(settings=Settings(lease_us=LEASE_US, job_concurrency=0)))
    head = site.head()
    head.settle()
    return head


@pytest.fixture
def bench(site: Site, head: Head) -> Bench:
    bench = site.bench("worker-1")
    site.settle()
    return bench


@pytest.fixture
def drain(site: Site, bench: Bench) -> Drain:
    return Drain(site, bench)


@pytest.fixture
def jobs(site: Site, bench: Bench) -> list[AttemptId]:
    """Two jobs that it runs."""
    works = [site.world.submit() for _ in range(2)]
    site.settle()
    jobs = [AttemptId(f"{work_id}.1") for work_id in works]
    assert set(jobs) == set(bench.ports.holdings)
    return jobs


@pytest.fixture
def other(site: Site, jobs: list[AttemptId]) -> Bench:
    """A worker that came later."""
    other = site.bench("worker-2")
    site.settle()
    return other


def released(site: Site, attempt_id: AttemptId) -> list[tuple[str, object]]:
    return [(event.kind, event.data["reason"]) for event in site.events(attempt_id) if event.kind == "lease.revoked"]


@pytest.mark.req("X05", "E05", "E06")
def test_it_renews_until_the_last_run_is_settled_and_then_goes_before_its_time_is_over(
    site: Site, drain: Drain, bench: Bench, other: Bench, jobs: list[AttemptId]
) -> None:
    held: list[bool] = []

    def watch(seconds: float) -> None:
        open_jobs = [job for job in jobs if site.attempt(job).ended_at_us is None]
        held.extend(site.lease_is_live(LeaseKey(job, 1, bench.me)) for job in open_jobs)
        for job, at_s in zip(jobs, (10, 30), strict=True):
            if seconds == at_s:
                site.host.shim(job).end(0)

    drain.meanwhile = watch
    gone_after_s = drain.run(60)

    assert all(held)
    assert len(held) > 30, "looked at all the time, over five leases"
    assert gone_after_s == 30, "with the last job"
    assert [site.ends(job) for job in jobs] == [[AttemptState.SUCCEEDED]] * 2, "one end each"
    assert [site.attempt(job).epoch for job in jobs] == [1, 1], "nothing was adopted meanwhile"
    assert other.asked == []
    assert "accept" not in site.done(other.me)


@pytest.mark.req("E05")
def test_control_without_its_renewals_the_same_jobs_are_adopted_by_another(
    site: Site, bench: Bench, other: Bench, jobs: list[AttemptId]
) -> None:
    bench.worker.drain()
    site.stall(bench)

    site.elapse(2 * LEASE_US / US_PER_S)

    assert [site.attempt(job).epoch for job in jobs] == [2, 2]
    assert other.worker.held == 2


@pytest.mark.req("X05", "R07")
def test_what_outlasts_the_bound_is_recorded_as_released_and_taken_over_at_once(
    site: Site, drain: Drain, bench: Bench, other: Bench, jobs: list[AttemptId]
) -> None:
    short, long = jobs
    lapsed: list[float] = []

    def watch(seconds: float) -> None:
        if not site.lease_is_live(LeaseKey(long, 1, bench.me)):
            lapsed.append(seconds)
        if seconds == 5:
            site.host.shim(short).end(0)

    drain.meanwhile = watch
    gone_after_s = drain.run(20)

    assert (gone_after_s, lapsed) == (20, []), "held to the end of the bound, and no longer"
    assert released(site, long) == [("lease.revoked", "released")]
    attempt = site.attempt(long)
    assert (attempt.state, attempt.epoch, long in other.ports.holdings) == (AttemptState.RUNNING, 2, True)
    assert (site.host.shim(long).alive, site.host.runs(long), site.host.stopped) == (True, 1, [])
    assert (site.attempt(short).state, released(site, short)) == (
        AttemptState.SUCCEEDED,
        [("lease.revoked", "ended")],
    )
    (gone,) = [one for one in site.world.store.read(lambda tx: tx.workers(gone=True)) if one.id == bench.me]
    assert gone.state is WorkerState.GONE
    assert site.work(attempt.work_id).attempts_used == 1, "no retry is spent on a deploy"
    site.host.shim(long).end(0)
    site.settle()
    assert site.ends(long) == [AttemptState.SUCCEEDED]


@pytest.mark.req("X05")
def test_without_time_everything_is_released_at_once(
    site: Site, drain: Drain, other: Bench, jobs: list[AttemptId]
) -> None:
    assert drain.run(0) == 0

    assert [released(site, job) for job in jobs] == [[("lease.revoked", "released")]] * 2
    assert set(other.ports.holdings) == set(jobs)


@pytest.mark.req("X05")
def test_an_idle_worker_goes_at_once_however_long_it_may_take(site: Site, drain: Drain, bench: Bench) -> None:
    assert drain.run(60) == 0
    assert site.workers() == []


@pytest.mark.req("X05")
def test_meanwhile_it_takes_nothing_and_another_does(
    site: Site, drain: Drain, bench: Bench, other: Bench, jobs: list[AttemptId]
) -> None:
    late: list[AttemptId] = []

    def submit_once(_seconds: float) -> None:
        if not late:
            late.append(AttemptId(f"{site.world.submit()}.1"))

    drain.meanwhile = submit_once
    drain.run(3)

    assert site.attempt(late[0]).state is AttemptState.RUNNING
    assert late[0] not in bench.ports.holdings
    assert [segment.worker for segment in site.segments(late[0])] == [other.me]


@pytest.mark.req("X05", "R03")
def test_a_claim_that_it_had_not_taken_up_yet_is_not_lost(
    site: Site, head: Head, drain: Drain, jobs: list[AttemptId]
) -> None:
    work_id = site.world.submit()
    head.settle()  # for the only worker there is
    other = site.bench("worker-2")

    drain.run(10)

    attempt = site.attempt(f"{work_id}.1")
    assert (attempt.state, attempt.epoch, attempt.id in other.ports.holdings) == (AttemptState.RUNNING, 2, True)
    assert (site.host.runs(attempt.id), site.work(work_id).state) == (1, WorkState.RUNNING)


@pytest.mark.req("X05", "R05")
def test_a_launch_that_is_under_way_when_it_goes_never_runs_there(
    site: Site, head: Head, drain: Drain, bench: Bench
) -> None:
    work_id = site.world.submit()
    head.settle()
    bench.step()
    (task,) = bench.launches.tasks
    bench.launches.tasks = []  # still at it
    other = site.bench("worker-2")

    assert drain.run(5) == 5

    bench.launches.tasks = [task]
    bench.launches.run()  # what came of it in the end
    attempt = site.attempt(f"{work_id}.1")
    assert (attempt.state, attempt.epoch, attempt.id in other.ports.holdings) == (AttemptState.RUNNING, 2, True)
    assert (site.host.shim(attempt.id, 1).ran, site.host.runs(attempt.id)) == (False, 1)


@pytest.mark.req("X05", "R13")
def test_a_stop_that_it_was_at_is_done_by_another(site: Site, drain: Drain, bench: Bench, other: Bench) -> None:
    job = next(iter(bench.ports.holdings.values()))
    site.cancel(job.key)
    bench.step()
    assert len(bench.stops.tasks) == 1, "control: it took it"
    bench.stops.tasks = []  # and hangs in it

    drain.run(1)

    assert site.attempt(job.attempt_id).exclusion_proof == "S1"
    assert "confirm_stopped" in site.done(other.me)


@pytest.mark.req("X05", "K03")
def test_a_busy_store_at_that_moment_ends_no_drain(
    site: Site, drain: Drain, bench: Bench, other: Bench, jobs: list[AttemptId]
) -> None:
    bench.store.busy_writes = 3

    assert drain.run(10) == 10

    assert site.done(bench.me, "drain_worker") == ["drain_worker"]
    assert [released(site, job) for job in jobs] == [[("lease.revoked", "released")]] * 2
    assert set(other.ports.holdings) == set(jobs)
