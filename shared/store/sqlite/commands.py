"""Transitions of people and programs: submit, activate a configuration. They carry no generation."""

from __future__ import annotations

import json

from shared.boundary import Boundary
from shared.errors import KeyReusedError, NotFoundError, RefusedError
from shared.ids import AttemptId, WorkId, work_id
from shared.model.budget import Budget
from shared.model.work import NewWork, WorkChange, WorkKind, WorkState
from shared.policy.steps import WorkEvent, is_final_work
from shared.policy.submission import input_digest, work_digest
from shared.store.contract import Submission
from shared.store.sqlite.columns import json_text
from shared.store.sqlite.writing import Writing
from shared.wake import COORDINATOR

INSERT_WORK = """INSERT INTO work (id, number, scope, binding, command, env, cwd, pool, state, priority, revision, ready_seq,
    attempts_used, admission_failures, submitted_by, submitted_at_us, grants, kind, failures_used)
  VALUES (:id, :number, :scope, :binding, :command, :env, :cwd, :pool, :state, :priority, 1, :ready_seq, 0, 0, :by, :at, :grants,
    :kind, 0)"""
INSERT_INPUT = "INSERT INTO input (work_id, body, accepted_at_us, depth) VALUES (?, ?, ?, ?) RETURNING number"
INSERT_SUBMISSION = "INSERT INTO submission (key, digest, work_id, input, accepted_at_us) VALUES (?, ?, ?, ?, ?)"
KNOW_BUDGET = """INSERT INTO budget (unit, per, period, scope, since_staged, since_at_us)
  VALUES (?, ?, ?, ?, (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'usage_pending'), ?)
  ON CONFLICT (unit, per, period, scope) DO NOTHING"""
INSERT_CONFIG = "INSERT INTO config (number, body, digest, source_path, activated_at_us) VALUES (?, ?, ?, ?, ?)"


class Commands(Writing):
    """See `contract.Tx`, "Commands"."""

    def submit(self, work: NewWork, pool: str, *, key: str | None = None, cause: AttemptId | None = None) -> WorkId:
        """See `WorkCommands.submit`."""
        digest = "" if key is None else work_digest(work)
        known = self._accepted(key, digest)
        if known is not None:
            return known.work_id
        depth = self._depth_of(cause)
        self._require_ballast()
        state = WorkState.IDLE if work.kind is WorkKind.STANDING and work.input is None else WorkState.READY
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
                "state": state,
                "kind": work.kind,
                "priority": work.priority,
                "ready_seq": self._count("ready"),
                "by": work.submitted_by,
                "at": self._now.wall_us,
                "grants": json_text(work.grants),
            },
        )
        for correlate in work.correlate:
            self._db.rows("INSERT INTO correlation (work_id, key) VALUES (?, ?)", (name, correlate))
        first = None
        if state is WorkState.READY:
            first = int(self._db.value(INSERT_INPUT, (name, work.input or b"", self._now.wall_us, depth)))
        facts = {"to": state, "scope": work.scope, "binding": work.binding, "pool": pool, "kind": work.kind, "key": key}
        self._event("work.submitted", facts | caused(cause, depth), work=name)
        self._accept_key(key, digest, name, first)
        self._note(Boundary.SUBMIT_COMMIT, COORDINATOR)
        return name

    def add_input(
        self, work_id: WorkId, body: bytes, *, by: str, key: str | None = None, cause: AttemptId | None = None
    ) -> int:
        """See `WorkCommands.add_input`."""
        digest = "" if key is None else input_digest(work_id, body)
        known = self._accepted(key, digest)
        if known is not None:
            assert known.input is not None, "its digest says that it is an input"
            return known.input
        work = self.work(work_id)
        if work is None:
            raise NotFoundError(f"no work {work_id} in this home")
        if is_final_work(work.state):
            raise RefusedError(f"{work_id} has already ended: {work.state}")
        if work.kind is not WorkKind.STANDING:
            raise RefusedError(f"{work_id} runs once: it takes no further input", hint="submit a new work")
        depth = self._depth_of(cause)
        self._require_ballast()
        number = int(self._db.value(INSERT_INPUT, (work_id, body, self._now.wall_us, depth)))
        facts = {"input": number, "bytes": len(body), "by": by, "key": key}
        self._event("input.accepted", facts | caused(cause, depth), work=work_id)
        self._accept_key(key, digest, work_id, number)
        if work.state is WorkState.IDLE:
            ready = WorkChange(WorkState.READY, None, None, work.admission_failures, work.failures_used)
            self._step_work(work, WorkEvent.INPUT, ready)
        self._note(Boundary.SUBMIT_COMMIT, COORDINATOR)
        return number

    def _accepted(self, key: str | None, digest: str) -> Submission | None:
        """What this very request was accepted as before; None: it is new. Raises KeyReusedError: another one had its key."""
        known = None if key is None else self.submission(key)
        if known is not None and known.digest != digest:
            raise KeyReusedError(known.key, known.work_id)
        return known

    def _accept_key(self, key: str | None, digest: str, work_id: WorkId, number: int | None) -> None:
        if key is not None:
            self._db.rows(INSERT_SUBMISSION, (key, digest, work_id, number, self._now.wall_us))

    def activate_config(self, body: str, digest: str, source_path: str) -> int:
        """See `Tx.activate_config`."""
        active = self.config()
        same = active is not None and (active.digest, active.source_path) == (digest, source_path)
        if active is not None and same and active.is_readable:
            return active.number
        self._require_ballast()
        number = 1 if active is None else active.number + 1
        self._db.rows(INSERT_CONFIG, (number, body, digest, source_path, self._now.wall_us))
        self._event("config.activated", {"number": number, "digest": digest})
        for budget in map(Budget.from_plain, json.loads(body).get("budgets", [])):
            key = (budget.unit, budget.per, budget.period, budget.scope or "")
            self._db.rows(KNOW_BUDGET, (*key, self._now.wall_us))
        self._note(Boundary.CONFIG_COMMIT, COORDINATOR)
        return number


def caused(cause: AttemptId | None, depth: int) -> dict[str, object]:
    """What the changefeed tells of who asked, when that was an attempt."""
    return {} if cause is None or not depth else {"cause": cause, "depth": depth}
