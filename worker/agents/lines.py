"""From bytes of an output to whole lines, however they were cut when they were read. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shared.model.stream import Place, Refusal, RefusalCode

LINE_BYTES_MAX = 64 * 1024
"""Of one line, without its end."""


@dataclass(frozen=True, slots=True)
class Line:
    """One whole line, without its end. `number`: counted from 1, those passed over included."""

    number: int
    data: bytes


def lines_of(place: Place, offset: int, data: bytes, *, at_end: bool) -> tuple[Place, list[Line], list[Refusal]]:
    """The whole lines that begin behind `place`.

    Args:
        offset: Where `data` begins; what lies between `place` and it is lost.
        at_end: Nothing will be written behind `data`: a last line without its end is one.
    Returns: Up to where everything is told, the lines, and what was passed over.
    """
    refusals: list[Refusal] = []
    number, skipping = place.lines, place.is_skipping
    if offset > place.offset:
        lost = f"{offset - place.offset} bytes of the output were dropped before they were read"
        refusals.append(Refusal(number + 1, RefusalCode.LOST, lost))
        skipping = True  # whatever follows may begin in the middle of a line
    lines: list[Line] = []
    at = 0
    for begin, end in _cuts(data, at_end=at_end):
        if end - begin > LINE_BYTES_MAX and not skipping:
            refusals.append(_oversize(number + 1))
        elif not skipping and end > begin:
            lines.append(Line(number + 1, data[begin:end]))
        number, skipping, at = number + 1, False, end + 1
    at = min(at, len(data))
    if not skipping and len(data) - at > LINE_BYTES_MAX:
        refusals.append(_oversize(number + 1))
        skipping = True
    if skipping:
        at = len(data)
    return Place(offset + at, number, skipping), lines, refusals


def _cuts(data: bytes, *, at_end: bool) -> Iterator[tuple[int, int]]:
    begin = 0
    while (end := data.find(b"\n", begin)) >= 0:
        yield begin, end
        begin = end + 1
    if at_end and begin < len(data):
        yield begin, len(data)


def _oversize(number: int) -> Refusal:
    return Refusal(number, RefusalCode.OVERSIZE, f"a line is at most {LINE_BYTES_MAX} bytes (64 KiB)")
