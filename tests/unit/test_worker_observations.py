"""Observations of a run that are unavailable, slow, duplicate, lost or out of order: one disposition, and none without evidence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shared.model.attempt import AttemptState, LeaseKey
from shared.model.evidence import LockState
from shared.model.instant import US_PER_S
from shared.model.work import WorkState
from shared.policy.lease import renewal_due_us
from tests.support.hosts import Shim
from tests.support.sites import Bench, Site, open_site
from tests.support.stores import LEASE_US
from worker.ending import UNSEEN_MAX
from worker.pool import Completion

SUCCEEDED, PERSON = AttemptState.SUCCEEDED, AttemptState.RECOVERY_REQUIRED


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as site:
        yield site


class Run:
    """One job under one worker, with a coordinator."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.bench: Bench = site.bench()
        site.head()
        site.settle()
        self.work = site.world.submit()
        site.settle()
        self.key = LeaseKey(site.attempt(f"{self.work}.1").id, 1, self.bench.me)
        self.shim: Shim = site.host.shim(self.key.attempt_id)
        assert self.shim.ran

    @property
    def state(self) -> AttemptState:
        return self.site.attempt(self.key.attempt_id).state

    def assert_settled_once(self, state: AttemptState, *, epoch: int = 1) -> None:
        """It has that one disposition, and keeps it, whatever is looked at from now on."""
        for _ in range(2):
            attempt = self.site.attempt(self.key.attempt_id)
            assert (attempt.state, attempt.epoch) == (state, epoch)
            assert self.site.ends(attempt.id) == ([state] if state is not PERSON else [])
            assert self.site.host.runs(attempt.id) == 1
            self.site.elapse(2 * LEASE_US / US_PER_S)


@pytest.fixture
def run(site: Site) -> Run:
    return Run(site)


def take_over(site: Site, run: Run) -> Bench:
    """The holder stalls until its lease has lapsed; another worker adopts."""
    site.stall(run.bench)
    other = site.bench("worker-2")
    site.elapse(LEASE_US / US_PER_S + 2)
    assert site.attempt(run.key.attempt_id).epoch == 2
    return other


# --- unavailable


@pytest.mark.req("M04")
@pytest.mark.parametrize("looks", [1, UNSEEN_MAX])
@pytest.mark.parametrize("fault", ["blind", "unreadable"])
def test_evidence_that_cannot_be_read_for_a_while_is_waited_for(site: Site, run: Run, fault: str, looks: int) -> None:
    setattr(site.host, fault, looks)
    run.shim.end(0)
    site.settle()
    assert run.state is AttemptState.RUNNING, "nothing is decided on what was not seen"
    assert site.lease_is_live(run.key)

    site.elapse(looks + 1)

    run.assert_settled_once(SUCCEEDED)


@pytest.mark.req("M04", "M02")
def test_evidence_that_stays_unreadable_is_left_to_a_person_and_never_a_success(site: Site, run: Run) -> None:
    site.host.unreadable = 10**6
    run.shim.end(0)

    site.elapse(UNSEEN_MAX + 1)

    assert run.state is PERSON
    assert sum(site.world.store.read(lambda tx: tx.usage()).counts.values()) == 1, "its slot stays held"
    site.host.unreadable = 0
    run.assert_settled_once(PERSON)


@pytest.mark.req("M04")
def test_a_host_that_cannot_look_for_long_keeps_the_lease_and_decides_nothing(site: Site, run: Run) -> None:
    site.host.blind = 10**6
    run.shim.end(0)

    site.elapse(3 * LEASE_US / US_PER_S)
    assert (run.state, site.lease_is_live(run.key)) == (AttemptState.RUNNING, True)

    site.host.blind = 0
    site.elapse(2)
    run.assert_settled_once(SUCCEEDED)


@pytest.mark.req("M04")
def test_an_adopter_that_cannot_read_the_evidence_at_first_adopts_later(site: Site, run: Run) -> None:
    site.kill(run.bench)
    site.host.unreadable = 2
    site.bench("worker-2")
    site.settle()
    assert run.state is AttemptState.RECOVERING

    site.elapse(4)

    assert (run.state, site.attempt(run.key.attempt_id).epoch) == (AttemptState.RUNNING, 2)
    run.shim.end(0)
    site.settle()
    run.assert_settled_once(SUCCEEDED, epoch=2)


@pytest.mark.req("M04", "X03")
def test_a_stop_that_the_host_cannot_look_into_is_unproven_and_tried_again(site: Site, run: Run) -> None:
    site.host.blind = 1
    site.cancel(run.key)
    site.settle()
    [order] = site.orders()
    assert order.tries == 1
    assert "could not look" in (order.finding or "")
    assert sum(site.world.store.read(lambda tx: tx.usage()).counts.values()) == 1

    site.elapse(10)

    assert site.orders() == []
    run.assert_settled_once(AttemptState.CANCELLED)


# --- slow


@pytest.mark.req("M04")
def test_evidence_that_arrives_after_the_attempt_was_taken_over_settles_nothing(site: Site, run: Run) -> None:
    """The first holder had read how it ended; by the time it may say so, the epoch is another's."""
    run.shim.end(0)
    run.bench.step()  # the reading is queued on its pool
    other = take_over(site, run)
    site.settle()
    assert site.ends(run.key.attempt_id) == [SUCCEEDED], "by the new holder"

    site.benches.append(run.bench)
    site.settle()

    run.assert_settled_once(SUCCEEDED, epoch=2)
    assert site.done(run.bench.me, "finish") == []
    assert site.done(other.me, "finish") == ["finish"]


@pytest.mark.req("M04", "X02")
def test_evidence_that_arrives_after_a_cancel_changes_nothing(site: Site, run: Run) -> None:
    run.shim.end(0)
    run.bench.step()
    site.cancel(run.key)

    site.elapse(10)

    run.assert_settled_once(AttemptState.CANCELLED)
    assert site.orders() == []


@pytest.mark.req("M04")
def test_a_ready_that_arrives_after_the_claim_was_recovered_opens_no_gate(site: Site) -> None:
    bench, _ = site.bench(), site.head()
    site.settle()
    work = site.world.submit()
    site.heads[0].settle()
    bench.step()  # accepted; the launch is queued on its pool
    site.stall(bench)
    other = site.bench("worker-2")
    site.elapse(LEASE_US / US_PER_S + 2)
    assert site.attempt(f"{work}.1").epoch == 2

    bench.launches.run()
    site.benches.append(bench)
    site.settle()

    late = site.host.shim(f"{work}.1", 1)
    assert (late.ran, late.alive) == (False, False)
    assert (site.host.runs(f"{work}.1"), other.worker.held) == (1, 1)


# --- duplicate


@pytest.mark.req("M04")
@pytest.mark.parametrize("tells", [2, 5])
def test_an_end_that_is_told_several_times_is_one_end(site: Site, run: Run, tells: int) -> None:
    site.host.tells = tells
    run.shim.end(0)
    site.settle()

    run.assert_settled_once(SUCCEEDED)


@pytest.mark.req("M04")
@pytest.mark.parametrize("kind", ["examine", "stop", "launch"])
def test_a_completion_that_comes_twice_counts_once(site: Site, kind: str) -> None:
    """Also the late copy of an earlier one, when everything is over."""
    run = Run(site)
    bench = run.bench
    seen: list[Completion] = []
    for pool in (bench.launches, bench.stops):
        complete = pool._completed

        def twice(completion: Completion, complete: object = complete) -> None:
            seen.append(completion)
            for _ in range(2 if completion.key[0] == kind else 1):  # type: ignore[index]
                complete(completion)  # type: ignore[operator]

        pool._completed = twice

    second = site.world.submit()
    site.settle()
    assert site.work(second).state is WorkState.RUNNING
    run.shim.end(0)
    site.settle()
    site.world.store.write(lambda tx: tx.cancel_work(second, by="a test", reason="enough"))
    site.elapse(10)
    for completion in seen:
        bench.completions.put(completion)
    site.settle()

    run.assert_settled_once(SUCCEEDED)
    assert {str(completion.key[0]) for completion in seen} == {"examine", "stop", "launch"}  # type: ignore[index]
    assert site.host.runs(f"{second}.1") == 1
    assert site.ends(f"{second}.1") == [AttemptState.CANCELLED]
    assert site.orders() == []


# --- lost


@pytest.mark.req("M04", "K03")
def test_an_end_that_nobody_was_told_of_is_found_at_the_next_renewal(site: Site, run: Run) -> None:
    site.host.tells = 0
    site.elapse(1)
    run.shim.end(0)

    site.elapse(renewal_due_us(LEASE_US) / US_PER_S)

    run.assert_settled_once(SUCCEEDED)


@pytest.mark.req("M04")
def test_the_end_of_an_orphan_that_nobody_was_told_of_is_found_with_its_status(site: Site, run: Run) -> None:
    run.shim.die()
    site.settle()
    assert run.state is AttemptState.RUNNING
    site.host.tells = 0
    run.shim.end_orphan(3, is_kept=True)

    site.elapse(renewal_due_us(LEASE_US) / US_PER_S + 1)

    attempt = site.attempt(run.key.attempt_id)
    assert (attempt.state, attempt.exit_status) == (AttemptState.FAILED, 3)


@pytest.mark.req("M04", "S02")
def test_looking_for_ends_that_were_not_told_costs_no_look_at_evidence_and_no_wake(site: Site, run: Run) -> None:
    """The control: while the job runs, its evidence is not read, and the worker is called no more often."""
    examined = len(run.bench.launches.tasks)
    site.host.blind = 1

    site.elapse(10 * LEASE_US / US_PER_S)

    assert (len(run.bench.launches.tasks), site.host.blind) == (examined, 1), "a look would have spent it"
    assert run.state is AttemptState.RUNNING


# --- out of order


@pytest.mark.req("M04")
def test_an_end_that_is_told_before_its_adoption_is_written_ends_the_attempt(site: Site, run: Run) -> None:
    site.kill(run.bench)
    other = site.bench("worker-2")
    site.heads[0].settle()
    other.step()  # accepted; the evidence of a living shim is about to be read
    other.launches.run()
    run.shim.end(0)

    site.settle()  # adopted; that it is gone already is seen a moment later
    site.elapse(1)

    run.assert_settled_once(SUCCEEDED, epoch=2)


@pytest.mark.req("M04")
def test_an_end_that_comes_before_the_pin_is_written_is_seen_once_it_is(site: Site) -> None:
    """The shim dies between READY and its pin: nothing ran, and the attempt is launched again."""
    bench, _ = site.bench(), site.head()
    site.settle()
    work = site.world.submit()
    site.heads[0].settle()
    bench.step()
    bench.launches.run()  # READY waits to be applied
    site.host.shim(f"{work}.1").die()

    site.settle()

    assert site.host.runs(f"{work}.1") == 1
    assert site.attempt(f"{work}.1").epoch == 2
    assert not site.host.shim(f"{work}.1", 1).ran


@pytest.mark.req("M04", "X02")
def test_a_stop_that_is_proven_before_the_end_was_noticed_leaves_one_end(site: Site, run: Run) -> None:
    site.host.tells = 0
    site.cancel(run.key)
    run.shim.end(0)
    site.elapse(2)
    site.host.tell_ended(run.shim.pin.shim)
    site.elapse(2 * LEASE_US / US_PER_S)

    run.assert_settled_once(AttemptState.CANCELLED)
    assert site.orders() == []


@pytest.mark.req("M04")
def test_a_notice_of_another_attempts_end_does_not_end_this_one(site: Site, run: Run) -> None:
    """The control of them all: told of an end that was none, it looks, and goes on."""
    run.bench.completions.put(Completion(run.key, None, None))
    site.settle()
    assert run.state is AttemptState.RUNNING
    assert site.host.read_evidence(run.shim.pin).lock is LockState.HELD

    run.shim.end(7)
    site.settle()

    assert site.attempt(run.key.attempt_id).exit_status == 7
