"""Lease arithmetic at its edges, and who an attempt belongs to once its lease is lost."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import Attempt, AttemptState, Exclusion, Invoke, Lease
from shared.model.instant import US_PER_S, Instant
from shared.policy.lease import (
    LEADER_LEASE_US,
    accept_timeout_us,
    beat_due_us,
    is_adoptable,
    is_live,
    leader_lease_us,
    renewal_due_us,
    renewed_expiry,
    store_wait_us,
)

NOW = Instant(wall_us=1_800_000_000_000_000, mono_us=1_000_000_000, boot_id="boot-1")
LEASE = Lease(
    attempt_id=AttemptId("w1.1"),
    epoch=3,
    owner=Incarnation("worker-1.1"),
    boot_id="boot-1",
    expires_mono_us=NOW.mono_us + 1,
    accepted_at_us=None,
    revoked_at_us=None,
    revoked_reason=None,
)
ATTEMPT = Attempt(
    id=AttemptId("w1.1"),
    work_id=WorkId("w1"),
    number=1,
    epoch=3,
    state=AttemptState.RUNNING,
    recovered_from=None,
    exclusion=Exclusion.HELD,
    exclusion_proof=None,
    invoke=Invoke.CALLED,
    isolated=True,
    pin=None,
    relaunches=0,
    pool="jobs",
    scope="",
    budget_us=3600 * US_PER_S,
    budget_since_mono_us=0,
    budget_boot_id="boot-1",
    budget_since_at_us=0,
    exit_status=None,
    failure=None,
    error=None,
    started_at_us=0,
    ended_at_us=None,
)


@pytest.mark.parametrize("accepted_at_us", [None, 5])
@pytest.mark.parametrize(("left_us", "live"), [(-1, False), (0, False), (1, True), (60_000_000, True)])
def test_a_lease_lives_until_its_expiry_and_not_at_it(left_us: int, live: bool, accepted_at_us: int | None) -> None:
    lease = replace(LEASE, expires_mono_us=NOW.mono_us + left_us, accepted_at_us=accepted_at_us)

    assert is_live(lease, NOW) is live


@pytest.mark.req("R09")
@pytest.mark.parametrize("end", [{"revoked_at_us": 0}, {"revoked_at_us": 7}, {"boot_id": "boot-2"}], ids=str)
def test_a_revoked_lease_and_one_of_another_boot_are_not_live(end: dict[str, object]) -> None:
    assert is_live(LEASE, NOW), "control"

    assert not is_live(replace(LEASE, **end), NOW)  # type: ignore[arg-type]


@given(st.integers(-(10**15), 10**15))
def test_the_wall_clock_has_no_say_in_a_lease(step_us: int) -> None:
    assert is_live(LEASE, replace(NOW, wall_us=NOW.wall_us + step_us))
    assert not is_live(replace(LEASE, expires_mono_us=NOW.mono_us), replace(NOW, wall_us=NOW.wall_us + step_us))


@pytest.mark.req("R07")
@given(
    stored=st.integers(0, 2 * NOW.mono_us),
    now=st.integers(0, 2 * NOW.mono_us),
    lease_us=st.integers(1_000_000, 3_600_000_000),
)
def test_a_renewal_never_shortens_a_lease(stored: int, now: int, lease_us: int) -> None:
    renewed = renewed_expiry(stored, replace(NOW, mono_us=now), lease_us)

    assert renewed >= stored
    assert renewed >= now + lease_us
    assert renewed in (stored, now + lease_us)


@pytest.mark.req("R07")
def test_a_renewal_after_the_clock_stepped_back_keeps_the_stored_expiry() -> None:
    lease_us = 60 * US_PER_S
    stored = NOW.mono_us + lease_us

    assert renewed_expiry(stored, replace(NOW, mono_us=NOW.mono_us - 5), lease_us) == stored
    assert renewed_expiry(stored, replace(NOW, mono_us=NOW.mono_us + 5), lease_us) == stored + 5, "control: forwards"


@pytest.mark.parametrize(
    ("lease_s", "accept_s", "renewal_s", "beat_s"),
    [(3600, 5, 1200, 600), (60, 5, 20, 10), (15, 5, 5, 2.5), (12, 4, 4, 2), (3, 1, 1, 0.5)],
)
def test_intervals_follow_from_the_lease(lease_s: int, accept_s: float, renewal_s: float, beat_s: float) -> None:
    lease_us = lease_s * US_PER_S

    assert accept_timeout_us(lease_us) == accept_s * US_PER_S
    assert renewal_due_us(lease_us) == renewal_s * US_PER_S
    assert beat_due_us(lease_us) == beat_s * US_PER_S


@given(st.integers(1 * US_PER_S, 3600 * US_PER_S))
def test_a_lease_outlives_two_missed_renewals_and_a_late_acceptance(lease_us: int) -> None:
    assert 3 * renewal_due_us(lease_us) <= lease_us
    assert 3 * accept_timeout_us(lease_us) <= lease_us
    assert accept_timeout_us(lease_us) <= 5 * US_PER_S
    assert 2 * beat_due_us(lease_us) <= renewal_due_us(lease_us), (
        "a beat may be missed before a worker counts as silent"
    )


STILL_RUNNING = {"launching", "running", "resuming", "recovering", "recovery_required"}


@pytest.mark.req("R08")
@pytest.mark.parametrize(
    ("state", "epoch_lost", "work_open"), list(product(AttemptState, (2, 3, 4), (True, False))), ids=str
)
def test_an_attempt_is_adoptable_while_it_runs_its_work_is_open_and_the_epoch_is_reached(
    state: AttemptState, epoch_lost: int, work_open: bool
) -> None:
    expected = state.value in STILL_RUNNING and work_open and epoch_lost <= 3

    assert is_adoptable(replace(ATTEMPT, state=state), epoch_lost, work_open=work_open) is expected


@pytest.mark.req("R08")
def test_an_attempt_that_is_not_in_the_store_is_not_adoptable() -> None:
    assert is_adoptable(ATTEMPT, 3, work_open=True), "control"

    assert not is_adoptable(None, 3, work_open=True)


@pytest.mark.req("L01")
@pytest.mark.parametrize(
    ("lease_us", "expected_us"),
    [(1_500_000, 1_500_000), (LEADER_LEASE_US, LEADER_LEASE_US), (60 * US_PER_S, LEADER_LEASE_US)],
)
def test_a_leader_is_replaced_no_later_than_a_worker(lease_us: int, expected_us: int) -> None:
    assert leader_lease_us(lease_us) == expected_us


def test_two_waits_for_the_store_fit_before_a_renewal_is_due() -> None:
    assert 2 * store_wait_us(60 * US_PER_S) <= renewal_due_us(60 * US_PER_S)
