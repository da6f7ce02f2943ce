"""`tenure budget list`: the budgets of the active configuration, what is used of each in its window, and what they hold.

Rule: requirements B01, B06, V03.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from shared.commands.arguments import Parser, add_json, likely
from shared.commands.held_text import why_held
from shared.commands.json_views import Json
from shared.commands.open_home import OpenHome, opened
from shared.commands.render import Ink, escaped, iso, print_json, table
from shared.errors import UsageError
from shared.model.budget import Budget, Ledger, Per, plain
from shared.model.work import Reason, Work
from shared.policy.budget import window_of
from shared.store.active import active_config
from shared.store.contract import ReadTx

LEDGERS_MAX = 1_000
HELD_MAX = 1_000

_HELP = """\
usage: tenure budget list   each budget, what is used of it, and the works it holds

`tenure budget list --help` says more."""


@dataclass(frozen=True, slots=True)
class Account:
    """A budget with its ledgers of the present window.

    Attributes:
        window_at_us: When the window began; 0 for life.
        since_at_us: From when on its ledgers count.
        ledgers: By subject, at most `LEDGERS_MAX`; only those that were charged.
    """

    budget: Budget
    window_at_us: int
    since_at_us: int | None
    ledgers: tuple[tuple[Ledger, Decimal], ...]


@dataclass(frozen=True, slots=True)
class Accounts:
    """All budgets, and the works that are held over budget."""

    budgets: tuple[Account, ...]
    held: tuple[Work, ...]


def main(argv: list[str], *, home: str | None) -> int:
    """Dispatch to a verb.

    Raises:
        UsageError: there is no such verb.
    """
    if not argv:
        raise UsageError("tenure budget: list?", hint="`tenure budget --help` says what it does")
    if argv[0] in {"--help", "-h"}:
        print(_HELP)
        return 0
    if argv[0] != "list":
        raise UsageError(
            f"tenure budget has no {argv[0]!r}{likely(argv[0], ['list'])}", hint="`tenure budget --help` lists them"
        )
    return _list(argv[1:], home)


def read(tx: ReadTx) -> Accounts:
    """Read them in one snapshot. Usage that is staged still counts in none."""
    accounts = []
    for budget in active_config(tx).config.budgets:
        window = window_of(budget.period, tx.now.wall_us)
        ledgers = tuple(tx.ledgers(budget, window, limit=LEDGERS_MAX))
        accounts.append(Account(budget, window, tx.budget_since(budget), ledgers))
    return Accounts(tuple(accounts), tuple(tx.held_for([Reason.OVER_BUDGET], limit=HELD_MAX)))


def view(found: Accounts) -> Json:
    """For programs. Amounts are decimal text."""
    return {
        "items": [_account_view(account) for account in found.budgets],
        "held": [work.id for work in found.held],
        "next": None,
    }


def lines(found: Accounts, door: OpenHome, ink: Ink) -> list[str]:
    """For people."""
    if not found.budgets:
        return ["no budgets"]
    rows = [[ink.faint(head) for head in ("unit", "per", "of", "period", "used", "max")]]
    for account in found.budgets:
        rows += _account_rows(account, ink)
    text = table(rows)
    if found.held:
        text += ["", ink.strong("held over budget")]
        text += table([_held_row(work) for work in found.held], indent="  ")
        text.append(ink.faint(f"let one go on once: {door.command(f'work release {found.held[0].id}')}"))
    return text


def _list(argv: list[str], home: str | None) -> int:
    parser = Parser("tenure budget list", "Each budget, what is used of it in its present window, and what it holds.")
    add_json(parser)
    given = parser.parse(argv)
    with opened(home) as door:
        found = door.store.read(read)
        if given.json:
            print_json(view(found))
        else:
            print("\n".join(lines(found, door, Ink.of(os.environ))))
    return 0


def _account_view(account: Account) -> Json:
    budget = account.budget
    return {
        "unit": budget.unit,
        "max": plain(budget.limit),
        "per": budget.per,
        "period": budget.period,
        "scope": budget.scope,
        "warn_at": None if budget.warn_at is None else plain(budget.warn_at),
        "window_at": iso(account.window_at_us) if account.window_at_us else None,
        "since": iso(account.since_at_us),
        "ledgers": [
            {"subject": ledger.subject, "used": plain(used), "full": used >= budget.limit}
            for ledger, used in account.ledgers
        ],
    }


def _account_rows(account: Account, ink: Ink) -> Sequence[list[str]]:
    budget = account.budget
    head = [budget.unit, budget.per.value]
    tail = [budget.period.value]
    if not account.ledgers:
        return [[*head, _anyones(budget), *tail, "0", plain(budget.limit)]]
    rows = []
    for ledger, used in account.ledgers:
        told = ink.strong(f"{plain(used)} full") if used >= budget.limit else plain(used)
        rows.append([*head, _whose(budget, ledger.subject), *tail, told, plain(budget.limit)])
    return rows


def _anyones(budget: Budget) -> str:
    """Of a budget on which nothing was counted yet."""
    if budget.per is Per.ALL:
        return "everything"
    if budget.per is Per.SCOPE:
        return "each" if budget.scope is None else escaped(budget.scope)
    return "each" if budget.scope is None else f"each in {escaped(budget.scope)}"


def _whose(budget: Budget, subject: str) -> str:
    if budget.per is Per.ALL:
        return "everything"
    within = f" in {escaped(budget.scope)}" if budget.scope and budget.per is Per.WORK else ""
    return f"{escaped(subject) or '-'}{within}"


def _held_row(work: Work) -> list[str]:
    return [work.id, escaped(work.scope), escaped(why_held(work))]
