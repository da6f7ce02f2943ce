"""`tenure submit`: hand in a binding of the configuration, or a command, and print the work's id.

Rule: design §12 (the id alone on its line).
"""

from __future__ import annotations

import argparse

from shared.commands.arguments import Parser, split_command
from shared.commands.open_home import opened
from shared.commands.request import add_request_options, hand_in, new_work
from shared.errors import IndeterminateError, UnsupportedError, UsageError
from shared.ids import is_work_id
from shared.model.work import NewWork

_EPILOG = """\
The command starts in the binding's folder if it names one, else in the folder of tenure.toml.
Look at the work with `tenure work show w41`, at its output with `tenure work logs w41`."""


def main(argv: list[str], *, home: str | None) -> int:
    """Hand a work in.

    Raises:
        UsageError: the command line is wrong; nothing was handed in.
        StoreBusyError: the store stayed busy; nothing was handed in.
        IndeterminateError: whether it was is unknown.
    """
    wanted = parse(argv)
    with opened(home) as door:
        try:
            print(door.store.write(lambda tx: hand_in(tx, wanted)))
        except IndeterminateError as error:
            error.hint = f"whether the work was accepted: {door.command('work list')}"
            raise
    return 0


def parse(argv: list[str]) -> NewWork:
    """The Work that a command line asks for.

    Raises:
        UsageError: it is wrong. UnsupportedError: it asks for what this version does not do.
    """
    own, command = split_command(argv)
    parser = Parser("tenure submit", "Hand in work and print its id, alone on its line.", _EPILOG)
    parser.usage = (
        "tenure submit [options] B [-- CMD [ARG …]]\n       tenure submit [options] -- CMD [ARG …]"
        "\n       tenure submit [options] --scope S      (the binding that the scope names)"
    )
    parser.add_argument("binding", nargs="?", metavar="B", help="a binding of tenure.toml; a command replaces its own")
    add_request_options(parser)
    for later in ("--key", "--correlate"):
        parser.add_argument(later, help=argparse.SUPPRESS)
    given = parser.parse(own)
    _refuse_later(given)
    if command is None and given.binding is None and given.scope is None:
        raise UsageError(
            "what is to be submitted? A binding or a command is missing", hint="tenure submit -- echo hello"
        )
    return new_work(given, command, binding=given.binding, cwd=None, via="submit")


def _refuse_later(given: argparse.Namespace) -> None:
    for option in ("key", "correlate"):
        if getattr(given, option) is not None:
            raise UnsupportedError(f"tenure submit --{option} is not supported in this version; nothing was submitted")
    if given.binding is not None and is_work_id(given.binding):
        message = f"{given.binding} is a work: handing further input to one is not supported in this version"
        raise UnsupportedError(
            f"{message}; nothing was submitted", hint="`tenure submit B` makes a new work of a binding"
        )
