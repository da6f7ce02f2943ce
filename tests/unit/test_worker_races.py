"""An end, a cancel and a time-out meet: whichever is first is the one terminal result, and the slot follows the proof."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shared.errors import RefusedError
from shared.model.attempt import AttemptState, Exclusion, LeaseKey
from shared.model.instant import US_PER_S
from shared.model.work import WorkState
from tests.support.hosts import Shim
from tests.support.sites import Bench, Head, Site
from tests.support.stores import LEASE_US, TIMEOUT_US

SUCCEEDED, TIMED_OUT, CANCELLED = AttemptState.SUCCEEDED, AttemptState.TIMED_OUT, AttemptState.CANCELLED
WORK_OF = {
    SUCCEEDED: WorkState.COMPLETED,
    TIMED_OUT: WorkState.FAILED,
    CANCELLED: WorkState.CANCELLED,
}


class Race:
    """A job that runs, its holder, and the moment in which it may end in several ways."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.bench: Bench = site.bench()
        self.key: LeaseKey
        self.shim: Shim
        self.key, self.shim = site.running(self.bench)
        self.deadline_us = self.bench.ports.holdings[self.key.attempt_id].deadline_mono_us

    def ends(self) -> None:
        """The job ends well; nobody has looked yet."""
        self.shim.end(0)

    def end_is_read(self) -> None:
        """The job ended, and a pool thread read how; the step that writes it is the next one."""
        self.ends()
        self.bench.step()
        self.bench.launches.run()

    def finish(self) -> None:
        """The job ends well, and that is written."""
        self.ends()
        self.bench.settle()

    def out_of_time(self) -> None:
        """Its time is over; nobody has looked yet. Its lease is renewed until then."""
        while (left_us := self.deadline_us - self.site.clock.now().mono_us) > 0:
            self.site.clock.advance(min(left_us, LEASE_US // 3))
            if left_us > LEASE_US // 3:
                self.bench.step()

    def time_out(self) -> None:
        """Its time is over, and that is written."""
        self.out_of_time()
        self.bench.step()

    def cancel(self) -> None:
        """A person cancels it; refused when it has ended."""
        self.site.cancel(self.key)

    def result(self) -> AttemptState:
        """The one end there is, once everything has come to rest: of attempt, Work, lease and slot."""
        self.bench.settle()
        attempt = self.site.attempt(self.key.attempt_id)
        assert self.site.ends(attempt.id) == [attempt.state], "one end was ever written"
        assert self.site.work(attempt.work_id).state is WORK_OF[attempt.state]
        assert (attempt.exclusion, attempt.exclusion_proof) == (Exclusion.RELEASED, "S1")
        assert (self.site.orders(), self.bench.worker.held, self.bench.watcher.watched) == ([], 0, {})
        assert not self.site.lease_is_live(self.key)
        assert (self.shim.alive, self.site.host.runs(attempt.id)) == (False, 1)
        return attempt.state


@pytest.fixture
def race(site: Site) -> Race:
    return Race(site)


@pytest.mark.req("X02")
def test_an_end_that_was_written_is_not_cancelled(race: Race) -> None:
    race.finish()

    with pytest.raises(RefusedError, match="has already ended"):
        race.cancel()

    assert race.result() is SUCCEEDED


@pytest.mark.req("X02", "R09")
@pytest.mark.parametrize("happened", [Race.ends, Race.end_is_read])
def test_a_cancel_that_comes_before_the_end_is_written_stands(race: Race, happened: Callable[[Race], None]) -> None:
    happened(race)

    race.cancel()

    assert race.result() is CANCELLED
    assert "finish" not in race.site.done(race.bench.me)


@pytest.mark.req("X02")
def test_an_end_that_was_written_does_not_time_out(race: Race) -> None:
    race.finish()

    race.time_out()

    assert race.result() is SUCCEEDED


@pytest.mark.req("X02", "O05")
def test_a_timeout_that_was_written_stands_whatever_the_job_does_then(race: Race) -> None:
    race.time_out()
    race.ends()

    assert race.result() is TIMED_OUT


@pytest.mark.req("X02", "O05")
def test_what_ended_in_its_last_microsecond_and_was_not_looked_at_timed_out(race: Race) -> None:
    """The job's own record of the end carries no time that could be trusted against the deadline."""
    race.out_of_time()
    race.ends()

    assert race.result() is TIMED_OUT
    assert race.site.host.stopped == [race.key.attempt_id], "its slot came by the proof of the stop"


@pytest.mark.req("X02", "O05")
def test_an_end_that_is_being_read_when_the_time_is_over_is_written(race: Race) -> None:
    race.site.clock.advance(US_PER_S)
    race.bench.step()
    holding = race.bench.ports.holdings[race.key.attempt_id]
    race.end_is_read()
    holding.deadline_mono_us = race.site.clock.now().mono_us

    assert race.result() is SUCCEEDED


@pytest.mark.req("X02")
def test_a_timeout_that_was_written_is_not_cancelled(race: Race) -> None:
    race.time_out()

    with pytest.raises(RefusedError, match="has already ended"):
        race.cancel()

    assert race.result() is TIMED_OUT


@pytest.mark.req("X02")
def test_a_cancel_stands_though_the_time_is_over_by_the_next_look(race: Race) -> None:
    race.out_of_time()

    race.cancel()

    assert race.result() is CANCELLED


@pytest.mark.req("X02", "E14", "R09")
def test_a_worker_that_comes_back_after_the_leader_timed_its_attempt_out_writes_nothing(site: Site, race: Race) -> None:
    """It slept through its lease and its attempt's time with the end of the job in its hands."""
    head = site.head()
    race.end_is_read()
    site.clock.advance(TIMEOUT_US)
    head.settle()
    assert site.attempt(race.key.attempt_id).state is TIMED_OUT, "control"

    assert race.result() is TIMED_OUT
    assert "finish" not in site.done(race.bench.me)


@pytest.mark.req("X02", "R09")
def test_control_a_worker_that_comes_back_before_anybody_took_over_finds_its_lease_over_and_the_end_is_read_again(
    site: Site, race: Race
) -> None:
    race.end_is_read()
    site.clock.advance(LEASE_US)
    race.bench.settle()
    assert site.attempt(race.key.attempt_id).state is AttemptState.RUNNING, "a lapsed lease writes nothing"

    head: Head = site.head()
    race.bench.settle()
    site.settle()

    assert head.coordinator.leads
    assert race.result() is SUCCEEDED
    assert site.attempt(race.key.attempt_id).epoch == 2
