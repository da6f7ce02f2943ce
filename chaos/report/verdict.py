"""What results say in one line, and in a few more. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from chaos.report.text import number, several
from chaos.results import Result

PROMISE = "0 lost, 0 run twice, 0 false success"


class Tone(StrEnum):
    """How a verdict looks: it holds, something was found, or too little was tried to say."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The line, and how it looks."""

    tone: Tone
    line: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found: where, by which check, what, and the command that plays it again."""

    where: str
    check: str
    said: str
    replay: str


def findings(result: Result) -> list[Finding]:
    """Everything found, cells first."""
    found = [
        Finding(cell.name, *_parts(text), cell.replay or result.command)
        for cell in result.cells
        for text in cell.findings
    ]
    found += [Finding(result.drill, each.check, each.said, each.replay) for each in result.findings]
    found += [
        Finding(guard.name, guard.check, "the guard was removed, and the check never fired", result.command)
        for guard in result.guards
        if guard.is_missed
    ]
    return found


def verdict(results: Sequence[Result]) -> Verdict:
    """What all of them come to: one finding anywhere is a finding; nothing tried is no success."""
    found = [finding for result in results for finding in findings(result)]
    if found:
        checks = Counter(finding.check for finding in found)
        named = ", ".join(f"{name} ({number(count)})" if count > 1 else name for name, count in checks.most_common(4))
        rest = "" if len(checks) <= 4 else f" and {several(len(checks) - 4, 'more check')}"
        return Verdict(Tone.BAD, f"{several(len(found), 'finding')}: {named}{rest}")
    short = next((result.cut_short for result in results if result.cut_short), "")
    if short:
        return Verdict(Tone.OPEN, f"Cut short ({short}); nothing was found until then")
    if any(_has_tried(result) for result in results):
        return Verdict(Tone.GOOD, PROMISE)
    removed = sum(guard.seeds is not None for result in results for guard in result.guards)
    if removed:
        return Verdict(Tone.GOOD, f"{several(removed, 'guard')} taken away, each noticed by its check")
    return Verdict(Tone.OPEN, "Nothing was tried")


def _has_tried(result: Result) -> bool:
    """Whether tenure as it is was harmed; taking guards away says something of the checks only."""
    return any(not cell.skipped for cell in result.cells) or (any(result.totals.values()) and not result.guards)


def _parts(text: str) -> tuple[str, str]:
    """A check's name and what it said; a sentence without one is the drill's own."""
    name, colon, said = text.partition(": ")
    return (name, said) if colon and name.isidentifier() else ("drill", text)
