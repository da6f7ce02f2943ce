"""Where each role crosses which boundary, and what must come of it: the matrix as data, put together.

The rows are in `chaos/matrix/points/`, those of faults in `chaos/matrix/points/faults.py`. Rule: design §9; requirement M03.
"""

from __future__ import annotations

from chaos.matrix.points.commands import COMMAND_POINTS
from chaos.matrix.points.coordinators import COORDINATOR_POINTS
from chaos.matrix.points.launches import CHILD_POINTS, SHIM_POINTS, ZYGOTE_POINTS
from chaos.matrix.points.programs import PROGRAM_POINTS
from chaos.matrix.points.workers import WORKER_POINTS
from shared.boundary import Boundary

POINTS = (
    *WORKER_POINTS,
    *PROGRAM_POINTS,
    *COORDINATOR_POINTS,
    *ZYGOTE_POINTS,
    *SHIM_POINTS,
    *CHILD_POINTS,
    *COMMAND_POINTS,
)

ELSEWHERE = {
    Boundary.HARM_SIGNAL: "sent by a supervisor or a harness to its own children; tests/process/test_up_signals.py kills there",
}
"""Boundaries without a point, and why."""
