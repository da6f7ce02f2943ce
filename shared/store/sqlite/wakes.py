"""Pieces that several transitions share: publish an event, end the waits it matches, register a wait, take one back.

One transaction ends at most `WAKES_MAX` waits, whatever it publishes: the event remembers in `waking` that there are more, and the
coordinator's passes go on with it. Meanwhile later events of its type queue behind it, so that each wait ends by the first event
that it waited for. Rule: requirements O08, S01.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.errors import FenceViolationError
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt
from shared.model.causality import ROOT
from shared.model.event import TIMER_EVENT
from shared.model.outcome import WaitSpec
from shared.model.timer import TimerKind
from shared.model.wait import WAKES_MAX, Awaited, WaitState
from shared.model.work import Reason, WorkChange, WorkState
from shared.policy.steps import WorkEvent
from shared.store.sqlite.columns import json_text
from shared.store.sqlite.wait_rows import awaited_of_row
from shared.store.sqlite.writing import Writing
from shared.wake import COORDINATOR

INSERT_PUBLISHED = """INSERT INTO published (seq, type, correlate, work_id, depth, key, digest)
  VALUES (:seq, :type, :correlate, :work, :depth, :key, :digest)"""
DEPTH_OF_EVENT = "SELECT depth FROM published WHERE seq = ?"
MATCHED_ANY = """SELECT * FROM wait WHERE state = 'registered' AND event_type = :type AND correlate IS NULL
  AND since_seq < :seq AND work_id IS NOT :work LIMIT :limit + 0"""
MATCHED_KEY = """SELECT * FROM wait WHERE state = 'registered' AND event_type = :type AND correlate = :correlate
  AND since_seq < :seq AND work_id IS NOT :work LIMIT :limit + 0"""
WAKING_OF_TYPE = "SELECT 1 FROM waking WHERE type = ? LIMIT 1"
INSERT_WAKING = "INSERT INTO waking (seq, type) VALUES (?, ?)"
WAKING = """SELECT seq, type, correlate, work_id AS work FROM published
  WHERE seq IN (SELECT seq FROM waking ORDER BY seq LIMIT ? + 0) ORDER BY seq"""
DONE_WAKING = "DELETE FROM waking WHERE seq = ?"
PUBLISHED_SINCE = """SELECT seq FROM published WHERE type = :type AND seq > :since AND work_id IS NOT :work
  ORDER BY seq LIMIT 1"""
PUBLISHED_KEY_SINCE = """SELECT seq FROM published WHERE type = :type AND correlate = :correlate AND seq > :since
  AND work_id IS NOT :work ORDER BY seq LIMIT 1"""
REGISTER = """INSERT INTO wait (attempt_id, epoch, work_id, resume, event_type, correlate, since_seq, state, registered_at_us,
    registered_seq, ask, pool)
  VALUES (:attempt, :epoch, :work, :resume, :type, :correlate, :since, 'registered', :wall, :seq, :ask, :pool)"""
SATISFY = """UPDATE wait SET state = :state, wake_seq = :seq, woken_at_us = :wall, closed_at_us = :closed, due_seq = :due
  WHERE attempt_id = :attempt AND epoch = :epoch AND state = 'registered' RETURNING epoch"""
CANCEL_WAIT = """UPDATE wait SET state = 'cancelled', closed_at_us = :wall
  WHERE work_id = :work AND state IN ('registered', 'satisfied') RETURNING attempt_id, epoch"""
INSERT_DERIVED_INPUT = """INSERT INTO input (work_id, body, accepted_at_us, depth, cause_seq)
  VALUES (:work, :body, :wall, :depth, :cause) RETURNING number"""
ARM_WAIT = """INSERT INTO timer (work_id, kind, state, attempt_id, epoch, trigger_input, since_mono_us, boot_id, since_at_us,
    after_us, due_at_us, armed_seq, why)
  VALUES (:work, :kind, 'armed', :attempt, :epoch, NULL, :mono, :boot, :wall, :after, :due_at, :armed_seq, :why) RETURNING id"""


class Wakes(Writing):
    """Base of the transitions that publish, charge, and end or park an attempt."""

    def _publish(
        self,
        kind: str,
        event_type: str,
        correlate: str | None,
        facts: Mapping[str, object],
        *,
        attempt: Attempt | None = None,
        by_work: WorkId | None = None,
        depth: int = ROOT,
        key: str | None = None,
        digest: str | None = None,
    ) -> int:
        """Append a published event to the changefeed, and end the waits it matches; what is too much for this transaction is left
        to the coordinator.

        Args:
            attempt: Whose end it tells. `by_work`: that of an attempt which asked for it while it ran. Neither is woken by it.
            key, digest: By which the same event is known again, and its content; None together.
        """
        work = by_work if attempt is None else attempt.work_id
        told = {"type": event_type, "correlate": correlate, **facts}
        if attempt is None:
            seq = self._event(kind, told)
        else:
            seq = self._event(kind, told, attempt=attempt.id, epoch=attempt.epoch)
        event: dict[str, object] = {"seq": seq, "type": event_type, "correlate": correlate, "work": work}
        self._db.rows(INSERT_PUBLISHED, event | {"depth": depth, "key": key, "digest": digest})
        if self._db.value(WAKING_OF_TYPE, (event_type,)) or not self._wake(event):
            self._db.rows(INSERT_WAKING, (seq, event_type))
            self._event("waking.put_off", {"event": seq})
            self._ring_coordinator()
        return seq

    def _wake(self, event: Mapping[str, object]) -> bool:
        """End waits that an event matches, as many as this transaction still may; True: all of them."""
        left = WAKES_MAX - self.notes.waits_ended
        matched = self._db.rows(MATCHED_ANY, {**event, "limit": left + 1})
        if event["correlate"] is not None and len(matched) <= left:
            matched += self._db.rows(MATCHED_KEY, {**event, "limit": left + 1 - len(matched)})
        seq = event["seq"]
        assert isinstance(seq, int), "a place in the changefeed"
        for row in matched[:left]:
            self._satisfy(awaited_of_row(row), seq)
        self.notes.waits_ended += len(matched[:left])
        return len(matched) <= left

    def _wake_on(self, limit: int) -> bool:
        """Go on with the events whose waits have not all ended, the oldest first; True: there is more to do."""
        found = self._db.rows(WAKING, (limit,))
        for row in found:
            if not self._wake(dict(row)):
                return True
            self._db.rows(DONE_WAKING, (row["seq"],))
            self._event("waking.done", {"event": row["seq"]})
        return len(found) == limit

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
            "ask": spec.ask or None,
            "pool": attempt.pool,
        }
        self._db.rows(REGISTER, params)
        told = {"type": spec.event_type, "correlate": spec.correlate, "resume": spec.resume, "ask": spec.ask or None}
        self._event("wait.registered", told, attempt=attempt.id, epoch=attempt.epoch)
        row = self._db.one("SELECT * FROM wait WHERE attempt_id = :attempt AND epoch = :epoch", params)
        assert row is not None, "it was just written"
        awaited = awaited_of_row(row)
        seen = self._come_since(awaited)
        if seen is not None:
            self._satisfy(awaited, seen)
        elif spec.after_us is not None or spec.until_at_us is not None:
            self._arm_wait(attempt, spec, registered_seq)

    def _come_since(self, awaited: Awaited) -> int | None:
        """The first published event that a wait waits for and that has come; None: none has."""
        if awaited.event_type is None:
            return None
        params = {"type": awaited.event_type, "since": awaited.since_seq, "work": awaited.work_id}
        if awaited.correlate is None:
            found = self._db.value(PUBLISHED_SINCE, params)
        else:
            found = self._db.value(PUBLISHED_KEY_SINCE, params | {"correlate": awaited.correlate})
        return None if found is None else int(found)

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
        """Accept the event that a due timer of a wait stands for. It is as deep as what waited. Rule: `policy.causality`."""
        attempt = self.attempt(awaited.attempt_id)
        assert attempt is not None, "a wait has its attempt"
        told = {"type": TIMER_EVENT, "correlate": None, "timer": timer_id, "depth": attempt.depth}
        seq = self._event(TIMER_EVENT, told, attempt=attempt.id, epoch=attempt.epoch)
        event = {"seq": seq, "type": TIMER_EVENT, "correlate": None, "work": attempt.work_id, "depth": attempt.depth}
        self._db.rows(INSERT_PUBLISHED, event | {"key": None, "digest": None})
        return seq

    def _satisfy(self, awaited: Awaited, seq: int) -> None:
        """End a wait by an accepted event; the event that comes second finds none. Rule: O08."""
        if awaited.state is not WaitState.REGISTERED:
            return
        self._cancel_timer(awaited.work_id, "what it waited for has come")
        told_seq = self._event("wait.satisfied", {"by_seq": seq}, attempt=awaited.attempt_id, epoch=awaited.epoch)
        params = {
            "attempt": awaited.attempt_id,
            "epoch": awaited.epoch,
            "state": WaitState.SATISFIED if awaited.resume else WaitState.ACKNOWLEDGED,
            "seq": seq,
            "wall": self._now.wall_us,
            "closed": None if awaited.resume else self._now.wall_us,
            "due": told_seq if awaited.resume else None,
        }
        if self._db.one(SATISFY, params) is None:
            raise FenceViolationError(f"{awaited.attempt_id} waits no longer, and was told that it is woken")
        if not awaited.resume:
            self._make_ready(awaited.work_id, seq)
        self._ring_coordinator()

    def _ring_coordinator(self) -> None:
        if COORDINATOR not in self.notes.bells:
            self.notes.bells.append(COORDINATOR)

    def _accept_derived(self, work_id: WorkId, seq: int, by: str) -> None:
        """Make an event the Work's input, as deep in its chain as the event is."""
        body = self._wake_told(seq).encode()
        depth = self._db.value(DEPTH_OF_EVENT, (seq,))
        params = {"work": work_id, "body": body, "wall": self._now.wall_us, "depth": depth, "cause": seq}
        number = self._db.value(INSERT_DERIVED_INPUT, params)
        told = {"input": number, "bytes": len(body), "by": by, "key": None, "depth": depth, "cause": seq}
        self._event("input.accepted", told, work=work_id)

    def _wake_told(self, seq: int) -> str:
        """What the next attempt is told of an event. One whose data cannot be read any more wakes all the same, without them: a
        pass that goes on with it must not end of it. Rule: S05.
        """
        try:
            return self._wake_at(seq).to_json()
        except (ValueError, TypeError):
            row = self._db.one("SELECT type, correlate FROM published WHERE seq = ?", (seq,))
            assert row is not None, "what wakes somebody is kept"
            return json_text({"seq": seq, "type": row["type"], "correlate": row["correlate"], "data": None})

    def _make_ready(self, work_id: WorkId, seq: int) -> None:
        """The next attempt may start; what woke its Work is its input."""
        self._accept_derived(work_id, seq, "wake")
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
