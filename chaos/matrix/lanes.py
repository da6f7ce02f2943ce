"""Plays cells on several lanes at once; each lane is a process that gets one cell after the other.

Whatever a lane brought about ends with it. A lane that does not answer in time is killed with all below it, and a new one goes on;
so is every lane when the drill is interrupted. Rule: design §9 ("interruptible, cleans up").
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from chaos.harness import become_subreaper, kill_below
from chaos.matrix.cell import Cell, Played
from chaos.shapes import shaped

CELL_BOUND_S = 240.0
"""Longer than all the bounded waits of a cell together ever take; whoever exceeds it hangs."""
LEAVE_BOUND_S = 20.0
MS_PER_S = 1_000


@dataclass(slots=True)
class _Lane:
    number: int
    process: subprocess.Popen[bytes]
    cell: Cell | None = None
    began: float = 0.0

    @property
    def due(self) -> float:
        """When its cell must be over, on the monotonic clock."""
        return self.began + CELL_BOUND_S

    @property
    def answers(self) -> IO[bytes]:
        """Where its answers come from."""
        assert self.process.stdout is not None
        return self.process.stdout


class Lanes:
    """Some lanes below one folder. A context: leaving it ends them all."""

    def __init__(self, folder: Path, count: int) -> None:
        become_subreaper()
        self._folder = folder
        self._selector = selectors.DefaultSelector()
        self._started = 0
        self._lanes = [self._start() for _ in range(count)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """The lanes' own processes."""
        return [lane.process.pid for lane in self._lanes]

    def play(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Played]]:
        """Play them all, begun in this order; each as soon as it is over."""
        waiting = deque(cells)
        for lane in self._lanes:
            self._hand_out(lane, waiting)
        while any(lane.cell for lane in self._lanes):
            due = min(lane.due for lane in self._lanes if lane.cell)
            ready = [key.data for key, _ in self._selector.select(max(0.0, due - time.monotonic()))]
            late = [lane for lane in self._lanes if lane.cell and lane not in ready and lane.due <= time.monotonic()]
            for lane in (*ready, *late):
                cell = lane.cell
                assert cell is not None
                played = _answer(lane) if lane in ready else None
                if played is None:
                    why = "the lane ended" if lane in ready else f"it was not over within {CELL_BOUND_S:g} s"
                    took_s = time.monotonic() - lane.began
                    played = Played(str(cell), "", round(took_s * MS_PER_S), (f"play: {why}",))
                    lane = self._replace(lane)  # noqa: PLW2901 - the new one takes its place
                lane.cell = None
                self._hand_out(lane, waiting)
                yield cell, played

    def close(self) -> None:
        """Ask every lane to clean up and end, and see to it. May be repeated."""
        for lane in self._lanes:
            if lane.process.poll() is None:
                lane.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + LEAVE_BOUND_S
        for lane in self._lanes:
            self._end(lane, max(0.1, until - time.monotonic()))
        self._lanes = []
        self._selector.close()

    def _hand_out(self, lane: _Lane, waiting: deque[Cell]) -> None:
        if waiting:
            lane.cell, lane.began = waiting.popleft(), time.monotonic()
            assert lane.process.stdin is not None
            with suppress(BrokenPipeError):  # it died meanwhile, as its answer will say
                os.write(lane.process.stdin.fileno(), f"{lane.cell}\n".encode())

    def _start(self) -> _Lane:
        self._started += 1
        folder = self._folder / f"lane-{self._started}"
        folder.mkdir(parents=True)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "chaos.matrix.lane", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the one who hands out
            env={key: value for key, value in os.environ.items() if not key.startswith(("TENURE_", "PYTHON"))},
        )
        lane = _Lane(self._started, process)
        self._selector.register(lane.answers, selectors.EVENT_READ, lane)
        return lane

    def _replace(self, lane: _Lane) -> _Lane:
        kill_below(lane.process.pid)
        self._end(lane, 0.0)
        new = self._start()
        self._lanes[self._lanes.index(lane)] = new
        return new

    def _end(self, lane: _Lane, bound_s: float) -> None:
        try:
            lane.process.wait(bound_s)
        except subprocess.TimeoutExpired:
            kill_below(lane.process.pid)
            lane.process.kill()
            lane.process.wait()
        self._selector.unregister(lane.answers)
        lane.answers.close()
        assert lane.process.stdin is not None
        lane.process.stdin.close()


def _answer(lane: _Lane) -> Played | None:
    """What the lane says of its cell; None when it ended instead."""
    line = lane.answers.readline()
    if not line:
        return None
    return shaped(Played, json.loads(line))
