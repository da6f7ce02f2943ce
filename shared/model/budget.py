"""Budgets: how much of a unit may be consumed, by whom, in which time; and the ledgers that count it.

Rule: requirements B01, B05; design §12.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


def plain(amount: Decimal) -> str:
    """An amount without an exponent and without needless zeros: equal text for equal amounts."""
    return format(amount.normalize(), "f")


class Per(StrEnum):
    """Whose consumption one ledger counts."""

    WORK = "work"
    SCOPE = "scope"
    ALL = "all"


class Period(StrEnum):
    """How long a ledger counts before the next one begins at zero. Days and weeks are UTC; a week begins on Monday."""

    LIFE = "life"
    DAY = "day"
    WEEK = "week"


@dataclass(frozen=True, slots=True)
class Budget:
    """One cap.

    Attributes:
        scope: Only Work in this scope and below it counts, on one ledger where `per` is scope; None: Work of every scope, each
            scope on a ledger of its own. None where `per` is all.
        warn_at: Fraction of `limit` at which a warning is published; None: no warning.
    """

    unit: str
    limit: Decimal
    per: Per = Per.SCOPE
    period: Period = Period.LIFE
    scope: str | None = None
    warn_at: Decimal | None = None

    @property
    def counts(self) -> tuple[str, Per, Period, str | None]:
        """What its ledgers count; two budgets that count the same share them."""
        return self.unit, self.per, self.period, self.scope

    def to_plain(self) -> dict[str, str | None]:
        """As a stored configuration has it: amounts as decimal text, equal for equal amounts."""
        warn_at = None if self.warn_at is None else plain(self.warn_at)
        return {
            "unit": self.unit,
            "limit": plain(self.limit),
            "per": self.per,
            "period": self.period,
            "scope": self.scope,
            "warn_at": warn_at,
        }

    @classmethod
    def from_plain(cls, raw: Mapping[str, str | None]) -> Budget:
        """What `to_plain` wrote.

        Raises: KeyError, ValueError, ArithmeticError (decimal.InvalidOperation): it is none.
        """
        warn_at = raw["warn_at"]
        return cls(
            str(raw["unit"]),
            Decimal(str(raw["limit"])),
            Per(str(raw["per"])),
            Period(str(raw["period"])),
            raw["scope"],
            None if warn_at is None else Decimal(warn_at),
        )


@dataclass(frozen=True, slots=True)
class Ledger:
    """Name of one running count.

    Attributes:
        within: The scope its budget is narrowed to; None: Work of every scope.
        subject: The Work's id, the scope ("" is the outermost), or "" for all.
        window_at_us: When its window began, UTC; 0 for life.
    """

    unit: str
    per: Per
    period: Period
    within: str | None
    subject: str
    window_at_us: int


class NoticeKind(StrEnum):
    """What a notice says."""

    WARNING = "warning"
    EXCEEDED = "exceeded"


@dataclass(frozen=True, slots=True)
class Notice:
    """A ledger crossed a line. Published once per ledger, kind, limit and scope. Rule: B05.

    Attributes:
        used: What the ledger had come to.
        scope: In which scope it is published; a ledger of all scopes notifies each scope that meets it.
    """

    kind: NoticeKind
    ledger: Ledger
    limit: Decimal
    used: Decimal
    scope: str
