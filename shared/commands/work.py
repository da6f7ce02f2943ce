"""`tenure work`: list, show, logs, cancel, retry, hold, release, inject, interrupt. One function each; `work_text` renders."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from shared.commands.arguments import Parser, add_json, likely, whole_number, work_named
from shared.commands.cancel import cancel
from shared.commands.control import hold, release, retry
from shared.commands.follow import outline
from shared.commands.intent_text import intent_lines, intent_view
from shared.commands.open_home import opened
from shared.commands.render import Ink, print_json
from shared.commands.speak import inject, interrupt
from shared.commands.work_facts import ATTEMPTS_SHOWN, WorkFacts, last_attempts, work_facts, work_view
from shared.commands.work_list import list_works
from shared.commands.work_logs import logs
from shared.commands.work_text import show_lines
from shared.errors import UsageError
from shared.ids import WorkId
from shared.model.intent import Intent
from shared.model.work import Work
from shared.store.contract import ReadTx

ATTEMPTS_MAX = 1_000
NUMBER_MAX = 10**9

_HELP = """\
usage: tenure work list     what there is
       tenure work show W   one work, its attempts and who held them
       tenure work logs W   what it wrote
       tenure work cancel W end it, or w41.2: one attempt of it
       tenure work retry W  try it again: it failed, is held with nothing left to try, or waits for its next try
       tenure work hold W   keep it from starting; tenure work release W lets it go
       tenure work inject W hand it a further input, to the attempt that runs if there is one
       tenure work interrupt W  end the attempt that runs; the next one follows

`tenure work VERB --help` says more."""


def main(argv: list[str], *, home: str | None) -> int:
    """Dispatch to a verb.

    Raises:
        UsageError: there is no such verb. NotFoundError: no such work.
    """
    verbs: dict[str, Callable[[list[str], str | None], int]] = {
        "list": list_works,
        "show": _show,
        "logs": logs,
        "cancel": _cancel,
        "retry": retry,
        "hold": hold,
        "release": release,
        "inject": inject,
        "interrupt": interrupt,
    }
    if not argv:
        raise UsageError(
            "tenure work: list, show, logs, cancel, retry, hold, release, inject or interrupt?",
            hint="`tenure work --help` says what each does",
        )
    verb, rest = argv[0], argv[1:]
    if verb in {"--help", "-h"}:
        print(_HELP)
        return 0
    if verb not in verbs:
        raise UsageError(
            f"tenure work has no {verb!r}{likely(verb, list(verbs))}", hint="`tenure work --help` lists them"
        )
    return verbs[verb](rest, home)


def _show(argv: list[str], home: str | None) -> int:
    parser = Parser("tenure work show", "One work: its state, why it waits, each attempt and who held it.")
    parser.add_argument("work", nargs="?", metavar="W", help="its id: w41")
    parser.add_argument("--attempts", default=str(ATTEMPTS_SHOWN), metavar="N", help=f"the last N ({ATTEMPTS_SHOWN})")
    parser.add_argument(
        "--before", metavar="NUMBER", help="of those before this attempt: `next` of what was shown last"
    )
    add_json(parser)
    given = parser.parse(argv)
    work_id = work_named(given.work, "tenure work show")
    limit = whole_number(given.attempts, "--attempts", least=1, most=ATTEMPTS_MAX)
    before = None if given.before is None else whole_number(given.before, "--before", least=1, most=NUMBER_MAX)

    def read(tx: ReadTx) -> tuple[WorkFacts, WorkFacts, list[Intent]]:
        facts = work_facts(tx, [_known(tx, work_id)])[0]
        attempts, earlier = last_attempts(tx, work_id, before, limit)
        return facts, replace(facts, attempts=attempts, earlier=earlier), tx.intents(work_id)

    with opened(home) as door:
        facts, shown, intents = door.store.read(read)
        if given.json:
            print_json(work_view(shown) | {"intents": [intent_view(each) for each in intents]})
        else:
            print("\n".join(show_lines(facts, door, Ink.of(os.environ), shown=shown) + intent_lines(intents)))
    return 0


def _known(tx: ReadTx, work_id: WorkId) -> Work:
    """The Work, all of it. Raises NotFoundError, UnreadableError."""
    return tx.work(work_id) or outline(tx, work_id)


def _cancel(argv: list[str], home: str | None) -> int:
    return cancel(argv, home, prog="tenure work cancel")
