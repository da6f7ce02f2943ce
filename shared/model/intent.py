"""Control intents: a person's or program's word to a running attempt, and what became of it.

An input is accepted with its intent, in one transaction: whatever becomes of the intent, the input waits until an attempt says
that it took it. Rule: requirements O01, T01–T04; research "context" §2.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.ids import AttemptId, Incarnation, WorkId


class IntentKind(StrEnum):
    """What is asked of the attempt."""

    INJECT = "inject"
    INTERRUPT = "interrupt"


class Fate(StrEnum):
    """What became of an intent; the last ones are final."""

    QUEUED = "queued"  # nobody acts on it yet: its attempt is launching, or not looked at
    DISPATCHED = "dispatched"  # a holder acts on it, and has not said what came of that
    ACCEPTED = "accepted"  # handed over; an interrupt: the attempt is fenced, and its stop ordered
    CONSUMED = "consumed"  # the program took the input
    NOT_ACCEPTING = "not_accepting"  # the program takes no input while it runs; the input waits for the next attempt
    RETURNED = "returned"  # its attempt was over first, or there was none; the input waits for the next attempt
    DROPPED = "dropped"  # it could not be handed over, and the binding says that the input is then given up


OPEN_FATES = (Fate.QUEUED, Fate.DISPATCHED, Fate.ACCEPTED)


class Delivered(StrEnum):
    """What came of acting on an intent."""

    ACCEPTED = "accepted"
    NOT_ACCEPTING = "not_accepting"
    LATER = "later"  # there was no room just then: the same again
    FAILED = "failed"  # it cannot be handed over: what the binding says follows


@dataclass(frozen=True, slots=True)
class Intent:
    """One intent.

    Attributes:
        number: Its identity; the program is told it as `i7`, every time the same, and drops what it has seen.
        attempt_id: Whom it is for, and nobody else ever; None: nothing ran when it was accepted.
        input: Number of the input that came with it; None for an interrupt.
        token: Of whoever acts on it now, or acted last; a later one replaces it.
        tries: How often somebody set out to act on it.
        why: One line on its fate; None: the word says it all.
        given_to: The attempt that has its input now; None: none has, it is pending, or was given up.
    """

    number: int
    kind: IntentKind
    work_id: WorkId
    attempt_id: AttemptId | None
    input: int | None
    fate: Fate
    token: int | None
    tries: int
    by: str
    accepted_at_us: int
    settled_at_us: int | None
    why: str | None
    given_to: AttemptId | None = None

    @property
    def id(self) -> str:
        """How it is called: `i7`."""
        return f"i{self.number}"


@dataclass(frozen=True, slots=True)
class DueIntent:
    """An intent that a holder may act on now. `epoch`: of its live lease; `body`: of its input."""

    intent: Intent
    epoch: int
    owner: Incarnation
    body: bytes
