"""What programs that speak with tenure note of it themselves: the witness's second file, outside the home.

A program notes what it was told once it has read it, and what it says before it says it. So nothing that tenure knows of a
program's words can be missing here, and a program that was ended in between has noted more than it said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from pathlib import Path

from shared.ids import AttemptId, WorkId, work_of


class Word(StrEnum):
    """What is noted."""

    BEGAN = "began"  # a launch
    SAW = "saw"  # an input, for the first time in this launch
    AGAIN = "again"  # one that it had been told before, under the same identity
    TOOK = "took"  # it says that it took an input
    DECLINED = "declined"  # it says that it takes none while it runs
    SHUT = "shut"  # it lets nothing more be handed to it, and hears nothing of what was
    USED = "used"  # it says what it consumed
    TURN = "turn"  # it says that a turn is over
    ENDS = "ends"  # it says how it ends, and ends
    REFUSED = "refused"  # tenure refused what it said


class Ends(StrEnum):
    """How a launch says that it ends."""

    COMPLETED = "completed"
    SILENT = "silent"  # it says nothing: its exit status decides
    DIES = "dies"  # it says nothing, and exits with another status than 0
    FAILED = "failed"
    UNKNOWN_RESET = "unknown reset"  # failed by something that is reset some time
    KNOWN_RESET = "known reset"  # … at a time that it names
    PERMANENT = "permanent"
    HANDOFF = "handoff"
    PARKS = "parks"  # it waits, and goes on afterwards
    PASSES_ON = "passes on"  # the next attempt waits
    INTERRUPTED = "interrupted"  # it was told that it is interrupted


FAILURES = frozenset({Ends.DIES, Ends.FAILED, Ends.UNKNOWN_RESET, Ends.KNOWN_RESET, Ends.PERMANENT})
WAITS = frozenset({Ends.PARKS, Ends.PASSES_ON})


@dataclass(frozen=True, slots=True)
class Note:
    """One line of the file.

    Attributes:
        epoch: The one the program was launched under.
        wake: Of `began`: the event that ended its wait, as it was told; None: none did.
        input: Number of an input; `intent`: the identity it came with while the program ran, `i7`; None: it was given at the start.
        sha256: Of what the input held.
        units: What was used, exactly as it was said.
        status: Of a turn.
        ends, exit_status: How, and with what.
        awaits: Of an end that waits: the type of the event and its key; a time may end it as well.
    """

    word: Word
    attempt_id: AttemptId
    epoch: int
    pid: int
    wake: Mapping[str, object] | None = None
    input: int | None = None
    intent: str | None = None
    sha256: str | None = None
    units: Mapping[str, Decimal] = field(default_factory=dict)
    status: str | None = None
    ends: Ends | None = None
    exit_status: int | None = None
    awaits: tuple[str | None, str | None] = (None, None)
    why: str = ""

    @property
    def work_id(self) -> WorkId:
        """The Work it is about."""
        return work_of(self.attempt_id)

    @property
    def launch(self) -> tuple[AttemptId, int]:
        """The program that noted it."""
        return self.attempt_id, self.epoch


def read_notes(path: Path) -> tuple[Note, ...]:
    """Everything noted so far, in the order it was noted."""
    return tuple(parse(line) for line in path.read_text(encoding="utf-8").splitlines())


def parse(text: str) -> Note:
    """One line of the file.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    raw = dict(json.loads(text))
    awaits = raw.pop("awaits", None) or (None, None)
    ends = raw.pop("ends", None)
    return Note(
        word=Word(raw.pop("word")),
        attempt_id=AttemptId(raw.pop("attempt")),
        units={unit: Decimal(amount) for unit, amount in raw.pop("units", {}).items()},
        ends=None if ends is None else Ends(ends),
        awaits=(awaits[0], awaits[1]),
        **raw,
    )
