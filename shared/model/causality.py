"""Causal depth: how many links lie between what somebody asked for and what came of it. Rule: `policy.causality`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.ids import AttemptId, WorkId

ROOT = 0
"""Depth of what a person, or a program from outside, asks for."""
DEPTH_MAX = 100
"""Of a home whose configuration says nothing."""


class Derived(StrEnum):
    """What an attempt's outcome derives, and a chain that is too long does not get."""

    TURN = "turn"
    HANDOFF = "handoff"


@dataclass(frozen=True, slots=True)
class TooDeep:
    """A link that is refused.

    Attributes:
        depth: It would have had.
        depth_max: The last one that is allowed.
    """

    depth: int
    depth_max: int


@dataclass(frozen=True, slots=True)
class ChainRefusal:
    """One link that was refused; the outcome it would have come with is kept.

    Attributes:
        epoch: Of the segment whose end declared it.
        depth: It would have had; `depth_max`: the last one that was allowed.
    """

    attempt_id: AttemptId
    work_id: WorkId
    epoch: int
    derived: Derived
    depth: int
    depth_max: int
    refused_at_us: int
