"""`tenure work inject|interrupt`: a word to the attempt that runs, kept as an intent whose fate can be asked for.

Rule: requirements T01–T04, V03, V05.
"""

from __future__ import annotations

import os

from shared.commands.arguments import Parser, add_json, reason_or, work_named
from shared.commands.control import REASON
from shared.commands.intent_text import fate_text, intent_view
from shared.commands.open_home import opened
from shared.commands.render import print_json
from shared.commands.request import cause_of, input_bytes
from shared.errors import IndeterminateError, UsageError
from shared.policy.submission import key_fault


def inject(argv: list[str], home: str | None) -> int:
    """Hand a further input to a work, now if something of it runs that takes it, else to its next attempt.

    Raises:
        UsageError: the command line is wrong. NotFoundError: no such work. RefusedError: it has ended. KeyReusedError: the key
            was used for something else. ChainTooLongError: an attempt asks for a link too many. IndeterminateError: whether it was accepted is unknown.
    """
    parser = Parser(
        "tenure work inject",
        "Hand an input to a work: to the attempt that runs, or else to the next one. Prints the name of the intent.",
        "What became of it is in `tenure work show W`: accepted is not consumed yet; what no attempt took waits for the next.",
    )
    parser.add_argument("work", nargs="?", metavar="W", help="its id: w41")
    parser.add_argument(
        "--input", metavar="TEXT|@FILE|-", help="this text, a file, or what comes in here; at most 1 MiB"
    )
    parser.add_argument("--key", metavar="K", help="the same under the same key is accepted once")
    add_json(parser)
    given = parser.parse(argv)
    work_id = work_named(given.work, parser.prog)
    if given.input is None:
        raise UsageError(f"{parser.prog}: which input?", hint=f"{parser.prog} {work_id} --input TEXT")
    fault = None if given.key is None else key_fault(given.key)
    if fault is not None:
        raise UsageError(f"--key {fault}")
    body, by = input_bytes(given.input), f"uid {os.getuid()} via work inject"
    with opened(home) as door:
        cause = cause_of(door.place.path, os.environ)
        try:
            intent = door.store.write(lambda tx: tx.inject(work_id, body, by=by, key=given.key, cause=cause))
        except IndeterminateError as error:
            told = (
                "again under the same --key is safe" if given.key is not None else door.command(f"work show {work_id}")
            )
            error.hint = f"whether it was accepted: {told}"
            raise
        if given.json:
            print_json(intent_view(intent))
        else:
            print(intent.id)
    return 0


def interrupt(argv: list[str], home: str | None) -> int:
    """End the attempt that runs and leave its work ready; its inputs wait for the next attempt.

    Raises:
        UsageError: the command line is wrong. NotFoundError: no such work. RefusedError: nothing of it runs, or it has ended.
    """
    parser = Parser(
        "tenure work interrupt",
        "End the attempt that runs, and let the next one begin once the stop is proven. No input is lost.",
        "To end the work itself: `tenure work cancel`.",
    )
    parser.add_argument("work", nargs="?", metavar="W", help="its id: w41")
    parser.add_argument("--reason", default=REASON, metavar="TEXT", help="kept in its history")
    add_json(parser)
    given = parser.parse(argv)
    work_id = work_named(given.work, parser.prog)
    by = f"uid {os.getuid()} via work interrupt"
    reason = reason_or(given.reason, REASON)
    with opened(home) as door:
        intent = door.store.write(lambda tx: tx.interrupt(work_id, by=by, reason=reason))
        work = door.store.read(lambda tx: tx.work_outline(work_id))
        assert work is not None, "it was just written"
        if given.json:
            print_json(intent_view(intent) | {"state": work.state})
        else:
            print(f"{intent.attempt_id} is interrupted, and {work_id} {work.state}; {fate_text(intent)}")
    return 0
