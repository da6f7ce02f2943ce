"""`tenure drill matrix`: harm right before and right after each boundary."""

from __future__ import annotations

import time
from argparse import Namespace

from chaos import boundaries
from chaos.boundaries import Cell, Mode, Stage
from chaos.commands import session
from chaos.ledger import Ledger
from chaos.results import Cell as Played
from shared.commands.arguments import Parser

MS_PER_S = 1_000
EXPECTED = "every job once, every status true, nothing left to do"


def main(argv: list[str]) -> int:
    """Play the cells.

    Raises:
        UsageError: the command line is wrong.
    """
    parser = Parser(
        "tenure drill matrix",
        "A death right before and right after each boundary, and a successor.",
        session.EXIT_CODES,
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="cells whose name contains this")
    parser.add_argument("--stop", action="store_true", help="freeze until the leases have lapsed, instead of killing")
    return session.drill("matrix", parser, argv, _play)


def _play(given: Namespace, ledger: Ledger) -> None:
    mode = Mode.STOP if given.stop else Mode.KILL
    ledger.command = f"tenure drill matrix{_options(given.only, mode)}"
    stages: dict[str, Stage] = {}
    chosen = [cell for cell in boundaries.cells(mode=mode) if given.only in str(cell)]
    try:
        for number, cell in enumerate(chosen, start=1):
            played = _cell(stages.setdefault(cell.role, Stage(ledger.folder, cell.role)), cell)
            ledger.cells.append(played)
            verdict = "failed" if played.findings else "ok"
            ledger.say(f"{number:>3}/{len(chosen)} {cell!s:<44} {played.took_ms / MS_PER_S:5.2f} s  {verdict}")
            for line in played.findings:
                ledger.say(f"        {line}")
            if played.findings:
                ledger.say(f"        replay with: {played.replay}")
    finally:
        for stage in stages.values():
            stage.close()
    ledger.say(f"{len(chosen)} cells, {sum(bool(played.findings) for played in ledger.cells)} failed")


def _cell(stage: Stage, cell: Cell) -> Played:
    began = time.monotonic()
    try:
        found = tuple(str(finding) for finding in stage.play(cell))
    except AssertionError as error:  # not reached, not dead there, or never at rest
        found = (str(error),)
    return Played(
        name=str(cell),
        role=cell.role,
        boundary=str(cell.boundary),
        side=str(cell.side),
        harm=str(cell.mode),
        victims="self",
        scene=str(cell.scene),
        expected=EXPECTED,
        came_to="something else" if found else EXPECTED,
        took_ms=round((time.monotonic() - began) * MS_PER_S),
        findings=found,
        skipped="",
        replay=f"tenure drill matrix{_options(str(cell), cell.mode)}",
    )


def _options(only: str, mode: Mode) -> str:
    return f"{f' --only {only}' if only else ''}{' --stop' if mode is Mode.STOP else ''}"
