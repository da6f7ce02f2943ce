"""The host's clock and the virtual one pass the same cases; then what only the virtual one can do."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shared.clock import Clock, SteppedClock, SystemClock, VirtualClock, WaitEnd, host_clock
from shared.model.instant import US_PER_MS, US_PER_S, Instant
from shared.wake import Bell

FAR_US = 30 * US_PER_S
"""Longer than any test may wait: a wait that ends for this reason has missed its wake."""


@pytest.fixture(params=[SystemClock, VirtualClock])
def clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


@pytest.fixture
def bell(tmp_path: Path) -> Iterator[Bell]:
    with closing(Bell(tmp_path, "test")) as made:
        yield made


class TestBothClocks:
    def test_an_instant_holds_wall_clock_monotonic_clock_and_boot(self, clock: Clock) -> None:
        now = clock.now()

        assert now.wall_us > 1_700_000_000 * US_PER_S
        assert now.mono_us > 0
        assert now.boot_id

    @pytest.mark.req("K01")
    def test_the_monotonic_clock_of_one_boot_never_goes_back(self, clock: Clock) -> None:
        seen = [clock.now() for _ in range(100)]

        assert [now.mono_us for now in seen] == sorted(now.mono_us for now in seen)
        assert len({now.boot_id for now in seen}) == 1

    @pytest.mark.parametrize("with_bell", [True, False])
    def test_a_wait_lasts_until_its_deadline(self, clock: Clock, bell: Bell, with_bell: bool) -> None:
        deadline = clock.now().mono_us + 2 * US_PER_MS

        assert clock.wait(deadline, bell if with_bell else None) is WaitEnd.DEADLINE

        assert clock.now().mono_us >= deadline

    @pytest.mark.parametrize("with_bell", [True, False])
    def test_a_deadline_in_the_past_does_not_wait(self, clock: Clock, bell: Bell, with_bell: bool) -> None:
        assert clock.wait(clock.now().mono_us - FAR_US, bell if with_bell else None) is WaitEnd.DEADLINE

    @pytest.mark.req("K01", "K03")
    def test_a_wake_before_the_wait_ends_it_and_is_used_up(self, clock: Clock, bell: Bell) -> None:
        bell.ring()
        bell.ring()

        assert clock.wait(clock.now().mono_us + FAR_US, bell) is WaitEnd.WOKEN
        assert clock.wait(clock.now().mono_us, bell) is WaitEnd.DEADLINE, "several wakes count once"

    def test_a_wake_goes_before_a_deadline_that_is_over(self, clock: Clock, bell: Bell) -> None:
        bell.ring()

        assert clock.wait(clock.now().mono_us - 1, bell) is WaitEnd.WOKEN


@pytest.mark.req("K03")
def test_a_wake_from_another_thread_ends_the_wait(bell: Bell) -> None:
    clock = SystemClock()
    thread = threading.Thread(target=bell.ring)
    thread.start()
    try:
        assert clock.wait(clock.now().mono_us + FAR_US, bell) is WaitEnd.WOKEN
    finally:
        thread.join()


def test_the_host_s_clock_names_the_kernel_s_boot() -> None:
    assert SystemClock().now().boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_a_wait_outlasts_a_descriptor_number_that_select_cannot_hold(bell: Bell) -> None:
    """A worker with many attempts has descriptors above 1023, which `select` refuses."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("the limit on open files is too low to reach such a number")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    high = 1500

    class HighBell:
        def fileno(self) -> int:
            return high

        def drain(self) -> None:
            bell.drain()

    os.dup2(bell.fileno(), high)
    try:
        bell.ring()
        for clock in (SystemClock(), VirtualClock()):
            bell.ring()
            assert clock.wait(clock.now().mono_us + FAR_US, HighBell()) is WaitEnd.WOKEN
    finally:
        os.close(high)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class TestVirtualClock:
    START = Instant(1_000, 2_000, "boot-9")

    def test_it_stands_still_until_told(self) -> None:
        clock = VirtualClock(self.START)

        assert [clock.now(), clock.now()] == [self.START, self.START]

    def test_a_wait_jumps_exactly_to_its_deadline(self) -> None:
        clock = VirtualClock(self.START)

        clock.wait(2_500, None)

        assert clock.now() == Instant(1_500, 2_500, "boot-9")

    def test_a_past_deadline_moves_nothing_back(self) -> None:
        clock = VirtualClock(self.START)

        clock.wait(1, None)

        assert clock.now() == self.START

    def test_a_wake_moves_nothing(self, bell: Bell) -> None:
        clock = VirtualClock(self.START)
        bell.ring()

        clock.wait(9_000, bell)

        assert clock.now() == self.START

    def test_advancing_moves_both_clocks_and_stepping_only_the_wall(self) -> None:
        clock = VirtualClock(self.START)

        clock.advance(10)
        clock.step_wall(-500)
        clock.step_wall(7)

        assert clock.now() == Instant(517, 2_010, "boot-9")

    def test_a_reboot_begins_another_monotonic_clock_after_the_time_it_took(self) -> None:
        clock = VirtualClock(self.START)

        clock.reboot("boot-10", down_us=60)

        assert clock.now() == Instant(1_060, 5 * US_PER_S, "boot-10")


HOUR_US = 3_600 * US_PER_S


class TestSteppedClock:
    """Drills start processes whose wall clock jumps; see `host_clock`."""

    def test_its_wall_clock_is_off_from_each_step_on_and_the_monotonic_one_never(self) -> None:
        true = SystemClock()
        stepped = SteppedClock([(0, -HOUR_US), (HOUR_US, 5 * HOUR_US)])

        before, seen, after = true.now(), stepped.now(), true.now()

        assert before.wall_us <= seen.wall_us + HOUR_US <= after.wall_us
        assert before.mono_us <= seen.mono_us <= after.mono_us
        assert seen.boot_id == before.boot_id

    def test_a_step_that_lies_ahead_is_not_felt_yet(self) -> None:
        true = SystemClock()
        stepped = SteppedClock([(HOUR_US, 5 * HOUR_US)])

        before, seen, after = true.now(), stepped.now(), true.now()

        assert before.wall_us <= seen.wall_us <= after.wall_us

    @pytest.mark.parametrize(
        ("order", "drill", "content", "steps"),
        [
            ("0:7200", "d1", "d1", True),
            ("0:7200", None, "d1", False),
            ("0:7200", "d2", "d1", False),
            ("0:7200", "d1", None, False),
            (None, "d1", "d1", False),
        ],
    )
    def test_steps_are_taken_only_in_a_drill_of_that_home(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        order: str | None,
        drill: str | None,
        content: str | None,
        steps: bool,
    ) -> None:
        for name, value in (("TENURE_CLOCK", order), ("TENURE_DRILL", drill)):
            if value is not None:
                monkeypatch.setenv(name, value)
        if content is not None:
            (tmp_path / "drill").write_text(content)

        off_us = host_clock(tmp_path).now().wall_us - SystemClock().now().wall_us

        assert (off_us > HOUR_US) is steps

    def test_an_order_that_means_nothing_is_an_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "drill").write_text("d1")
        monkeypatch.setenv("TENURE_DRILL", "d1")
        monkeypatch.setenv("TENURE_CLOCK", "soon")

        with pytest.raises(ValueError, match=r"soon|unpack"):
            host_clock(tmp_path)
