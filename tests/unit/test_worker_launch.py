"""Launching under the lease: the gate opens after the pin is durable, and never otherwise.

Every GO in these tests is checked by the site: the pin is stored, under a live lease of that very epoch.
"""

from __future__ import annotations

import pytest

from shared.errors import StoreBusyError, StoreUnavailableError
from shared.model.attempt import AttemptState, FailureClass, Invoke
from shared.model.instant import US_PER_S
from shared.model.work import Reason, WorkState
from shared.policy.lease import renewal_due_us
from shared.process.launcher import LaunchError
from tests.support.sites import Site
from tests.support.stores import LEASE_US

FULL = LaunchError("spawn", "no more processes")


@pytest.mark.req("E03", "E04", "E16", "R01")
def test_a_claim_is_accepted_then_launched_then_pinned_then_let_go(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    assert site.attempt(key.attempt_id).invoke is Invoke.PENDING
    site.journal.clear()

    bench.settle()

    steps = [what for _, what in site.journal if what not in ("beat", "renew")]
    assert steps == ["accept", "record_phases", "pin", f"go {key.attempt_id}.1"]
    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.invoke, attempt.isolated) == (AttemptState.RUNNING, Invoke.CALLED, True)


def test_an_executor_is_called_only_once_the_acceptance_is_durable(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    bench.store.busy_writes = 1

    with pytest.raises(StoreBusyError):
        bench.step()
    assert bench.launches.tasks == []

    bench.step()
    assert len(bench.launches.tasks) == 1, "control"
    assert site.attempt(key.attempt_id).invoke is Invoke.CALLED


@pytest.mark.req("E07")
def test_launching_happens_outside_the_step(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)

    bench.step()
    bench.step()

    assert site.host.shims == {}, "the task waits on the pool, and steps go on"
    assert site.attempt(key.attempt_id).state is AttemptState.LAUNCHING


@pytest.mark.req("E05", "E06")
def test_a_launch_of_three_lease_durations_keeps_its_lease(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    until = site.clock.now().mono_us + 3 * LEASE_US + 1

    while site.clock.now().mono_us < until:
        due = bench.step()
        site.clock.wait(due, None)
        assert site.lease_is_live(key)
    bench.settle()

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.epoch) == (AttemptState.RUNNING, 1)
    assert site.host.runs(key.attempt_id) == 1


@pytest.mark.req("E05", "E06", "R05")
def test_control_without_renewal_the_same_launch_loses_its_lease_and_never_runs(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    bench.step()

    site.clock.advance(3 * LEASE_US + 1)
    bench.launches.run()
    bench.settle()

    assert not site.lease_is_live(key)
    assert site.attempt(key.attempt_id).pin is None
    assert (site.host.runs(key.attempt_id), site.host.shim(key.attempt_id).gate) == (0, "shut")


@pytest.mark.req("E05")
def test_leases_are_renewed_every_third_and_not_at_each_step(site: Site) -> None:
    bench = site.bench()
    site.running(bench)
    site.journal.clear()

    for _ in range(60):
        site.clock.advance(US_PER_S)
        bench.settle()

    assert len(site.done(bench.me, "renew")) == LEASE_US // renewal_due_us(LEASE_US)


def test_a_worker_that_holds_nothing_beats_every_sixth(site: Site) -> None:
    bench = site.bench()
    bench.settle()
    site.journal.clear()

    for _ in range(60):
        site.clock.advance(US_PER_S)
        bench.settle()

    assert site.done(bench.me) == ["beat"] * 6


@pytest.mark.req("R05")
def test_a_refused_pin_shuts_the_gate(site: Site) -> None:
    bench, other = site.bench("worker-1"), site.bench("worker-2")
    key = site.claim(bench)
    bench.step()
    site.world.release(key)
    newer = site.world.take_over(key, other.me)

    bench.settle()

    shim = site.host.shim(key.attempt_id, epoch=1)
    assert (shim.gate, shim.ran) == ("shut", False)
    assert bench.worker.held == 0
    attempt = site.attempt(key.attempt_id)
    assert (attempt.epoch, attempt.pin) == (newer.epoch, None)


@pytest.mark.req("R05", "R03")
def test_the_launch_that_was_refused_is_done_again_under_the_new_epoch(site: Site) -> None:
    bench, other = site.bench("worker-1"), site.bench("worker-2")
    key = site.claim(bench)
    bench.step()
    site.world.release(key)
    site.world.take_over(key, other.me)

    bench.settle()
    other.settle()

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.epoch, attempt.relaunches) == (AttemptState.RUNNING, 2, 1)
    assert site.host.runs(key.attempt_id) == 1


@pytest.mark.req("R01", "M05")
def test_a_pin_whose_commit_reached_the_store_unanswered_opens_the_gate_once_it_was_looked_up(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    bench.step()
    bench.launches.run()
    bench.store.unanswered = ("pin", True)
    bench.store.busy_look_ups = 2
    shim = site.host.shim(key.attempt_id)
    for _ in range(2):
        with pytest.raises(StoreBusyError):
            bench.step()
    assert site.attempt(key.attempt_id).pin == shim.pin
    assert shim.gate == "held", "nothing is let go on hope"

    bench.settle()

    assert (shim.gate, site.host.runs(key.attempt_id)) == ("open", 1)


@pytest.mark.req("R01", "M05")
def test_a_pin_whose_commit_did_not_reach_the_store_never_opens_the_gate(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    bench.step()
    bench.launches.run()
    bench.store.unanswered = ("pin", False)

    bench.settle()

    shim = site.host.shim(key.attempt_id)
    assert (shim.gate, shim.ran) == ("shut", False)
    assert site.attempt(key.attempt_id).pin is None


@pytest.mark.req("M05", "E06")
def test_an_attempt_whose_pin_did_not_reach_the_store_is_not_kept_by_renewals_that_nobody_stands_for(
    site: Site,
) -> None:
    """The worker's renewal covers every lease it owns in the store: one it dropped must not live on like that."""
    bench, head = site.bench(), site.head()
    site.running(bench)
    key = site.claim(bench)
    bench.step()
    bench.launches.run()
    bench.store.unanswered = ("pin", False)
    bench.settle()

    site.elapse(2 * LEASE_US / US_PER_S)

    assert head.coordinator.leads
    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.relaunches) == (AttemptState.RUNNING, 1)
    assert attempt.epoch > 1
    assert site.host.runs(key.attempt_id) == 1


def test_an_attempt_out_of_time_before_its_pin_is_never_let_go(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    bench.step()
    bench.launches.run()
    bench.ports.holdings[key.attempt_id].deadline_mono_us = site.clock.now().mono_us

    bench.settle()

    assert site.host.runs(key.attempt_id) == 0
    assert site.attempt(key.attempt_id).state is AttemptState.TIMED_OUT


def test_an_attempt_out_of_time_by_the_time_its_pin_is_answered_is_never_let_go(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    bench.step()
    bench.launches.run()
    bench.ports.holdings[key.attempt_id].deadline_mono_us = site.clock.now().mono_us + US_PER_S
    bench.store.afterwards["pin"] = lambda: site.clock.advance(US_PER_S)

    bench.settle()

    assert (site.host.runs(key.attempt_id), site.host.shim(key.attempt_id).gate) == (0, "shut")


@pytest.mark.parametrize(("late_us", "runs"), [(0, 0), (-1, 1)])
def test_go_is_sent_only_while_the_lease_lies_ahead_however_late_the_pin_is_answered(
    site: Site, late_us: int, runs: int
) -> None:
    bench = site.bench()
    key = site.claim(bench)
    bench.step()
    bench.launches.run()
    bench.store.afterwards["pin"] = lambda: site.clock.advance(LEASE_US + late_us)

    bench.step()

    assert site.attempt(key.attempt_id).pin is not None
    assert site.host.runs(key.attempt_id) == runs


@pytest.mark.req("F01")
def test_launches_that_fail_back_off_doubling_spend_no_retry_and_end_after_the_eleventh(site: Site) -> None:
    bench, head = site.bench(), site.head()
    work_id = site.world.submit()
    delays_s = []
    site.host.failing = [FULL] * 11

    for number in range(1, 12):
        site.settle()
        attempt = site.attempt(f"{work_id}.{number}")
        assert (attempt.state, attempt.failure) == (AttemptState.FAILED, FailureClass.ADMISSION)
        assert attempt.exclusion_proof == "S0", "nothing ran: the slot is free"
        work = site.work(work_id)
        if number < 11:
            assert (work.state, work.admission_failures) == (WorkState.BACKOFF, number)
            assert work.backoff_us is not None
            delays_s.append(work.backoff_us // US_PER_S)
            site.clock.advance(work.backoff_us - 1)
            site.settle()
            assert site.work(work_id).state is WorkState.BACKOFF, "not a microsecond early"
            site.clock.advance(1)

    assert delays_s == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    assert (site.work(work_id).state, site.work(work_id).reason) == (WorkState.FAILED, Reason.EXHAUSTED)
    assert head.coordinator.leads
    assert bench.worker.held == 0


@pytest.mark.req("F01")
def test_a_launch_that_fails_once_is_followed_by_one_that_runs(site: Site) -> None:
    bench, _ = site.bench(), site.head()
    work_id = site.world.submit()
    site.host.failing = [FULL]
    site.settle()

    site.elapse(2)

    assert site.attempt(f"{work_id}.2").state is AttemptState.RUNNING
    assert site.host.runs(f"{work_id}.2") == 1
    site.host.shim(f"{work_id}.2").end(0)
    bench.settle()
    assert site.work(work_id).admission_failures == 0


def test_a_failed_launch_of_which_something_may_have_run_keeps_its_slot_until_its_stop_is_proven(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    site.host.failing = [LaunchError("ready", "no answer", nothing_ran=False)]
    bench.step()
    bench.launches.run()
    bench.step()
    assert site.attempt(key.attempt_id).exclusion_proof is None
    assert bench.stops.tasks, "its stop was ordered, and taken up"

    bench.settle()

    assert site.attempt(key.attempt_id).exclusion_proof == "S0"


def test_a_directory_that_is_there_already_says_that_the_store_went_back_in_time(site: Site) -> None:
    bench = site.bench()
    site.claim(bench)
    site.host.failing = [LaunchError("directory", "w1.1.1 exists", exists=True)]
    bench.step()
    bench.launches.run()

    with pytest.raises(StoreUnavailableError) as caught:
        bench.step()

    assert caught.value.code == "store_regressed"
