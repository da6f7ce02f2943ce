"""`tenure submit`: hand in a binding of the configuration, or a command, and print the work's id.

Rule: design §12 (the id alone on its line).
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, replace

from shared.commands.arguments import Parser, add_json, split_command
from shared.commands.json_views import Json
from shared.commands.open_home import opened
from shared.commands.render import print_json
from shared.commands.request import add_request_options, cause_of, hand_in, input_bytes, new_work
from shared.errors import IndeterminateError, UsageError
from shared.ids import AttemptId, WorkId, is_work_id
from shared.model.event import KEYS_MAX, word_fault
from shared.model.settings import Binding
from shared.model.work import NewWork, WorkKind
from shared.policy.binding import binding_of
from shared.policy.submission import key_fault
from shared.store.contract import Tx

_EPILOG = """\
With --json the answer also names the input that was accepted with it, and says whether its --key was known already.
The command starts in the binding's folder if it names one, else in the folder of tenure.toml.
Look at the work with `tenure work show w41`, at its output with `tenure work logs w41`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a command line asks for.

    Attributes:
        work: A new Work; None: `body` is a further input of `work_id`.
        kind_given: It says of which kind the Work is; else its binding does.
        as_json: The answer is wanted as an object.
    """

    work: NewWork | None = None
    work_id: WorkId | None = None
    body: bytes = b""
    key: str | None = None
    kind_given: bool = False
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """What came of it.

    Attributes:
        input: Number of the input that was accepted with it; None: it is a standing Work that came without one.
        is_known: It had been accepted under its key before; nothing was written now.
    """

    work_id: WorkId
    input: int | None
    is_known: bool


def main(argv: list[str], *, home: str | None) -> int:
    """Hand a work in.

    Raises:
        UsageError: the command line is wrong; nothing was handed in.
        StoreBusyError: the store stayed busy; nothing was handed in.
        IndeterminateError: whether it was is unknown.
    """
    wanted = parse(argv)
    by = f"uid {os.getuid()} via submit"
    with opened(home) as door:
        cause = cause_of(door.place.path, os.environ)
        try:
            accepted = door.store.write(lambda tx: _accept(tx, wanted, by, cause))
        except IndeterminateError as error:
            told = "again under the same --key is safe" if wanted.key is not None else door.command("work list")
            error.hint = f"whether it was accepted: {told}"
            raise
    if wanted.as_json:
        print_json(_view(accepted, wanted.key))
    else:
        print(accepted.work_id)
    return 0


def _accept(tx: Tx, wanted: Wanted, by: str, cause: AttemptId | None) -> Accepted:
    """Hand in a further input, or a new Work; of which kind, the command line says, else its binding."""
    known = None if wanted.key is None else tx.submission(wanted.key)
    if wanted.work_id is not None:
        number = tx.add_input(wanted.work_id, wanted.body, by=by, key=wanted.key, cause=cause)
        return Accepted(wanted.work_id, number, known is not None)
    work = wanted.work
    assert work is not None, "either a Work or an input"
    if not wanted.kind_given:
        work = replace(work, kind=_kind_of_binding(tx, work))
    work_id = hand_in(tx, work, wanted.key, cause)
    if known is not None:
        return Accepted(work_id, known.input, is_known=True)
    first = tx.pending_inputs(work_id, limit=1)
    return Accepted(work_id, first[0] if first else None, is_known=False)


def _view(accepted: Accepted, key: str | None) -> Json:
    return {"id": accepted.work_id, "input": accepted.input, "key": key, "known": accepted.is_known}


def _kind_of_binding(tx: Tx, work: NewWork) -> WorkKind:
    active = tx.config()
    binding = None if active is None else binding_of(work, active.config())
    return binding.kind if isinstance(binding, Binding) else WorkKind.RUN_ONCE


def parse(argv: list[str]) -> Wanted:
    """What a command line asks for: a new Work, or a further input of one.

    Raises:
        UsageError: it is wrong. UnsupportedError: it asks for what this version does not do.
    """
    own, command = split_command(argv)
    parser = Parser("tenure submit", "Hand in work and print its id, alone on its line.", _EPILOG)
    parser.usage = (
        "tenure submit [options] B [-- CMD [ARG …]]\n       tenure submit [options] -- CMD [ARG …]"
        "\n       tenure submit [options] --scope S      (the binding that the scope names)"
        "\n       tenure submit w41 --input TEXT|@FILE|- (a further input of a standing work)"
    )
    parser.add_argument("binding", nargs="?", metavar="B", help="a binding of tenure.toml; a command replaces its own")
    add_request_options(parser)
    parser.add_argument(
        "--kind",
        choices=[kind.value for kind in WorkKind],
        metavar="K",
        help="run_once, or standing: it rests until an input",
    )
    parser.add_argument(
        "--key", metavar="K", help="hand the same in under the same key as often as you like: it is accepted once"
    )
    parser.add_argument(
        "--correlate", action="append", default=[], metavar="K", help="a key for events of its turns; may be repeated"
    )
    add_json(parser)
    given = parser.parse(own)
    _check_correlation(given.correlate)
    fault = None if given.key is None else key_fault(given.key)
    if fault is not None:
        raise UsageError(f"--key {fault}")
    if given.binding is not None and is_work_id(given.binding):
        return _further_input(given, command)
    if command is None and given.binding is None and given.scope is None:
        raise UsageError(
            "what is to be submitted? A binding or a command is missing", hint="tenure submit -- echo hello"
        )
    work = new_work(given, command, binding=given.binding, cwd=None, via="submit")
    work = replace(work, correlate=tuple(sorted(set(given.correlate))))
    if given.kind is not None:
        work = replace(work, kind=WorkKind(given.kind))
    return Wanted(work=work, key=given.key, kind_given=given.kind is not None, as_json=given.json)


def _check_correlation(keys: list[str]) -> None:
    if len(keys) > KEYS_MAX:
        raise UsageError(f"--correlate is given {len(keys)} times, {KEYS_MAX} are allowed")
    for fault in map(word_fault, keys):
        if fault is not None:
            raise UsageError(f"--correlate {fault}")


def _further_input(given: argparse.Namespace, command: list[str] | None) -> Wanted:
    """An input for a Work that is there: nothing else of it can be said anew.

    Raises:
        UsageError: something else is said, or no input.
    """
    options = ("scope", "env", "grant", "kind", "correlate")
    said = [f"--{name}" for name in options if getattr(given, name)] + (["a command"] if command is not None else [])
    if said:
        raise UsageError(
            f"{given.binding} is a work: {said[0]} is its own matter", hint="only --input and --key go with one"
        )
    if given.input is None:
        hint = f"tenure submit {given.binding} --input TEXT"
        raise UsageError(f"{given.binding} is a work: which input is it to get?", hint=hint)
    body = input_bytes(given.input)
    return Wanted(work_id=WorkId(given.binding), body=body, key=given.key, as_json=given.json)
