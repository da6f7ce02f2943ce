"""How many of each a store holds: a small one, and one as full as years make it."""

from __future__ import annotations

from dataclasses import dataclass

FULL_SCOPES = 8
"""Scopes of one slot each, all taken; half of the ready Works lie in them. What is live is the same in every store."""
FREE_SLOTS = 4


@dataclass(frozen=True, slots=True)
class Population:
    """How many of each.

    Attributes:
        ready: Half in full scopes, which come first; the others could start, and come last.
        aside: Ready, and before all of those: half name a binding that is gone, half lie in a scope whose binding is in quarantine.
        held: Half by a person, half over budget.
        backoff: Failed once, each with its timer.
        alike, apart: Parked: many on one event, and each on one of its own, by its key or by its type.
        intents: Settled ones.
        finished: Works that have ended, with what an attempt leaves.
        events: Entries of the changefeed; every hundredth was published.
        budgets: Of which three count every Work, and the others a scope each in which nothing runs.
    """

    ready: int
    held: int
    backoff: int
    alike: int
    apart: int
    intents: int
    finished: int
    events: int
    budgets: int
    aside: int


SMALL = Population(
    ready=100, held=10, backoff=10, alike=640, apart=10, intents=10, finished=100, events=1_000, budgets=3, aside=10
)
GREAT = Population(
    ready=100_000,
    held=10_000,
    backoff=10_000,
    alike=10_000,
    apart=10_000,
    intents=1_000,
    finished=10_000,
    events=1_000_000,
    budgets=100,
    aside=10_000,
)
