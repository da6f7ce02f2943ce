"""Lease arithmetic. Live means `expires > now`, on the monotonic clock of one boot."""

from __future__ import annotations

from shared.model.attempt import Attempt, AttemptState, Lease
from shared.model.instant import US_PER_S, Instant, elapsed_us
from shared.policy.steps import is_final_attempt

ACCEPT_TIMEOUT_US = 5_000_000
LEADER_LEASE_US = 15 * US_PER_S


def is_live(lease: Lease, now: Instant) -> bool:
    """True while the lease gives authority; at the expiry instant itself it no longer does."""
    return lease.boot_id == now.boot_id and lease.revoked_at_us is None and lease.expires_mono_us > now.mono_us


def renewed_expiry(expires_mono_us: int, now: Instant, lease_us: int) -> int:
    """Expiry after a renewal: never earlier than the stored one. Rule: R07."""
    return max(expires_mono_us, now.mono_us + lease_us)


def accept_timeout_us(lease_us: int) -> int:
    """How long a claim may stay unaccepted: 5 s, at most a third of the lease. Rule: design §5."""
    return min(ACCEPT_TIMEOUT_US, lease_us // 3)


def leader_lease_us(lease_us: int) -> int:
    """How long a coordinator leads unless it renews: 15 s, and no longer than the leases it watches over.

    Who sets short leases wants what is frozen to be replaced soon, a leader not last. Rule: design §5.
    """
    return min(LEADER_LEASE_US, lease_us)


def store_wait_us(lease_us: int) -> int:
    """How long a step may wait for the store: a sixth of the lease, so that a renewal due at a third is never starved by one.

    Rule: design §3.
    """
    return lease_us // 6


def renewal_due_us(lease_us: int) -> int:
    """Interval between renewals: a third of the lease. Rule: E05."""
    return lease_us // 3


def beat_due_us(lease_us: int) -> int:
    """Interval between signs of life of a worker: a sixth of the lease. Rule: design §5."""
    return lease_us // 6


def active_us(attempt: Attempt, now: Instant) -> int:
    """Time charged to the attempt's budget since it was last measured: all of it, held or lost, while a segment is open.

    None is open while it is parked, waits for a person, or has ended. Rule: E13, R07.
    """
    if attempt.state in (AttemptState.PARKED, AttemptState.RECOVERY_REQUIRED) or is_final_attempt(attempt.state):
        return 0
    since = Instant(attempt.budget_since_at_us, attempt.budget_since_mono_us, attempt.budget_boot_id)
    return elapsed_us(since, now)


def budget_left_us(attempt: Attempt, now: Instant) -> int:
    """What is left of the attempt's timeout; 0: it is out of time."""
    return max(0, attempt.budget_us - active_us(attempt, now))


def is_adoptable(attempt: Attempt | None, epoch_lost: int, *, work_open: bool) -> bool:
    """Whether an attempt whose lease was lost still belongs to recovery, so that its process must be left alone.

    True: still unfinished, its Work open, at the lost epoch or a newer one. A host that lost a lease stops the process only
    when this is False. Rule: R08.
    """
    return (
        attempt is not None
        and work_open
        and attempt.epoch >= epoch_lost
        and not is_final_attempt(attempt.state)
        and attempt.state is not AttemptState.PARKED
    )
