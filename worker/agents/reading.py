"""Reading on in an agent's output: bytes to one stretch that is recorded whole. Pure."""

from __future__ import annotations

from collections import Counter

from shared.model.stream import Place, Refusal, Said, Stretch, Took
from shared.model.usage import NO_USAGE
from worker.agents.lines import lines_of
from worker.agents.messages import Language, hear

READ_BYTES = 256 * 1024
"""At most, in one go; four lines of the greatest length."""


def read_stretch(
    place: Place, offset: int, data: bytes, language: Language, *, pin_epoch: int, at_end: bool
) -> Stretch:
    """What a piece of output says.

    Args:
        offset: Where `data` begins. `pin_epoch`: of the launch whose output it is; part of every declaration's key.
        at_end: The program has ended, and `data` reaches up to the end of what it wrote.
    """
    after, lines, passed_over = lines_of(place, offset, data, at_end=at_end)
    refusals: list[Refusal] = list(passed_over)
    said: list[Said] = []
    usage = NO_USAGE
    consumed: list[Took] = []
    declined: dict[str, None] = {}
    unknown: Counter[str] = Counter()
    for line in lines:
        heard = hear(line, f"out.{pin_epoch}", language)
        if isinstance(heard, Refusal):
            refusals.append(heard)
            continue
        said += [Said(line.number, declaration) for declaration in heard.declarations]
        if heard.usage.amounts:
            usage = usage.plus(heard.usage)
        if heard.consumed:
            consumed.append(Took(line.number, heard.consumed))
        declined |= dict.fromkeys(heard.declined)
        if heard.unknown is not None:
            unknown[heard.unknown] += 1
    refusals.sort(key=lambda refusal: refusal.line)
    return Stretch(
        place, after, tuple(consumed), tuple(declined), tuple(unknown.items()), tuple(refusals), usage, tuple(said)
    )
