"""Every cell there is, in one order; parts of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from chaos.matrix.cell import CameTo, Cell, Harm, Kind, Role, Who
from chaos.matrix.points.faults import FAULT_POINTS
from chaos.matrix.table import POINTS
from shared.boundary import Boundary
from shared.commands.findings_place import EXIT_STATUS_KERNEL, kernel_version

LEFT_ALONE = frozenset({Boundary.CHILD_FORK, Boundary.CHILD_EXEC})
"""Where a job outlives its shim, so that only the kernel can tell how it ended."""


def every_cell() -> list[Cell]:
    """All of them, by kind, so that few homes are needed, and within it by role; names are unique."""
    harmed = [cell for point in POINTS for cell in point.cells()]
    cells = harmed + [cell for point in FAULT_POINTS for cell in point.cells()]
    kinds = list(Kind)
    return [_on_this_kernel(cell) for cell in sorted(cells, key=lambda cell: kinds.index(cell.kind))]


def part(cells: Sequence[Cell], number: int, of: int) -> list[Cell]:
    """Every `of`-th cell, from the `number`-th on: parts 1 to `of` are all of them, each once."""
    return list(cells[number - 1 :: of])


def kills_alone() -> Iterator[Cell]:
    """The part that is played every time: each boundary on each side, the process killed there alone."""
    return (cell for cell in every_cell() if cell.harm is Harm.KILL and cell.who is Who.SELF)


def _on_this_kernel(cell: Cell) -> Cell:
    """Before Linux 6.15 nobody can tell how a process ended whose parent was killed."""
    orphaned = (
        cell.role is Role.SHIM and cell.boundary in LEFT_ALONE and cell.harm is Harm.KILL and cell.who is not Who.HOLDER
    )
    if not orphaned or kernel_version(os.uname().release) >= EXIT_STATUS_KERNEL:
        return cell
    return replace(cell, expected=cell.expected | {CameTo.ASKED})
