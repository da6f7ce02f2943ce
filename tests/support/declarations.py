"""What programs declare, and what is published, in tests of the store."""

from __future__ import annotations

from shared.model.attempt import AttemptState, Ending
from shared.model.declaration import Declaration, declaration_of
from shared.model.event import NewEvent
from shared.model.work import WorkChange, WorkState

HANDED_OFF = Ending(AttemptState.HANDED_OFF, 0, None, None, "S1", "handed off")
WAITS = WorkChange(WorkState.WAITING, None, None, 0, spends_inputs=True)
TICK = NewEvent("tick", None, "1", "test")


def turn(status: str = "done", key: str = "turn-1") -> Declaration:
    """The end of a turn."""
    return declaration_of(key, "turn", {"status": status, "comment": "said"})


def wait(
    *,
    key: str = "wait-1",
    event: str | None = "tick",
    correlate: str | None = None,
    timer: str | None = "60s",
    resume: bool,
) -> Declaration:
    """A wait for an event, a time, or both."""
    awaited = None if event is None else {"type": event, "correlate": correlate}
    return declaration_of(key, "wait", {"event": awaited, "timer": timer, "resume": resume})


TURN = turn()
HANDOFF = declaration_of("outcome-1", "outcome", {"kind": "handoff", "summary": "half of it"})
CONSUMED = declaration_of("consumed-1", "consumed", {"inputs": [1]})
WAIT = wait(resume=False)
WAIT_TO_RESUME = wait(resume=True)
