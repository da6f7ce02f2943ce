"""Durations as people write them: `"30s"`, `"5m"`, `"1h30m"`; a unit is never guessed.

Rule: design §12 (units required; `lease` 1 s to 1 h, other durations 1 s to 365 d).
"""

from __future__ import annotations

import re

_UNIT_US = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000}
_WORDS = {
    "msec": "ms", "millisecond": "ms", "sec": "s", "second": "s", "min": "m", "minute": "m", "hr": "h", "hour": "h", "day": "d",
}  # fmt: skip
_PART = re.compile(r"(0|[1-9][0-9]{0,11})(ms|s|m|h|d)")
_LOOSE = re.compile(r"\s*([0-9]{1,12})\s*([A-Za-z]+)\s*")

DURATION_MIN_US = _UNIT_US["s"]
DURATION_MAX_US = 365 * _UNIT_US["d"]
LEASE_MAX_US = _UNIT_US["h"]


class DurationError(ValueError):
    """The text is no duration, or one outside its bounds.

    Attributes:
        reason: What is wrong, to be read after the key's name.
        hint: What was probably meant, or how durations are written; None when the reason says it.
    """

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def parse_duration_us(text: str, *, min_us: int = DURATION_MIN_US, max_us: int = DURATION_MAX_US) -> int:
    """Microseconds of a duration: whole numbers with `d`, `h`, `m`, `s`, `ms`, largest first, each at most once.

    Raises:
        DurationError: no number, no unit, another unit, or outside the bounds (both are included).
    """
    total_us, position, last_unit_us = 0, 0, None
    while position < len(text):
        part = _PART.match(text, position)
        unit_us = None if part is None else _UNIT_US[part[2]]
        if part is None or unit_us is None or (last_unit_us is not None and unit_us >= last_unit_us):
            raise _refusal(text)
        total_us += int(part[1]) * unit_us
        position, last_unit_us = part.end(), unit_us
    if last_unit_us is None:
        raise _refusal(text)
    if not min_us <= total_us <= max_us:
        bounds = f"must be from {format_duration(min_us)} to {format_duration(max_us)}"
        raise DurationError(f'{bounds}, not "{text}"')
    return total_us


def format_duration(duration_us: int) -> str:
    """The shortest text that `parse_duration_us` reads back as the same whole milliseconds: 5400 s gives `1h30m`."""
    rest, text = duration_us, ""
    for unit, unit_us in _UNIT_US.items():
        count, rest = divmod(rest, unit_us)
        if count:
            text += f"{count}{unit}"
    return text or "0s"


def _refusal(text: str) -> DurationError:
    stripped = text.strip()
    shown = stripped if len(stripped) <= 40 else stripped[:40] + "…"
    if stripped.isascii() and stripped.isdigit():
        return DurationError(f'"{shown}" needs a unit, e.g. "{int(stripped[:12])}s"')
    loose = _LOOSE.fullmatch(text)
    if loose is not None:
        word = loose[2].lower()
        unit = word if word in _UNIT_US else _WORDS.get(word.removesuffix("s"))
        if unit is not None:
            return DurationError(f'"{shown}" is no duration', f'did you mean "{int(loose[1])}{unit}"?')
    return DurationError(f'"{shown}" is no duration', 'whole numbers with d, h, m, s or ms, as in "1h30m"')
