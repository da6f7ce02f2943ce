"""What is said to a Work of a random drill besides handing it in: planned words, and a person's answers. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ActKind(StrEnum):
    """What is done to a Work that can be spoken with."""

    FEED = "feed"  # a further input: handed over while it runs, if it is an agent's, or else for its next attempt
    SUBMIT = "submit"  # a further input of standing Work, for its next attempt
    INTERRUPT = "interrupt"  # once something of it runs
    HOLD = "hold"  # for as long as a person takes to let it go
    PUBLISH = "publish"  # the event that it may wait for
    DECOY = "decoy"  # an event of that type, about something else


@dataclass(frozen=True, slots=True)
class Act:
    """One of these, so long after the Work was handed in.

    Attributes:
        number: From 1, within the job; in the input's text and its key.
        size: Of the input's text, in bytes, at least.
        again: It is done once more under the same key, at once.
        command: By the command.
    """

    kind: ActKind
    after_s: float
    number: int
    size: int = 0
    again: bool = False
    command: bool = False


@dataclass(frozen=True, slots=True)
class Person:
    """What a person says of the Work when it is asked to.

    Attributes:
        after_s: So long it takes.
        admits: At a gate; else it refuses.
        retries: What failed for good is tried again once.
    """

    after_s: float = 0.0
    admits: bool = True
    retries: bool = True


PLAIN_PERSON = Person()
