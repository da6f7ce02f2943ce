"""`tenure attempt`: show, reconcile, confirm-stopped, cancel."""

from __future__ import annotations

import os
from collections.abc import Callable

from shared.commands.arguments import Parser, add_json, attempt_named, likely
from shared.commands.attempt_story import read_story, story_view
from shared.commands.attempt_text import advice_lines, story_lines
from shared.commands.cancel import cancel
from shared.commands.confirm import confirm_stopped
from shared.commands.open_home import opened
from shared.commands.reconcile import reconcile
from shared.commands.render import Ink, print_json
from shared.errors import UsageError

_HELP = """\
usage: tenure attempt show A            all that is known about one attempt: who held it, how it began and ended, which proof
       tenure attempt reconcile A       what became of it is unknown: look at the evidence, then settle it
       tenure attempt confirm-stopped A its stop cannot be proven: free its slot on your word
       tenure attempt cancel A          end this attempt, and nothing else

`tenure attempt VERB --help` says more."""


def main(argv: list[str], *, home: str | None) -> int:
    """Dispatch to a verb.

    Raises:
        UsageError: there is no such verb. NotFoundError: no such attempt.
    """
    verbs: dict[str, Callable[[list[str], str | None], int]] = {
        "show": _show,
        "reconcile": reconcile,
        "confirm-stopped": confirm_stopped,
        "cancel": _cancel,
    }
    if not argv:
        raise UsageError(
            "tenure attempt: show, reconcile, confirm-stopped or cancel?",
            hint="`tenure attempt --help` says what each does",
        )
    verb, rest = argv[0], argv[1:]
    if verb in {"--help", "-h"}:
        print(_HELP)
        return 0
    if verb not in verbs:
        raise UsageError(
            f"tenure attempt has no {verb!r}{likely(verb, list(verbs))}", hint="`tenure attempt --help` lists them"
        )
    return verbs[verb](rest, home)


def _show(argv: list[str], home: str | None) -> int:
    parser = Parser(
        "tenure attempt show",
        "One attempt: its segments and launch phases, what it pinned, its stop and the proof, its events.",
        "Values given with --env are shown as they are stored; of secrets only where they are read from is known.",
    )
    parser.add_argument("attempt", nargs="?", metavar="A", help="its id: w41.2")
    add_json(parser)
    given = parser.parse(argv)
    attempt_id = attempt_named(given.attempt, "tenure attempt show")
    with opened(home) as door:
        story = door.store.read(lambda tx: read_story(tx, attempt_id))
        if given.json:
            print_json(story_view(story))
        else:
            print("\n".join([*story_lines(story, Ink.of(os.environ)), *advice_lines(story, door)]))
    return 0


def _cancel(argv: list[str], home: str | None) -> int:
    return cancel(argv, home, prog="tenure attempt cancel")
