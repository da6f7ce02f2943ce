"""A person's word on a Work or a binding between attempts: retry, hold, release, quarantine; and the timer that asks for a retry."""

from __future__ import annotations

from shared.boundary import Boundary
from shared.errors import NotFoundError, RefusedError
from shared.ids import WorkId, attempt_id
from shared.model.attempt import Attempt, AttemptState
from shared.model.timer import Timer, TimerKind, TimerState, is_due
from shared.model.work import Reason, Work, WorkChange, WorkKind, WorkState
from shared.policy.steps import WorkEvent, is_final_work
from shared.store.sqlite.ends import QUARANTINE
from shared.store.sqlite.gating import Gating
from shared.store.sqlite.losses import KNOW_ROUTINE
from shared.store.sqlite.rows import timer_of_row
from shared.wake import COORDINATOR

SET_HOLD = """UPDATE work SET hold_by = :by, hold_reason = :reason, hold_at_us = :wall, revision = revision + 1
  WHERE id = :work RETURNING id"""
FIRE_TIMER = """UPDATE timer SET state = 'fired', fired_seq = :seq, closed_at_us = :wall
  WHERE id = :timer AND state = 'armed' RETURNING id"""
RESUME_DUE = """UPDATE wait SET due_seq = :seq
  WHERE attempt_id = :attempt AND epoch = :epoch AND state = 'satisfied' AND due_seq IS NULL RETURNING epoch"""
RELEASE_ROUTINE = """UPDATE routine SET quarantined_at_us = NULL, quarantined_by = NULL, reason = NULL, failures = 0
  WHERE binding = :binding AND quarantined_at_us IS NOT NULL RETURNING binding"""

_AT_REST = (WorkState.IDLE, WorkState.READY, WorkState.BACKOFF)
_FAILED = (AttemptState.FAILED, AttemptState.TIMED_OUT, AttemptState.INTERRUPTED)


class Controls(Gating):
    """See `work_contract.WorkCommands`."""

    def fire_timer(self, timer_id: int) -> None:
        """See `WorkCommands.fire_timer`. The event is accepted first, so it lies behind the failure that armed the timer."""
        self._require_leading()
        row = self._db.one("SELECT * FROM timer WHERE id = ?", (timer_id,))
        timer = None if row is None else timer_of_row(row)
        if timer is None or timer.state is not TimerState.ARMED:
            raise RefusedError(f"timer {timer_id} is not armed")
        if not is_due(timer, self._now):
            raise RefusedError(f"timer {timer_id} of {timer.work_id} is not due")
        if timer.kind is TimerKind.WAIT:
            self._fire_wait(timer)
            return
        if timer.kind is TimerKind.RESUME:
            self._fire_put_off(timer)
            return
        work = self._work_or_refuse(timer.work_id)
        if work.state is not WorkState.BACKOFF or timer.attempt_id != attempt_id(work.id, work.attempts_used):
            raise RefusedError(f"{work.id} does not wait for timer {timer_id}: it is {work.state}")
        facts = {"timer": timer_id, "attempt": timer.attempt_id, "trigger_input": timer.trigger_input, "by": "timer"}
        seq = self._event("retry.requested", facts, work=work.id)
        fired = self._db.one(FIRE_TIMER, {"timer": timer_id, "seq": seq, "wall": self._now.wall_us})
        assert fired is not None, "the timer was read in this transaction"
        ready = WorkChange(WorkState.READY, None, None, work.admission_failures, work.failures_used)
        self._step_work(work, WorkEvent.RETRY_DUE, ready)
        self._note(Boundary.TIMER_COMMIT, COORDINATOR)

    def _fire_wait(self, timer: Timer) -> None:
        """The time that a Work waited for has come: an event of its own, accepted, fired and waking it all at once."""
        awaited = self.awaited(timer.work_id)
        if awaited is None or (awaited.attempt_id, awaited.epoch) != (timer.attempt_id, timer.epoch):
            raise RefusedError(f"{timer.work_id} does not wait for timer {timer.id}")
        come = self._come_since(awaited)
        if come is not None:  # it has not woken this one yet, and came before
            self._satisfy(awaited, come)
            self._note(Boundary.TIMER_COMMIT, COORDINATOR)
            return
        seq = self._elapse(awaited, timer.id)
        fired = self._db.one(FIRE_TIMER, {"timer": timer.id, "seq": seq, "wall": self._now.wall_us})
        assert fired is not None, "the timer was read in this transaction"
        self._satisfy(awaited, seq)
        self._note(Boundary.TIMER_COMMIT, COORDINATOR)

    def _fire_put_off(self, timer: Timer) -> None:
        """A resume that had come to nothing may be tried again: it is woken by what had woken it, as if that had just come."""
        seq = self._event("resume.due", {"timer": timer.id}, attempt=timer.attempt_id, epoch=timer.epoch)
        fired = self._db.one(FIRE_TIMER, {"timer": timer.id, "seq": seq, "wall": self._now.wall_us})
        assert fired is not None, "the timer was read in this transaction"
        if self._db.one(RESUME_DUE, {"attempt": timer.attempt_id, "epoch": timer.epoch, "seq": seq}) is None:
            raise RefusedError(f"{timer.work_id} does not wait for timer {timer.id}")
        self._note(Boundary.TIMER_COMMIT, COORDINATOR)

    def retry_work(self, work_id: WorkId, *, by: str, reason: str) -> None:
        """See `WorkCommands.retry_work`."""
        work = self._open_or_failed(work_id)
        last = self._last_attempt(work)
        self._refuse_retry(work, last)
        self._event("retry.requested", {"by": by, "reason": reason, "attempt": last.id}, work=work_id)
        self._cancel_timer(work_id, f"retried by {by}")
        if last.state in _FAILED:
            self._return_inputs(last.id)
        self._step_work(work, WorkEvent.RETRIED, WorkChange(WorkState.READY, None, None, 0))
        self._note(Boundary.COMMAND_COMMIT, COORDINATOR)

    def _refuse_retry(self, work: Work, last: Attempt) -> None:
        if work.state in (WorkState.RUNNING, WorkState.WAITING):
            raise RefusedError(f"{work.id} is {work.state}: {last.id} is {last.state}")
        if work.state is WorkState.READY:
            raise RefusedError(f"{work.id} is ready already, and starts as soon as it may")
        if work.hold is not None:
            raise RefusedError(f"{work.id} is held by {work.hold.by}", hint=f"`tenure work release {work.id}`")
        if (
            work.start_hold is not None
        ):  # it did not fail: its next start is held, and a retry would lift that past who holds it
            raise RefusedError(f"{work.id} is held: {work.start_hold.reason}", hint=_way_past(work))
        unproven = self.unexcluded(work.id)
        if unproven is not None:
            raise RefusedError(f"the stop of {unproven} is not proven", hint=f"`tenure attempt show {unproven}`")
        if work.state is WorkState.IDLE and last.state not in _FAILED:
            raise RefusedError(f"{work.id} did not fail: {last.id} {last.state}")

    def hold_work(self, work_id: WorkId, *, by: str, reason: str) -> None:
        """See `WorkCommands.hold_work`."""
        work = self._known(work_id)
        if is_final_work(work.state):
            raise RefusedError(f"{work_id} has already ended: {work.state}")
        if work.hold is not None:
            raise RefusedError(f"{work_id} is held already, by {work.hold.by}")
        self._set_hold(work, by, reason)
        self._event("hold.set", {"by": by, "reason": reason}, work=work_id)
        if work.state in _AT_REST:
            self._cancel_timer(work_id, f"held by {by}")
            held = WorkChange(WorkState.HELD, Reason.HOLD, None, work.admission_failures, work.failures_used)
            self._step_work(self._known(work_id), WorkEvent.HELD, held)
        self._note(Boundary.COMMAND_COMMIT)

    def release_work(self, work_id: WorkId, *, by: str, reason: str) -> None:
        """See `WorkCommands.release_work`."""
        work = self._known(work_id)
        if work.hold is None and (work.start_hold is not None or _is_parked_over_budget(work)):
            self._release_start(work, by, reason)
            return
        if work.hold is None:
            raise RefusedError(f"no person holds {work_id}: it is {work.state}", hint=self._other_way(work))
        self._set_hold(work, None, None)
        self._event("hold.lifted", {"by": by, "reason": reason}, work=work_id)
        if work.state is WorkState.HELD and work.reason is Reason.HOLD:
            waits = work.kind is WorkKind.RUN_ONCE or bool(self.pending_inputs(work_id, limit=1))
            event, state = (WorkEvent.LIFTED, WorkState.READY) if waits else (WorkEvent.RESTED, WorkState.IDLE)
            lifted = WorkChange(state, None, None, work.admission_failures, work.failures_used)
            self._step_work(self._known(work_id), event, lifted)
        self._note(Boundary.COMMAND_COMMIT, COORDINATOR)

    def _release_start(self, work: Work, by: str, reason: str) -> None:
        if work.reason is Reason.GATE_HELD and work.start_hold is not None:
            gate = work.start_hold.by
            raise RefusedError(f"gate {gate} holds {work.id}, and it alone settles that", hint=_way_past(work))
        self._release_budget(work, by, reason)
        self._note(Boundary.COMMAND_COMMIT, COORDINATOR)

    def _other_way(self, work: Work) -> str | None:
        if work.state is WorkState.HELD or work.state is WorkState.FAILED:
            return f"`tenure work retry {work.id}` tries it again"
        return "`tenure binding list` says which are quarantined" if work.reason is Reason.QUARANTINED else None

    def _set_hold(self, work: Work, by: str | None, reason: str | None) -> None:
        wall = None if by is None else self._now.wall_us
        found = self._db.one(SET_HOLD, {"work": work.id, "by": by, "reason": reason, "wall": wall})
        assert found is not None, "the Work was read in this transaction"

    def quarantine_binding(self, binding: str, *, by: str, reason: str) -> None:
        """See `WorkCommands.quarantine_binding`."""
        self._db.rows(KNOW_ROUTINE, {"binding": binding})
        params = {"binding": binding, "by": by, "reason": reason, "wall": self._now.wall_us}
        if self._db.one(QUARANTINE, params) is None:
            raise RefusedError(f"binding {binding} is quarantined already")
        self._event("binding.quarantined", {"binding": binding, "by": by, "reason": reason})
        self._note(Boundary.COMMAND_COMMIT)

    def release_binding(self, binding: str, *, by: str, reason: str) -> None:
        """See `WorkCommands.release_binding`."""
        if self._db.one(RELEASE_ROUTINE, {"binding": binding}) is None:
            raise RefusedError(f"binding {binding} is not quarantined")
        self._event("binding.released", {"binding": binding, "by": by, "reason": reason})
        self._note(Boundary.COMMAND_COMMIT, COORDINATOR)

    def _known(self, work_id: WorkId) -> Work:
        work = self.work_outline(work_id)
        if work is None:
            raise NotFoundError(f"no work {work_id} in this home")
        return work

    def _open_or_failed(self, work_id: WorkId) -> Work:
        work = self._known(work_id)
        if is_final_work(work.state) and work.state is not WorkState.FAILED:
            raise RefusedError(f"{work_id} has already ended: {work.state}")
        return work

    def _last_attempt(self, work: Work) -> Attempt:
        last = self.attempt(attempt_id(work.id, work.attempts_used)) if work.attempts_used else None
        if last is None:
            raise RefusedError(f"{work.id} has had no attempt yet: it is {work.state}", hint=self._first_way(work))
        return last

    def _first_way(self, work: Work) -> str | None:
        return None if work.hold is None else f"`tenure work release {work.id}`"


def _is_parked_over_budget(work: Work) -> bool:
    """Whether what it waited for has come, and a budget holds the turn in which it would go on."""
    return work.state is WorkState.WAITING and work.reason is Reason.OVER_BUDGET


def _way_past(work: Work) -> str:
    """What lifts the hold of a start."""
    if work.reason is Reason.GATE_HELD:
        return f"`tenure gate admit {work.id}`, or `tenure gate refuse {work.id}`"
    return f"`tenure work release {work.id}`"
