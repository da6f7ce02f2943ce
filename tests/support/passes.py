"""Records of passes, for tests that are about something else than making them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shared.model.host import PassRecord

QUIET = PassRecord(
    generation=1,
    trigger="deadline",
    due_at_us=1,
    started_at_us=2,
    duration_us=1_000,
    planned=None,
    claimed=0,
    dispatched=0,
    recovered=0,
    revoked=0,
    waiting_jobs=0,
    waiting_agents=0,
    cut_short=False,
    clock_jump_us=None,
    error=None,
)
"""A pass that found nothing to do."""


def pass_record(*, at_us: int | None = None, **changes: Any) -> PassRecord:
    """A quiet pass with these facts instead. `at_us`: due and started then."""
    times: dict[str, Any] = {} if at_us is None else {"due_at_us": at_us, "started_at_us": at_us}
    return replace(QUIET, **times, **changes)
