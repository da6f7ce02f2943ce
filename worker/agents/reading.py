"""Reading on in an agent's output: bytes to one stretch that is recorded whole, and what it declares. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from shared.model.outcome import Declaration
from shared.model.stream import Place, Refusal, Stretch
from worker.agents.lines import lines_of
from worker.agents.messages import Language, hear

READ_BYTES = 256 * 1024
"""At most, in one go; four lines of the greatest length."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One stretch and what its lines declare, in their order. `has_more`: there may be more to read right away."""

    stretch: Stretch
    declarations: tuple[Declaration, ...]
    has_more: bool


def read_stretch(
    place: Place, offset: int, data: bytes, language: Language, *, pin_epoch: int, at_end: bool
) -> Reading:
    """What a piece of output says.

    Args:
        offset: Where `data` begins. `pin_epoch`: of the launch whose output it is; part of every declaration's key.
        at_end: The program has ended, and `data` reaches up to the end of what it wrote.
    """
    after, lines, passed_over = lines_of(place, offset, data, at_end=at_end)
    refusals: list[Refusal] = list(passed_over)
    declarations: list[Declaration] = []
    consumed: dict[int, None] = {}
    declined: dict[str, None] = {}
    unknown: Counter[str] = Counter()
    for line in lines:
        heard = hear(line, f"out.{pin_epoch}", language)
        if isinstance(heard, Refusal):
            refusals.append(heard)
            continue
        declarations += heard.declarations
        consumed |= dict.fromkeys(heard.consumed)
        declined |= dict.fromkeys(heard.declined)
        if heard.unknown is not None:
            unknown[heard.unknown] += 1
    refusals.sort(key=lambda refusal: refusal.line)
    stretch = Stretch(place, after, tuple(consumed), tuple(declined), tuple(unknown.items()), tuple(refusals))
    return Reading(stretch, tuple(declarations), has_more=after.offset > place.offset and bool(data))
