"""The start pass: what starts, in which order, and what waits and why."""

from __future__ import annotations

from functools import partial

import pytest

from shared.errors import StoreBusyError
from shared.ids import AttemptId
from shared.model.instant import US_PER_S
from shared.model.settings import Binding, Config, Settings
from shared.model.work import Reason, WorkState
from shared.store.sqlite.ballast import Ballast
from tests.support.sites import Head, Site
from tests.support.starts import A_PASS, between_look_and_claim, running, states, submit


@pytest.fixture
def head(site: Site) -> Head:
    """Who leads."""
    head = site.head()
    head.settle()
    return head


@pytest.mark.req("E01", "C02")
def test_without_a_configuration_four_jobs_run_at_once_and_the_rest_follows_in_order(site: Site, head: Head) -> None:
    bench = site.bench()
    works = submit(site, 6)

    site.settle()
    site.elapse(1)  # the reasons are written late

    running, waiting = (WorkState.RUNNING, None), (WorkState.READY, Reason.CAPACITY_JOB_CONCURRENCY)
    assert states(site, works) == [running] * 4 + [waiting] * 2
    site.host.shim(f"{works[1]}.1").end(0)
    site.settle()
    assert states(site, works)[1:] == [(WorkState.COMPLETED, None), running, running, running, waiting]
    assert bench.worker.held == 4


@pytest.mark.req("C01", "C03")
@pytest.mark.parametrize("limit", [1, 3, 0])
def test_no_more_run_at_once_than_the_limit_and_zero_means_no_limit(site: Site, head: Head, limit: int) -> None:
    site.configure(Config(settings=Settings(job_concurrency=limit)))
    site.bench()
    works = submit(site, 9)

    site.settle()

    assert [site.work(work_id).state for work_id in works].count(WorkState.RUNNING) == (limit or 9)


@pytest.mark.req("C03", "R10")
def test_an_ended_attempt_holds_its_slot_until_its_stop_is_proven(site: Site, head: Head) -> None:
    site.configure(Config(settings=Settings(job_concurrency=1)))
    bench = site.bench()
    running, second = submit(site, 2)
    site.settle()
    site.cancel(bench.ports.holdings[AttemptId(f"{running}.1")].key)

    head.settle()
    assert site.work(second).state is WorkState.READY

    site.settle()
    assert site.work(second).state is WorkState.RUNNING, "control: with the proof it starts"


def test_higher_priority_first_then_the_oldest(site: Site, head: Head) -> None:
    site.configure(Config(settings=Settings(job_concurrency=2)))
    low, lower, high = (submit(site, 2, priority=priority) for priority in (1, 0, 5))
    site.bench()

    site.settle()

    assert running(site, [*low, *lower, *high]) == high


@pytest.mark.req("S01", "E07")
def test_a_pass_looks_at_a_bounded_number(site: Site, head: Head) -> None:
    submit(site, A_PASS, binding="gone")
    (fine,) = submit(site, 1)
    site.bench()

    head.step()

    assert site.work(fine).state is WorkState.READY, "that much is not looked at in one pass …"
    head.settle()
    assert site.work(fine).state is WorkState.RUNNING, "… and the next ones follow at once"


@pytest.mark.req("C04")
def test_without_a_worker_works_say_so_and_start_when_one_registers(site: Site, head: Head) -> None:
    works = submit(site, 2)
    head.settle()
    site.elapse(1)
    assert states(site, works) == [(WorkState.READY, Reason.NO_WORKER)] * 2

    site.bench()
    site.settle()

    assert states(site, works) == [(WorkState.RUNNING, None)] * 2


def test_starts_are_spread_over_workers_by_their_free_slots(site: Site, head: Head) -> None:
    site.configure(Config(settings=Settings(job_concurrency=0)))
    small, big = site.bench("worker-1", slots=2), site.bench("worker-2", slots=4)
    submit(site, 9)

    site.settle()

    assert (small.worker.held, big.worker.held) == (2, 4)


@pytest.mark.req("E02")
def test_a_work_that_was_cancelled_between_look_and_claim_is_not_started(site: Site, head: Head) -> None:
    site.bench()
    cancelled, fine = submit(site, 2)
    cancel = partial(site.world.store.write, lambda tx: tx.cancel_work(cancelled, by="a test", reason="raced"))
    between_look_and_claim(head, cancel)

    site.settle()

    assert (site.work(cancelled).state, site.work(cancelled).attempts_used) == (WorkState.CANCELLED, 0)
    assert site.work(fine).state is WorkState.RUNNING, "one race undoes nothing else"


@pytest.mark.req("E02")
def test_a_claim_decided_under_an_old_configuration_is_decided_anew(site: Site, head: Head) -> None:
    old, new = (Config(bindings=(Binding(name="job", command=(word,)),)) for word in ("old", "new"))
    site.configure(old)
    site.bench()
    head.settle()
    (work_id,) = submit(site, 1, binding="job")
    between_look_and_claim(head, lambda: site.configure(new))

    site.settle()

    snapshot = site.world.store.read(lambda tx: tx.snapshot(AttemptId(f"{work_id}.1")))
    assert snapshot is not None
    assert (snapshot.command, snapshot.generation) == (("new",), 2)
    assert site.work(work_id).attempts_used == 1


@pytest.mark.req("M05", "C04")
def test_on_a_full_disk_claims_stop_without_a_busy_loop_and_resume_by_themselves(
    site: Site, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.bench()
    works = submit(site, 20)
    with monkeypatch.context() as full:
        full.setattr(Ballast, "is_there", lambda _: False)
        head.settle()
        site.elapse(2)
        assert set(states(site, works)[:4]) == {(WorkState.READY, Reason.DISK_FULL)}

    site.elapse(60)

    assert states(site, works)[:4] == [(WorkState.RUNNING, None)] * 4


@pytest.mark.req("M05", "K03")
def test_a_busy_store_delays_a_start_by_a_step(site: Site, head: Head) -> None:
    site.bench()
    site.settle()
    (work_id,) = submit(site, 1)
    head.store.busy_writes = 1
    with pytest.raises(StoreBusyError):
        head.step()

    head.step()

    assert site.work(work_id).state is WorkState.RUNNING


def test_a_silent_worker_is_given_nothing_new(site: Site, head: Head) -> None:
    silent = site.bench("worker-1")
    site.settle()
    site.stall(silent)
    site.elapse(21)  # a third of the lease

    (work_id,) = submit(site, 1)
    site.settle()
    assert site.work(work_id).state is WorkState.READY

    site.benches.append(silent)
    silent.settle()
    site.settle()
    assert site.work(work_id).state is WorkState.RUNNING, "control: after a sign of life it is"
    assert site.clock.now().mono_us > 20 * US_PER_S
