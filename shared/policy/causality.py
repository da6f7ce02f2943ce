"""How long a chain of causes may become: what an attempt publishes is one link deeper than what set the attempt off.

A person's word, or a program's from outside, is a root: depth 0. Two Works that wake each other for ever stop at the limit; that
branch alone, as what comes from a new root is counted from 0 again. Time is no link: what a timer wakes is as deep as what armed
it, since a chain that waits for the clock does not run away. Rule: requirements O06, O07, O09.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.model.attempt import Snapshot
from shared.model.causality import ROOT, TooDeep
from shared.model.outcome import Outcome, OutcomeKind


def depth_of_segment(inputs: Iterable[int], woken_by: int | None = None) -> int:
    """How deep an attempt's segment is: as the deepest of the inputs it was started with and of the event that woke it.

    Of all its inputs, not of the trigger alone: else a root that waits in the same batch would make a chain look short.
    """
    return max([ROOT, *inputs, *([] if woken_by is None else [woken_by])])


def derive(depth: int, pinned: Snapshot) -> int | TooDeep:
    """The depth of what an attempt of that depth publishes, by the limit that it pinned."""
    derived = depth + 1
    return derived if derived <= pinned.depth_max else TooDeep(derived, pinned.depth_max)


def asks_to_continue(outcome: Outcome | None, pinned: Snapshot) -> bool:
    """Whether an observed end asks that the next attempt follows at once. Off unless the binding says so. Rule: O07."""
    return outcome is not None and outcome.kind is OutcomeKind.HANDOFF and pinned.continues
