"""Why a start is held, in a line for people. Pure."""

from __future__ import annotations

from shared.model.work import Work


def why_held(work: Work) -> str:
    """By the budget or the gate that holds its next start, or, of what is parked, its going on."""
    if work.start_hold is not None:
        return work.start_hold.reason
    return f"what it waited for has come, and a budget of {work.reason_limit or 'its own'} is used up"
