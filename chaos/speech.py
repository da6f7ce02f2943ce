"""What simulated programs said and were told, as they know it themselves.

A witness like that of the processes: it knows nothing of the store, so it can contradict it. Only a simulation sees all of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from shared.ids import AttemptId

NOISE, GARBAGE, END = "noise", "garbage", "end"
"""Said beside messages: a message of an unknown type, what is no message, and the status with which it means to end."""
KEPT = ("turn", "wait", "result")
"""Messages of an agent that are kept one by one, until its end is seen."""


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a program said.

    Attributes:
        epoch: The one it was launched under.
        kind: The type of the message, or one of those beside messages.
        body: What came with it, as JSON.
        line: Its number in the program's output; None: it was said by the tool belt, under `key`.
        is_answered: It was told that this is recorded; of a line of its output: it is written.
        seq: The last event in the changefeed when it began to say it.
        is_cut: A power cut has taken some of its line from the disk: unless it was read before, it counts for nothing.
    """

    attempt_id: AttemptId
    epoch: int
    kind: str
    body: str
    line: int | None
    key: str
    is_answered: bool
    seq: int
    is_cut: bool = False

    @property
    def fields(self) -> Mapping[str, object]:
        """What came with it."""
        found = json.loads(self.body)
        return found if isinstance(found, dict) else {}

    @property
    def launch(self) -> tuple[AttemptId, int]:
        """Whose it is."""
        return self.attempt_id, self.epoch


@dataclass(frozen=True, slots=True)
class Written:
    """A moment at which a program wrote to its output. `at_us`: elapsed time, as in `Look`; `is_start`: it wrote nothing yet, it began."""

    attempt_id: AttemptId
    epoch: int
    at_us: int
    is_start: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that a program was told.

    Attributes:
        kind: `start`, `input` or `interrupt`.
        inputs: Numbers of the inputs that came with it.
        intent: Number of the intent of an `input`; None for the others.
        seq: The last event in the changefeed then.
        wake: Of a start: the event that ended its wait, by its place in the changefeed; None: none did.
    """

    attempt_id: AttemptId
    epoch: int
    kind: str
    seq: int
    inputs: tuple[int, ...] = ()
    intent: int | None = None
    wake: int | None = None
