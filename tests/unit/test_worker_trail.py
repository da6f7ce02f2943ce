"""The trail of a launch: what began, what ended and how, and when a phase has become slow."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from shared.clock import VirtualClock
from shared.model.attempt import Phase
from tests.support.waiting import wait_until
from worker.trail import SLOW_US, Trail


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def trail(clock: VirtualClock) -> Trail:
    return Trail(clock.now)


def slow_at(trail: Trail) -> int | None:
    return trail.slow_mono_us


def _fail_after(clock: VirtualClock, us: int) -> None:
    clock.advance(us)
    raise OSError("no")


@pytest.mark.req("E15")
def test_phases_are_kept_in_order_with_their_times_and_outcomes(trail: Trail, clock: VirtualClock) -> None:
    began_us = clock.now().wall_us
    with trail.phase("secrets"):
        clock.advance(5)
    with pytest.raises(OSError, match="no"), trail.phase("sandbox"):
        _fail_after(clock, 7)
    with trail.phase("executor"):
        during = trail.phases()

    assert trail.phases() == (
        Phase("secrets", began_us, began_us + 5, "ok"),
        Phase("sandbox", began_us + 5, began_us + 12, "failed"),
        Phase("executor", began_us + 12, began_us + 12, "ok"),
    )
    assert during[-1] == Phase("executor", began_us + 12, None, None), "while it runs it has no end"


@pytest.mark.req("E15")
def test_a_phase_says_when_it_becomes_slow_and_is_not_written_twice(trail: Trail, clock: VirtualClock) -> None:
    assert slow_at(trail) is None
    with trail.phase("secrets"):
        assert slow_at(trail) == clock.now().mono_us + SLOW_US
        assert SLOW_US == 200_000
        clock.advance(SLOW_US)
        trail.written(trail.phases())
        assert slow_at(trail) is None, "written once"
    assert slow_at(trail) is None, "and its end rides on the next write"

    with trail.phase("executor"):
        assert slow_at(trail) == clock.now().mono_us + SLOW_US, "control: the next one may be slow again"


@pytest.mark.req("E15")
def test_what_was_written_before_a_phase_began_does_not_count_as_its_writing(trail: Trail, clock: VirtualClock) -> None:
    with trail.phase("secrets"):
        seen = trail.phases()
    with trail.phase("executor"):
        trail.written(seen)  # the commit of an earlier look comes in late

        assert slow_at(trail) == clock.now().mono_us + SLOW_US


@pytest.mark.req("E15")
def test_a_step_of_the_wall_clock_makes_no_phase_slow(trail: Trail, clock: VirtualClock) -> None:
    with trail.phase("secrets"):
        due = slow_at(trail)
        clock.step_wall(3_600_000_000)

        assert slow_at(trail) == due


@pytest.fixture
def stuck(trail: Trail) -> Iterator[tuple[threading.Thread, threading.Event]]:
    """A pool thread in the middle of a phase, and what lets it go on."""
    go = threading.Event()

    def launch() -> None:
        with trail.phase("secrets"):
            go.wait(30)

    thread = threading.Thread(target=launch)
    thread.start()
    yield thread, go
    go.set()
    thread.join(30)


@pytest.mark.req("E15")
def test_a_step_reads_what_a_pool_thread_is_at(trail: Trail, stuck: tuple[threading.Thread, threading.Event]) -> None:
    thread, go = stuck
    wait_until(trail.phases, "the phase began")
    assert trail.phases()[0].outcome is None

    go.set()
    thread.join(30)

    assert trail.phases()[0].outcome == "ok"
