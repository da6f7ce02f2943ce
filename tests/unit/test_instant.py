"""Elapsed time within a boot and across one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.instant import US_PER_MS, US_PER_S, Instant, elapsed_us

START = Instant(wall_us=1_000, mono_us=500, boot_id="boot-1")
MICROSECONDS = st.integers(-(10**15), 10**15)


def test_units_agree() -> None:
    assert US_PER_S == 1_000 * US_PER_MS


@pytest.mark.parametrize(("mono_us", "counted_us"), [(500, 0), (501, 1), (1_500, 1_000), (499, 0), (0, 0)])
def test_within_a_boot_the_monotonic_clock_counts(mono_us: int, counted_us: int) -> None:
    assert elapsed_us(START, replace(START, mono_us=mono_us)) == counted_us


@pytest.mark.req("K02")
@given(MICROSECONDS, st.integers(0, 10**12))
def test_within_a_boot_a_step_of_the_wall_clock_counts_nothing(step_us: int, passed_us: int) -> None:
    later = replace(START, wall_us=START.wall_us + step_us, mono_us=START.mono_us + passed_us)

    assert elapsed_us(START, later) == passed_us


@pytest.mark.parametrize(("wall_us", "counted_us"), [(1_000, 0), (1_001, 1), (999, 0), (0, 0), (61_000, 60_000)])
def test_across_boots_the_wall_clock_counts_and_never_backwards(wall_us: int, counted_us: int) -> None:
    assert elapsed_us(START, Instant(wall_us=wall_us, mono_us=3, boot_id="boot-2")) == counted_us


@given(MICROSECONDS, MICROSECONDS, st.sampled_from(("boot-1", "boot-2")))
def test_elapsed_time_is_never_negative(wall_us: int, mono_us: int, boot_id: str) -> None:
    assert elapsed_us(START, Instant(wall_us, mono_us, boot_id)) >= 0
