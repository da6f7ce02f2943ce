"""The only time value in model, policy and store."""

from __future__ import annotations

from dataclasses import dataclass

US_PER_S = 1_000_000
US_PER_MS = 1_000
US_PER_MINUTE = 60 * US_PER_S
US_PER_HOUR = 60 * US_PER_MINUTE


@dataclass(frozen=True, slots=True)
class Instant:
    """One reading of the clock.

    Attributes:
        wall_us: Microseconds since 1970 (UTC). May step; used for records, schedules and across boots only.
        mono_us: CLOCK_MONOTONIC in microseconds. Never steps; means nothing in another boot.
        boot_id: The kernel's boot id that `mono_us` belongs to.
    """

    wall_us: int
    mono_us: int
    boot_id: str


def elapsed_us(since: Instant, now: Instant) -> int:
    """Elapsed time between two instants, in microseconds, never negative.

    Monotonic within one boot; across boots the wall difference, at least 0. Rule: design §3, "Time".
    """
    if since.boot_id == now.boot_id:
        return max(0, now.mono_us - since.mono_us)
    return max(0, now.wall_us - since.wall_us)
