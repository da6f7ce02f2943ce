"""Out of time: ended by whoever has the right to, charged through loss and recovery, never launched again for that."""

from __future__ import annotations

import pytest

from shared.ids import AttemptId, work_of
from shared.model.attempt import AttemptState, Exclusion, FailureClass
from shared.model.instant import US_PER_S
from shared.model.settings import Binding, Config
from shared.model.work import Reason, WorkState
from shared.policy.lease import budget_left_us
from tests.support.sites import Bench, Head, Site
from tests.support.stores import LEASE_US

SHORT_US = 30 * US_PER_S
LONG_US = 200 * US_PER_S
BINDINGS = (
    Binding(name="long", command=("sleep",), timeout_us=LONG_US),
    Binding(name="short", command=("sleep",), timeout_us=SHORT_US),
)


@pytest.fixture
def head(site: Site) -> Head:
    site.configure(Config(bindings=BINDINGS))
    head = site.head()
    head.settle()
    return head


@pytest.fixture
def bench(site: Site, head: Head) -> Bench:
    bench = site.bench("worker-1")
    site.settle()
    return bench


def started(site: Site, binding: str) -> AttemptId:
    attempt_id = site.submit(binding)
    site.settle()
    assert site.attempt(attempt_id).state is AttemptState.RUNNING
    return attempt_id


def slots(site: Site) -> int:
    return sum(site.world.store.read(lambda tx: tx.usage()).counts.values())


def last_holder(site: Site, attempt_id: AttemptId) -> str:
    lease = site.world.store.read(lambda tx: tx.lease(attempt_id))
    assert lease is not None
    return lease.owner


@pytest.mark.req("E14", "R06", "O05", "X03")
def test_lapsed_and_out_of_time_with_no_worker_at_all_it_is_ended_by_the_leader(
    site: Site, head: Head, bench: Bench
) -> None:
    attempt_id = started(site, "long")
    site.stall(bench)

    site.elapse(LONG_US / US_PER_S - 0.000001, poll_s=10)
    before = site.attempt(attempt_id)
    assert (before.state, before.epoch, site.orders()) == (AttemptState.RUNNING, 1, []), "control: time is left"
    site.elapse(0.000001)

    attempt = site.attempt(attempt_id)
    assert (attempt.state, attempt.failure, attempt.epoch) == (AttemptState.TIMED_OUT, FailureClass.TIMED_OUT, 2)
    assert (attempt.exclusion, slots(site)) == (Exclusion.HELD, 1)
    assert [(order.attempt_id, order.epoch, order.ordered_by) for order in site.orders()] == [(attempt_id, 2, head.me)]
    work = site.work(attempt.work_id)
    assert (work.state, work.reason) == (WorkState.FAILED, Reason.TIMED_OUT)
    first, last = site.segments(attempt_id)
    assert (first.active_us, first.ended_at_us) == (LONG_US, last.began_at_us)
    assert (last.recovered, last.worker, last.began_at_us, last.active_us) == (True, head.me, last.ended_at_us, 0)
    assert site.ends(attempt_id) == [AttemptState.TIMED_OUT]


@pytest.mark.req("R10", "R13", "O05")
def test_its_slot_comes_free_with_the_proof_that_the_next_worker_brings(site: Site, head: Head, bench: Bench) -> None:
    attempt_id = started(site, "long")
    site.stall(bench)
    site.elapse(LONG_US / US_PER_S, poll_s=10)
    assert slots(site) == 1

    site.bench("worker-2")
    site.settle()

    assert site.host.stopped == [attempt_id]
    assert (site.attempt(attempt_id).exclusion_proof, slots(site), site.orders()) == ("S1", 0, [])


@pytest.mark.req("E14", "O05")
def test_while_the_lease_is_live_only_its_holder_may_time_an_attempt_out(site: Site, head: Head, bench: Bench) -> None:
    attempt_id = started(site, "short")
    site.stall(bench)

    site.elapse(LEASE_US / US_PER_S - 1, poll_s=10)
    assert site.attempt(attempt_id).state is AttemptState.RUNNING, "out of time for long, and held"

    site.elapse(2)
    assert (site.attempt(attempt_id).state, site.attempt(attempt_id).epoch) == (AttemptState.TIMED_OUT, 2)


@pytest.mark.req("O05")
def test_the_holder_times_it_out_on_time_at_its_own_epoch(site: Site, head: Head, bench: Bench) -> None:
    attempt_id = started(site, "short")

    site.elapse(SHORT_US / US_PER_S)

    attempt = site.attempt(attempt_id)
    assert (attempt.state, attempt.epoch, attempt.exclusion_proof) == (AttemptState.TIMED_OUT, 1, "S1")
    assert [(segment.recovered, segment.active_us) for segment in site.segments(attempt_id)] == [(False, SHORT_US)]


@pytest.mark.req("R06", "E14")
def test_what_never_ran_and_is_out_of_time_is_not_launched(site: Site, head: Head, bench: Bench) -> None:
    attempt_id = site.submit("short")
    head.settle()
    site.kill(bench)
    site.clock.advance(SHORT_US)
    site.bench("worker-2")

    site.elapse(2)

    assert (site.attempt(attempt_id).state, site.attempt(attempt_id).exclusion_proof) == (AttemptState.TIMED_OUT, "S0")
    assert (site.host.shims, site.attempt(attempt_id).relaunches) == ({}, 0)


@pytest.mark.req("R06")
@pytest.mark.parametrize(("left_us", "runs"), [(0, 0), (1, 1)])
def test_time_that_ran_out_between_its_recovery_and_the_look_at_it_relaunches_nothing(
    site: Site, head: Head, bench: Bench, left_us: int, runs: int
) -> None:
    attempt_id = site.submit("short")
    head.settle()
    site.kill(bench)
    other = site.bench("worker-2")
    head.coordinator.notice_death()
    head.settle()
    assert site.attempt(attempt_id).epoch == 2

    site.clock.advance(budget_left_us(site.attempt(attempt_id), site.clock.now()) - left_us)
    other.settle()

    assert (site.host.runs(attempt_id), site.attempt(attempt_id).relaunches) == (runs, runs)
    expected = AttemptState.RUNNING if runs else AttemptState.TIMED_OUT
    assert site.attempt(attempt_id).state is expected


@pytest.mark.req("R06", "R04", "O05")
def test_an_adopted_attempt_out_of_time_is_timed_out_and_never_launched_again(
    site: Site, head: Head, bench: Bench
) -> None:
    attempt_id = started(site, "short")
    site.elapse(10)
    site.kill(bench)
    other = site.bench("worker-2")
    site.settle()
    assert "adopt" in site.done(other.me), "control"

    site.elapse(19.999999)
    assert site.attempt(attempt_id).state is AttemptState.RUNNING, "control: not a microsecond early"
    site.elapse(0.000001)

    attempt = site.attempt(attempt_id)
    assert (attempt.state, attempt.epoch, attempt.exclusion_proof) == (AttemptState.TIMED_OUT, 2, "S1")
    assert (site.host.runs(attempt_id), "relaunch" in site.done(other.me)) == (1, False)


@pytest.mark.req("E13", "E11", "R07")
def test_time_between_a_lost_lease_and_its_recovery_is_charged_to_the_budget_and_to_the_ended_segment(
    site: Site, head: Head, bench: Bench
) -> None:
    attempt_id = started(site, "long")
    site.elapse(20)
    site.stall(bench)
    site.elapse(100, poll_s=10)  # the lease lapses on the way; nobody is there to take it
    assert site.attempt(attempt_id).epoch == 1

    site.bench("worker-2")
    site.settle()

    first, open_one = site.segments(attempt_id)
    assert (first.active_us, first.ended_at_us) == (120 * US_PER_S, open_one.began_at_us)
    assert (open_one.recovered, open_one.active_us) == (True, None)
    attempt = site.attempt(attempt_id)
    assert attempt.budget_us == LONG_US - 120 * US_PER_S == 80 * US_PER_S
    site.elapse(79.999999, poll_s=10)
    assert site.attempt(attempt_id).state is AttemptState.RUNNING, "it keeps what was left …"
    site.elapse(0.000001)
    assert site.attempt(attempt_id).state is AttemptState.TIMED_OUT, "… and gets no more"
    charged = [segment.active_us for segment in site.segments(attempt_id)]
    assert charged == [120 * US_PER_S, 80 * US_PER_S]
    assert site.attempt(attempt_id).budget_us == 0


@pytest.mark.req("E13")
def test_what_the_ended_segments_used_and_what_is_left_make_the_timeout_over_any_number_of_recoveries(
    site: Site, head: Head, bench: Bench
) -> None:
    attempt_id = started(site, "long")
    holder = bench

    for number in range(2, 8):
        site.elapse(7 + number)
        site.kill(holder)
        holder = site.bench(f"worker-{number}")
        site.settle()
        used = sum(segment.active_us or 0 for segment in site.segments(attempt_id))
        assert used + site.attempt(attempt_id).budget_us == LONG_US

    assert (site.attempt(attempt_id).epoch, site.host.runs(attempt_id)) == (7, 1)
    site.host.shim(attempt_id).end(0)
    site.settle()
    used = sum(segment.active_us or 0 for segment in site.segments(attempt_id))
    assert used + site.attempt(attempt_id).budget_us == LONG_US


@pytest.mark.req("E13", "E14")
@pytest.mark.parametrize(("down_s", "state"), [(60, AttemptState.RECOVERY_REQUIRED), (400, AttemptState.TIMED_OUT)])
def test_the_time_that_the_host_was_down_is_charged_too(
    site: Site, head: Head, bench: Bench, down_s: int, state: AttemptState
) -> None:
    attempt_id = started(site, "long")
    site.elapse(20)
    for one in (bench, head):
        site.stall(one)
    site.host.restart()
    site.clock.reboot("boot-2", down_us=down_s * US_PER_S)
    site.head()
    site.bench("worker-2")

    site.settle()

    attempt = site.attempt(attempt_id)
    assert (attempt.state, attempt.budget_us) == (state, max(0, LONG_US - (20 + down_s) * US_PER_S))
    assert site.segments(attempt_id)[0].active_us == (20 + down_s) * US_PER_S


@pytest.mark.req("E11", "E08")
def test_a_timeout_is_pinned_when_its_attempt_is_claimed(site: Site, head: Head, bench: Bench) -> None:
    attempt_id = started(site, "short")
    site.configure(Config(bindings=(Binding(name="short", command=("sleep",), timeout_us=LONG_US),)))
    later = started(site, "short")

    site.elapse(SHORT_US / US_PER_S)

    assert site.attempt(attempt_id).state is AttemptState.TIMED_OUT
    assert site.attempt(later).state is AttemptState.RUNNING, "control: the new one has the new timeout"


@pytest.mark.req("E14", "S01")
def test_the_leader_wakes_up_for_it_by_itself(site: Site, head: Head, bench: Bench) -> None:
    attempt_id = started(site, "long")
    site.stall(bench)

    for _ in range(int(2 * LONG_US / US_PER_S)):
        site.clock.wait(head.step(), None)
        if site.attempt(attempt_id).ended_at_us is not None:
            break

    attempt = site.attempt(attempt_id)
    assert attempt.ended_at_us == attempt.started_at_us + LONG_US, "on the microsecond, without a bell"
    assert work_of(attempt_id) == attempt.work_id
