"""How far the output of a running agent was read, and what was found in it that is no message.

Rule: design §6 ("Agents survive adoption"); requirements O02, T02.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shared.model.declaration import Declaration
from shared.model.usage import NO_USAGE, Usage

REFUSALS_KEPT = 16
"""Of one attempt, the last ones; those before them are only counted."""
TYPES_KEPT = 16
"""Different unknown types of one attempt; further ones are counted together as `OTHER`."""
TYPE_CHARS_MAX = 64
WHY_CHARS_MAX = 200
OTHER = "…"
BELT = 0
"""Stands for a line's number where what was refused came by the tool belt."""


class RefusalCode(StrEnum):
    """What is wrong with a line."""

    OVERSIZE = "oversize"  # longer than a line may be; all of it was passed over
    NOT_UTF8 = "not_utf8"
    NUL = "nul"
    SURROGATE = "surrogate"  # half of a pair
    NOT_JSON = "not_json"
    INVALID = "invalid"  # JSON, and no message; or one with a wrong field
    TOO_MANY = "too_many"  # one more of its kind than an attempt may declare
    NOT_HANDED = "not_handed"  # it says that an input was taken which the attempt never had
    LOST = "lost"  # bytes that were dropped from the output before they were read, or cannot be


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that was not taken; line `BELT`: something said by the belt.

    Attributes:
        why: One line for people, at most `WHY_CHARS_MAX` characters.
    """

    line: int
    code: RefusalCode
    why: str


@dataclass(frozen=True, slots=True)
class Place:
    """How far an output was read.

    Attributes:
        offset: Bytes, from the beginning of the output.
        lines: Whole lines before it, those passed over included.
        is_skipping: It lies within a line that is passed over up to its end.
    """

    offset: int = 0
    lines: int = 0
    is_skipping: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """A turn, a wait or an outcome that a line declares."""

    line: int
    declaration: Declaration


@dataclass(frozen=True, slots=True)
class Took:
    """Numbers of inputs that a line says were taken."""

    line: int
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """What was read of an output in one go, all of which is recorded at once or not at all.

    Attributes:
        before, after: Where it began and ends.
        consumed: What the program says it has taken, line by line.
        declined: Ids of intents that it says it does not take.
        unknown: (type, how often) of messages that this version does not know.
        usage: All that its lines report, added up. `said`: what they declare besides, in their order.
    """

    before: Place
    after: Place
    consumed: tuple[Took, ...] = ()
    declined: tuple[str, ...] = ()
    unknown: tuple[tuple[str, int], ...] = ()
    refusals: tuple[Refusal, ...] = ()
    usage: Usage = NO_USAGE
    said: tuple[Said, ...] = ()

    def refusals_with(self, refused: Iterable[Refusal]) -> tuple[Refusal, ...]:
        """All that was refused of it, with what was refused where it was recorded, by line."""
        return tuple(sorted((*self.refusals, *refused), key=lambda refusal: refusal.line))


@dataclass(frozen=True, slots=True)
class Stream:
    """What is stored of an attempt's output.

    Attributes:
        pin_epoch: The launch whose output it is; that of another one is read from its beginning.
        refused: Lines not taken, all of them. `refusals`: the last ones.
        unknown: How often messages of each unknown type came.
    """

    pin_epoch: int
    place: Place = field(default_factory=Place)
    refused: int = 0
    refusals: tuple[Refusal, ...] = ()
    unknown: Mapping[str, int] = field(default_factory=dict)

    def then(self, stretch: Stretch, refused: Iterable[Refusal] = ()) -> Stream:
        """This, with a further stretch. `refused`: what was refused of it where it was recorded."""
        refusals = stretch.refusals_with(refused)
        return Stream(
            self.pin_epoch,
            stretch.after,
            self.refused + len(refusals),
            (*self.refusals, *refusals)[-REFUSALS_KEPT:],
            _counted(self.unknown, stretch.unknown),
        )


def _counted(before: Mapping[str, int], more: Iterable[tuple[str, int]]) -> dict[str, int]:
    counts = dict(before)
    for word, count in more:
        name = word[:TYPE_CHARS_MAX]
        if name not in counts and len(counts) >= TYPES_KEPT:
            name = OTHER
        counts[name] = counts.get(name, 0) + count
    return counts
