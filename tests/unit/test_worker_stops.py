"""Stop orders: taken under a lease of their own, retried until proven, confirmed for the right epoch, done once."""

from __future__ import annotations

import pytest

from shared.errors import StoreBusyError
from shared.ids import AttemptId, work_of
from shared.model.attempt import AttemptState, Exclusion, LeaseKey
from shared.model.host import StopOrder
from shared.model.instant import US_PER_S
from shared.model.stop import StopResult, Suspect
from shared.model.work import WorkState
from tests.support.sites import Bench, Site
from worker.stopping import ORDERS_AT_ONCE, RETRY_US, STOP_LEASE_US

SUSPECT = Suspect(pid=9, ppid=1, uid=0, started_ticks=4, state="D", command_line="dd", matched=("child",))
UNPROVEN = StopResult(None, (SUSPECT,), ("S1: no exit record",), None)


def cancelled(site: Site, bench: Bench) -> LeaseKey:
    """A job that ran under `bench`, and was cancelled."""
    key, _ = site.running(bench)
    site.cancel(key)
    return key


def orders(site: Site) -> list[StopOrder]:
    return site.world.store.read(lambda tx: tx.stop_orders())


def exclusion(site: Site, attempt_id: AttemptId) -> tuple[Exclusion, str | None]:
    attempt = site.attempt(attempt_id)
    return attempt.exclusion, attempt.exclusion_proof


@pytest.mark.req("T05", "R10", "R13")
def test_a_cancel_ends_all_authority_at_once_and_the_slot_follows_the_proof(site: Site) -> None:
    bench = site.bench()
    key = cancelled(site, bench)
    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, site.work(attempt.work_id).state) == (AttemptState.CANCELLED, WorkState.CANCELLED)
    assert exclusion(site, key.attempt_id) == (Exclusion.HELD, None)
    assert not site.lease_is_live(key)

    bench.settle()

    assert exclusion(site, key.attempt_id) == (Exclusion.RELEASED, "S1")
    assert (orders(site), bench.worker.held) == ([], 0)
    assert "finish" not in site.done(bench.me), "the end that the stop brought about is nobody's to write any more"
    assert site.done(bench.me, "take_stop_order", "confirm_stopped") == ["take_stop_order", "confirm_stopped"]


def test_a_stop_works_outside_the_step_and_under_a_lease_of_its_own(site: Site) -> None:
    bench = site.bench()
    cancelled(site, bench)

    bench.step()

    assert len(bench.stops.tasks) == 1
    mine = site.world.store.read(lambda tx: tx.stop_orders(owner=bench.me))
    assert [order.owner for order in mine] == [bench.me]
    bench.step()
    assert len(bench.stops.tasks) == 1, "and is not taken twice"


@pytest.mark.req("R11", "R12")
def test_an_unproven_stop_keeps_the_slot_says_what_was_found_and_is_tried_again(site: Site) -> None:
    bench = site.bench()
    key = cancelled(site, bench)
    site.host.stops = [UNPROVEN, UNPROVEN]

    bench.settle()

    assert exclusion(site, key.attempt_id) == (Exclusion.HELD, None)
    (order,) = orders(site)
    assert (order.tries, order.owner) == (1, None)
    assert order.finding is not None
    assert '"dd"' in order.finding
    site.clock.advance(RETRY_US - 1)
    bench.settle()
    assert orders(site)[0].tries == 1, "not before its time"
    site.clock.advance(1)
    bench.settle()
    assert orders(site)[0].tries == 2
    site.clock.advance(RETRY_US)
    bench.settle()
    assert exclusion(site, key.attempt_id) == (Exclusion.RELEASED, "S1")


@pytest.mark.req("R10", "E03")
def test_no_further_attempt_starts_until_the_stop_is_proven(site: Site) -> None:
    bench = site.bench()
    key, _ = site.running(bench)
    work_id = work_of(key.attempt_id)
    site.cancel(key)

    assert site.world.store.read(lambda tx: tx.unexcluded(work_id)) == key.attempt_id
    bench.settle()
    assert site.world.store.read(lambda tx: tx.unexcluded(work_id)) is None, "control"


def test_the_order_of_a_worker_that_died_is_taken_by_another_once_its_lease_is_over(site: Site) -> None:
    dead, other = site.bench("worker-1"), site.bench("worker-2")
    key = cancelled(site, dead)
    dead.step()
    site.kill(dead)
    other.settle()
    assert site.host.stopped == [], "control: somebody works on it"

    site.clock.advance(STOP_LEASE_US)
    other.settle()

    assert site.host.stopped == [key.attempt_id]
    assert exclusion(site, key.attempt_id) == (Exclusion.RELEASED, "S1")


@pytest.mark.req("R10", "R13")
def test_an_order_that_takes_long_stays_with_who_works_on_it(site: Site) -> None:
    slow, other = site.bench("worker-1"), site.bench("worker-2")
    key = cancelled(site, slow)
    slow.step()

    for _ in range(9):  # three times its lease, while the stop is still under way
        site.clock.advance(STOP_LEASE_US // 3)
        slow.step()
        other.settle()

    assert site.host.stopped == [], "control: without that, another works on it after one lease (the test above)"
    slow.settle()
    assert site.host.stopped == [key.attempt_id]
    assert exclusion(site, key.attempt_id) == (Exclusion.RELEASED, "S1")


@pytest.mark.req("R15")
def test_the_order_of_a_worker_whose_death_is_proven_is_taken_at_once(site: Site) -> None:
    dead, other = site.bench("worker-1"), site.bench("worker-2")
    key = cancelled(site, dead)
    dead.step()
    site.kill(dead)

    site.world.as_leader(lambda tx: tx.retire_worker(dead.me, reason="worker died"))
    other.settle()

    assert exclusion(site, key.attempt_id) == (Exclusion.RELEASED, "S1")


@pytest.mark.req("R11")
def test_a_late_confirmation_of_an_order_that_another_took_over_is_harmless(site: Site) -> None:
    slow, other = site.bench("worker-1"), site.bench("worker-2")
    key = cancelled(site, slow)
    slow.step()
    slow.stops.run()
    site.clock.advance(STOP_LEASE_US)
    other.settle()
    assert exclusion(site, key.attempt_id) == (Exclusion.RELEASED, "S1")
    feed = site.world.store.read(lambda tx: tx.events(after=0, limit=1000))

    slow.settle()

    later = site.world.store.read(lambda tx: tx.events(after=0, limit=1000))
    assert [event.kind for event in later[len(feed) :]] == [], "a confirmation is told once"


def test_a_late_unproven_report_of_an_order_that_another_took_over_is_refused_and_forgotten(site: Site) -> None:
    slow, other = site.bench("worker-1"), site.bench("worker-2")
    key = cancelled(site, slow)
    slow.step()
    site.host.stops = [UNPROVEN]
    slow.stops.run()
    site.clock.advance(STOP_LEASE_US)
    other.settle()

    slow.settle()

    assert orders(site) == []
    assert exclusion(site, key.attempt_id) == (Exclusion.RELEASED, "S1")


@pytest.mark.req("M05")
@pytest.mark.parametrize("transition", ["take_stop_order", "confirm_stopped"])
@pytest.mark.parametrize("reached", [True, False])
def test_a_commit_of_a_stop_that_was_not_answered_is_looked_up(site: Site, transition: str, reached: bool) -> None:
    bench = site.bench()
    key = cancelled(site, bench)
    bench.store.unanswered = (transition, reached)

    bench.settle()
    site.clock.advance(STOP_LEASE_US)
    bench.settle()

    assert exclusion(site, key.attempt_id) == (Exclusion.RELEASED, "S1")


def test_a_busy_store_delays_a_confirmation_and_loses_none(site: Site) -> None:
    bench = site.bench()
    key = cancelled(site, bench)
    bench.step()
    bench.stops.run()
    bench.store.busy_writes = 1
    with pytest.raises(StoreBusyError):
        bench.step()

    bench.settle()

    assert site.host.stopped == [key.attempt_id], "stopped once"
    assert exclusion(site, key.attempt_id) == (Exclusion.RELEASED, "S1")


@pytest.mark.req("S01")
def test_a_worker_works_on_a_few_orders_at_once_and_on_all_in_the_end(site: Site) -> None:
    bench = site.bench()
    keys = [site.running(bench)[0] for _ in range(ORDERS_AT_ONCE + 3)]
    for key in keys:
        site.cancel(key)

    bench.step()
    assert len(bench.stops.tasks) == ORDERS_AT_ONCE

    bench.settle()
    assert sorted(site.host.stopped) == sorted(key.attempt_id for key in keys)
    assert orders(site) == []


@pytest.mark.req("X03")
def test_a_held_launch_that_is_cancelled_never_runs(site: Site) -> None:
    bench = site.bench()
    key = site.claim(bench)
    bench.step()
    bench.launches.run()
    site.cancel(key)

    bench.settle()

    assert site.host.runs(key.attempt_id) == 0
    assert exclusion(site, key.attempt_id) == (Exclusion.RELEASED, "S0")


def test_a_draining_worker_takes_no_orders(site: Site) -> None:
    bench = site.bench()
    cancelled(site, bench)
    bench.worker.drain()
    site.clock.advance(US_PER_S)

    bench.settle()

    assert site.host.stopped == []
