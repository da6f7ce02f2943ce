"""`tenure work retry|hold|release`: a person's word on a work between its attempts.

Each is one fenced transition that says no by itself; a refusal changes nothing. Rule: requirements O11, O14, V03, V05.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from shared.commands.arguments import Parser, add_json, reason_or, work_named
from shared.commands.json_views import Json
from shared.commands.next_step import release_of_binding
from shared.commands.open_home import OpenHome, opened
from shared.commands.render import print_json
from shared.ids import WorkId
from shared.model.work import Work, WorkState
from shared.store.contract import ReadTx, Tx

REASON = "asked for on the command line"


@dataclass(frozen=True, slots=True)
class Seen:
    """A work after the word. `quarantined`: what it would run is in quarantine, by this binding; None: it is not."""

    work: Work
    quarantined: str | None


def retry(argv: list[str], home: str | None) -> int:
    """Try a failed or held work again.

    Raises:
        UsageError: the command line is wrong. NotFoundError: no such work. RefusedError: there is nothing to try again, or not now.
    """
    parser = Parser(
        "tenure work retry",
        "Try a work again that failed, is held because nothing was left to try, or waits for its next try.",
        "Its failures count anew; its attempts are numbered on. What a person holds is released instead.",
    )
    return _say(parser, argv, home, lambda tx, work_id, by, why: tx.retry_work(work_id, by=by, reason=why), _retried)


def hold(argv: list[str], home: str | None) -> int:
    """Keep a work from starting.

    Raises:
        UsageError: the command line is wrong. NotFoundError: no such work. RefusedError: it has ended, or is held already.
    """
    parser = Parser(
        "tenure work hold",
        "Keep a work from starting until it is released; one that runs is held once this attempt has ended.",
        "A retry that it waits for is given up: releasing it tries it again at once.",
    )
    return _say(parser, argv, home, lambda tx, work_id, by, why: tx.hold_work(work_id, by=by, reason=why), _held)


def release(argv: list[str], home: str | None) -> int:
    """Lift a person's hold, or a budget's for one turn.

    Raises:
        UsageError: the command line is wrong. NotFoundError: no such work. RefusedError: nobody holds it, or a gate does.
    """
    parser = Parser(
        "tenure work release",
        "Let a work start again that a person holds, or once more although a budget is used up.",
        "What a start gate holds is settled with `tenure gate`.",
    )
    return _say(parser, argv, home, lambda tx, work_id, by, why: tx.release_work(work_id, by=by, reason=why), _released)


def _say(
    parser: Parser,
    argv: list[str],
    home: str | None,
    transition: Callable[[Tx, WorkId, str, str], None],
    told: Callable[[Seen, OpenHome], str],
) -> int:
    parser.add_argument("work", nargs="?", metavar="W", help="its id: w41")
    parser.add_argument("--reason", default=REASON, metavar="TEXT", help="kept in its history")
    add_json(parser)
    given = parser.parse(argv)
    work_id = work_named(given.work, parser.prog)
    by = f"uid {os.getuid()} via {parser.prog.removeprefix('tenure ')}"
    reason = reason_or(given.reason, REASON)
    with opened(home) as door:
        door.store.write(lambda tx: transition(tx, work_id, by, reason))
        seen = door.store.read(lambda tx: _look(tx, work_id))
        if given.json:
            print_json(_view(seen, by, reason))
        else:
            print(told(seen, door))
    return 0


def _look(tx: ReadTx, work_id: WorkId) -> Seen:
    work = tx.work(work_id)
    assert work is not None, "it was just written"
    binding = work.binding if work.command is None else None
    return Seen(work, binding if binding in tx.quarantined() else None)


def _view(seen: Seen, by: str, reason: str) -> Json:
    work = seen.work
    return {
        "id": work.id,
        "state": work.state,
        "reason": work.reason,
        "failures_used": work.failures_used,
        "attempts_used": work.attempts_used,
        "quarantined": seen.quarantined,
        "by": by,
        "why": reason,
    }


def _retried(seen: Seen, door: OpenHome) -> str:
    return f"{seen.work.id} is ready: attempt {seen.work.attempts_used + 1} follows{_waits(seen, door)}"


def _held(seen: Seen, door: OpenHome) -> str:
    again = door.command(f"work release {seen.work.id}")
    if seen.work.state is WorkState.HELD:
        return f"{seen.work.id} is held; to let it go: {again}"
    return f"{seen.work.id} is {seen.work.state}, and held once that attempt has ended; to take that back: {again}"


def _released(seen: Seen, door: OpenHome) -> str:
    return f"{seen.work.id} is {seen.work.state}{_waits(seen, door)}"


def _waits(seen: Seen, door: OpenHome) -> str:
    if seen.quarantined is None or seen.work.state is not WorkState.READY:
        return ""
    again = door.command(release_of_binding(seen.quarantined))
    return f" once binding {seen.quarantined} is out of quarantine: {again}"
