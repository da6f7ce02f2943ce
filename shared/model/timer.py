"""Timer: a durable wait of a Work that something armed, and that fires once. Rule: requirements O09, O13."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.ids import AttemptId, WorkId
from shared.model.instant import Instant, elapsed_us


class TimerKind(StrEnum):
    """What a timer is for."""

    RETRY = "retry"  # a failure; its policy says when
    HINT = "hint"  # a failure that said itself when trying again makes sense
    ADMISSION = "admission"  # nothing ran; spends no retry
    WAIT = "wait"  # what a program asked to wait for
    RESUME = "resume"  # nothing ran of a resume


class TimerState(StrEnum):
    """`armed`, then one of the others, for good."""

    ARMED = "armed"
    FIRED = "fired"
    CANCELLED = "cancelled"  # a person's word, or the end of its Work


@dataclass(frozen=True, slots=True)
class Timer:
    """One timer.

    Attributes:
        attempt_id, epoch: The attempt whose end armed it.
        trigger_input: What had set that attempt off; None when nothing had.
        since, after_us: When it was armed, and the elapsed time after which it is due.
        due_at_us: Wall time at which it is due in any case; None: it goes by elapsed time alone.
        armed_seq: The event of the end that armed it; the event that fires it comes behind.
        why: One line: why it waits so long.
        fired_seq: The accepted event that fired it; None unless it has fired.
    """

    id: int
    work_id: WorkId
    kind: TimerKind
    state: TimerState
    attempt_id: AttemptId
    epoch: int
    trigger_input: int | None
    since: Instant
    after_us: int
    due_at_us: int | None
    armed_seq: int
    why: str
    fired_seq: int | None


def is_due(timer: Timer, now: Instant) -> bool:
    """Whether enough time has passed, or the wall time has come that it was armed for.

    Either is enough: a suspended host counts no elapsed time, and a wall clock that was set back would delay it for ever.
    """
    by_wall = timer.due_at_us is not None and now.wall_us >= timer.due_at_us
    return by_wall or elapsed_us(timer.since, now) >= timer.after_us


def timer_due_us(timer: Timer) -> int:
    """The wall time at which it is due, as far as the clock says today; for people."""
    by_elapsed = timer.since.wall_us + timer.after_us
    return by_elapsed if timer.due_at_us is None else min(by_elapsed, timer.due_at_us)
