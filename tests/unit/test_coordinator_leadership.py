"""Who leads: one at a time, by generation; a lock only makes a death visible at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shared.errors import IndeterminateError
from shared.model.attempt import AttemptState
from shared.model.evidence import LockState, ProcessIdentity
from shared.model.host import Leader
from shared.model.instant import US_PER_S
from shared.policy.lease import LEADER_LEASE_US
from tests.support.sites import Head, Site


def leader(site: Site) -> Leader:
    row = site.world.store.read(lambda tx: tx.leader())
    assert row is not None
    return row


@pytest.mark.req("L01")
def test_the_first_leads_and_the_second_stands_by(site: Site) -> None:
    first, second = site.head(), site.head()

    first.step()
    second.step()

    assert (first.coordinator.leads, second.coordinator.leads) == (True, False)
    assert (leader(site).owner, leader(site).generation) == (first.me, 1)
    assert (first.led, second.led) == (1, 0), "only the leader answers to the coordinator's name"
    assert site.done(second.me) == [], "a standby writes nothing"


def test_a_standby_says_once_who_leads(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    first, second = site.head(), site.head()
    first.step()
    caplog.set_level("INFO")

    for _ in range(3):
        second.step()

    told = [record for record in caplog.records if record.message == "leader.standby"]
    assert [(vars(record)["leader"], vars(record)["generation"]) for record in told] == [(first.me, 1)]


def test_a_standby_looks_again_within_a_second(site: Site) -> None:
    first, second = site.head(), site.head()
    first.step()

    assert second.step() - site.clock.now().mono_us <= US_PER_S


@pytest.mark.req("L01")
def test_a_standby_watches_the_process_of_whoever_leads_and_of_nobody_else(site: Site) -> None:
    first, second, third = site.head(), site.head(), site.head()
    for each in (first, second, third):
        each.step()
    stood_by = set(second.watched), set(third.watched)
    site.kill(first)

    second.step()
    third.step()

    assert stood_by == ({first.me}, {first.me})
    assert (set(second.watched), set(third.watched)) == (set(), {second.me})


def test_who_died_before_it_could_be_watched_is_taken_over_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch comes before the look at the lock, so that no death falls between the two."""
    first, second = site.head(), site.head()
    first.step()

    def gone(_key: str, _identity: ProcessIdentity) -> bool:
        site.kill(first)
        return False

    monkeypatch.setattr(second, "watch", gone)
    second.step()

    assert second.coordinator.leads


@pytest.mark.req("L01", "R15")
@pytest.mark.parametrize(
    ("lock", "takes_over"), [(LockState.FREE, True), (LockState.HELD, False), (LockState.UNPROVEN, False)]
)
def test_a_live_row_is_taken_over_only_when_its_own_lock_is_free(site: Site, lock: LockState, takes_over: bool) -> None:
    first, second = site.head(), site.head()
    first.step()
    site.locks[first.me] = lock

    second.step()

    assert second.coordinator.leads is takes_over
    assert leader(site).generation == (2 if takes_over else 1)


@pytest.mark.req("L01")
@pytest.mark.parametrize("lock", LockState)
def test_a_row_that_lapsed_is_taken_over_whatever_its_lock(site: Site, lock: LockState) -> None:
    first, second = site.head(), site.head()
    first.step()
    site.locks[first.me] = lock
    site.clock.advance(LEADER_LEASE_US)

    second.step()

    assert second.coordinator.leads


def test_a_row_of_another_boot_is_taken_over(site: Site) -> None:
    first, second = site.head(), site.head()
    first.step()
    site.clock.reboot("boot-2")

    second.step()

    assert (second.coordinator.leads, leader(site).generation) == (True, 2)


@pytest.mark.req("L01")
def test_a_leader_renews_by_thirds_and_keeps_leading(site: Site) -> None:
    first, second = site.head(), site.head()
    first.step()

    for _ in range(100):
        site.clock.advance(LEADER_LEASE_US // 3)
        first.settle()
        second.settle()

    assert (first.coordinator.leads, leader(site).generation) == (True, 1)
    assert second.led == 0


def taken_by_another(site: Site) -> tuple[Head, Head]:
    """The first led, stalled until its row lapsed, and does not know yet that the second leads."""
    first, second = site.head(), site.head()
    first.settle()
    site.clock.advance(LEADER_LEASE_US)
    second.settle()
    return first, second


@pytest.mark.req("L01", "L02")
def test_a_leader_that_was_replaced_writes_nothing_and_stands_by(site: Site) -> None:
    bench = site.bench()
    first, second = taken_by_another(site)
    bench.settle()
    site.world.submit()  # something to do
    site.journal.clear()

    first.step()

    assert (site.done(first.me), first.coordinator.leads) == ([], False)
    assert leader(site).owner == second.me
    second.settle()
    assert "claim" in site.done(second.me), "control: the leader does it"
    first.settle()
    assert site.done(first.me) == []


@pytest.mark.req("L01")
@pytest.mark.parametrize(
    "provoke",
    [
        lambda site, head: site.world.submit(),
        lambda site, head: head.coordinator.notice_death(),
        lambda site, head: site.clock.advance(LEADER_LEASE_US // 3),
        lambda site, head: site.clock.advance(3600 * US_PER_S),
    ],
    ids=["work", "death", "renewal", "long after"],
)
def test_whatever_a_replaced_leader_wants_to_write_is_refused(
    site: Site, provoke: Callable[[Site, Head], None]
) -> None:
    bench = site.bench()
    first, second = taken_by_another(site)
    provoke(site, first)
    bench.settle()
    second.settle()
    before = site.world.everything()

    first.step()

    assert site.world.everything() == before


@pytest.mark.req("L01", "R07")
def test_losing_leadership_touches_no_lease_of_a_worker(site: Site) -> None:
    bench = site.bench()
    first, second = site.head(), site.head()
    site.settle()
    work_id = site.world.submit()
    site.settle()
    lease = site.world.store.read(lambda tx: tx.held(bench.me))
    site.locks[first.me] = LockState.FREE

    second.settle()
    first.settle()
    bench.settle()
    site.clock.advance(LEADER_LEASE_US // 3)
    first.settle()

    assert (second.coordinator.leads, first.coordinator.leads) == (True, False)
    assert site.world.store.read(lambda tx: tx.held(bench.me)) == lease
    attempt = site.attempt(f"{work_id}.1")
    assert (attempt.state, attempt.epoch) == (AttemptState.RUNNING, 1)


@pytest.mark.req("L01")
def test_a_leader_that_leaves_gives_its_place_at_once(site: Site) -> None:
    first, second = site.head(), site.head()
    first.settle()

    first.coordinator.leave()
    second.step()

    assert (second.coordinator.leads, leader(site).generation) == (True, 2)


def test_a_leader_that_was_replaced_and_leaves_takes_nothing_away(site: Site) -> None:
    first, second = taken_by_another(site)

    first.coordinator.leave()

    assert leader(site).owner == second.me
    site.clock.advance(US_PER_S)
    second.settle()
    assert second.coordinator.leads


def test_a_standby_that_leaves_writes_nothing(site: Site) -> None:
    first, second = site.head(), site.head()
    first.settle()

    second.step()
    second.coordinator.leave()

    assert site.done(second.me) == []


@pytest.mark.req("K02", "L01")
@pytest.mark.parametrize("step_us", [-365 * 86_400 * US_PER_S, 365 * 86_400 * US_PER_S])
def test_a_step_of_the_wall_clock_changes_no_leader(site: Site, step_us: int) -> None:
    first, second = site.head(), site.head()
    first.settle()

    site.clock.step_wall(step_us)
    second.settle()
    first.settle()

    assert (first.coordinator.leads, second.coordinator.leads) == (True, False)


@pytest.mark.req("M05")
@pytest.mark.parametrize("reached", [True, False])
def test_a_take_over_that_was_not_answered_is_tried_again_and_ends_with_one_leader(site: Site, reached: bool) -> None:
    head = site.head()
    head.store.unanswered = ("take_leadership", reached)

    with pytest.raises(IndeterminateError):
        head.step()
    believes = head.coordinator.leads

    site.elapse(2 * LEADER_LEASE_US / US_PER_S)
    assert (believes, head.coordinator.leads) == (False, True)
    assert leader(site).owner == head.me
