"""`tenure work`: list, show, logs, cancel, retry, hold, release, inject, interrupt. One function each; `work_text` renders."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace

from shared.commands.arguments import Parser, add_json, likely, whole_number, work_named
from shared.commands.cancel import cancel
from shared.commands.control import hold, release, retry
from shared.commands.follow import Follower, Launches, look
from shared.commands.intent_text import intent_lines, intent_view
from shared.commands.json_views import ATTEMPTS_SHOWN, WorkFacts, last_attempts, work_facts, work_view
from shared.commands.open_home import OpenHome, opened
from shared.commands.output import Outputs, RawSink, SafeSink, Sink, say_dropped
from shared.commands.render import Ink, print_json
from shared.commands.speak import inject, interrupt
from shared.commands.work_list import list_works
from shared.commands.work_text import show_lines
from shared.errors import NotFoundError, UsageError
from shared.ids import WorkId
from shared.model.intent import Intent
from shared.model.work import Work
from shared.store.contract import ReadTx

DETACHED = 130
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
        "logs": _logs,
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


# --- show ------------------------------------------------------------------------------------------------------------


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
    return tx.work(work_id) or look(tx, work_id).work


# --- logs ------------------------------------------------------------------------------------------------------------


def _logs(argv: list[str], home: str | None) -> int:
    parser = Parser(
        "tenure work logs",
        "What a work wrote, byte by byte: its output to standard output, its errors to standard error.",
        "On a terminal, control characters are shown as escapes unless --raw is given.",
    )
    parser.add_argument("work", nargs="?", metavar="W", help="its id: w41")
    parser.add_argument("--attempt", metavar="N", help="only this attempt; else the last one that was launched")
    parser.add_argument("--stdout", action="store_true", help="only its standard output")
    parser.add_argument("--stderr", action="store_true", help="only its standard error, to standard output")
    parser.add_argument("--follow", action="store_true", help="go on until the work has ended; all its attempts")
    parser.add_argument("--raw", action="store_true", help="to a terminal too, byte by byte")
    given = parser.parse(argv)
    work_id = work_named(given.work, "tenure work logs")
    if given.stdout and given.stderr:
        raise UsageError("tenure work logs: --stdout or --stderr, or neither for both")
    number = None if given.attempt is None else whole_number(given.attempt, "--attempt", least=1, most=10**9)
    if given.stderr:
        sinks = [("err", _sink(1, raw=given.raw))]
    else:
        sinks = [("out", _sink(1, raw=given.raw))]
        sinks += [] if given.stdout else [("err", _sink(2, raw=given.raw))]
    with opened(home) as door:
        return _copy(door, work_id, sinks, number=number, follow=given.follow)


def _copy(door: OpenHome, work_id: WorkId, sinks: list[tuple[str, Sink]], *, number: int | None, follow: bool) -> int:
    seen = door.store.read(lambda tx: look(tx, work_id))
    chosen = seen.chosen(number)
    if number is not None and not chosen:
        raise NotFoundError(f"{work_id} has no attempt {number}", hint=f"`{door.command(f'work show {work_id}')}`")
    outputs = Outputs(door.place.attempts, sinks, say_dropped)
    try:
        if not follow:
            launches = Launches(door.place.attempts)
            outputs.point_at(next((names for each in reversed(chosen) if (names := launches.of([each]))), []))
            outputs.drain()
            return 0
        end = Follower(door, work_id, outputs, _say, number=number).run()
    except KeyboardInterrupt:
        return DETACHED
    finally:
        outputs.close()
    if end.line is not None:
        _say(end.line, None)
    return 0


def _sink(fd: int, *, raw: bool) -> Sink:
    return RawSink(fd) if raw or not os.isatty(fd) else SafeSink(fd)


def _say(line: str, advice: str | None) -> None:
    print(f"tenure: {line}", file=sys.stderr)
    if advice is not None:
        print(f"  {advice}", file=sys.stderr, flush=True)


def _cancel(argv: list[str], home: str | None) -> int:
    return cancel(argv, home, prog="tenure work cancel")
