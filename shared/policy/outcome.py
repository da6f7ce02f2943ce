"""How a segment ends of which its program declared something: by its word where the end was seen, else by what was seen.

Rule: requirements O06–O08, O15, M02: what nobody saw the end of is never a success, whatever was declared.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.model.attempt import AttemptState, Ending, FailureClass
from shared.model.outcome import Outcome, OutcomeKind
from shared.policy.resumption import PutOff

TOLD_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class Park:
    """The attempt waits. `proof`: of its segment's stop."""

    proof: str


@dataclass(frozen=True, slots=True)
class Unproven:
    """It is to be parked, and what it left is not proven stopped: a person decides, its slot is held."""

    why: str


End = Ending | Park | PutOff | Unproven


def applies(observed: Ending) -> bool:
    """Whether the end was seen, so that what was declared counts."""
    return observed.exit_status is not None


def end_of(observed: Ending, outcome: Outcome) -> End:
    """What becomes of an attempt.

    Args:
        observed: The end by its exit status and its proof alone.
    """
    if not applies(observed):
        return observed
    match outcome.kind:
        case OutcomeKind.COMPLETED:
            return _ending(observed, AttemptState.SUCCEEDED, "declared completed")
        case OutcomeKind.HANDOFF:
            return _ending(observed, AttemptState.HANDED_OFF, "handed off")
        case OutcomeKind.FAILED:
            failure = FailureClass.PERMANENT if outcome.permanent else FailureClass.KNOWN
            summary = " ".join(outcome.summary.split())[:TOLD_CHARS_MAX]
            told = f"declared failed: {summary}" if summary else "declared failed"
            return Ending(
                AttemptState.FAILED,
                observed.exit_status,
                failure,
                told,
                observed.proof,
                "declared failed",
                hint=outcome.retry,
            )
        case OutcomeKind.WAITING if observed.exit_status == 0:
            return _waiting(observed, outcome)
        case _:
            return observed


def _waiting(observed: Ending, outcome: Outcome) -> End:
    assert outcome.wait is not None, "an outcome waits for something"
    if not outcome.wait.resume:
        return _ending(observed, AttemptState.HANDED_OFF, "the next attempt waits")
    if observed.proof is None:
        return Unproven("it asked to wait, and what it left is not proven stopped")
    return Park(observed.proof)


def _ending(observed: Ending, state: AttemptState, why: str) -> Ending:
    return Ending(state, observed.exit_status, None, None, observed.proof, why)
