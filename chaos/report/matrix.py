"""Cells as a table: a row for each boundary of a role, a column for each harm, its victims and the side of the boundary. Pure.

What a cell holds opens on its button, without a script: an element with `popover`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from chaos.report.text import THIN, safe, several, took
from chaos.results import Cell

Column = tuple[str, str, str]
"""Harm, victims, side."""

MS_PER_S = 1_000
_SIDES = ("before", "after")


def matrix(cells: Sequence[Cell], prefix: str) -> str:
    """The table and the details of each of its cells; nothing without cells.

    Args:
        prefix: Keeps the ids of several tables on one page apart.
    """
    if not cells:
        return ""
    columns = _columns(cells)
    ids = {id(cell): f"{prefix}-{index}" for index, cell in enumerate(cells)}
    body = "".join(_role(role, rows, columns, ids) for role, rows in _by_role(cells).items())
    return (
        f'<section class="block"><h3>Cells</h3>{_counts(cells)}'
        f'<div class="wide" tabindex="0" role="region" aria-label="Matrix of cells"><table class="matrix">'
        f"{_head(columns)}{body}</table></div>"
        f"{''.join(_details(cell, ids[id(cell)]) for cell in cells)}</section>"
    )


def _counts(cells: Sequence[Cell]) -> str:
    failed = sum(bool(cell.findings) for cell in cells)
    skipped = sum(bool(cell.skipped) for cell in cells)
    parts = [
        f'<span class="ok">✓ {several(len(cells) - failed - skipped, "cell")} passed</span>',
        f'<span class="{"bad" if failed else "faint"}">✕ {failed} failed</span>',
        f'<span class="faint">– {skipped} not played here</span>',
    ]
    return f'<p class="legend">{"".join(parts)}<span class="faint">choose a cell for what was expected, what it came to and the command</span></p>'


def _columns(cells: Iterable[Cell]) -> list[Column]:
    """In the order in which they first come, sides of one harm together."""
    pairs = dict.fromkeys((cell.harm, cell.victims) for cell in cells)
    there = {(cell.harm, cell.victims, cell.side) for cell in cells}
    found: list[Column] = []
    for harm, victims in pairs:
        sides = [side for side in _SIDES if (harm, victims, side) in there]
        sides += sorted({cell.side for cell in cells if (cell.harm, cell.victims) == (harm, victims)} - set(_SIDES))
        found += [(harm, victims, side) for side in sides]
    return found


def _head(columns: Sequence[Column]) -> str:
    groups = [(pair, len(list(group))) for pair, group in groupby(columns, key=lambda column: column[:2])]
    top = "".join(
        f'<th scope="colgroup" colspan="{count}" class="edge">{safe(harm)}<small>{safe(victims)}</small></th>'
        for (harm, victims), count in groups
    )
    sides = "".join(
        f'<th scope="col"{_edge(columns, index)}>{safe(side[2])}</th>' for index, side in enumerate(columns)
    )
    spans = "<col>" + "".join(f'<colgroup span="{count}"></colgroup>' for _, count in groups)
    return (
        f"<caption>Harm at each boundary, on either side of it</caption>{spans}"
        f'<thead><tr><th scope="col" rowspan="2">boundary</th>{top}</tr><tr>{sides}</tr></thead>'
    )


def _by_role(cells: Iterable[Cell]) -> dict[str, dict[str, list[Cell]]]:
    found: dict[str, dict[str, list[Cell]]] = {}
    for cell in cells:
        found.setdefault(cell.role, {}).setdefault(cell.boundary, []).append(cell)
    return found


def _role(role: str, rows: dict[str, list[Cell]], columns: Sequence[Column], ids: dict[int, str]) -> str:
    head = f'<tr class="role"><th scope="rowgroup" colspan="{len(columns) + 1}">{safe(role)}</th></tr>'
    return f"<tbody>{head}{''.join(_row(name, cells, columns, ids) for name, cells in rows.items())}</tbody>"


def _row(boundary: str, cells: Sequence[Cell], columns: Sequence[Column], ids: dict[int, str]) -> str:
    found = []
    for index, column in enumerate(columns):
        here = [cell for cell in cells if (cell.harm, cell.victims, cell.side) == column]
        found.append(f"<td{_edge(columns, index)}>{''.join(_button(cell, ids[id(cell)]) for cell in here)}</td>")
    return f'<tr><th scope="row">{safe(boundary)}</th>{"".join(found)}</tr>'


def _edge(columns: Sequence[Column], index: int) -> str:
    """A line to the left of a harm's first side."""
    is_first = index == 0 or columns[index][:2] != columns[index - 1][:2]
    return ' class="edge"' if is_first else ""


def _button(cell: Cell, name: str) -> str:
    kind, symbol, words = _look(cell)
    short = f"{cell.took_ms / MS_PER_S:.1f}{THIN}s" if kind == "ok" else words
    title = f"{cell.name}: {words}; expected: {cell.expected}; came to: {cell.came_to}; {took(cell.took_ms)}"
    return (
        f'<button type="button" class="cell {kind}" popovertarget="{name}" title="{safe(title)}"'
        f' aria-label="{safe(f"{cell.name}: {words}")}"><b>{symbol}</b> {safe(short)}</button>'
    )


def _look(cell: Cell) -> tuple[str, str, str]:
    """Class, symbol, words: never the colour alone."""
    if cell.skipped:
        return "skipped", "–", "not played"
    if cell.findings:
        return "bad", "✕", f"{len(cell.findings)} found"
    return "ok", "✓", "passed"


def _details(cell: Cell, name: str) -> str:
    _, symbol, words = _look(cell)
    rows = [
        ("where", f"{cell.role}, {cell.side} {cell.boundary}"),
        ("harm", f"{cell.harm}, {cell.victims}"),
        ("scene", cell.scene),
        ("expected", cell.expected),
        ("came to", cell.came_to),
        ("took", took(cell.took_ms)),
        ("not played", cell.skipped),
    ]
    facts = "".join(f"<dt>{name}</dt><dd>{safe(value)}</dd>" for name, value in rows if value)
    found = "".join(f"<li>{safe(text)}</li>" for text in cell.findings)
    return (
        f'<div class="card" popover id="{name}" role="dialog" aria-label="{safe(cell.name)}">'
        f"<h4>{symbol} {safe(cell.name)} <small>{safe(words)}</small></h4><dl>{facts}</dl>"
        f"{f'<ul>{found}</ul>' if found else ''}<pre>{safe(cell.replay)}</pre>"
        f'<button type="button" popovertarget="{name}" popovertargetaction="hide">Close</button></div>'
    )
