"""Text, numbers and times as the page shows them; everything that goes into markup passes through `safe`. Pure."""

from __future__ import annotations

from html import escape

from shared.commands.render import escaped

THIN = "\N{NARROW NO-BREAK SPACE}"
_US = {"µs": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000}


def safe(text: str) -> str:
    """Text as markup: what is no text to be read (control characters, broken UTF-8) as an escape, the rest as it is."""
    return escape(escaped(text), quote=True)


def number(value: float) -> str:
    """`12 345`, `0.25`, `41.5`: groups of three, and no more digits behind the point than tell something."""
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}".replace(",", THIN)
    digits = 2 if abs(value) < 10 else 1
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".").replace(",", THIN)


def took(ms: int) -> str:
    """A duration: `812 ms`, `4.2 s`, `1 min 5 s`, `2 h 10 min`."""
    if ms < 1_000:
        return f"{ms}{THIN}ms"
    if ms < 60_000:
        return f"{ms / 1_000:.1f}{THIN}s"
    seconds = round(ms / 1_000)
    if seconds < 3_600:
        return f"{seconds // 60}{THIN}min {seconds % 60}{THIN}s"
    return f"{seconds // 3_600}{THIN}h {seconds // 60 % 60}{THIN}min"


def at(us: int, span_us: int) -> str:
    """An instant of a story in the unit that suits the whole of it: `1.25 s` in one of three seconds."""
    unit = next((name for name in ("min", "s", "ms") if span_us >= 2 * _US[name]), "µs")
    return f"{us / _US[unit]:.6g}{THIN}{unit}" if us else "0"


def several(count: int, noun: str, plural: str | None = None) -> str:
    """`1 cell`, `3 cells`; `plural` where it is not the noun with an s."""
    return f"{number(count)} {noun if count == 1 else plural or noun + 's'}"
