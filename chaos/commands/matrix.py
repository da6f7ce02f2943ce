"""`tenure drill matrix`: harm right before and right after each boundary, and what came of it."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Sequence
from functools import partial

from chaos.commands import session
from chaos.ledger import Ledger
from chaos.matrix import recovery
from chaos.matrix.cell import Cell, Played
from chaos.matrix.every import every_cell, part
from chaos.matrix.lanes import Lanes
from chaos.report.verdict import verdict
from chaos.results import Cell as Shown
from chaos.results import Figure, Story
from shared.clock import SystemClock
from shared.commands.arguments import Parser, whole_number
from shared.commands.render import table

MS_PER_S = 1_000
LANES_PER_CPU = 2
"""A lane waits for most of its time: for a start, a lapse, a frozen process."""
LANES_MAX = 64
KILLS_MAX = 10_000
STORIES_MAX = 20
_PART = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")
_EPILOG = f"""\
Boundaries are named in shared/boundary.py. Each is tried for every role that crosses it: the process alone, and everybody;
killed, and frozen until the leases have lapsed; and where the store or evidence is written: a busy store, a full disk, an error.

{session.EXIT_CODES}"""


def main(argv: list[str]) -> int:
    """Play the cells.

    Raises:
        UsageError: the command line is wrong.
    """
    parser = Parser(
        "tenure drill matrix", "Harm at each named boundary, on a home made for it, and what came of it.", _EPILOG
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="cells whose name contains this")
    parser.add_argument("--part", type=_part, metavar="K/N", help="every N-th cell, from the K-th on")
    parser.add_argument(
        "--lanes",
        type=partial(_count, least=1, most=LANES_MAX),
        default=LANES_PER_CPU * len(os.sched_getaffinity(0)),
        metavar="N",
        help="cells played at once (%(default)s here)",
    )
    parser.add_argument(
        "--kills",
        type=partial(_count, least=0, most=KILLS_MAX),
        metavar="N",
        help=f"kills per role for the times of recovery ({recovery.KILLS}; 0 with --only or --part)",
    )
    return session.drill("matrix", parser, argv, _play)


def _play(given: Namespace, ledger: Ledger) -> None:
    chosen = _chosen(given)
    lanes = min(given.lanes, len(chosen))
    kills = _kills(given)
    ledger.command = f"tenure drill matrix{_options(given)}"
    ledger.say(f"{len(chosen)} cells on {lanes} lanes; replay with: {ledger.command}")
    stories: list[tuple[Cell, Played]] = []
    try:
        with Lanes(ledger.folder, lanes) as players:
            for number, (cell, played) in enumerate(players.play(chosen), start=1):
                shown = _shown(cell, played)
                ledger.cells.append(shown)
                stories += [(cell, played)] if played.stories else []
                _tell(ledger, f"{number:>3}/{len(chosen)}", shown)
    finally:
        order = {str(cell): number for number, cell in enumerate(chosen)}
        ledger.cells.sort(key=lambda shown: order[shown.name])
        ledger.stories += _worth_telling(sorted(stories, key=lambda told: order[str(told[0])]))
        _sum_up(ledger)
    if kills:
        _time_recoveries(ledger, kills)
    ledger.say(verdict([ledger.result(SystemClock().now())]).line)


def _chosen(given: Namespace) -> list[Cell]:
    cells = [cell for cell in every_cell() if given.only in str(cell)]
    return cells if given.part is None else part(cells, *given.part)


def _part(text: str) -> tuple[int, int]:
    found = _PART.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        raise ArgumentTypeError(f"{text!r} is not K/N: 1/4 to 4/4 are all cells, each once")
    return int(found[1]), int(found[2])


def _count(text: str, *, least: int, most: int) -> int:
    return whole_number(text, "a number of them", least=least, most=most)


def _kills(given: Namespace) -> int:
    if given.kills is None:
        return 0 if given.only or given.part else recovery.KILLS
    kills: int = given.kills
    return kills


def _options(given: Namespace) -> str:
    part_given = None if given.part is None else "/".join(map(str, given.part))
    named = {"only": given.only or None, "part": part_given, "kills": given.kills}
    return "".join(f" --{name} {value}" for name, value in named.items() if value is not None)


def _shown(cell: Cell, played: Played) -> Shown:
    return Shown(
        name=played.name,
        role=cell.role,
        boundary=str(cell.boundary),
        side=str(cell.side),
        harm=str(cell.harm),
        victims=str(cell.who),
        scene=str(cell.scene),
        expected="; ".join((" or ".join(sorted(cell.expected)), *sorted(cell.keeps))),
        came_to=played.came_to,
        took_ms=played.took_ms,
        findings=played.findings,
        skipped=played.skipped,
        replay=f"tenure drill matrix --only {played.name}",
    )


def _worth_telling(told: Sequence[tuple[Cell, Played]]) -> list[Story]:
    """Histories for the page: of what was found, and of one chain of takeovers at each boundary, as far as there is room."""
    found = [played.stories[0] for _, played in told if played.findings]
    chains = {cell.boundary: played.stories[0] for cell, played in reversed(told) if not played.findings}
    return [*found[:STORIES_MAX], *list(reversed(chains.values()))[: max(0, STORIES_MAX - len(found))]]


def _tell(ledger: Ledger, place: str, shown: Shown) -> None:
    word = "failed" if shown.findings else "skipped" if shown.skipped else "ok"
    told = shown.skipped or shown.came_to
    ledger.say(f"{place} {shown.name:<50} {shown.took_ms / MS_PER_S:5.2f} s  {word:<7}  {told}")
    for line in shown.findings:
        ledger.say(f"        {line}")
    if shown.findings:
        ledger.say(f"        replay with: {shown.replay}")


def _sum_up(ledger: Ledger) -> None:
    """The table, and its totals; also of what was played before an interrupt."""
    cells = ledger.cells
    skipped, failed = sum(bool(cell.skipped) for cell in cells), sum(bool(cell.findings) for cell in cells)
    ledger.totals |= {"cells played": len(cells) - skipped, "cells failed": failed}
    harms = sorted({cell.harm for cell in cells})
    rows = [["", *harms]]
    rows += [
        [role, *(_counted(cells, role, harm) for harm in harms)] for role in dict.fromkeys(cell.role for cell in cells)
    ]
    for line in table(rows):
        ledger.say(line)
    why = Counter(cell.skipped for cell in cells if cell.skipped)
    for reason, count in why.items():
        ledger.say(f"skipped {count}: {reason}")
    ledger.say(f"{len(cells)} cells: {len(cells) - skipped - failed} ok, {skipped} skipped, {failed} failed")


def _counted(cells: Sequence[Shown], role: str, harm: str) -> str:
    mine = [cell for cell in cells if (cell.role, cell.harm) == (role, harm)]
    if not mine:
        return "-"
    failed, skipped = sum(bool(cell.findings) for cell in mine), sum(bool(cell.skipped) for cell in mine)
    words = [f"{failed} failed"] * bool(failed) + [f"{skipped} skipped"] * bool(skipped)
    return f"{len(mine) - failed - skipped} ok" + (f" ({', '.join(words)})" if words else "")


def _time_recoveries(ledger: Ledger, kills: int) -> None:
    ledger.say(f"times from kill -9 to the commit that puts it right, {kills} kills each:")
    for role in recovery.Role:
        took_ms = recovery.measure(ledger.folder / f"recovery-{role}", role, kills)
        figure = Figure.of(f"recovery after kill -9: {recovery.TOLD[role]}", "ms", took_ms)
        ledger.figures.append(figure)
        ledger.say(
            f"  {role:<12} p50 {figure.p50:7.1f} ms   p99 {figure.p99:7.1f} ms   max {figure.max:7.1f} ms   {recovery.TOLD[role]}"
        )
