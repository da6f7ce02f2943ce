"""The fence as SQL: one fragment says what a live lease is, every statement that asks uses it, recovery takes its negation.

Rule: design §4; research "store" §6.
"""

from __future__ import annotations

LIVE = "l.boot_id = :boot AND l.revoked_at_us IS NULL AND l.expires_mono_us > :mono"
"""A live lease `l`. Every column but `revoked_at_us` is NOT NULL, so the negation below is exact."""

NOT_LIVE = f"NOT ({LIVE})"

FENCE = f"""id = :attempt AND epoch = :epoch AND ended_at_us IS NULL
   AND EXISTS (SELECT 1 FROM lease AS l WHERE l.attempt_id = attempt.id AND l.owner = :owner AND l.epoch = :epoch AND {LIVE})"""
"""An attempt that is written under exactly this live lease."""

ACCEPT_BY = "l.claimed_mono_us + min(5000000, (l.expires_mono_us - l.claimed_mono_us) / 3)"
"""When an unaccepted claim is overdue; `policy.lease.accept_timeout_us` in SQL (a test compares the two)."""

UNEXCLUDED = "(ended_at_us IS NULL OR exclusion = 'held')"
"""An attempt beside which no other of its Work may start."""

SLOT = "(exclusion = 'held' AND state <> 'parked')"
"""An attempt that holds a slot. An unfinished attempt is always `held` (CHECK)."""

RECOVERABLE = "(ended_at_us IS NULL AND state NOT IN ('parked', 'recovery_required'))"
"""An attempt that recovery looks at once its lease is not live."""

SUSPECT = "(attempt.ended_at_us IS NULL AND attempt.workers_lost_in_row > 0)"
"""An attempt whose last holder died."""

SET_ASIDE = "reason IN ('unsupported_generation', 'quarantined')"
"""A ready Work outside the queue; `model.work.SET_ASIDE` in SQL (a test compares the two)."""

QUEUED = f"(reason IS NULL OR NOT {SET_ASIDE})"
"""A ready Work in the queue. Partial indexes say it in these very words: SQLite uses none whose condition it has to prove."""

CHARGE = "budget_us = :budget, budget_since_mono_us = :mono, budget_boot_id = :boot, budget_since_at_us = :wall"
"""What ends an attempt's open segment charges the attempt for it, in the same UPDATE."""
