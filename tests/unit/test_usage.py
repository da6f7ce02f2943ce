"""What a program may report as consumed, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import RefusedError
from shared.model.usage import AMOUNT_MAX, PLACES, UNITS_MAX, Usage, usage_of

AMOUNTS = st.decimals(0, AMOUNT_MAX, places=6)
REPORTS = st.dictionaries(st.sampled_from(["usd", "tokens", "minutes", "a.b-c_d"]), AMOUNTS)


@pytest.mark.req("B02")
@pytest.mark.parametrize(
    ("value", "amount"),
    [
        (3, "3"),
        (1.7, "1.7"),
        (0.1 + 0.2, "0.300000000001"),
        ("0.0000001", "0.0000001"),
        (Decimal("1e-30"), "0.000000000001"),
        (10**12, "1000000000000"),
    ],
)
def test_an_amount_is_kept_exactly_or_rounded_up(value: object, amount: str) -> None:
    assert usage_of({"usd": value}) == Usage((("usd", Decimal(amount)),))
    assert usage_of({"usd": value}).to_plain() == {"usd": amount}


@pytest.mark.req("B02")
@pytest.mark.parametrize(
    "value",
    [
        -1,
        -1e-9,
        float("nan"),
        float("inf"),
        "-inf",
        "sNaN",
        10**12 + 1,
        1e308,
        "1e999",
        True,
        None,
        [],
        "",
        "1,5",
        "x" * 9_999,
    ],
)
def test_an_amount_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(RefusedError) as caught:
        usage_of({"usd": value})

    assert caught.value.code == "usage_invalid"
    assert len(str(caught.value)) < 150
    assert usage_of({"usd": 1}).amount("usd") == 1


@pytest.mark.req("B02")
@pytest.mark.parametrize("unit", ["", "USD", "1st", "turns", "attempts", "a b", "ä", "a" * 33, "a\0", "\ud800", "a\n"])
def test_a_unit_that_is_none_or_is_counted_by_tenure_is_refused(unit: str) -> None:
    with pytest.raises(RefusedError):
        usage_of({unit: 1})


def test_a_report_of_too_many_units_is_refused() -> None:
    assert len(usage_of({f"u{number}": 1 for number in range(UNITS_MAX)}).amounts) == UNITS_MAX
    with pytest.raises(RefusedError):
        usage_of({f"u{number}": 1 for number in range(UNITS_MAX + 1)})


@given(REPORTS, REPORTS)
def test_adding_loses_nothing(one: dict[str, Decimal], other: dict[str, Decimal]) -> None:
    both = usage_of(one).plus(usage_of(other))

    for unit in {*one, *other}:
        assert both.amount(unit) == one.get(unit, Decimal(0)) + other.get(unit, Decimal(0))


@given(REPORTS)
def test_what_is_stored_reads_back(report: dict[str, Decimal]) -> None:
    usage = usage_of(report)

    assert Usage.from_plain(usage.to_plain()) == usage
    assert all(amount % PLACES == 0 for _, amount in usage.amounts)
