"""Pieces that several transitions share: publish an event, end the waits it matches, register a wait, take one back."""

from __future__ import annotations

from collections.abc import Mapping

from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt
from shared.model.event import TIMER_EVENT, TURN_EVENT
from shared.model.outcome import Outcome, Turn, WaitSpec
from shared.model.timer import TimerKind
from shared.model.wait import Awaited
from shared.model.work import Reason, WorkChange, WorkState
from shared.policy.steps import WorkEvent
from shared.store.sqlite.reporting import CONSUME, Reporting
from shared.store.sqlite.wait_rows import awaited_of_row
from shared.wake import COORDINATOR

INSERT_PUBLISHED = "INSERT INTO published (seq, type, correlate, work_id) VALUES (?, ?, ?, ?)"
MATCHED_ANY = """SELECT * FROM wait WHERE state = 'registered' AND event_type = :type AND correlate IS NULL
  AND work_id IS NOT :work"""
MATCHED_KEY = """SELECT * FROM wait WHERE state = 'registered' AND event_type = :type AND correlate = :correlate
  AND work_id IS NOT :work"""
PUBLISHED_SINCE = """SELECT seq FROM published WHERE type = :type AND seq > :since AND work_id IS NOT :work
  ORDER BY seq LIMIT 1"""
PUBLISHED_KEY_SINCE = """SELECT seq FROM published WHERE type = :type AND correlate = :correlate AND seq > :since
  AND work_id IS NOT :work ORDER BY seq LIMIT 1"""
REGISTER = """INSERT INTO wait (attempt_id, epoch, work_id, resume, event_type, correlate, since_seq, state, registered_at_us,
    registered_seq) VALUES (:attempt, :epoch, :work, :resume, :type, :correlate, :since, 'registered', :wall, :seq)"""
SATISFY = """UPDATE wait SET state = :state, wake_seq = :seq, woken_at_us = :wall, closed_at_us = :closed
  WHERE attempt_id = :attempt AND epoch = :epoch AND state = 'registered' RETURNING epoch"""
CANCEL_WAIT = """UPDATE wait SET state = 'cancelled', closed_at_us = :wall
  WHERE work_id = :work AND state IN ('registered', 'satisfied') RETURNING attempt_id, epoch"""
MARK_APPLIED = """UPDATE declaration SET applied_epoch = :epoch
  WHERE attempt_id = :attempt AND applied_epoch IS NULL RETURNING key"""
INSERT_WAKE_INPUT = "INSERT INTO input (work_id, body, accepted_at_us) VALUES (?, ?, ?) RETURNING number"
ARM_WAIT = """INSERT INTO timer (work_id, kind, state, attempt_id, epoch, trigger_input, since_mono_us, boot_id, since_at_us,
    after_us, due_at_us, armed_seq, why)
  VALUES (:work, :kind, 'armed', :attempt, :epoch, NULL, :mono, :boot, :wall, :after, :due_at, :armed_seq, :why) RETURNING id"""


class Wakes(Reporting):
    """Base of the transitions that publish, and of those that end or park an attempt."""

    def _publish(
        self,
        kind: str,
        event_type: str,
        correlate: str | None,
        facts: Mapping[str, object],
        *,
        attempt: Attempt | None = None,
    ) -> int:
        """Append a published event to the changefeed, and end the waits it matches."""
        work = None if attempt is None else attempt.work_id
        told = {"type": event_type, "correlate": correlate, **facts}
        if attempt is None:
            seq = self._event(kind, told)
        else:
            seq = self._event(kind, told, attempt=attempt.id, epoch=attempt.epoch)
        self._db.rows(INSERT_PUBLISHED, (seq, event_type, correlate, work))
        params: dict[str, object] = {"type": event_type, "correlate": correlate, "work": work}
        matched = self._db.rows(MATCHED_ANY, params)
        if correlate is not None:
            matched += self._db.rows(MATCHED_KEY, params)
        for row in matched:
            self._satisfy(awaited_of_row(row), seq)
        return seq

    def _apply_declared(self, attempt: Attempt, outcome: Outcome) -> None:
        """What an observed end applies, whatever its kind: the turn's events, the inputs taken, the mark. Rule: O06, O15."""
        self._db.rows(MARK_APPLIED, {"attempt": attempt.id, "epoch": attempt.epoch})
        for number in outcome.consumed:
            self._db.rows(CONSUME, {"attempt": attempt.id, "number": number, "work": attempt.work_id})
        told = {
            "kind": outcome.kind,
            "summary": outcome.summary,
            "artifacts": outcome.artifacts,
            "usage": self.reported(attempt.id).beyond(attempt.usage).to_plain(),
            "consumed": outcome.consumed,
        }
        if any(told.values()):
            self._event("outcome.applied", told, attempt=attempt.id, epoch=attempt.epoch)
        if outcome.turn is not None:
            self._publish_turn(attempt, outcome.turn)

    def _publish_turn(self, attempt: Attempt, turn: Turn) -> None:
        """One event for each correlation key of the Work, or one without; once for each segment, as declarations apply once."""
        facts = {"status": turn.status, "comment": turn.comment, "work": attempt.work_id, "attempt": attempt.id}
        for correlate in self.correlations(attempt.work_id) or (None,):
            self._publish(TURN_EVENT, TURN_EVENT, correlate, facts, attempt=attempt)

    def _register(self, attempt: Attempt, spec: WaitSpec, registered_seq: int) -> None:
        """Wait from now on; what came since it was declared ends it at once, and else its timer is armed."""
        params = self._clock | {
            "attempt": attempt.id,
            "epoch": attempt.epoch,
            "work": attempt.work_id,
            "resume": int(spec.resume),
            "type": spec.event_type,
            "correlate": spec.correlate,
            "since": spec.since_seq,
            "seq": registered_seq,
        }
        self._db.rows(REGISTER, params)
        told = {"type": spec.event_type, "correlate": spec.correlate, "resume": spec.resume}
        self._event("wait.registered", told, attempt=attempt.id, epoch=attempt.epoch)
        row = self._db.one("SELECT * FROM wait WHERE attempt_id = :attempt AND epoch = :epoch", params)
        assert row is not None, "it was just written"
        sql = PUBLISHED_SINCE if spec.correlate is None else PUBLISHED_KEY_SINCE
        seen = None if spec.event_type is None else self._db.value(sql, params)
        if seen is not None:
            self._satisfy(awaited_of_row(row), seen)
        elif spec.after_us is not None or spec.until_at_us is not None:
            self._arm_wait(attempt, spec, registered_seq)

    def _arm_wait(self, attempt: Attempt, spec: WaitSpec, registered_seq: int) -> None:
        after_us = spec.after_us
        if after_us is None:
            assert spec.until_at_us is not None
            after_us = max(0, spec.until_at_us - self._now.wall_us)
        params = self._clock | {
            "work": attempt.work_id,
            "kind": TimerKind.WAIT,
            "attempt": attempt.id,
            "epoch": attempt.epoch,
            "after": after_us,
            "due_at": spec.until_at_us,
            "armed_seq": registered_seq,
            "why": "it asked to wait"
            if spec.event_type is None
            else f"it waits for {spec.event_type} no longer than that",
        }
        number = self._db.value(ARM_WAIT, params)
        told = {
            "timer": number,
            "kind": TimerKind.WAIT,
            "attempt": attempt.id,
            "after_us": after_us,
            "why": params["why"],
        }
        self._event("timer.armed", told, work=attempt.work_id)

    def _elapse(self, awaited: Awaited, timer_id: int) -> int:
        """Accept the event that a due timer of a wait stands for, and end the wait with it."""
        attempt = self.attempt(awaited.attempt_id)
        assert attempt is not None, "a wait has its attempt"
        told = {"type": TIMER_EVENT, "correlate": None, "timer": timer_id}
        seq = self._event(TIMER_EVENT, told, attempt=attempt.id, epoch=attempt.epoch)
        self._db.rows(INSERT_PUBLISHED, (seq, TIMER_EVENT, None, attempt.work_id))
        return seq

    def _satisfy(self, awaited: Awaited, seq: int) -> None:
        """End a wait by an accepted event; the event that comes second finds none. Rule: O08."""
        closed = None if awaited.resume else self._now.wall_us
        params = {
            "attempt": awaited.attempt_id,
            "epoch": awaited.epoch,
            "state": "satisfied" if awaited.resume else "acknowledged",
            "seq": seq,
            "wall": self._now.wall_us,
            "closed": closed,
        }
        if self._db.one(SATISFY, params) is None:
            return
        self._cancel_timer(awaited.work_id, "what it waited for has come")
        self._event("wait.satisfied", {"by_seq": seq}, attempt=awaited.attempt_id, epoch=awaited.epoch)
        if not awaited.resume:
            self._make_ready(awaited.work_id, seq)
        if COORDINATOR not in self.notes.bells:
            self.notes.bells.append(COORDINATOR)

    def _make_ready(self, work_id: WorkId, seq: int) -> None:
        """The next attempt may start; what woke its Work is its input."""
        body = self._wake_at(seq).to_json().encode()
        number = self._db.value(INSERT_WAKE_INPUT, (work_id, body, self._now.wall_us))
        self._event("input.accepted", {"input": number, "bytes": len(body), "by": "wake", "key": None}, work=work_id)
        work = self._work_or_refuse(work_id)
        ready = WorkChange(WorkState.READY, None, None, work.admission_failures, work.failures_used)
        self._step_work(work, WorkEvent.WOKEN, ready)
        if work.hold is not None:
            held = WorkChange(WorkState.HELD, Reason.HOLD, None, work.admission_failures, work.failures_used)
            self._step_work(self._work_or_refuse(work_id), WorkEvent.HELD, held)

    def _cancel_wait(self, work_id: WorkId, why: str) -> None:
        """Take back what a Work waits for, with its timer."""
        row = self._db.one(CANCEL_WAIT, {"work": work_id, "wall": self._now.wall_us})
        if row is not None:
            self._event("wait.cancelled", {"why": why}, attempt=AttemptId(row["attempt_id"]), epoch=row["epoch"])
            self._cancel_timer(work_id, why)
