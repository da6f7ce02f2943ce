"""Durations on the command line: as in tenure.toml, a unit is never guessed. Apart from `arguments`, which hot commands import."""

from __future__ import annotations

from shared.config.durations import DurationError, parse_duration_us
from shared.errors import UsageError


def duration_us(text: str, option: str, *, most_us: int) -> int:
    """Microseconds of a duration as it is written everywhere: `30s`, `1h30m`, `0s`.

    Raises:
        UsageError: it is none, has no unit, or is longer than `most_us`.
    """
    try:
        return parse_duration_us(text, min_us=0, max_us=most_us)
    except DurationError as error:
        raise UsageError(f"{option}: {error.reason}", hint=error.hint) from error
