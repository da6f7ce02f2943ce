"""Transitions of people and programs: submit, activate a configuration. They carry no generation."""

from __future__ import annotations

from shared.boundary import Boundary
from shared.errors import StoreUnavailableError
from shared.ids import WorkId, work_id
from shared.model.work import NewWork, WorkState
from shared.store.sqlite.rows import json_text
from shared.store.sqlite.writing import Writing
from shared.wake import COORDINATOR

INSERT_WORK = """INSERT INTO work (id, number, scope, binding, command, env, cwd, pool, state, priority, revision, ready_seq,
    attempts_used, admission_failures, submitted_by, submitted_at_us, grants)
  VALUES (:id, :number, :scope, :binding, :command, :env, :cwd, :pool, 'ready', :priority, 1, :ready_seq, 0, 0, :by, :at, :grants)"""
INSERT_INPUT = "INSERT INTO input (work_id, body, accepted_at_us) VALUES (?, ?, ?)"
INSERT_CONFIG = "INSERT INTO config (number, body, digest, source_path, activated_at_us) VALUES (?, ?, ?, ?, ?)"


class Commands(Writing):
    """See `contract.Tx`, "Commands"."""

    def submit(self, work: NewWork, pool: str) -> WorkId:
        """See `Tx.submit`."""
        self._require_ballast()
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
        self._note(Boundary.CONFIG_COMMIT, COORDINATOR)
        return number

    def _require_ballast(self) -> None:
        """Refuse what is new while the ballast is given up: the space it left is for ends and holds. Rule: design §4."""
        if not self._ballast.restore():
            raise StoreUnavailableError(
                "disk_full",
                "the disk of the store is full: what is left of it is kept for the ends of what runs",
                hint="free some space; nothing was written",
            )
