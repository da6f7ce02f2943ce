"""Transitions of people and programs: submit, cancel, activate a configuration. They carry no generation."""

from __future__ import annotations

from shared.boundary import Boundary
from shared.errors import NotFoundError, RefusedError
from shared.ids import AttemptId, WorkId, work_id
from shared.model.attempt import AttemptState, FailureClass
from shared.model.work import NewWork, WorkChange, WorkState
from shared.policy.steps import AttemptEvent, WorkEvent, is_final_work
from shared.store.contract import CancelOutcome
from shared.store.sqlite.rows import json_text
from shared.store.sqlite.writing import Writing
from shared.wake import COORDINATOR

INSERT_WORK = """INSERT INTO work (id, number, scope, binding, command, env, cwd, pool, state, priority, revision, ready_seq,
    attempts_used, admission_failures, submitted_by, submitted_at_us, grants)
  VALUES (:id, :number, :scope, :binding, :command, :env, :cwd, :pool, 'ready', :priority, 1, :ready_seq, 0, 0, :by, :at, :grants)"""
INSERT_INPUT = "INSERT INTO input (work_id, body, accepted_at_us) VALUES (?, ?, ?)"
END_CANCELLED = """UPDATE attempt SET state = 'cancelled', recovered_from = NULL, failure = :failure, error = :error,
  ended_at_us = :wall WHERE id = :attempt AND epoch = :epoch AND ended_at_us IS NULL RETURNING id"""
LIVE_ATTEMPT = (
    "SELECT id FROM attempt WHERE work_id = ? AND (ended_at_us IS NULL OR exclusion = 'held') AND ended_at_us IS NULL"
)
INSERT_CONFIG = "INSERT INTO config (number, body, digest, source_path, activated_at_us) VALUES (?, ?, ?, ?, ?)"


class Commands(Writing):
    """See `contract.Tx`, "Commands"."""

    def submit(self, work: NewWork, pool: str) -> WorkId:
        """See `Tx.submit`."""
        number = self._count("work")
        name = work_id(number)
        self._db.rows(
            INSERT_WORK,
            {
                "id": name,
                "number": number,
                "scope": work.scope,
                "binding": work.binding,
                "command": None if work.command is None else json_text(work.command),
                "env": json_text(work.env),
                "cwd": work.cwd,
                "pool": pool,
                "priority": work.priority,
                "ready_seq": self._count("ready"),
                "by": work.submitted_by,
                "at": self._now.wall_us,
                "grants": json_text(work.grants),
            },
        )
        self._db.rows(INSERT_INPUT, (name, work.input or b"", self._now.wall_us))
        facts = {"to": WorkState.READY, "scope": work.scope, "binding": work.binding, "pool": pool}
        self._event("work.submitted", facts, work=name)
        self._note(Boundary.SUBMIT_COMMIT, COORDINATOR)
        return name

    def cancel_work(self, work_id: WorkId, *, by: str, reason: str) -> CancelOutcome:
        """See `Tx.cancel_work`."""
        work = self.work(work_id)
        if work is None:
            raise NotFoundError(f"no work {work_id} in this home")
        if is_final_work(work.state):
            raise RefusedError(f"{work_id} has already ended: {work.state}")
        self._note(Boundary.CANCEL_COMMIT, COORDINATOR, ends=True)
        live = self._db.value(LIVE_ATTEMPT, (work_id,))
        if live is not None:
            self._cancel_attempt(AttemptId(live), by, reason)
        self._step_work(work, WorkEvent.CANCELLED, WorkChange(WorkState.CANCELLED, None, None, work.admission_failures))
        return CancelOutcome(work.state, None if live is None else AttemptId(live))

    def _cancel_attempt(self, attempt_id: AttemptId, by: str, reason: str) -> None:
        attempt = self.attempt(attempt_id)
        assert attempt is not None
        target = self._step_attempt(attempt, AttemptEvent.CANCELLED)
        self._db.rows(
            END_CANCELLED,
            {
                "attempt": attempt.id,
                "epoch": attempt.epoch,
                "wall": self._now.wall_us,
                "failure": FailureClass.CANCELLED,
                "error": f"cancelled by {by}: {reason}",
            },
        )
        self._end_segment(attempt.id)
        self._revoke(attempt.id, "cancelled")
        self._attempt_event(attempt, target.value, AttemptState.CANCELLED, {"by": by, "why": reason})
        self._order_stop(attempt, f"cancelled: {reason}", by)

    def activate_config(self, body: str, digest: str, source_path: str) -> int:
        """See `Tx.activate_config`."""
        active = self.config()
        if active is not None and (active.digest, active.source_path) == (digest, source_path):
            return active.number
        number = 1 if active is None else active.number + 1
        self._db.rows(INSERT_CONFIG, (number, body, digest, source_path, self._now.wall_us))
        self._event("config.activated", {"number": number, "digest": digest})
        self._note(Boundary.CONFIG_COMMIT, COORDINATOR)
        return number
