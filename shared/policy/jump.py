"""Whether the wall clock jumped. Nothing runs on it but dates; still a jump is told, and what hangs on dates is planned anew.

Rule: design §5 ("record clock jump"); requirement K02.
"""

from __future__ import annotations

from shared.model.host import ClockMark
from shared.model.instant import US_PER_S, Instant

JUMP_LEAST_US = US_PER_S
"""Up to this much is drift, which is corrected all the time."""


def jump_us(before: ClockMark | None, now: Instant) -> int | None:
    """How far the wall clock moved against the monotonic one, positive forward; None: no further than drift does.

    A host that was suspended shows as a jump forward, since its monotonic clock stood still. None too without a mark of this
    boot: across a boot nothing tells a jump from time that passed.
    """
    if before is None or before.boot_id != now.boot_id:
        return None
    moved_us = offset_us(now) - before.offset_us
    return moved_us if abs(moved_us) > JUMP_LEAST_US else None


def offset_us(now: Instant) -> int:
    """Wall minus monotonic."""
    return now.wall_us - now.mono_us
