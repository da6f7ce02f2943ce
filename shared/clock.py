"""Time: the only file that reads a clock or waits.

Rule: design §3, "Time"; requirements K01, K02.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from shared import boundary
from shared.model.instant import US_PER_S, Instant

MS_PER_S = 1_000


class WaitEnd(StrEnum):
    """Why a wait ended."""

    DEADLINE = "deadline"
    WOKEN = "woken"


class Wake(Protocol):
    """Something a wait may be woken by: a readable descriptor that `drain` empties. A wake is a hint and may be lost."""

    def fileno(self) -> int: ...
    def drain(self) -> None: ...


class Clock(Protocol):
    """Time as everything else sees it."""

    def now(self) -> Instant:
        """One reading of wall clock, monotonic clock and boot."""

    def wait(self, until_mono_us: int, wake: Wake | None) -> WaitEnd:
        """Block until the monotonic instant or a wake, whichever is first; returns at once when it is past."""


class SystemClock:
    """The host's clock."""

    def __init__(self) -> None:
        self._boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()

    def now(self) -> Instant:
        """See `Clock.now`."""
        return Instant(time.time_ns() // 1000, time.monotonic_ns() // 1000, self._boot_id)

    def wait(self, until_mono_us: int, wake: Wake | None) -> WaitEnd:
        """See `Clock.wait`."""
        timeout_s = max(0.0, (until_mono_us - time.monotonic_ns() // 1000) / US_PER_S)
        if wake is None:
            time.sleep(timeout_s)
            return WaitEnd.DEADLINE
        if not _is_readable(wake, timeout_s):
            return WaitEnd.DEADLINE
        wake.drain()
        return WaitEnd.WOKEN


class SteppedClock(SystemClock):
    """The host's clock with its wall clock stepped on purpose; the monotonic clock is left alone. For drills.

    Args:
        steps: (after, by), both in microseconds: so long after this clock was made, its wall clock is off by so much from then on,
            until the next step. In order of time.
    """

    def __init__(self, steps: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        self._made_mono_us = super().now().mono_us
        self._steps = tuple(steps)

    def now(self) -> Instant:
        """See `Clock.now`."""
        true = super().now()
        age_us = true.mono_us - self._made_mono_us
        off_us = next((by_us for after_us, by_us in reversed(self._steps) if after_us <= age_us), 0)
        return Instant(true.wall_us + off_us, true.mono_us, true.boot_id)


def host_clock(home: Path) -> SystemClock:
    """The clock of a process of this home: the host's.

    In a drill of that home its wall clock steps as TENURE_CLOCK orders, `AFTER:BY,…` in seconds (`1.5:-7200`); elsewhere that is
    not looked at. Rule: design §8 ("honoured only together with a drill id"), requirement K02.

    Raises:
        ValueError: the order is none.
    """
    order = os.environ.get("TENURE_CLOCK")
    if not order or not boundary.is_drilled(home):
        return SystemClock()
    pairs = [step.split(":") for step in order.split(",")]
    return SteppedClock([(int(float(after) * US_PER_S), int(float(by) * US_PER_S)) for after, by in pairs])


def _is_readable(wake: Wake, timeout_s: float) -> bool:
    """Whether a wake came in time. `poll`, as `select` refuses descriptors above 1023."""
    poller = select.poll()
    poller.register(wake, select.POLLIN)
    return bool(poller.poll(timeout_s * MS_PER_S))


class VirtualClock:
    """A clock that moves only when told; for tests and simulation.

    `wait` jumps to its deadline, unless a wake is already pending.
    """

    def __init__(self, start: Instant | None = None) -> None:
        self._now = start or Instant(1_800_000_000 * US_PER_S, 1_000 * US_PER_S, "boot-1")

    def now(self) -> Instant:
        """See `Clock.now`."""
        return self._now

    def wait(self, until_mono_us: int, wake: Wake | None) -> WaitEnd:
        """See `Clock.wait`."""
        if wake is not None and _is_readable(wake, 0):
            wake.drain()
            return WaitEnd.WOKEN
        self.advance(max(0, until_mono_us - self._now.mono_us))
        return WaitEnd.DEADLINE

    def advance(self, us: int) -> None:
        """Let time pass: both clocks."""
        self._now = Instant(self._now.wall_us + us, self._now.mono_us + us, self._now.boot_id)

    def step_wall(self, us: int) -> None:
        """Step the wall clock only, either way."""
        self._now = Instant(self._now.wall_us + us, self._now.mono_us, self._now.boot_id)

    def reboot(self, boot_id: str, *, down_us: int = 0) -> None:
        """Start another boot: the monotonic clock begins anew."""
        self._now = Instant(self._now.wall_us + down_us, 5 * US_PER_S, boot_id)
