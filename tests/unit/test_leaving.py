"""The end of a coordinator or worker is written down also when the store is busy just then; not for ever."""

from __future__ import annotations

import pytest

from shared.child import LEAVE_BOUND_S, leave_in_time
from shared.clock import VirtualClock
from shared.errors import RefusedError, StoreBusyError, TenureError
from shared.model.instant import US_PER_S


class Leaver:
    """Meets these errors, one after the other, then leaves."""

    def __init__(self, clock: VirtualClock, *errors: TenureError) -> None:
        self._clock = clock
        self._errors = list(errors)
        self.left = False
        self.tries = 0

    def leave(self) -> None:
        self.tries += 1
        if self._errors:
            self._clock.advance(US_PER_S // 2)  # what the wait for the queue takes
            raise self._errors.pop(0)
        self.left = True


@pytest.mark.parametrize("busy", [0, 1, 5])
def test_a_busy_store_is_waited_for(busy: int) -> None:
    """Seed 20261129 of the random drill: asked to leave while the queue was held, a worker ended with an error instead."""
    clock = VirtualClock()
    leaver = Leaver(clock, *[StoreBusyError("held")] * busy)

    leave_in_time(leaver.leave, clock)

    assert (leaver.left, leaver.tries) == (True, busy + 1)


def test_it_is_not_waited_for_longer_than_the_bound() -> None:
    clock = VirtualClock()
    began_us = clock.now().mono_us
    leaver = Leaver(clock, *[StoreBusyError("held")] * 1_000)

    with pytest.raises(StoreBusyError):
        leave_in_time(leaver.leave, clock)

    assert LEAVE_BOUND_S <= (clock.now().mono_us - began_us) / US_PER_S < LEAVE_BOUND_S + 1


def test_what_does_not_pass_ends_it_at_once() -> None:
    clock = VirtualClock()
    leaver = Leaver(clock, RefusedError("no"))

    with pytest.raises(RefusedError):
        leave_in_time(leaver.leave, clock)

    assert leaver.tries == 1
