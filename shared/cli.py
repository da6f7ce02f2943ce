"""The `tenure` command: a table of names, each imported only when it is called.

The hot commands (`run`, `submit`, `status`) pay for nothing they do not use: this file imports the standard library, the error
tree and the check of the rooms. A command is a plain callable in its own module; no room imports another room's.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn, Protocol, cast

from shared import rooms
from shared.errors import TenureError, UsageError

EXIT_INTERRUPTED = 130  # 128 + SIGINT, as a shell shows it
EXIT_PIPE_CLOSED = 141  # 128 + SIGPIPE: whoever read our output has left
MESSAGE_CHARS_MAX = 1_000


class Command(Protocol):
    """What the table points at."""

    def __call__(self, argv: list[str], *, home: str | None) -> int:
        """Run the command and return the exit code.

        Args:
            argv: What follows the command's name.
            home: The value of `--home`; None when it was not given.
        """


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the table.

    Attributes:
        target: `module:attribute` of a `Command`.
        summary: What it does, for the help.
    """

    target: str
    summary: str


COMMANDS: dict[str, dict[str, Entry]] = {
    "Start": {
        "init": Entry("shared.commands.configure:init", "write a first tenure.toml and the home"),
        "apply": Entry("shared.commands.configure:apply", "check a configuration and make it the active one"),
        "up": Entry("shared.up:main", "run a coordinator and workers on this host, in this terminal"),
        "coordinator": Entry("coordinator.bootstrap:command", "run a coordinator alone, for a service manager"),
        "worker": Entry("worker.bootstrap:command", "run a worker alone, for a service manager"),
    },
    "Work": {
        "run": Entry("shared.commands.run:main", "run a command and follow it: its output, its exit code"),
        "submit": Entry("shared.commands.submit:main", "hand in work and print its id"),
        "work": Entry("shared.commands.work:main", "list, show, logs, cancel, retry, hold, release, inject, interrupt"),
        "binding": Entry("shared.commands.binding:main", "how bindings do: list, release, quarantine"),
        "attempt": Entry("shared.commands.attempt:main", "show, reconcile, confirm-stopped, cancel"),
        "gate": Entry("shared.commands.gate:main", "list, admit, refuse"),
        "event": Entry("shared.commands.events:event", "publish what somebody may be waiting for"),
        "tool": Entry("shared.commands.tool:main", "inside a job: turns, waits, outcomes, usage, inputs"),
    },
    "Look": {
        "events": Entry("shared.commands.events:main", "what happened, in order"),
        "status": Entry("shared.commands.status:main", "who leads, which workers are there, what is under way"),
        "capacity": Entry("shared.commands.capacity:main", "limits of pools and scopes, and what uses them"),
        "budget": Entry("shared.commands.budget:main", "list: what is used of each budget"),
        "doctor": Entry("shared.commands.doctor:main", "what is wrong, and what to do about it"),
    },
    "Keep": {
        "store": Entry("shared.commands.store:main", "check, backup, adopt, migrate"),
        "drill": Entry("chaos.cli:main", "harm a tenure of its own on purpose, and check what is left"),
    },
}


@dataclass(frozen=True, slots=True)
class Call:
    """A command line, taken apart as far as the table needs it.

    Attributes:
        command: The command's name; None when none was given.
        argv: What follows it, untouched.
        home: The value of `--home`; None when it was not given.
        wants: `help` or `version` when that was asked for before the command; else None.
    """

    command: str | None
    argv: list[str]
    home: str | None = None
    wants: str | None = None


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; every error of ours becomes one line, or JSON with `--json`."""
    rooms.require_one_folder()
    words = sys.argv[1:] if argv is None else argv
    try:
        call = parse(words)
        code = _run(call)
        sys.stdout.flush()
    except TenureError as error:
        if "--debug" in _own_words(words):
            raise
        report(error, as_json="--json" in _own_words(words))
        return error.exit_code
    except BrokenPipeError:
        _drop_output()
        return EXIT_PIPE_CLOSED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


def parse(words: list[str]) -> Call:
    """Split the global options from the command.

    Raises:
        UsageError: an option before the command is unknown, or `--home` has no value.
    """
    home: str | None = None
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in {"--help", "-h", "--version"}:
            return Call(None, rest, home, "version" if option == "--version" else "help")
        if option.startswith("--home="):
            home = _home(option.removeprefix("--home="))
        elif option == "--home":
            home = _home(rest.pop(0) if rest else "")
        elif option not in {"--debug", "--json"}:  # wishes about errors, looked for when there is one
            raise UsageError(f"no option {option} before the command", hint="`tenure --help` lists the options")
    return Call(rest[0] if rest else None, rest[1:], home)


def load(name: str) -> Command:
    """Import the command's module and return the command.

    Raises:
        UsageError: no command has that name.
    """
    entry = next((group[name] for group in COMMANDS.values() if name in group), None)
    if entry is None:
        _refuse_name(name)
    module, _, attribute = entry.target.partition(":")
    return cast(Command, getattr(import_module(module), attribute))


def help_text() -> str:
    """Describe the command line: each command on one line, by what it is for."""
    lines = [
        "usage: tenure [--home DIR] [--debug] COMMAND …",
        "",
        "Runs jobs and agent turns on a host so that its own death costs nothing.",
    ]
    for group, entries in COMMANDS.items():
        lines += ["", group]
        lines += [f"  {name:<12} {entry.summary}" for name, entry in entries.items()]
    lines += [
        "",
        "Options",
        "  --home DIR   the home; else TENURE_HOME, else the nearest .tenure going up from here",
        "  --debug      show the traceback of an error",
        "  --version    print the version",
        "",
        "`tenure COMMAND --help` says more about one command.",
    ]
    return "\n".join(lines)


def report(error: TenureError, *, as_json: bool) -> None:
    """Print the error on standard error: one line and its hint, or one JSON object."""
    message = _shortened(str(error))
    if as_json:
        import json  # commands that need it have it; the others do not pay

        facts = {"code": error.code, "message": message, "hint": error.hint}
        print(json.dumps({"error": facts}, ensure_ascii=False), file=sys.stderr)
        return
    print(f"tenure: {message}", file=sys.stderr)
    if error.hint is not None:
        print(f"  {error.hint}", file=sys.stderr)


def _shortened(message: str) -> str:
    """Its beginning and its end, where somebody's word that it repeats makes it longer than a line may be."""
    if len(message) <= MESSAGE_CHARS_MAX:
        return message
    return f"{message[: MESSAGE_CHARS_MAX // 2]} … {message[-MESSAGE_CHARS_MAX // 4 :]}"


def _run(call: Call) -> int:
    if call.wants == "version":
        print(f"tenure {_version()}")
        return 0
    if call.wants == "help":
        print(help_text())
        return 0
    if call.command is None:
        print(help_text(), file=sys.stderr)
        return 2
    return load(call.command)(call.argv, home=call.home)


def _home(value: str) -> str:
    if not value:
        raise UsageError("--home needs a folder", hint="`tenure --home DIR COMMAND …`")
    return value


def _refuse_name(name: str) -> NoReturn:
    from difflib import get_close_matches  # only a typing mistake pays for it

    names = [known for group in COMMANDS.values() for known in group]
    near = get_close_matches(name, names, n=1)
    guess = f"; did you mean `{near[0]}`?" if near else ""
    raise UsageError(f"no command {name!r}{guess}", hint="`tenure --help` lists the commands")


def _own_words(words: list[str]) -> list[str]:
    """Return the words up to `--`: what follows belongs to the job's own command."""
    return words[: words.index("--")] if "--" in words else words


def _version() -> str:
    from importlib.metadata import version  # slow to import; nothing else needs it

    from shared import DISTRIBUTION

    return version(DISTRIBUTION)


def _drop_output() -> None:
    """Point standard output at nothing, so that the interpreter's own flush at exit stays quiet too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    raise SystemExit(main())
