"""`tenure gate`: what waits at a start gate, and a person's word on it.

The gate that a person speaks for is `approval`; another gate settles its holds itself. Rule: requirements G04, G05, V03.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared.commands.arguments import Parser, add_json, likely, reason_given, work_named
from shared.commands.json_views import Json, start_hold_view
from shared.commands.open_home import OpenHome, opened
from shared.commands.render import Ink, duration, escaped, print_json, quoted, table
from shared.errors import UnreadableError, UsageError
from shared.model.instant import Instant
from shared.model.settings import Config
from shared.model.work import Reason, Work
from shared.policy.binding import Unresolved, binding_of
from shared.policy.submission import key_fault
from shared.store.active import active_config
from shared.store.contract import ReadTx
from shared.store.values import GateVerdict

APPROVAL = "approval"
LISTED_MAX = 1_000

_HELP = """\
usage: tenure gate list      what waits at a gate, since when, and what it would run
       tenure gate admit W   let it start
       tenure gate refuse W  cancel it

`tenure gate VERB --help` says more."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A work at a gate.

    Attributes:
        binding: The one it would take; None: none, or it cannot be told now.
        command: What would run; None: that cannot be told now.
        input_bytes: Length of the first input it would get; None: it has none.
    """

    work: Work
    binding: str | None
    command: tuple[str, ...] | None
    input_bytes: int | None


def main(argv: list[str], *, home: str | None) -> int:
    """Dispatch to a verb.

    Raises:
        UsageError: there is no such verb. NotFoundError: no such work. RefusedError: this gate does not hold it.
    """
    verbs: dict[str, Callable[[list[str], str | None], int]] = {"list": _list, "admit": _admit, "refuse": _refuse}
    if not argv:
        raise UsageError("tenure gate: list, admit or refuse?", hint="`tenure gate --help` says what each does")
    verb, rest = argv[0], argv[1:]
    if verb in {"--help", "-h"}:
        print(_HELP)
        return 0
    if verb not in verbs:
        raise UsageError(
            f"tenure gate has no {verb!r}{likely(verb, list(verbs))}", hint="`tenure gate --help` lists them"
        )
    return verbs[verb](rest, home)


def read(tx: ReadTx, *, limit: int) -> list[Waiting]:
    """What waits at gates, by number."""
    config = active_config(tx).config
    return [_waiting(tx, work, config) for work in tx.held_for([Reason.GATE_HELD], limit=limit)]


def view(waiting: Waiting) -> Json:
    """For programs."""
    work = waiting.work
    hold = work.start_hold
    return {
        "work": work.id,
        "scope": work.scope,
        "kind": work.kind,
        "gate": None if hold is None else hold.by,
        "hold": None if hold is None else start_hold_view(hold),
        "binding": waiting.binding,
        "command": None if waiting.command is None else list(waiting.command),
        "input_bytes": waiting.input_bytes,
        "submitted_by": work.submitted_by,
    }


def _waiting(tx: ReadTx, work: Work, config: Config) -> Waiting:
    first = tx.pending_inputs(work.id, limit=1)
    body = tx.inputs(first)[0].body if first else None
    try:
        binding = binding_of(work, config)
    except UnreadableError:
        return Waiting(work, work.binding, work.command, None if body is None else len(body))
    if isinstance(binding, Unresolved):
        return Waiting(work, work.binding, work.command, None if body is None else len(body))
    return Waiting(work, binding.name or None, binding.command, None if body is None else len(body))


def _list(argv: list[str], home: str | None) -> int:
    parser = Parser("tenure gate list", "What waits at a start gate, since when, and what it would run.")
    add_json(parser)
    given = parser.parse(argv)
    with opened(home) as door:
        found, now = door.store.read(lambda tx: (read(tx, limit=LISTED_MAX), tx.now))
        if given.json:
            print_json({"items": [view(one) for one in found], "next": None})
        elif found:
            print("\n".join(_lines(found, now, door, Ink.of(os.environ))))
        else:
            print("nothing waits at a gate")
    return 0


def _lines(found: Sequence[Waiting], now: Instant, door: OpenHome, ink: Ink) -> list[str]:
    rows = [[ink.faint(head) for head in ("work", "gate", "for", "scope", "binding", "input", "what")]]
    for one in found:
        hold = one.work.start_hold
        since = "" if hold is None else duration(max(0, now.wall_us - hold.since_at_us))
        gate = "" if hold is None else escaped(hold.by)
        size = "" if one.input_bytes is None else f"{one.input_bytes} B"
        what = "?" if one.command is None else quoted(one.command)
        rows.append([one.work.id, gate, since, one.work.scope, one.binding or "", size, what])
    return [*table(rows), ink.faint(f"let one start: {door.command(f'gate admit {found[0].work.id}')}")]


def _admit(argv: list[str], home: str | None) -> int:
    parser = Parser(
        "tenure gate admit", "Let a work start that waits for approval; its first start asks no gate again."
    )
    return _settle(parser, argv, home, "admitted")


def _refuse(argv: list[str], home: str | None) -> int:
    parser = Parser("tenure gate refuse", "Cancel a work that waits for approval.")
    return _settle(parser, argv, home, "refused")


def _settle(parser: Parser, argv: list[str], home: str | None, verdict: GateVerdict) -> int:
    parser.add_argument("work", nargs="?", metavar="W", help="its id: w41")
    parser.add_argument("--reason", metavar="TEXT", help="kept in its history")
    parser.add_argument("--key", metavar="K", help="the same word under the same key counts once")
    add_json(parser)
    given = parser.parse(argv)
    work_id = work_named(given.work, parser.prog)
    fault = None if given.key is None else key_fault(given.key)
    if fault is not None:
        raise UsageError(f"--key {fault}")
    if verdict == "refused" or given.reason is not None:
        reason = reason_given(given.reason, parser.prog)
    else:
        reason = "approved"
    by = f"uid {os.getuid()} via {parser.prog.removeprefix('tenure ')}"
    with opened(home) as door:
        door.store.write(
            lambda tx: tx.settle_gate(work_id, holder=APPROVAL, verdict=verdict, by=by, reason=reason, key=given.key)
        )
        work = door.store.read(lambda tx: tx.work(work_id))
        assert work is not None, "it was just settled"
        if given.json:
            print_json(
                {"id": work.id, "state": work.state, "reason": work.reason, "verdict": verdict, "by": by, "why": reason}
            )
        else:
            print(f"{work.id} is {verdict} by gate {APPROVAL}: it is {work.state}")
    return 0
