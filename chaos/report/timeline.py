"""A story as lanes on one axis: an inline SVG beside the lanes' names, and the same as a list. Pure.

Places are percentages, so that it is as wide as the page and its text stays as large as all other text.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaos.report.text import at, safe
from chaos.results import Lane, Span, Story, StoryMark

LANE_PX = 26
AXIS_PX = 22
BAR_PX = 16
LABEL_SHARE_MIN = 7.0
"""Percent of the width below which a span shows no label; hovering does."""
TICKS_MAX = 8
_STEPS = (1, 2, 5)

_SHAPES = {
    "kill": '<path d="M-5-5 5 5M-5 5 5-5"/>',
    "stop": '<path d="M-3-6V6M3-6V6"/>',
    "cont": '<path d="M-4-5 5 0-4 5Z"/>',
    "fault": '<path d="M0-6 6 5H-6Z"/>',
    "end": '<rect x="-4" y="-4" width="8" height="8"/>',
    "commit": '<circle cy="8" r="2.8"/>',
}
"""What a mark looks like, by kind; any other is drawn as a small stroke."""
_STROKE = '<path d="M0-6V6"/>'


def stories(found: Sequence[Story]) -> str:
    """All stories, or nothing."""
    if not found:
        return ""
    return (
        f'<section class="block"><h3>Histories</h3>{_legend(found)}{"".join(story(each) for each in found)}</section>'
    )


def story(told: Story) -> str:
    """One story."""
    whole_us = max([1, *(end for lane in told.lanes for end in _ends(lane))])
    names = "".join(f"<li>{safe(lane.name)}<small>{safe(lane.kind)}</small></li>" for lane in told.lanes)
    seed = "" if told.seed is None else f" <small>seed {told.seed}</small>"
    return (
        f'<figure class="story"><figcaption>{safe(told.title)}{seed}</figcaption>'
        f'<div class="wide" tabindex="0" role="region" aria-label="{safe(told.title)}"><div class="lanes">'
        f'<ul class="names" style="padding-top:{AXIS_PX}px">{names}</ul>{_drawing(told, whole_us)}</div></div>'
        f"<details><summary>As a list</summary>{_list(told, whole_us)}</details></figure>"
    )


def ticks(whole_us: int) -> list[int]:
    """Round instants from 0 on, at most `TICKS_MAX` of them, in steps of 1, 2 or 5 of a power of ten."""
    power = 1
    while True:
        for step in _STEPS:
            if whole_us // (step * power) < TICKS_MAX:
                return list(range(0, whole_us + 1, step * power))
        power *= 10


def _ends(lane: Lane) -> list[int]:
    return [span.to_us for span in lane.spans] + [mark.at_us for mark in lane.marks]


def _drawing(told: Story, whole_us: int) -> str:
    height = AXIS_PX + len(told.lanes) * LANE_PX + 4
    lanes = "".join(_lane(lane, AXIS_PX + index * LANE_PX, whole_us) for index, lane in enumerate(told.lanes))
    return (
        f'<svg class="axis" height="{height}" role="img" aria-label="{safe(told.title)}: lanes over time">'
        f"{_axis(whole_us, height)}{lanes}</svg>"
    )


def _axis(whole_us: int, height: int) -> str:
    found = []
    for tick in ticks(whole_us):
        place = _share(tick, whole_us)
        anchor = "start" if tick == 0 else "end" if place > 97 else "middle"
        found.append(
            f'<line class="tick" x1="{place:g}%" x2="{place:g}%" y1="{AXIS_PX - 4}" y2="{height}"/>'
            f'<text class="scale" x="{place:g}%" y="{AXIS_PX - 8}" text-anchor="{anchor}">{at(tick, whole_us)}</text>'
        )
    return "".join(found)


def _lane(lane: Lane, top: int, whole_us: int) -> str:
    rule = f'<line class="rule" x1="0" x2="100%" y1="{top}" y2="{top}"/>'
    spans = "".join(_bar(span, top, whole_us) for span in lane.spans)
    return rule + spans + "".join(_mark(mark, top + LANE_PX // 2, whole_us) for mark in lane.marks)


def _bar(span: Span, top: int, whole_us: int) -> str:
    """A bar of its own viewport: what does not fit of its label is cut off there."""
    left, width = _share(span.from_us, whole_us), max(0.2, _share(span.to_us - span.from_us, whole_us))
    text = f'<text x="6" y="12">{safe(span.label)}</text>' if width >= LABEL_SHARE_MIN else ""
    return (
        f'<svg class="span {_class(span.kind)}" x="{left:g}%" y="{top + (LANE_PX - BAR_PX) // 2}" width="{width:g}%"'
        f' height="{BAR_PX}"><title>{safe(_told(span, whole_us))}</title><rect width="100%" height="100%" rx="3"/>{text}</svg>'
    )


def _mark(mark: StoryMark, middle: int, whole_us: int) -> str:
    shape = _SHAPES.get(mark.kind, _STROKE)
    title = f"{at(mark.at_us, whole_us)}: {mark.label}"
    return (
        f'<svg class="mark {_class(mark.kind)}" x="{_share(mark.at_us, whole_us):g}%" y="{middle}" overflow="visible">'
        f'<g><title>{safe(title)}</title><rect class="reach" x="-7" y="-9" width="14" height="18"/>{shape}</g></svg>'
    )


def _share(us: int, whole_us: int) -> float:
    return round(100 * us / whole_us, 3)


def _class(kind: str) -> str:
    """A kind as a class of ours, however it is spelt."""
    return f"k-{kind}" if kind.isalpha() and kind.isascii() else "k-other"


def _told(span: Span, whole_us: int) -> str:
    return f"{at(span.from_us, whole_us)} – {at(span.to_us, whole_us)}: {span.label} ({span.kind})"


def _list(told: Story, whole_us: int) -> str:
    """Everything in the order of time, for whoever does not see or hover."""
    lines = [(span.from_us, lane.name, _told(span, whole_us)) for lane in told.lanes for span in lane.spans]
    lines += [
        (mark.at_us, lane.name, f"{at(mark.at_us, whole_us)}: {mark.label} ({mark.kind})")
        for lane in told.lanes
        for mark in lane.marks
    ]
    rows = "".join(
        f'<tr><th scope="row">{safe(name)}</th><td>{safe(text)}</td></tr>' for _, name, text in sorted(lines)
    )
    return f'<table class="plain"><tbody>{rows}</tbody></table>'


def _legend(found: Sequence[Story]) -> str:
    spans = dict.fromkeys(span.kind for told in found for lane in told.lanes for span in lane.spans)
    marks = dict.fromkeys(mark.kind for told in found for lane in told.lanes for mark in lane.marks)
    bars = [
        f'<svg class="key span {_class(kind)}" width="22" height="12"><rect width="22" height="12" rx="3"/></svg>'
        for kind in spans
    ]
    signs = [
        f'<svg class="key mark {_class(kind)}" width="14" height="14" viewBox="{"-7 1 14 14" if kind == "commit" else "-7 -7 14 14"}">{_SHAPES.get(kind, _STROKE)}</svg>'
        for kind in marks
    ]
    items = zip([*bars, *signs], [*spans, *marks], strict=True)
    return f'<p class="legend">{"".join(f"<span>{drawn} {safe(kind)}</span>" for drawn, kind in items)}</p>'
