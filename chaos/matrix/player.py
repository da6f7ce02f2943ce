"""A program of cells that speaks with tenure: that of random drills, made to stay until the valve opens and to wait for its cue.

An agent goes on printing meanwhile. Its one argument is JSON, as for `chaos/random_drill/speaker.py`, with the valve and the cue.
"""

from __future__ import annotations

import json
import os
import select
import sys
from typing import NoReturn

from chaos.random_drill.speaker import Agent, Job, Json, Speaker, emit

TICK_S = 0.05
LINES_MAX = 400
"""After so many lines of its own an agent is quiet, so that all of what it printed can be read afterwards."""
USES_EVERY = 20
"""Lines between two words on what it used: far fewer than a segment may declare."""
STDIN = 0


class Player(Speaker):
    """What both doors have in common."""

    def scene(self) -> Json:
        """What this launch does; it waits for an event with the name of its Work as key."""
        self.played = {**super().scene(), "correlate": os.environ["TENURE_WORK"]}
        return self.played

    def begin(self) -> None:
        """See what it is told first; then wait for the cue, if that is where it is to wait."""
        super().begin()
        self.await_cue("begin")

    def leave(self, status: int) -> NoReturn:
        """End; one that will be woken waits for the cue before, if that is where it is to wait."""
        if self.played["ends"] == "parks":
            self.await_cue("leave")
        super().leave(status)

    def await_cue(self, place: str) -> None:
        """Wait until somebody opens the cue."""
        if self.manner["cued_at"] == place:
            take_line(self.manner["cue"])

    def await_valve(self, scene: Json) -> None:
        """Wait until the valve opens; a launch that ends by waiting does not."""
        if scene["ends"] != "parks":
            take_line(self.manner["valve"])


class PlayedJob(Player, Job):
    """A job that has said something by its tool belt, and stays."""

    def work(self, scene: Json) -> None:
        """Stay."""
        self.await_valve(scene)


class PlayedAgent(Player, Agent):
    """An agent that takes every input and prints one line after the other."""

    def work(self, scene: Json) -> None:
        """Stay, and listen."""
        del scene  # it stays in every one
        valve = os.open(self.manner["valve"], os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        lines = 0
        while True:
            ready, _, _ = select.select([STDIN, valve], [], [], TICK_S)
            while (line := self.reader.line(0)) is not None:
                self.hear(json.loads(line), leaves=None)
            if valve in ready and is_open(valve):
                return
            if not ready and lines < LINES_MAX:
                lines += 1
                if lines % USES_EVERY == 0:
                    self.use()
                else:
                    emit({"type": "log", "line": lines})


def take_line(path: str) -> None:
    """Wait for a line, and take no more than that one: others read there too."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    os.read(fd, 1)
    os.close(fd)


def is_open(valve: int) -> bool:
    """Whether there is a line for this one; another one may have taken it."""
    try:
        return bool(os.read(valve, 1))
    except BlockingIOError:
        return False


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    (PlayedAgent if given["door"] == "agent" else PlayedJob)(given).play()
