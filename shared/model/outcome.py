"""How a segment of an attempt ended, as its program says: what its declarations come to. Rule: requirements O01, O02, O06–O08."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.model.attempt import RetryHint


class OutcomeKind(StrEnum):
    """How a program says that its segment ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    HANDOFF = "handoff"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Turn:
    """The end of a turn: a status for whoever waits for one, and a comment for people. Rule: O06."""

    status: str
    comment: str


@dataclass(frozen=True, slots=True)
class WaitSpec:
    """What a Work waits for: an event, a time, or whichever comes first.

    Attributes:
        event_type: None: no event ends it. `correlate`: only events with that key; None: with any or none.
        after_us: Elapsed time from the park on; `until_at_us`: a time of the wall clock; at most one of them.
        resume: The same attempt goes on; False: it ends, and the next one follows.
        since_seq: Events behind this entry of the changefeed end it.
        ask: What a person is asked, whose answer that event is; "": nobody is.
    """

    event_type: str | None
    correlate: str | None
    after_us: int | None
    until_at_us: int | None
    resume: bool
    since_seq: int = 0
    ask: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a program declared of one segment, put together.

    Attributes:
        kind: None: it said nothing of how it ended, and its exit status decides.
        wait: Exactly with kind `waiting`.
        artifacts: References, never contents. `consumed`: numbers of inputs it says it took.
        retry, permanent: Of kind `failed` only.
    """

    kind: OutcomeKind | None = None
    turn: Turn | None = None
    wait: WaitSpec | None = None
    artifacts: tuple[str, ...] = ()
    consumed: tuple[int, ...] = ()
    retry: RetryHint | None = None
    permanent: bool = False
    summary: str = ""
