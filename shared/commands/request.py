"""What `run` and `submit` have in common: the options of a new Work, their checks, and handing it in.

Everything is checked before anything is written. Environment and input given here are stored, in clear: never a secret.

Rule: design §12; issue "bad input gets one clear line, and nothing is created".
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.commands.arguments import Parser, likely, whole_number
from shared.errors import UsageError
from shared.ids import AttemptId, WorkId, is_attempt_id
from shared.model.settings import DEFAULT, is_binding_name, is_scope_name
from shared.model.work import NewWork
from shared.policy.binding import Unresolved, binding_of
from shared.store.contract import Tx

SCOPE_DEFAULT = "default"
INPUT_BYTES_MAX = 1024 * 1024
ARGUMENT_BYTES_MAX = 131_071
"""The kernel's MAX_ARG_STRLEN, 32 pages of 4 KiB, less the closing NUL."""
ARGUMENTS_BYTES_MAX = 6 * 1024 * 1024
"""What the kernel takes at most, however large the stack may grow."""
ENVIRONMENT_RESERVE = 32 * 1024  # the job's environment counts too: PATH, HOME, TENURE_… of the worker's start
PRIORITY_MAX = 1000

_POINTER_BYTES = 8
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN_PREFIX = "TENURE_"


def add_request_options(parser: Parser) -> None:
    """The options of a new Work."""
    parser.add_argument("--scope", metavar="S", help=f"where it belongs ({SCOPE_DEFAULT}); it may name a binding")
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="K=V",
        help="add to the job's environment; may be repeated; kept in the store in clear, so never a secret",
    )
    parser.add_argument(
        "--input",
        metavar="TEXT|@FILE|-",
        help="standard input of the job: this text, a file, or what comes in here; at most 1 MiB, kept in the store",
    )
    parser.add_argument(
        "--grant",
        action="append",
        default=[],
        metavar="NAME",
        help="take what its binding grants under this name; may be repeated",
    )
    parser.add_argument("--priority", default="0", metavar="N", help="higher starts first (0)")


def new_work(
    given: argparse.Namespace, command: Sequence[str] | None, *, binding: str | None, cwd: str | None, via: str
) -> NewWork:
    """The Work that a command line asks for. Reads the input, if there is one.

    Raises:
        UsageError: something in it cannot be.
    """
    scope = SCOPE_DEFAULT if given.scope is None else given.scope
    if not is_scope_name(scope):
        hint = "parts of letters, digits, `.`, `_`, `-`, joined by `/`: ops/backup"
        raise UsageError(f"--scope: {scope!r} is no name of a scope", hint=hint)
    for name in given.grant:
        if not is_binding_name(name):
            raise UsageError(f"--grant: {name!r} is no name of a grant", hint="one name; repeat the option for more")
    env = dict(environment_entry(text) for text in given.env)
    priority = whole_number(given.priority, "--priority", least=-PRIORITY_MAX, most=PRIORITY_MAX)
    words = None if command is None else checked_command(command, env)
    return NewWork(
        scope=scope,
        binding=binding,
        command=words,
        env=tuple(sorted(env.items())),
        cwd=cwd,
        input=None if given.input is None else input_bytes(given.input),
        submitted_by=f"uid {os.getuid()} via {via}",
        priority=priority,
        grants=tuple(sorted(set(given.grant))),
    )


def cause_of(home: Path, environ: Mapping[str, str]) -> AttemptId | None:
    """The attempt inside which a command is called, when that is one of this very home; None: somebody outside calls it."""
    name, told = environ.get("TENURE_ATTEMPT", ""), environ.get("TENURE_HOME", "")
    return AttemptId(name) if is_attempt_id(name) and told and Path(told).resolve() == home.resolve() else None


def hand_in(tx: Tx, work: NewWork, key: str | None = None, cause: AttemptId | None = None) -> WorkId:
    """Submit a Work, once it could start under the active configuration.

    Args:
        key: What was accepted under it before is answered with the same id, whatever the configuration says today.
        cause: See `cause_of`.

    Raises:
        UsageError: it names a binding or grant that is not there, or nothing at all is to be run.
        KeyReusedError: the key belongs to other content. ChainTooLongError: that attempt asks for a link too many.
        UnreadableError: the active configuration cannot be read.
    """
    if key is not None and tx.submission(key) is not None:
        return tx.submit(work, "", key=key)
    active = tx.config()
    config = DEFAULT if active is None else active.config()
    binding = binding_of(work, config)
    if isinstance(binding, Unresolved):
        raise UsageError(binding.message + likely(binding.word or "", binding.known), hint=_hint(binding))
    return tx.submit(work, binding.pool, key=key, cause=cause)


def _hint(unresolved: Unresolved) -> str | None:
    if unresolved.known:
        return f"there are: {', '.join(unresolved.known)}"
    return None if unresolved.word is None else "tenure.toml has none; `tenure apply` activates a changed one"


def environment_entry(text: str) -> tuple[str, str]:
    """One `K=V`.

    Raises:
        UsageError: it is none, or the name is one of tenure's own.
    """
    name, equals, value = text.partition("=")
    if not equals or _ENV_NAME.fullmatch(name) is None:
        raise UsageError(
            f"--env: {text!r} is not K=V", hint="a name of letters, digits and `_`, then =, then the value"
        )
    if name.startswith(_OWN_PREFIX):
        raise UsageError(f"--env: {name} is not yours to set: names in {_OWN_PREFIX}… are tenure's own")
    _check_word(text, f"--env {name}")
    return name, value


def checked_command(command: Sequence[str], env: dict[str, str]) -> tuple[str, ...]:
    """The command, once the kernel would take it.

    Raises:
        UsageError: it is empty, an argument holds NUL or is too long, or all together are.
    """
    if not command or not command[0]:
        raise UsageError("the command is missing", hint="put it behind --: tenure run -- echo hello")
    for place, word in enumerate(command):
        _check_word(word, "the command" if place == 0 else f"argument {place} of the command")
    words = [*command, *(f"{name}={value}" for name, value in env.items())]
    total = sum(len(os.fsencode(word)) + 1 + _POINTER_BYTES for word in words)
    most = arguments_bytes_max()
    if total > most:
        raise UsageError(
            f"the command is {total} bytes long with its environment, the kernel takes {most} here",
            hint="hand large data in by --input @file",
        )
    return tuple(command)


def arguments_bytes_max() -> int:
    """Bytes that arguments and environment may take together, with room for what the job's environment holds anyway."""
    return min(os.sysconf("SC_ARG_MAX"), ARGUMENTS_BYTES_MAX) - ENVIRONMENT_RESERVE


def input_bytes(text: str) -> bytes:
    """The input that `--input` names: `-` is standard input, `@file` a file, anything else itself.

    Raises:
        UsageError: the file cannot be read, or it is too large.
    """
    if text == "-":
        data = _read_standard_input()
    elif text.startswith("@"):
        data = _read_file(Path(text[1:]))
    else:
        data = os.fsencode(text)
    if len(data) > INPUT_BYTES_MAX:
        raise UsageError(
            f"--input: more than {INPUT_BYTES_MAX} bytes (1 MiB)", hint="put it in a file and pass the file's name"
        )
    return data


def _read_standard_input() -> bytes:
    try:
        return sys.stdin.buffer.read(INPUT_BYTES_MAX + 1)
    except (OSError, AttributeError) as error:  # closed when we were started
        raise UsageError("--input -: standard input cannot be read") from error


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(INPUT_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"--input: {str(path)!r} cannot be read: {reason}") from error


def _check_word(word: str, what: str) -> None:
    if "\0" in word:
        raise UsageError(f"{what} holds a NUL byte, which no program can be given")
    size = len(os.fsencode(word))
    if size > ARGUMENT_BYTES_MAX:
        raise UsageError(
            f"{what} is {size} bytes long, the kernel takes {ARGUMENT_BYTES_MAX}",
            hint="hand large data in by --input @file",
        )
