"""Sizes in bytes as people write them: `"64MiB"`, `"10MB"`; a unit is never guessed."""

from __future__ import annotations

import re

_UNITS = {
    "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_SIZE = re.compile(r"(0|[1-9][0-9]{0,14})(B|[KMGT]i?B)")
_LOOSE = re.compile(r"\s*([0-9]{1,15})\s*([A-Za-z]+)\s*")

SIZE_MIN = 4 * _UNITS["KiB"]
SIZE_MAX = _UNITS["TiB"]


class SizeError(ValueError):
    """The text is no size, or one outside its bounds.

    Attributes:
        reason: What is wrong, to be read after the key's name.
        hint: What was probably meant, or how sizes are written; None when the reason says it.
    """

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def parse_size(text: str, *, least: int = SIZE_MIN, most: int = SIZE_MAX) -> int:
    """Bytes of a size: a whole number with B, KB, MB, GB, TB (thousands) or KiB, MiB, GiB, TiB (1024s).

    Raises:
        SizeError: no number, no unit, another unit, or outside the bounds (both are included).
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise _refusal(text)
    size = int(found[1]) * _UNITS[found[2]]
    if not least <= size <= most:
        raise SizeError(f'must be from {format_size(least)} to {format_size(most)}, not "{text}"')
    return size


def format_size(size: int) -> str:
    """The shortest text that `parse_size` reads back as the same number of bytes: 67108864 gives `64MiB`."""
    exact = [f"{size // factor}{unit}" for unit, factor in _UNITS.items() if size % factor == 0 and size >= factor]
    return min(exact, key=len, default="0B")


def _refusal(text: str) -> SizeError:
    stripped = text.strip()
    shown = stripped if len(stripped) <= 40 else stripped[:40] + "…"
    if stripped.isascii() and stripped.isdigit():
        return SizeError(f'"{shown}" needs a unit, e.g. "64MiB"')
    loose = _LOOSE.fullmatch(text)
    if loose is not None:
        unit = next((unit for unit in _UNITS if unit.lower() == loose[2].lower()), None)
        # "64M" and "64k" mean thousands to one and 1024s to another: both are offered.
        short = loose[2].upper().removesuffix("I")
        number = int(loose[1])
        if unit is not None:
            return SizeError(f'"{shown}" is no size', f'did you mean "{number}{unit}"?')
        if short in {"K", "M", "G", "T"}:
            return SizeError(f'"{shown}" is no size', f'did you mean "{number}{short}iB" or "{number}{short}B"?')
    return SizeError(f'"{shown}" is no size', 'a whole number with B, KB, MB, GB, KiB, MiB or GiB, as in "64MiB"')
