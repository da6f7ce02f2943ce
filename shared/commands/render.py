"""Text for people: times, durations, safe quoting, aligned tables, and colour where it is wanted. Pure but for `Ink.of`."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.model.instant import US_PER_MS, US_PER_S

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal may act upon, what turns text around or hides in it, and bytes that were no UTF-8."""
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e", "\\": "\\\\", "'": "\\'"}

_GOOD = {"succeeded", "completed", "live", "ok"}
_BAD = {"failed", "timed_out", "cancelled", "recovery_required", "held", "error"}
_UNDER_WAY = {"running", "launching", "resuming", "recovering", "draining", "warning", "unknown"}
_COLOURS = {"good": "32", "bad": "31", "under_way": "33", "faint": "2", "strong": "1"}


@dataclass(frozen=True, slots=True)
class Ink:
    """Colours, or none."""

    is_on: bool

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Ink:
        """On a terminal that can show it, unless NO_COLOR says no."""
        is_on = sys.stdout.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        return cls(is_on)

    def state(self, word: str) -> str:
        """A stored word, coloured by what it means for a person."""
        kind = "good" if word in _GOOD else "bad" if word in _BAD else "under_way" if word in _UNDER_WAY else None
        return word if kind is None else self._paint(word, kind)

    def strong(self, text: str) -> str:
        """What the eye should find first."""
        return self._paint(text, "strong")

    def faint(self, text: str) -> str:
        """What may be overlooked."""
        return self._paint(text, "faint")

    def _paint(self, text: str, kind: str) -> str:
        return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if self.is_on else text


def escaped(text: str, *, keep: str = "") -> str:
    """The text with every character that is not to be shown as it is written as an escape; those in `keep` stay."""

    def escape(match: re.Match[str]) -> str:
        character = match[0]
        if character in keep:
            return character
        code = ord(character)
        if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8, as Python keeps it
            return f"\\x{code - 0xDC00:02x}"
        return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")

    return _CONTROL.sub(escape, text)


MASK = "***"


def masked(env: Iterable[tuple[str, str]], given: Iterable[str] | None = None) -> dict[str, str]:
    """An environment to be shown: what whoever submitted the work gave is not repeated, as people hand in what they should not.

    Args:
        given: Names that were given so; None: all of them.
    """
    hidden = None if given is None else set(given)
    return {name: MASK if hidden is None or name in hidden else value for name, value in env}


def quoted(words: Sequence[str]) -> str:
    """A command as a shell would take it, on one line: words with control characters in the form $'…'."""
    return " ".join(_quoted_word(word) for word in words)


def _quoted_word(word: str) -> str:
    if _CONTROL.search(word) is None:
        return shlex.quote(word)
    safe = re.sub(r"[\\']", lambda match: _NAMED[match[0]], word)
    return f"$'{escaped(safe)}'"


def iso(at_us: int | None) -> str | None:
    """ISO 8601 in UTC with microseconds, for programs."""
    return None if at_us is None else _moment(at_us).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(at_us: int | None) -> str:
    """UTC to the second, for people; `-` when there is none."""
    return "-" if at_us is None else _moment(at_us).strftime("%Y-%m-%d %H:%M:%SZ")


def milliseconds(us: int | None) -> int | None:
    """For programs."""
    return None if us is None else us // US_PER_MS


def duration(us: int) -> str:
    """For people: two units at most, `850ms`, `12s`, `3m 20s`, `2h 5m`, `4d 1h`."""
    if us < US_PER_S:
        return f"{max(0, us) // US_PER_MS}ms"
    seconds = us // US_PER_S
    units = [("d", seconds // 86_400), ("h", seconds // 3600 % 24), ("m", seconds // 60 % 60), ("s", seconds % 60)]
    first = next(place for place, (_, count) in enumerate(units) if count)
    return " ".join(f"{count}{unit}" for unit, count in units[first : first + 2] if count)


def signed_duration(us: int) -> str:
    """For people, of a jump: `2s back`, `1d ahead`."""
    return f"{duration(abs(us))} {'back' if us < 0 else 'ahead'}"


def table(rows: Sequence[Sequence[str]], *, indent: str = "") -> list[str]:
    """Rows of cells as aligned lines; the last column runs free. Cells may hold colours."""
    if not rows:
        return []
    widths = [max(_width(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell + " " * (widths[column] - _width(cell)) for column, cell in enumerate(row)]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def counted(count: int, noun: str, *, capped: bool = False) -> str:
    """`1 worker`, `3 workers`, `1000+ works`."""
    return f"{count}{'+' if capped else ''} {noun}{'' if count == 1 and not capped else 's'}"


def print_json(value: object) -> None:
    """Print one object; ASCII, so that any locale and any byte of a command can be printed."""
    import json

    print(json.dumps(value, indent=2))


def _moment(at_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at_us)


def _width(cell: str) -> int:
    return len(re.sub("\x1b\\[[0-9]*m", "", cell))
