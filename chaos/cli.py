"""`tenure drill`: harm a tenure of its own on purpose, on this host, and say what is left.

A table of names; each drill is a module of `chaos/commands`, imported when it is called. Rule: design §9, §12.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from shared.commands.arguments import likely
from shared.errors import UsageError

DRILLS = {
    "matrix": ("chaos.commands.matrix", "a death, or a freeze, right before and right after each boundary"),
    "run": ("chaos.commands.run", "seeded load and seeded harm at random times"),
    "simulate": ("chaos.commands.simulate", "histories of seeds, on a virtual clock and a simulated host"),
    "report": ("chaos.commands.report", "one page out of the results of drills"),
}
"""Each command's module, which has a `main(argv) -> int`, and what it does."""


def main(argv: list[str], *, home: str | None) -> int:
    """Dispatch to a drill. `home` is not used: a drill never touches a home that is in use.

    Raises:
        UsageError: there is no such drill, or its command line is wrong.
    """
    del home
    if not argv:
        raise UsageError(f"tenure drill: {_names()}?", hint="`tenure drill --help` says what each does")
    name, rest = argv[0], argv[1:]
    if name in {"--help", "-h"}:
        print(help_text())
        return 0
    if name not in DRILLS:
        raise UsageError(
            f"tenure drill has no {name!r}{likely(name, list(DRILLS))}", hint="`tenure drill --help` lists them"
        )
    command = cast(Callable[[list[str]], int], import_module(DRILLS[name][0]).main)
    return command(rest)


def help_text() -> str:
    """Each drill on one line."""
    lines = [
        "usage: tenure drill NAME …",
        "",
        "Harms processes of a home made for it in a temporary folder, and checks what is left. No home in use is touched.",
        "",
    ]
    lines += [f"  {name:<10} {summary}" for name, (_, summary) in DRILLS.items()]
    lines += [
        "",
        "exit code: 0 nothing was found, 1 something was, 2 the command line is wrong, 130 interrupted",
        "`tenure drill NAME --help` says more about one.",
    ]
    return "\n".join(lines)


def _names() -> str:
    *first, last = DRILLS
    return f"{', '.join(first)} or {last}"
