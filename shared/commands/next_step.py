"""What a person may do about a work that does not run: one line for each reason. Pure.

Rule: design §3 ("`held`: something must lift it"); requirements B06, C04, G05.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.commands.render import quoted
from shared.commands.work_facts import WorkFacts
from shared.model.wait import Awaited, WaitState
from shared.model.work import Permit, Reason, Work, WorkState

APPROVAL = "approval"
YES = '"yes"'
"""An answer, as JSON; what it means is between whoever asks and whoever answers."""


@dataclass(frozen=True, slots=True)
class Step:
    """`command`: of tenure, without `tenure`, that does `what`."""

    what: str
    command: str


def next_step(facts: WorkFacts) -> Step | None:
    """What lifts what keeps the work, or brings it on; None where nothing needs to be done, or nothing can be."""
    work = facts.work
    match work.state:
        case WorkState.HELD:
            return _of_held(work)
        case WorkState.READY:
            return _of_ready(facts)
        case WorkState.WAITING:
            return _of_waiting(work, facts.awaited)
        case WorkState.BACKOFF:
            return Step("try it now", f"work retry {work.id}")
        case WorkState.FAILED:
            return Step("try it again", f"work retry {work.id}")
        case WorkState.IDLE:
            return Step("hand it an input", f"submit {work.id} --input TEXT")
        case _:
            return None


def _of_held(work: Work) -> Step | None:
    if work.hold is not None:
        return Step("let it go", f"work release {work.id}")
    if work.reason is Reason.GATE_HELD:
        is_ours = work.start_hold is not None and work.start_hold.by == APPROVAL
        return Step("let it start, or `gate refuse`", f"gate admit {work.id}") if is_ours else None
    if work.reason is Reason.OVER_BUDGET:
        return Step("let it start once more", f"work release {work.id}")
    return Step("try it again, or `work cancel`", f"work retry {work.id}")


def _of_ready(facts: WorkFacts) -> Step | None:
    work = facts.work
    match work.reason:
        case Reason.QUARANTINED if work.reason_limit is not None:
            return Step("let its binding go", release_of_binding(work.reason_limit))
        case Reason.STOP_UNPROVEN if facts.attempts:
            return Step("see what may be left of it", f"attempt show {facts.attempts[-1].attempt.id}")
        case Reason.CAPACITY_CONCURRENCY | Reason.CAPACITY_JOB_CONCURRENCY | Reason.CAPACITY_SCOPE:
            return Step("see what takes the room", "capacity")
        case None:
            return None
        case _:
            return Step("see what is wrong", "doctor")


def _of_waiting(work: Work, awaited: Awaited | None) -> Step | None:
    if work.reason is Reason.OVER_BUDGET and Permit.BUDGET not in work.permits:
        return Step("let it go on once", f"work release {work.id}")
    if awaited is None or awaited.state is not WaitState.REGISTERED or awaited.event_type is None:
        return None
    return Step("answer it, yes or no" if awaited.ask else "wake it", answer(awaited))


def release_of_binding(binding: str) -> str:
    """The command that lifts a quarantine; it wants a reason."""
    return f'binding release {binding} --reason "…"'


def answer(awaited: Awaited) -> str:
    """The command that wakes whoever waits for an event; of one who asks a person, with an answer."""
    about = "" if awaited.correlate is None else f" --correlate {quoted([awaited.correlate])}"
    said = "" if awaited.ask is None else f" --data {quoted([YES])}"
    return f"event publish {awaited.event_type}{about}{said}"
