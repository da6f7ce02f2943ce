"""`tenure work list`: works by state, reason, scope and binding, a page at a time.

A page is cut at so many works shown, or at so many numbers looked at: with a filter that few pass, a page may hold little and still
go on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from shared.commands.arguments import Parser, add_json, likely, whole_number
from shared.commands.json_views import Json, unreadable_view
from shared.commands.open_home import opened
from shared.commands.render import Ink, escaped, print_json, table
from shared.commands.work_facts import work_facts, work_view
from shared.commands.work_text import list_rows
from shared.errors import UsageError
from shared.model.work import Reason, Work, WorkState
from shared.store.contract import ReadTx, UnreadableRow

LIMIT = 50
LIMIT_MAX = 1_000
CURSOR_MAX = 10**18
LOOKED_AT_MAX = 500_000
"""A filter is applied where the works lie, so that one it leaves out costs a look: so many of them less than a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a list is to show; nothing given: all.

    Attributes:
        scope: It and those below it.
    """

    states: tuple[WorkState, ...]
    reasons: frozenset[Reason]
    scope: str | None
    binding: str | None

    @property
    def is_filter(self) -> bool:
        """Works of a wanted state may still not be wanted."""
        return bool(self.reasons or self.scope is not None or self.binding is not None)


def list_works(argv: list[str], home: str | None) -> int:
    """Print a page of works.

    Raises:
        UsageError: the command line is wrong.
    """
    parser = Parser("tenure work list", "Works, oldest first.")
    states, reasons = ", ".join(WorkState), ", ".join(Reason)
    parser.add_argument("--state", action="append", default=[], metavar="S", help=f"only these; may repeat: {states}")
    parser.add_argument("--reason", action="append", default=[], metavar="R", help=f"only these; may repeat: {reasons}")
    parser.add_argument("--scope", metavar="S", help="only in this scope, or below it")
    parser.add_argument("--binding", metavar="B", help="only those that name this binding")
    parser.add_argument(
        "--limit", default=str(LIMIT), metavar="N", help=f"at most so many ({LIMIT}, up to {LIMIT_MAX})"
    )
    parser.add_argument("--after", default="0", metavar="CURSOR", help="go on behind this one: `next` of the last list")
    add_json(parser)
    given = parser.parse(argv)
    wanted = Wanted(
        states=tuple(_state(text) for text in given.state),
        reasons=frozenset(_reason(text) for text in given.reason),
        scope=given.scope,
        binding=given.binding,
    )
    limit = whole_number(given.limit, "--limit", least=1, most=LIMIT_MAX)
    after = whole_number(given.after.removeprefix("w"), "--after", least=0, most=CURSOR_MAX)

    with opened(home) as door:
        found, cursor, skipped = door.store.read(lambda tx: (*page(tx, wanted, after, limit), _skipped(tx)))
        if given.json:
            unreadable = [unreadable_view(row) for row in skipped]
            print_json({"items": found, "next": cursor, "unreadable": unreadable})
            return 0
        if found:
            print("\n".join(table(list_rows(found, Ink.of(os.environ)))))
        if skipped:
            print("\n".join(table([[escaped(row.key), "unreadable", f"column {row.error}"] for row in skipped])))
        elif not found and cursor is None:
            none_yet = not (wanted.states or wanted.is_filter or after)
            print(f"no work yet; {door.command('run -- echo hello')} makes some" if none_yet else "no such work")
        if cursor is not None:
            print(f"more: {door.command(f'work list --after {cursor}')}")
    return 0


def page(tx: ReadTx, wanted: Wanted, after: int, limit: int) -> tuple[list[Json], int | None]:
    """Works behind `after`, and the cursor to go on from; None at the end."""
    to = after + LOOKED_AT_MAX if wanted.is_filter else None
    works = tx.works(
        states=wanted.states,
        after=after,
        limit=limit + 1,
        to=to,
        reasons=wanted.reasons,
        scope=wanted.scope,
        binding=wanted.binding,
    )
    if len(works) > limit:
        return _views(tx, works[:limit]), works[limit - 1].number
    goes_on = to is not None and to < tx.last_work_number()
    return _views(tx, works), to if goes_on else None


def _skipped(tx: ReadTx) -> list[UnreadableRow]:
    """Works on the page that cannot be read, whatever their state."""
    return [row for row in tx.skipped if row.table == "work"]


def _views(tx: ReadTx, works: list[Work]) -> list[Json]:
    return [work_view(facts) for facts in work_facts(tx, works)]


def _state(text: str) -> WorkState:
    try:
        return WorkState(text)
    except ValueError:
        guess = likely(text, list(WorkState))
        raise UsageError(f"--state: no work is ever {text!r}{guess}", hint=f"states: {', '.join(WorkState)}") from None


def _reason(text: str) -> Reason:
    try:
        return Reason(text)
    except ValueError:
        guess = likely(text, list(Reason))
        raise UsageError(f"--reason: nothing waits for {text!r}{guess}", hint=f"reasons: {', '.join(Reason)}") from None
