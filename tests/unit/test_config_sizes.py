"""Sizes are read with their unit, or refused with what was probably meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.config.sizes import SIZE_MAX, SIZE_MIN, SizeError, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64MiB", 64 * 1024 * 1024),
        ("10MB", 10_000_000),
        ("4KiB", 4096),
        ("4096B", 4096),
        ("5KB", 5000),
        ("2GB", 2 * 10**9),
        ("1TiB", 2**40),
        ("1TB", 10**12),
    ],
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [
        ("64", '"64" needs a unit', None),
        ("64M", "is no size", 'did you mean "64MiB" or "64MB"?'),
        ("64k", "is no size", 'did you mean "64KiB" or "64KB"?'),
        ("64Mi", "is no size", 'did you mean "64MiB" or "64MB"?'),
        ("64mib", "is no size", 'did you mean "64MiB"?'),
        (" 64 MiB", "is no size", 'did you mean "64MiB"?'),
        ("64 mb", "is no size", 'did you mean "64MB"?'),
        ("1.5GiB", "is no size", "a whole number"),
        ("1GiB512MiB", "is no size", "a whole number"),
        ("-1MiB", "is no size", "a whole number"),
        ("064MiB", "is no size", 'did you mean "64MiB"?'),
        ("٤MiB", "is no size", "a whole number"),
        ("1e3B", "is no size", "a whole number"),
        ("", "is no size", "a whole number"),
        ("5m", "is no size", 'did you mean "5MiB" or "5MB"?'),
        ("4095B", "must be from 4KiB to 1TiB", None),
        ("0B", "must be from 4KiB to 1TiB", None),
        ("1025GiB", "must be from 4KiB to 1TiB", None),
    ],
)
def test_what_is_no_size_is_refused(text: str, reason: str, hint: str | None) -> None:
    with pytest.raises(SizeError) as caught:
        parse_size(text)

    assert reason in caught.value.reason
    assert hint is None or hint in str(caught.value.hint)
    assert hint is not None or caught.value.hint is None


@given(st.integers(SIZE_MIN, SIZE_MAX) | st.integers(4, 1024).map(lambda count: count * 2**20))
def test_a_size_is_read_back_as_it_was_written(size: int) -> None:
    assert parse_size(format_size(size)) == size


def test_bounds_are_included_and_shown_short() -> None:
    assert (parse_size("4KiB"), parse_size("1TiB")) == (SIZE_MIN, SIZE_MAX)
    assert (format_size(SIZE_MIN), format_size(64 * 2**20), format_size(10**7), format_size(0)) == (
        "4KiB",
        "64MiB",
        "10MB",
        "0B",
    )
