"""`tenure binding`: how bindings do, and their quarantine.

A binding whose works keep failing is quarantined: work that runs what it says waits until a person releases it. Work that brings its
own command is neither counted nor held back. Rule: requirements F03, V03.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from shared.commands.arguments import Parser, add_json, likely, reason_given
from shared.commands.json_views import Json, routine_view
from shared.commands.next_step import release_of_binding
from shared.commands.open_home import OpenHome, opened
from shared.commands.render import Ink, escaped, moment, print_json, table
from shared.errors import NotFoundError, UsageError
from shared.model.settings import is_binding_name
from shared.store.contract import ReadTx, Routine

LISTED_MAX = 1_000

_HELP = """\
usage: tenure binding list          every binding, how its works did lately, and which are in quarantine
       tenure binding release B     let its works start again
       tenure binding quarantine B  let none of its works start

`tenure binding VERB --help` says more."""


def main(argv: list[str], *, home: str | None) -> int:
    """Dispatch to a verb.

    Raises:
        UsageError: there is no such verb. NotFoundError: no such binding.
    """
    verbs: dict[str, Callable[[list[str], str | None], int]] = {
        "list": _list,
        "release": _release,
        "quarantine": _quarantine,
    }
    if not argv:
        raise UsageError(
            "tenure binding: list, release or quarantine?", hint="`tenure binding --help` says what each does"
        )
    verb, rest = argv[0], argv[1:]
    if verb in {"--help", "-h"}:
        print(_HELP)
        return 0
    if verb not in verbs:
        raise UsageError(
            f"tenure binding has no {verb!r}{likely(verb, list(verbs))}", hint="`tenure binding --help` lists them"
        )
    return verbs[verb](rest, home)


def _list(argv: list[str], home: str | None) -> int:
    parser = Parser("tenure binding list", "Every binding of the active configuration, and those that failed lately.")
    add_json(parser)
    given = parser.parse(argv)
    with opened(home) as door:
        found = door.store.read(_read)
        if given.json:
            print_json({"items": [routine_view(one) for one in found], "next": None})
        elif found:
            print("\n".join(table(_rows(found, Ink.of(os.environ)))))
        else:
            print("no bindings")
    return 0


def _read(tx: ReadTx) -> list[Routine]:
    """All of them, by name; one that nothing is told of has done well."""
    told = {routine.binding: routine for routine in tx.routines(limit=LISTED_MAX)}
    return [told.get(name) or _untold(name) for name in sorted(_names(tx) | set(told))]


def _untold(name: str) -> Routine:
    return Routine(name, 0, None, None, None, None, None)


def _names(tx: ReadTx) -> set[str]:
    active = tx.config()
    return set() if active is None else {binding.name for binding in active.config().bindings}


def _rows(found: Sequence[Routine], ink: Ink) -> list[list[str]]:
    rows = [[ink.faint(head) for head in ("binding", "state", "failed in a row", "last", "why")]]
    for one in found:
        state = "quarantined" if one.quarantined_at_us is not None else "ok"
        last = "" if one.failed_at_us is None else f"{one.work_id}, {moment(one.failed_at_us)}"
        why = "" if one.reason is None else escaped(f"{one.reason} ({one.quarantined_by})")
        rows.append([one.binding, ink.state(state), str(one.failures), last, why])
    return rows


def _release(argv: list[str], home: str | None) -> int:
    parser = Parser("tenure binding release", "Let works of a binding start again that is in quarantine.")
    name, reason, by, as_json = _given(parser, argv)
    with opened(home) as door:
        door.store.write(lambda tx: tx.release_binding(name, by=by, reason=reason))
        if as_json:
            _print_settled(door, name, by, reason)
            return 0
    print(f"binding {name} is released; its works start again, and its failures count anew")
    return 0


def _quarantine(argv: list[str], home: str | None) -> int:
    parser = Parser("tenure binding quarantine", "Let no work of a binding start until it is released.")
    name, reason, by, as_json = _given(parser, argv)
    with opened(home) as door:
        known = door.store.read(_names)
        if name not in known:
            hint = f"there are: {', '.join(sorted(known))}" if known else "tenure.toml has none"
            raise NotFoundError(f"no binding {name!r}{likely(name, sorted(known))}", hint=hint)
        door.store.write(lambda tx: tx.quarantine_binding(name, by=by, reason=reason))
        if as_json:
            _print_settled(door, name, by, reason)
            return 0
        again = door.command(release_of_binding(name))
    print(f"binding {name} is quarantined: what runs of it goes on, nothing of it starts; to lift that: {again}")
    return 0


def _print_settled(door: OpenHome, name: str, by: str, reason: str) -> None:
    """How the binding stands, and whose word that is."""
    found = {one.binding: one for one in door.store.read(_read)}.get(name) or _untold(name)
    print_json(routine_view(found) | {"by": by, "why": reason})


def _given(parser: Parser, argv: list[str]) -> tuple[str, str, str, bool]:
    parser.add_argument("binding", nargs="?", metavar="B", help="its name in tenure.toml")
    parser.add_argument("--reason", metavar="TEXT", help="why; kept in the history")
    add_json(parser)
    given = parser.parse(argv)
    if given.binding is None:
        raise UsageError(f"{parser.prog}: which binding?", hint="`tenure binding list` shows them")
    if not is_binding_name(given.binding):
        raise UsageError(f"{parser.prog}: {given.binding!r} is no name of a binding")
    reason = reason_given(given.reason, parser.prog)
    return given.binding, reason, f"uid {os.getuid()} via {parser.prog[7:]}", given.json


def view_of(routines: Sequence[Routine]) -> list[Json]:
    """Those in quarantine, for programs."""
    return [routine_view(one) for one in routines if one.quarantined_at_us is not None]
