"""How the speaking programs of a random drill behave, as data: by which door they speak, and what each launch does. Pure.

A program plays one scene after the other: the first when it begins for the first time, the next in the next attempt or the next launch
of the same one, the last in all that follow. An attempt that was never launched plays none.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from chaos.notes import Ends

EVENT = "drill.go"
"""What waits wait for, each with the key of its job."""
TOOL = (sys.executable, "-P", "-m", "shared.cli")
SPEAKER = Path(__file__).with_name("speaker.py")


class Door(StrEnum):
    """By which a program speaks."""

    AGENT = "agent"  # the protocol of agents, on its standard streams
    BELT = "belt"  # `tenure tool`


@dataclass(frozen=True, slots=True)
class Scene:
    """What one launch does.

    Attributes:
        uses: Reports of usage.
        turns: Turns that it tells; the last one counts.
        status: With which it exits.
        event, timer, ask: Of an end that waits; the last is a question to a person, whose answer is that event.
        takes: A job takes the inputs that wait besides those it was given.
        leaves: An agent ends with the next input read and not taken, once it has taken so many while it ran; None: never.
    """

    ends: Ends
    uses: int = 1
    turns: tuple[str, ...] = ()
    status: int = 0
    event: str | None = None
    timer: str | None = None
    ask: str | None = None
    takes: bool = True
    leaves: int | None = None


@dataclass(frozen=True, slots=True)
class Manner:
    """How a kind of program behaves.

    Attributes:
        reads: A job asks for its inputs.
        declines: An agent takes no input while it runs.
        shuts: An agent takes away its own channel once it began, and reads nothing more.
        chatter: Lines that an agent says besides, every fifth with one that is no message.
    """

    door: Door
    scenes: tuple[Scene, ...]
    reads: bool = False
    declines: bool = False
    shuts: bool = False
    chatter: int = 0

    def command(self, witness: Path, notes: Path, *, number: int, listens_s: float) -> tuple[str, ...]:
        """What a job of this manner runs.

        Args:
            number: Of the planned job; in the key of what it waits for.
            listens_s: How long an agent waits for another input.
        """
        told = {
            **asdict(self),
            "witness": str(witness),
            "notes": str(notes),
            "tool": TOOL,
            "scenes": [{**asdict(scene), "correlate": key_of(number), "listens": listens_s} for scene in self.scenes],
        }
        return (sys.executable, "-I", "-S", str(SPEAKER), json.dumps(told))


def key_of(number: int) -> str:
    """The correlation key of a planned job."""
    return f"job-{number}"


_DONE = Scene(Ends.COMPLETED, turns=("done",))
_PARKS = Scene(Ends.PARKS, turns=("parked",), event=EVENT, timer="3s")
_PARKS_FOR_EVER = Scene(Ends.PARKS, uses=2, event=EVENT, ask="go on?")
_DOZES = Scene(Ends.PARKS, timer="1s")
_PASSES_ON = Scene(Ends.PASSES_ON, turns=("half",), event=EVENT, timer="2s")
_HINTED = Scene(Ends.UNKNOWN_RESET, turns=("limited",), status=9)
_RESET = Scene(Ends.KNOWN_RESET)
_FAILS = Scene(Ends.FAILED, turns=("failed",))


TALKS = Manner(Door.BELT, (Scene(Ends.COMPLETED, 2, ("first", "second"), status=3),), reads=True)
PARKS = Manner(Door.BELT, (_PARKS, _DOZES, _DONE))
PASSES = Manner(Door.BELT, (_PASSES_ON, Scene(Ends.SILENT, turns=("done",))), reads=True)
_HANDS_ON = Scene(Ends.HANDOFF, turns=("handed-on",))
HANDS_ON = Manner(Door.BELT, (_HANDS_ON, _DONE), reads=True)
AGENT_HANDS_ON = Manner(Door.AGENT, (_HANDS_ON, _HANDS_ON, _DONE))
IS_HINTED = Manner(Door.BELT, (_HINTED, _FAILS, _DONE))
GIVES_UP = Manner(Door.BELT, (Scene(Ends.PERMANENT, turns=("failed",)), _DONE))
STANDS = Manner(Door.BELT, (_DONE,), reads=True)
LISTENS = Manner(Door.AGENT, (_DONE,), chatter=12)
LEAVES = Manner(Door.AGENT, (Scene(Ends.COMPLETED, turns=("done",), leaves=1),))
CRASHES = Manner(
    Door.AGENT, (Scene(Ends.DIES, status=9, leaves=0), Scene(Ends.DIES, status=9, leaves=2), _DONE), chatter=8
)
DECLINES = Manner(Door.AGENT, (Scene(Ends.SILENT, uses=2),), declines=True)
SHUTS = Manner(Door.AGENT, (_DONE,), shuts=True)
AGENT_PARKS = Manner(Door.AGENT, (_PARKS_FOR_EVER, _DOZES, _DONE))
AGENT_FAILS = Manner(Door.AGENT, (_RESET, _FAILS, _DONE), chatter=3)
