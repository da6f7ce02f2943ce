"""The state tables of Work and attempt, and one pure `step` for each.

Everything that may change a stored state is in the two tables below; a pair that is not in them is illegal and raises.
Final states have no row, but for one: a Work that failed has ended, and a person may try it again. The diagram in `docs/states.md` is drawn from these tables.

Rule: design §3, "States".
"""

from __future__ import annotations

from enum import StrEnum

from shared.model.attempt import AttemptState as A
from shared.model.work import WorkState as W


class AttemptEvent(StrEnum):
    """What can happen to an attempt."""

    PINNED = "pinned"
    TAKEN_OVER = "taken_over"  # a recovery claim: same attempt, next epoch
    ADOPTED = "adopted"
    RELAUNCHED = "relaunched"  # nothing ran: launch again
    RELAUNCHED_RESUME = "relaunched_resume"
    PARKED = "parked"
    WOKEN = "woken"
    PUT_OFF = "put_off"  # nothing of its resume ran: it waits for another one
    UNCERTAIN = "uncertain"  # it may have run; a person decides
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    HANDED_OFF = "handed_off"
    CANCELLED = "cancelled"


class WorkEvent(StrEnum):
    """What can happen to a Work."""

    CLAIMED = "claimed"
    HELD = "held"
    LIFTED = "lifted"
    INPUT = "input"
    EXHAUSTED_INPUT = "exhausted_input"
    ATTEMPT_PARKED = "attempt_parked"
    ATTEMPT_WOKEN = "attempt_woken"  # a worker is chosen for the resume
    WAITS = "waits"  # its attempt has ended, and the next one waits for an event or a time
    WOKEN = "woken"  # what it waited for has come: the next attempt may start
    RETRY_ARMED = "retry_armed"
    RETRY_DUE = "retry_due"
    RETRIED = "retried"  # a person's retry
    RETURNED = "returned"  # the attempt ended and the Work may be tried again at once
    RESTED = "rested"  # nothing is to be done until the next input
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


E = AttemptEvent

ATTEMPT_STEPS: dict[tuple[A, AttemptEvent], A] = {
    (A.LAUNCHING, E.PINNED): A.RUNNING,
    (A.RESUMING, E.PINNED): A.RUNNING,
    (A.LAUNCHING, E.TAKEN_OVER): A.RECOVERING,
    (A.RUNNING, E.TAKEN_OVER): A.RECOVERING,
    (A.RESUMING, E.TAKEN_OVER): A.RECOVERING,
    (A.RECOVERING, E.TAKEN_OVER): A.RECOVERING,
    (A.RECOVERING, E.ADOPTED): A.RUNNING,
    (A.RECOVERING, E.RELAUNCHED): A.LAUNCHING,
    (A.RECOVERING, E.RELAUNCHED_RESUME): A.RESUMING,
    (A.RUNNING, E.PARKED): A.PARKED,
    (A.RECOVERING, E.PARKED): A.PARKED,  # its end was seen by whoever took it over
    (A.PARKED, E.WOKEN): A.RESUMING,
    (A.RESUMING, E.PUT_OFF): A.PARKED,
    (A.RECOVERING, E.PUT_OFF): A.PARKED,
    (A.LAUNCHING, E.UNCERTAIN): A.RECOVERY_REQUIRED,
    (A.RUNNING, E.UNCERTAIN): A.RECOVERY_REQUIRED,
    (A.RESUMING, E.UNCERTAIN): A.RECOVERY_REQUIRED,
    (A.RECOVERING, E.UNCERTAIN): A.RECOVERY_REQUIRED,
}

_ENDINGS: dict[AttemptEvent, A] = {
    E.SUCCEEDED: A.SUCCEEDED,
    E.FAILED: A.FAILED,
    E.TIMED_OUT: A.TIMED_OUT,
    E.INTERRUPTED: A.INTERRUPTED,
    E.HANDED_OFF: A.HANDED_OFF,
    E.CANCELLED: A.CANCELLED,
}
_ENDABLE = (A.LAUNCHING, A.RUNNING, A.RESUMING, A.RECOVERING, A.PARKED, A.RECOVERY_REQUIRED)
_NEVER: set[tuple[A, AttemptEvent]] = {
    # Nothing that has not been observed can have succeeded or handed off.
    (A.LAUNCHING, E.SUCCEEDED),
    (A.LAUNCHING, E.HANDED_OFF),
    (A.RESUMING, E.SUCCEEDED),
    (A.RESUMING, E.HANDED_OFF),
    (A.PARKED, E.SUCCEEDED),
    (A.PARKED, E.HANDED_OFF),
    (A.RECOVERY_REQUIRED, E.HANDED_OFF),
}
ATTEMPT_STEPS.update(
    {(state, event): target for state in _ENDABLE for event, target in _ENDINGS.items() if (state, event) not in _NEVER}
)

V = WorkEvent
_OPEN_AT_REST = (W.IDLE, W.READY, W.HELD, W.BACKOFF)

WORK_STEPS: dict[tuple[W, WorkEvent], W] = {
    (W.IDLE, V.INPUT): W.READY,
    (W.READY, V.CLAIMED): W.RUNNING,
    (W.READY, V.HELD): W.HELD,
    (W.READY, V.EXHAUSTED_INPUT): W.IDLE,
    (W.IDLE, V.HELD): W.HELD,
    (W.HELD, V.LIFTED): W.READY,
    (W.HELD, V.RESTED): W.IDLE,
    (W.BACKOFF, V.RETRY_DUE): W.READY,
    # A person may try again what failed, is held for want of anything left to try, waits, or rests after a failure.
    **{(state, V.RETRIED): W.READY for state in (W.IDLE, W.HELD, W.BACKOFF, W.FAILED)},
    (W.BACKOFF, V.HELD): W.HELD,
    (W.RUNNING, V.ATTEMPT_PARKED): W.WAITING,
    (W.WAITING, V.ATTEMPT_WOKEN): W.RUNNING,
    (W.RUNNING, V.WAITS): W.WAITING,
    (W.WAITING, V.WOKEN): W.READY,
    (W.RUNNING, V.RETRY_ARMED): W.BACKOFF,
    (W.WAITING, V.RETRY_ARMED): W.BACKOFF,
    (W.RUNNING, V.RETURNED): W.READY,
    (W.WAITING, V.RETURNED): W.READY,
    (W.RUNNING, V.RESTED): W.IDLE,
    (W.WAITING, V.RESTED): W.IDLE,
    (W.RUNNING, V.HELD): W.HELD,
    (W.WAITING, V.HELD): W.HELD,
    (W.RUNNING, V.COMPLETED): W.COMPLETED,
    (W.RUNNING, V.FAILED): W.FAILED,
    (W.WAITING, V.FAILED): W.FAILED,
    **{(state, V.CANCELLED): W.CANCELLED for state in (*_OPEN_AT_REST, W.RUNNING, W.WAITING)},
}


class IllegalStepError(ValueError):
    """The pair of state and event is not in the table: our own bug.

    Attributes: state, event.
    """

    def __init__(self, state: str, event: str) -> None:
        self.state = state
        self.event = event
        super().__init__(state, event)

    def __str__(self) -> str:
        return f"no step from {self.state} on {self.event}"


def step_attempt(state: A, event: AttemptEvent) -> A:
    """The attempt's next state.

    Raises:
        IllegalStepError: the pair is not in `ATTEMPT_STEPS`.
    """
    try:
        return ATTEMPT_STEPS[state, event]
    except KeyError:
        raise IllegalStepError(state, event) from None


def step_work(state: W, event: WorkEvent) -> W:
    """The Work's next state.

    Raises:
        IllegalStepError: the pair is not in `WORK_STEPS`.
    """
    try:
        return WORK_STEPS[state, event]
    except KeyError:
        raise IllegalStepError(state, event) from None


def is_final_attempt(state: A) -> bool:
    """True when no step leaves the state."""
    return state not in _ENDABLE


def is_final_work(state: W) -> bool:
    """True when the Work has ended: nothing but a person's retry of a failed one leaves the state."""
    return state in (W.COMPLETED, W.FAILED, W.CANCELLED)


def ending_event(state: A) -> AttemptEvent:
    """The event that leads to a final state (the words are the same)."""
    return AttemptEvent(state.value)


WORK_EVENT_OF_STATE: dict[W, WorkEvent] = {
    W.READY: V.RETURNED,
    W.BACKOFF: V.RETRY_ARMED,
    W.HELD: V.HELD,
    W.IDLE: V.RESTED,
    W.WAITING: V.WAITS,
    W.COMPLETED: V.COMPLETED,
    W.FAILED: V.FAILED,
    W.CANCELLED: V.CANCELLED,
}
"""For the end of an attempt: the event that takes its running Work to the state policy chose."""
