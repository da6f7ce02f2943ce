"""What an attempt consumed, in named units: exact amounts, as its program reported them.

Amounts are decimals, never floats: what is charged is what was said. Standard library only.

Rule: requirement B02.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation

from shared.errors import RefusedError
from shared.model.instant import US_PER_MINUTE

TURNS, ATTEMPTS, MINUTES = "turns", "attempts", "minutes"
COUNTED = (TURNS, ATTEMPTS)
"""Units that tenure counts itself; nobody may report them."""

PLACES = Decimal("1e-12")
AMOUNT_MAX = Decimal("1e12")
UNITS_MAX = 16
"""Of one report."""
UNITS_KEPT = 64
"""Different units of one attempt; what comes in a further one is refused."""


_EXACT = Context(prec=80)  # wide enough for any sum of amounts
_UNIT = re.compile(r"[a-z][a-z0-9_.-]{0,31}")
_DECIMAL = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
TEXT_CHARS_MAX = 40


@dataclass(frozen=True, slots=True)
class Usage:
    """What was consumed. `amounts`: (unit, amount), sorted by unit, each unit once, each amount above zero."""

    amounts: tuple[tuple[str, Decimal], ...] = ()

    def amount(self, unit: str) -> Decimal:
        """How much of that unit; 0 when none was reported."""
        return dict(self.amounts).get(unit, Decimal(0))

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        units = {unit for unit, _ in (*self.amounts, *other.amounts)}
        return Usage(tuple((unit, sum_of(self.amount(unit), other.amount(unit))) for unit in sorted(units)))

    def beyond(self, counted: Usage) -> Usage:
        """What of this was not counted before; a report that says less than what was counted takes nothing back."""
        further = ((unit, amount - counted.amount(unit)) for unit, amount in self.amounts)
        return Usage(tuple((unit, amount) for unit, amount in further if amount > 0))

    def within(self, counted: Usage) -> tuple[Usage, tuple[str, ...]]:
        """What of this may be added to what was counted, and the units that may not: an attempt has at most `UNITS_KEPT`."""
        known = {unit for unit, _ in counted.amounts}
        fresh = [unit for unit, _ in self.amounts if unit not in known]
        refused = tuple(fresh[max(0, UNITS_KEPT - len(known)) :])
        return Usage(tuple(each for each in self.amounts if each[0] not in refused)), refused

    def to_plain(self) -> dict[str, str]:
        """As it is stored: decimal text by unit."""
        return {unit: format(amount.normalize(_EXACT), "f") for unit, amount in self.amounts}

    @classmethod
    def from_plain(cls, raw: Mapping[str, str]) -> Usage:
        """What `to_plain` wrote. Raises ValueError: it did not write that."""
        try:
            return cls(tuple((unit, Decimal(raw[unit])) for unit in sorted(raw)))
        except InvalidOperation:
            raise ValueError("usage holds what is no amount") from None


NO_USAGE = Usage()


def time_used(active_us: int) -> Usage:
    """Running time in minutes, as an executor that is metered by time reports it."""
    minutes = (Decimal(active_us) / US_PER_MINUTE).quantize(PLACES, ROUND_CEILING)
    return Usage(((MINUTES, minutes.normalize()),)) if minutes else NO_USAGE


def usage_of(reported: Mapping[str, object]) -> Usage:
    """Check what a program reported.

    An amount finer than 10⁻¹² is rounded up, so that nothing is undercounted; zero amounts are left out.

    Args:
        reported: Amount by unit: a number, or a decimal as text.

    Raises:
        RefusedError: a unit is no unit's name or one that tenure counts itself; an amount is no number, negative, not finite,
            or above 10¹²; there are more than 16 units.
    """
    if len(reported) > UNITS_MAX:
        raise RefusedError(f"usage names {len(reported)} units, at most {UNITS_MAX} are taken", code="usage_invalid")
    amounts = ((unit, _amount(unit, reported[unit])) for unit in sorted(reported) if _checked(unit))
    return Usage(tuple((unit, amount) for unit, amount in amounts if amount))


def sum_of(amount: Decimal, other: Decimal) -> Decimal:
    """Their exact sum, however large a ledger has grown."""
    return _EXACT.add(amount, other)


def exact(text: str) -> Decimal:
    """A number of JSON as it was said, where a float would round it. Raises ValueError: it is beyond all bounds."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text[:40]} is too large a number") from None


def is_unit(text: str) -> bool:
    """True when `text` may name a unit: a lower-case letter, then up to 31 of a-z 0-9 `_` `.` `-`."""
    return _UNIT.fullmatch(text) is not None


def _checked(unit: str) -> bool:
    if not is_unit(unit):
        raise RefusedError(f"{unit[:40]!r} is no name for a unit", code="usage_invalid")
    if unit in COUNTED:
        raise RefusedError(f"{unit} are counted by tenure itself", code="usage_invalid")
    return True


def _amount(unit: str, value: object) -> Decimal:
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
            raise TypeError
        if isinstance(value, str) and (len(value) > TEXT_CHARS_MAX or _DECIMAL.fullmatch(value) is None):
            raise TypeError
        amount = Decimal(str(value))
        if not amount.is_finite() or not 0 <= amount <= AMOUNT_MAX:
            raise RefusedError(f"{amount} {unit}: an amount is a number from 0 to {AMOUNT_MAX:f}", code="usage_invalid")
    except (InvalidOperation, TypeError, ValueError):  # also of an integer with more digits than Python turns into text
        raise RefusedError(f"{unit}: {_shown(value)} is no amount", code="usage_invalid") from None
    return amount.quantize(PLACES, ROUND_CEILING).normalize() if amount else Decimal(0)


def _shown(value: object) -> str:
    return repr(value[:40]) if isinstance(value, str) else f"a {type(value).__name__}"
