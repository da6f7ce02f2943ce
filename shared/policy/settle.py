"""What an observed end means for the attempt and for its Work."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shared.model.attempt import Attempt, AttemptState, Ending, FailureClass, Snapshot
from shared.model.evidence import Evidence, ExitRecord
from shared.model.instant import US_PER_S, Instant
from shared.model.timer import TimerKind
from shared.model.work import Reason, RoutineNews, Work, WorkChange, WorkKind, WorkState
from shared.policy import retry
from shared.policy.losses import ending_of_lost_workers

PERMANENT_ERRORS = frozenset({"ENOENT", "EACCES", "ENOEXEC", "E2BIG"})
RELAUNCHES_MAX = 5
SIGKILL = 9


OUT_OF_TIME = Ending(AttemptState.TIMED_OUT, None, FailureClass.TIMED_OUT, "out of time", None, "timed out")
"""How an attempt ends that used its time up: its stop is ordered, its exclusion held until that is proven. Rule: O05."""


def ending_idle(idle_us: int) -> Ending:
    """How an agent ends that was quiet for longer than its binding lets it: a timeout of its own, to be retried as one."""
    error = f"idle: no output for {idle_us / US_PER_S:g} s"
    return Ending(AttemptState.FAILED, None, FailureClass.TIMED_OUT, error, None, "idle")


def ending_instead_of_relaunch(attempt: Attempt, pinned: Snapshot, proof: str | None) -> Ending | None:
    """How an attempt ends whose launches came to nothing so often that there is no further one; None: launch it again.

    Args:
        proof: That nothing is left of its launches; None: a stop order has to find one.
    """
    if attempt.relaunches < RELAUNCHES_MAX:
        return ending_of_lost_workers(attempt, pinned)
    error = "five launches came to nothing"
    return Ending(AttemptState.FAILED, None, FailureClass.ADMISSION, error, proof, "nothing ran")


def ending_of_exit(record: ExitRecord, proof: str | None) -> Ending:
    """How an attempt ended whose shim recorded its end.

    Args:
        proof: `S1` when the record says the tree is empty and the lock was seen free; else None (exclusion stays held).
    """
    if not record.ran:
        return _ending_of_error(record.error or "register: the child died", proof)
    ending = ending_of_status(record.status, proof)
    return _told_of_memory(ending) if record.oom and ending.failure is FailureClass.KNOWN else ending


def ending_of_status(status: int | None, proof: str | None) -> Ending:
    """How an attempt ended whose main process's exit status is known; never success without one."""
    if status == 0:
        return Ending(AttemptState.SUCCEEDED, 0, None, None, proof, "ended")
    if status is None:
        return Ending(AttemptState.FAILED, None, FailureClass.AMBIGUOUS, "exit status unknown", proof, "ended")
    told = f"exit status {status}" if status > 0 else f"killed by signal {-status}"
    return Ending(AttemptState.FAILED, status, FailureClass.KNOWN, told, proof, "ended")


def _told_of_memory(ending: Ending) -> Ending:
    """A failure of which the job's own cgroup says that the kernel killed some of it. Rule: case C056."""
    if ending.exit_status == -SIGKILL:
        return replace(ending, error="out of memory (signal 9)")
    return replace(ending, error=f"{ending.error}; out of memory: the kernel killed some of it")


def _ending_of_error(error: str, proof: str | None) -> Ending:
    """Rule: design §7: an error names its stage; permanent are only four errors at `exec`."""
    stage, _, rest = error.partition(": ")
    name = rest.partition(":")[0]
    permanent = stage == "exec" and name in PERMANENT_ERRORS
    failure = FailureClass.PERMANENT if permanent else FailureClass.ADMISSION
    return Ending(AttemptState.FAILED, None, failure, error, proof, "nothing ran")


def ending_of_evidence(evidence: Evidence, proof: str | None) -> Ending:
    """How a recovered attempt ended whose verdict was FINISHED."""
    if evidence.exit is not None:
        return ending_of_exit(evidence.exit, proof)
    return ending_of_status(evidence.child_status, proof)


@dataclass(frozen=True, slots=True)
class Before:
    """What the end of an attempt finds.

    Attributes:
        work: As it is while the attempt still runs.
        pinned: What the attempt pinned.
        inputs_wait: Inputs are pending besides those of the attempt, or one comes with its end: that of a handoff.
        waits: The program asked that the next attempt waits for something.
    """

    work: Work
    pinned: Snapshot
    inputs_wait: bool
    waits: bool = False


def settle(ending: Ending, before: Before, now: Instant) -> WorkChange:
    """What the end of its attempt means for a Work.

    A success settles a run-once Work, unless input has come that no attempt was given yet; a standing one rests until its next
    input. A failure goes by `policy.retry`. What is exhausted or blocked fails, or is held for a person: standing Work always,
    run-once Work where its policy says so. Rule: design §3, §11; requirements E12, O01, O03, O05, O09–O12.
    """
    change = _settled(ending, before, now)
    if before.work.hold is not None and change.state in (WorkState.READY, WorkState.BACKOFF, WorkState.IDLE):
        held = replace(change, state=WorkState.HELD, reason=Reason.HOLD, backoff_us=None, due_at_us=None)
        return replace(held, why=before.work.hold.reason)
    return change


def _settled(ending: Ending, before: Before, now: Instant) -> WorkChange:
    work = before.work
    match ending.failure:
        case None:
            return _succeeded(before)
        case FailureClass.CANCELLED if work.kind is WorkKind.RUN_ONCE:
            return WorkChange(WorkState.CANCELLED, None, None, work.admission_failures, work.failures_used)
        case FailureClass.CANCELLED:
            return _rest(before, work.failures_used)
    failure = retry.Failure(
        work.id, work.kind, ending.failure, work.failures_used, work.admission_failures, ending.hint
    )
    decision = retry.decide(failure, before.pinned.retry, now)
    used = work.failures_used + 1
    match decision:
        case retry.Arm(timer=TimerKind.ADMISSION) as arm:
            change = WorkChange(WorkState.BACKOFF, None, arm.after_us, work.admission_failures + 1, work.failures_used)
            return replace(change, timer=arm.timer, why=arm.why)
        case retry.Arm() as arm:
            change = WorkChange(WorkState.BACKOFF, None, arm.after_us, 0, used)
            return replace(change, timer=arm.timer, why=arm.why, due_at_us=arm.due_at_us)
        case retry.Again():
            return WorkChange(WorkState.READY, None, None, 0, used, why=decision.why)
        case None:
            return replace(_rest(before, used), routine=_news(before, worked=False))
        case retry.Exhausted() | retry.Blocked():
            holds = work.kind is WorkKind.STANDING or before.pinned.retry_exhausted == "hold"
            state = WorkState.HELD if holds else WorkState.FAILED
            change = WorkChange(state, decision.reason, None, work.admission_failures, used)
            return replace(change, routine=_news(before, worked=False))


def _succeeded(before: Before) -> WorkChange:
    if before.waits:
        change = WorkChange(WorkState.WAITING, None, None, 0, spends_inputs=True)
    elif before.work.kind is WorkKind.STANDING or before.inputs_wait:
        change = _rest(before, 0)
    else:
        change = WorkChange(WorkState.COMPLETED, None, None, 0)
    return replace(change, routine=_news(before, worked=True))


def _rest(before: Before, failures_used: int) -> WorkChange:
    """The attempt is over with its inputs, and what came in meanwhile is attempt N+1's. Rule: O01."""
    state = WorkState.READY if before.inputs_wait else WorkState.IDLE
    return WorkChange(state, None, None, 0, failures_used, spends_inputs=True)


def _news(before: Before, *, worked: bool) -> RoutineNews | None:
    pinned = before.pinned
    if pinned.binding is None or not pinned.quarantine_after:
        return None
    return RoutineNews(pinned.binding, worked, pinned.quarantine_after)
