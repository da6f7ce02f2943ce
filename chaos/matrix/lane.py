"""A lane: plays cells one after the other, on stages of its own; a process, so that what it brings about is its own to end.

Cells of a kind share a stage until it has seen `CELLS_PER_STAGE` of them, or one of them found something. The leases of a stage are
as its kind needs them: long where death is proven by locks, short where a freeze has to outlast them.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from chaos.checks import examine
from chaos.matrix import calls
from chaos.matrix.cell import Cell, Harm, Kind, Played, Role, Scene
from chaos.matrix.deaths import Death
from chaos.matrix.every import every_cell
from chaos.matrix.faults import why_no_tampering
from chaos.matrix.outcome import Came
from chaos.matrix.stage import Stage
from chaos.matrix.starved import Starvation
from chaos.results import Story
from chaos.stories import stories
from shared.errors import TenureError
from shared.model.instant import US_PER_MS
from shared.model.settings import Settings

CELLS_PER_STAGE = 40
MS_PER_S = 1_000


LEASE_MS = {Kind.DEATHS: 6_000, Kind.FREEZES: 1_500, Kind.FAULTS: 3_000}


class Lane:
    """Plays on one stage at a time; a cell of another kind gets a new one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stage: Stage | None = None
        self._kind: Kind | None = None
        self._played = 0
        self._made = 0

    def play(self, cell: Cell) -> Played:
        """Play a cell and examine all that happened on its stage so far."""
        began = time.monotonic()
        skipped = why_not(cell)
        if skipped:
            return Played(str(cell), "", 0, skipped=skipped)
        word = None
        try:
            stage = self._stage_for(cell.kind)
            stage.begin()
            came = act_for(stage, cell)()
            word = came.word
            findings = [*came.broken, *(str(finding) for finding in examine(stage.harness.history()))]
        except (
            AssertionError,
            TenureError,
        ) as error:  # not reached, not dead there, never at rest, or not as the store should say
            findings = [f"play: {error}"]
        if word is not None and word not in cell.expected:
            findings.append(f"convergence: it came to {word}, expected was {' or '.join(sorted(cell.expected))}")
        story = self._story(cell) if findings or cell.incarnations > 1 else ()
        if findings or self._played >= CELLS_PER_STAGE:
            self.close()
        took_ms = round((time.monotonic() - began) * MS_PER_S)
        return Played(str(cell), "" if word is None else str(word), took_ms, tuple(findings), stories=story)

    def _story(self, cell: Cell) -> tuple[Story, ...]:
        """What became of the Work that the cell is about; () where there is none, or nothing more can be read."""
        stage = self._stage
        if stage is None or stage.about is None:
            return ()
        try:
            return stories(stage.harness.history(), about=(stage.about, str(cell)), harms=stage.harms, most=1)
        except TenureError:
            return ()

    def close(self) -> None:
        """End everything on the stage."""
        stage, self._stage = self._stage, None
        if stage is not None:
            stage.close()

    def _stage_for(self, kind: Kind) -> Stage:
        if self._stage is None or kind is not self._kind:
            self.close()
            self._made += 1
            # Cells kill three workers in a row at every point of a launch, which is nothing to hold against the job.
            settings = Settings(job_concurrency=8, lease_us=LEASE_MS[kind] * US_PER_MS, workers_lost_max=0)
            self._stage, self._kind, self._played = Stage(self._folder / f"{kind}-{self._made}", settings), kind, 0
        self._played += 1
        return self._stage


def why_not(cell: Cell) -> str:
    """Why a cell cannot be played on this host; empty when it can."""
    needs_tampering = cell.harm in (Harm.FULL, Harm.BROKEN) or cell.scene is Scene.FULL_DISK
    return why_no_tampering() if needs_tampering else ""


def act_for(stage: Stage, cell: Cell) -> Callable[[], Came]:
    """What plays a cell."""
    if cell.is_fault:
        return Starvation(stage, cell).play
    if cell.scene is Scene.NEW_HOME:
        return lambda: calls.make_home(stage, cell)
    if cell.role is Role.COMMAND:
        return lambda: calls.play(stage, cell)
    return Death(stage, cell).play


def main(folder: Path) -> None:
    """Read names of cells from standard input, a line each, and answer each with a line of JSON; end at its end, or by SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cells = {str(cell): cell for cell in every_cell()}
    lane = Lane(folder)
    try:
        for line in sys.stdin:
            played = lane.play(cells[line.strip()])
            sys.stdout.write(json.dumps(asdict(played)) + "\n")
            sys.stdout.flush()
    except KeyboardInterrupt:
        pass
    finally:
        lane.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
