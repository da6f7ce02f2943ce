"""Whose ledgers a Work is counted on, when one is full, and what is told once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.ids import WorkId
from shared.model.budget import Budget, Ledger, NoticeKind, Per, Period
from shared.model.instant import US_PER_S
from shared.policy.budget import US_PER_DAY, US_PER_WEEK, first_full, lines_of, notices_of, reason_of, window_of

W1, W2 = WorkId("w1"), WorkId("w2")
NOON_US = int(datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()) * US_PER_S  # a Sunday


def budget(
    per: Per = Per.ALL, scope: str | None = None, period: Period = Period.LIFE, warn_at: str | None = None
) -> Budget:
    return Budget("usd", Decimal(20), per, period, scope, None if warn_at is None else Decimal(warn_at))


def ledgers(one: Budget, work_id: WorkId, scope: str, at_us: int = NOON_US) -> list[Ledger]:
    return [line.ledger for line in lines_of([one], work_id, scope, at_us)]


@pytest.mark.req("B01")
@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        # (work, scope) pairs: the first two share a ledger, the third has another or none.
        (budget(Per.ALL), [(W1, "ops"), (W2, "lab")], None),
        (budget(Per.WORK), [(W1, "ops"), (W1, "ops")], (W2, "ops")),
        (budget(Per.SCOPE), [(W1, "ops"), (W2, "ops")], (W2, "ops/backup")),
        (budget(Per.SCOPE, "ops"), [(W1, "ops"), (W2, "ops/backup")], (W2, "lab")),
        (budget(Per.WORK, "ops"), [(W1, "ops/backup"), (W1, "ops/backup")], (W2, "lab")),
        (budget(Per.SCOPE), [(W1, ""), (W2, "")], (W2, "ops")),
    ],
)
def test_who_shares_a_ledger(one: Budget, same: list[tuple[WorkId, str]], other: tuple[WorkId, str] | None) -> None:
    first, second = (ledgers(one, *work) for work in same)

    assert len(first) == 1
    assert first == second
    assert other is None or ledgers(one, *other) != first


@pytest.mark.req("B01")
def test_a_scope_beside_the_named_one_is_not_capped() -> None:
    assert ledgers(budget(Per.SCOPE, "ops"), W1, "ops-2") == []
    assert ledgers(budget(Per.SCOPE, "ops"), W1, "") == []


@pytest.mark.req("B01")
@given(st.integers(0, 200 * 366 * US_PER_DAY))
def test_windows_are_utc_days_and_weeks_from_monday(at_us: int) -> None:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)

    assert window_of(Period.LIFE, at_us) == 0
    assert window_of(Period.DAY, at_us) == int(midnight.timestamp()) * US_PER_S
    assert window_of(Period.WEEK, at_us) == int((midnight - timedelta(days=at.weekday())).timestamp()) * US_PER_S


@pytest.mark.req("B01")
def test_the_border_begins_the_new_window() -> None:
    for period, length_us in ((Period.DAY, US_PER_DAY), (Period.WEEK, US_PER_WEEK)):
        start_us = window_of(period, NOON_US)
        assert window_of(period, start_us) == start_us
        assert window_of(period, start_us - 1) == start_us - length_us
        assert window_of(period, start_us + length_us - 1) == start_us


@pytest.mark.req("B04")
@pytest.mark.parametrize(("used", "is_full"), [("0", False), ("19.999999999999", False), ("20", True), ("21", True)])
def test_a_ledger_is_full_when_its_limit_is_reached(used: str, is_full: bool) -> None:
    lines = lines_of([budget(Per.WORK), budget(Per.ALL)], W1, "ops", NOON_US)

    found = first_full(lines, {lines[1].ledger: Decimal(used)})

    assert found == (lines[1] if is_full else None)
    assert not is_full or reason_of(lines[1], Decimal(used)) == f"{used} of 20 usd of all scopes are used"


@pytest.mark.req("B05")
@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("0", "15.9", []),
        ("0", "16", [NoticeKind.WARNING]),
        ("16", "17", []),
        ("17", "20", [NoticeKind.EXCEEDED]),
        ("0", "25", [NoticeKind.WARNING, NoticeKind.EXCEEDED]),
        ("20", "25", []),
    ],
)
def test_a_notice_is_for_the_charge_that_crosses(before: str, after: str, kinds: list[NoticeKind]) -> None:
    lines = lines_of([budget(Per.SCOPE, warn_at="0.8")], W1, "ops", NOON_US)
    ledger = lines[0].ledger

    notices = notices_of(lines, {ledger: Decimal(before)}, {ledger: Decimal(after)}, "ops")

    assert [notice.kind for notice in notices] == kinds
    assert all((notice.scope, notice.used, notice.limit) == ("ops", Decimal(after), Decimal(20)) for notice in notices)


@pytest.mark.req("B05")
def test_without_a_warning_there_is_only_the_end() -> None:
    lines = lines_of([budget()], W1, "ops", NOON_US)

    notices = notices_of(lines, {}, {lines[0].ledger: Decimal(25)}, "ops")

    assert [notice.kind for notice in notices] == [NoticeKind.EXCEEDED]


@pytest.mark.req("B05")
def test_a_budget_of_all_scopes_tells_each_scope_that_is_charged_beyond_its_lines() -> None:
    lines = lines_of([budget(Per.ALL, warn_at="0.8")], W1, "lab", NOON_US)
    ledger = lines[0].ledger

    notices = notices_of(lines, {ledger: Decimal(17)}, {ledger: Decimal(18)}, "lab")

    assert [(notice.kind, notice.scope) for notice in notices] == [(NoticeKind.WARNING, "lab")]
    assert notices_of(lines, {ledger: Decimal(14)}, {ledger: Decimal(15)}, "lab") == [], "nothing is crossed yet"


@pytest.mark.req("B01")
def test_a_named_scope_and_each_scope_on_its_own_are_counted_apart() -> None:
    """Work in `ops` and below counts on the one, Work exactly in `ops` on the other."""
    both = [budget(Per.SCOPE, "ops"), budget(Per.SCOPE)]

    named, each = (line.ledger for line in lines_of(both, W1, "ops", NOON_US))

    assert (named.subject, each.subject) == ("ops", "ops")
    assert named != each
