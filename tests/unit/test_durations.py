"""Durations as they are written in a configuration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.config.durations import DURATION_MAX_US, DURATION_MIN_US, DurationError, format_duration, parse_duration_us

S = 1_000_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("30s", 30),
        ("1000ms", 1),
        ("1500ms", 1.5),
        ("5m", 300),
        ("1h", 3600),
        ("1h30m", 5400),
        ("1d", 86_400),
        ("365d", 31_536_000),
        ("1d2h3m4s5ms", 93_784.005),
        ("90m", 5400),
    ],
)
def test_a_duration_with_its_unit_is_read(text: str, seconds: float) -> None:
    assert parse_duration_us(text) == round(seconds * S)


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [
        ("30", '"30" needs a unit, e.g. "30s"', None),
        (" 30 ", '"30" needs a unit, e.g. "30s"', None),
        ("30 s", "is no duration", 'did you mean "30s"?'),
        ("30S", "is no duration", 'did you mean "30s"?'),
        ("5min", "is no duration", 'did you mean "5m"?'),
        ("5 minutes", "is no duration", 'did you mean "5m"?'),
        ("2hours", "is no duration", 'did you mean "2h"?'),
        ("100msec", "is no duration", 'did you mean "100ms"?'),
        ("08s", "is no duration", 'did you mean "8s"?'),
        ("30s\n", "is no duration", 'did you mean "30s"?'),
        ("", "is no duration", "1h30m"),
        ("s", "is no duration", "1h30m"),
        ("1.5h", "is no duration", "1h30m"),
        ("-5m", "is no duration", "1h30m"),
        ("1e3s", "is no duration", "1h30m"),
        ("5 fortnights", "is no duration", "1h30m"),
        ("30m1h", "is no duration", "1h30m"),
        ("1h1h", "is no duration", "1h30m"),
        ("1h 30m", "is no duration", "1h30m"),
        ("٣٠s", "is no duration", "1h30m"),
        ("9" * 4000 + "s", "is no duration", "1h30m"),
    ],
)
def test_anything_else_is_refused_with_what_was_probably_meant(text: str, reason: str, hint: str | None) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration_us(text)

    assert reason in caught.value.reason
    assert len(caught.value.reason) < 100
    if hint is None:
        assert caught.value.hint is None
    else:
        assert caught.value.hint is not None
        assert hint in caught.value.hint


@pytest.mark.parametrize("text", ["0s", "999ms", "366d", "365d1ms", "999999999999d"])
def test_a_duration_outside_its_bounds_is_refused(text: str) -> None:
    with pytest.raises(DurationError, match="must be from 1s to 365d"):
        parse_duration_us(text)


def test_both_bounds_are_included() -> None:
    assert parse_duration_us("1s") == DURATION_MIN_US
    assert parse_duration_us("365d") == DURATION_MAX_US


@given(st.integers(DURATION_MIN_US // 1000, DURATION_MAX_US // 1000))
def test_what_is_formatted_reads_back(milliseconds: int) -> None:
    assert parse_duration_us(format_duration(milliseconds * 1000)) == milliseconds * 1000


@given(st.text(max_size=20))
def test_no_text_brings_another_error(text: str) -> None:
    try:
        duration_us = parse_duration_us(text)
    except DurationError:
        return
    assert DURATION_MIN_US <= duration_us <= DURATION_MAX_US
