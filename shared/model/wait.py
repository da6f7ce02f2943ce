"""What a Work waits for, and what woke it. Rule: requirement O08."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from shared.ids import AttemptId, WorkId

WAKES_MAX = 64
"""Waits that one transaction ends, whatever it publishes; the rest is for those that follow. Rule: S01."""


class WaitState(StrEnum):
    """`registered`, then one of the others; `satisfied` is over once the attempt is resumed."""

    REGISTERED = "registered"
    SATISFIED = "satisfied"  # what it waited for has come; the attempt waits for a slot
    ACKNOWLEDGED = "acknowledged"  # the attempt was resumed, or the Work made ready for the next one
    CANCELLED = "cancelled"  # the attempt or its Work was ended meanwhile


@dataclass(frozen=True, slots=True)
class Awaited:
    """One stored wait.

    Attributes:
        epoch: Of the segment that ended with it.
        since_seq: Events behind this entry of the changefeed count: it was declared there.
        ask: What a person is asked; None: nobody is.
        wake_seq, woken_at_us: The accepted event that ended it; None together.
        due_seq: Since this entry of the changefeed its attempt may be resumed; None while it may not: nothing has come yet, or
            nothing ran of the resume that it was ended for, and a timer says when the next one may be tried.
    """

    attempt_id: AttemptId
    epoch: int
    work_id: WorkId
    resume: bool
    event_type: str | None
    correlate: str | None
    since_seq: int
    state: WaitState
    registered_at_us: int
    wake_seq: int | None
    woken_at_us: int | None
    ask: str | None = None
    due_seq: int | None = None

    @property
    def is_put_off(self) -> bool:
        """Whether nothing ran of the resume that it was ended for, and the time for the next one has not come."""
        return self.state is WaitState.SATISFIED and self.due_seq is None


@dataclass(frozen=True, slots=True)
class Wake:
    """The event that ended a wait.

    Attributes:
        seq: Its place in the changefeed.
        data: A JSON value as text.
    """

    seq: int
    type: str
    correlate: str | None
    data: str

    def to_json(self) -> str:
        """What the program is given."""
        told = {"seq": self.seq, "type": self.type, "correlate": self.correlate, "data": json.loads(self.data)}
        return json.dumps(told, ensure_ascii=False, separators=(",", ":"))
