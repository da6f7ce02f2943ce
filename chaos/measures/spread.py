"""What a series of measured values comes to."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

Numbers = dict[str, object]
"""What a measure gives: plain numbers by name, the unit in the name."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Middle and edges of a series, in the unit of its field's name."""

    p50: float
    p99: float
    least: float
    most: float
    count: int

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """The spread of a series of at least one."""
        ordered = sorted(values)
        last = len(ordered) - 1
        p50, p99 = round(statistics.median(ordered), 3), round(ordered[round(0.99 * last)], 3)
        return Spread(p50, p99, round(ordered[0], 3), round(ordered[-1], 3), len(ordered))
