"""`tenure store`: check, backup, adopt, migrate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shared.clock import SystemClock
from shared.commands.arguments import Parser, add_json, likely
from shared.commands.open_home import OpenHome, opened, place_of_home, working_folder
from shared.commands.render import counted, escaped, iso, print_json
from shared.errors import StoreUnavailableError, UnsupportedError, UsageError
from shared.home import Home

UNUSABLE = StoreUnavailableError.exit_code
PROBLEMS = 1
BACKUPS = "backups"

_LATER = ("retain",)
_DAMAGED = ("integrity:", "schema:")
_CHECKED_ANYWAY = {"corrupt", "home_moved"}  # whoever refuses a store like this wants to know all that is wrong with it
_HELP = """\
usage: tenure store check           look at every page, reference and rule of the store
       tenure store backup [TARGET] write a whole, checked copy to a new file
       tenure store adopt           take over a store that was copied, restored or moved here
       tenure store migrate         bring a store of an earlier version up to date

`tenure store VERB --help` says more."""


def main(argv: list[str], *, home: str | None) -> int:
    """Dispatch to a verb.

    Raises:
        UsageError: there is no such verb. UnsupportedError: not in this version.
        StoreUnavailableError: the store cannot be looked at.
    """
    verbs: dict[str, Callable[[list[str], str | None], int]] = {
        "check": _check,
        "backup": _backup,
        "adopt": _adopt,
        "migrate": _migrate,
    }
    if not argv:
        raise UsageError(
            "tenure store: check, backup, adopt or migrate?", hint="`tenure store --help` says what each does"
        )
    verb, rest = argv[0], argv[1:]
    if verb in {"--help", "-h"}:
        print(_HELP)
        return 0
    if verb in _LATER:
        raise UnsupportedError(f"`tenure store {verb}` is not supported in this version")
    if verb not in verbs:
        raise UsageError(
            f"tenure store has no {verb!r}{likely(verb, list(verbs))}", hint="`tenure store --help` lists them"
        )
    return verbs[verb](rest, home)


def _check(argv: list[str], home: str | None) -> int:
    parser = Parser(
        "tenure store check",
        "Look at every page, reference and rule of the store; changes nothing.",
        "exit code: 0 all is well, 1 a rule is broken, 3 the store is damaged or cannot be used",
    )
    add_json(parser)
    given = parser.parse(argv)
    place = place_of_home(home)
    refused = _refusal(home)
    problems = [] if refused is None else [f"{refused.code}: {refused}"]
    problems += _problems(place)
    damaged = refused is not None or any(problem.startswith(_DAMAGED) for problem in problems)
    if given.json:
        print_json({"home": str(place.path), "ok": not problems, "problems": problems})
    elif problems:
        print("\n".join([counted(len(problems), "problem"), *(f"  {escaped(problem)}" for problem in problems)]))
        print(
            "keep the store as it is; "
            + (refused.hint if refused and refused.hint else "restore a backup, or report this list")
        )
    else:
        print(f"{place.store}: no problem found")
    if not problems:
        return 0
    return UNUSABLE if damaged else PROBLEMS


def _refusal(home: str | None) -> StoreUnavailableError | None:
    """Why the store would be refused, when it can be looked at all the same."""
    try:
        with opened(home):
            return None
    except StoreUnavailableError as error:
        if error.code not in _CHECKED_ANYWAY:
            raise
        return error


def _problems(place: Home) -> list[str]:
    from shared.store.sqlite.inspect import check, unreadable_rows

    problems = check(place.path)
    if any(problem.startswith(_DAMAGED) for problem in problems):
        return problems
    return problems + [f"unreadable: {row.table} {row.key}, column {row.error}" for row in unreadable_rows(place.path)]


def _backup(argv: list[str], home: str | None) -> int:
    from shared.store.sqlite.inspect import backup

    parser = Parser(
        "tenure store backup",
        "Write a whole, checked copy of the store to a new file, while everything runs on.",
        "Only the store: what jobs wrote lies in the home's folder attempts.",
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help=f"the file to write; it must not exist yet; without one, a dated file in the home's folder {BACKUPS}",
    )
    add_json(parser)
    given = parser.parse(argv)
    if given.target is not None and (not given.target or "\0" in given.target):
        raise UsageError("tenure store backup: that is no name of a file", hint="tenure store backup store-copy.db")
    with opened(home) as door:
        target = _dated_target(door) if given.target is None else working_folder() / given.target
        backup(door.place.path, target)
    size = target.stat().st_size
    if given.json:
        print_json({"path": str(target), "bytes": size})
    else:
        print(f"{escaped(str(target))}  {size} bytes, checked")
    return 0


def _adopt(argv: list[str], home: str | None) -> int:
    from shared.store.sqlite.adopt import adopt

    parser = Parser(
        "tenure store adopt",
        "Take over a store that was copied, restored or moved to this home, or to this machine.",
        "Nothing may be up on the home. What worked with the store before, here or elsewhere, can write to it no more;\n"
        "what it knew as running is looked for here once a worker is up. Never let two copies of one store work at once.",
    )
    add_json(parser)
    given = parser.parse(argv)
    place = place_of_home(home)
    incarnation = adopt(place.path, SystemClock())
    if given.json:
        print_json({"home": str(place.path), "incarnation": incarnation})
    else:
        print(f"{place.store} belongs to this home now, incarnation {incarnation}")
    return 0


def _migrate(argv: list[str], home: str | None) -> int:
    from shared.store.sqlite.migrate import migrate

    parser = Parser(
        "tenure store migrate",
        "Bring a store of an earlier version to the schema of this one; all of it, or nothing.",
        "Nothing may be up on the home. Make a copy first with the version that wrote it: tenure store backup.",
    )
    add_json(parser)
    given = parser.parse(argv)
    place = place_of_home(home)
    steps = migrate(place.path, SystemClock())
    if given.json:
        print_json({"home": str(place.path), "steps": steps})
    elif steps:
        print("\n".join([f"{place.store} is up to date", *(f"  {escaped(step)}" for step in steps)]))
    else:
        print(f"{place.store} is up to date: there was nothing to do")
    return 0


def _dated_target(door: OpenHome) -> Path:
    """A file named by the moment it is asked for, in a folder that only the owner may enter."""
    folder = door.place.path / BACKUPS
    folder.mkdir(mode=0o700, exist_ok=True)
    stamp = (iso(door.clock.now().wall_us) or "").replace(":", "").replace("-", "")
    return folder / f"store-{stamp}.db"
