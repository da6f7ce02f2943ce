"""Which ledgers a Work is counted on, when one is full, and what is worth a notice. Pure.

Rule: requirements B01–B05; the reading of "per scope": without a `scope` each scope has a ledger of its own Work; with one, the
named scope and everything below it share a ledger, as limits of a scope hold for what lies below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from shared.ids import WorkId
from shared.model.budget import Budget, Ledger, Notice, NoticeKind, Per, Period, plain
from shared.model.instant import US_PER_S
from shared.model.settings import scope_chain

US_PER_DAY = 86_400 * US_PER_S
US_PER_WEEK = 7 * US_PER_DAY
_MONDAY_US = 4 * US_PER_DAY  # 1970-01-01 was a Thursday


@dataclass(frozen=True, slots=True)
class Line:
    """A budget and the ledger on which it counts one Work at one instant."""

    budget: Budget
    ledger: Ledger


def lines_of(budgets: Iterable[Budget], work_id: WorkId, scope: str, at_us: int) -> list[Line]:
    """Every budget that caps this Work, in the given order, each with its ledger at that instant (UTC)."""
    return [
        Line(
            budget,
            Ledger(
                budget.unit,
                budget.per,
                budget.period,
                budget.scope,
                _subject(budget, work_id, scope),
                window_of(budget.period, at_us),
            ),
        )
        for budget in budgets
        if budget.scope is None or budget.scope in scope_chain(scope)
    ]


def window_of(period: Period, at_us: int) -> int:
    """When the window began in which `at_us` lies; 0 for life. An instant on the border begins the new window."""
    match period:
        case Period.LIFE:
            return 0
        case Period.DAY:
            return at_us - at_us % US_PER_DAY
        case Period.WEEK:
            return at_us - (at_us - _MONDAY_US) % US_PER_WEEK


def first_full(lines: Iterable[Line], used: Mapping[Ledger, Decimal]) -> Line | None:
    """The first budget that refuses another turn: its ledger has reached the limit. None: all leave room.

    Args:
        used: What each ledger has come to, in-flight turns included; an absent one stands at 0.
    """
    return next((line for line in lines if used.get(line.ledger, Decimal(0)) >= line.budget.limit), None)


def notices_of(
    lines: Iterable[Line], before: Mapping[Ledger, Decimal], after: Mapping[Ledger, Decimal], scope: str
) -> list[Notice]:
    """What a charge may have to tell, in order; a charge that crosses both of a budget's lines gives both notices.

    A ledger of all scopes tells each scope that is charged to it once a line is crossed: whoever crossed it was in one of them.
    Whether it was told before is not known here.
    """
    zero = Decimal(0)
    return [
        Notice(kind, line.ledger, line.budget.limit, after.get(line.ledger, zero), scope)
        for line in lines
        for kind, threshold in _thresholds(line.budget)
        if threshold <= after.get(line.ledger, zero)
        and (line.budget.per is Per.ALL or before.get(line.ledger, zero) < threshold)
    ]


def notice_of_hold(line: Line, used: Decimal, scope: str) -> Notice:
    """What a refused turn publishes if nobody did before: the limit was lowered below what is used. Rule: B05."""
    return Notice(NoticeKind.EXCEEDED, line.ledger, line.budget.limit, used, scope)


def reason_of(line: Line, used: Decimal) -> str:
    """Why a turn was refused, for people: `20 of 20 usd per scope ops in this day are used`."""
    budget, ledger = line.budget, line.ledger
    whose = {Per.WORK: "this work", Per.SCOPE: f"scope {ledger.subject or '(outermost)'}", Per.ALL: "all scopes"}[
        budget.per
    ]
    window = {Period.LIFE: "", Period.DAY: " today (UTC)", Period.WEEK: " this week (UTC)"}[budget.period]
    return f"{plain(used)} of {plain(budget.limit)} {budget.unit} of {whose} are used{window}"


def _thresholds(budget: Budget) -> list[tuple[NoticeKind, Decimal]]:
    exceeded = (NoticeKind.EXCEEDED, budget.limit)
    return [exceeded] if budget.warn_at is None else [(NoticeKind.WARNING, budget.limit * budget.warn_at), exceeded]


def _subject(budget: Budget, work_id: WorkId, scope: str) -> str:
    match budget.per:
        case Per.WORK:
            return work_id
        case Per.SCOPE:
            return scope if budget.scope is None else budget.scope
        case Per.ALL:
            return ""
