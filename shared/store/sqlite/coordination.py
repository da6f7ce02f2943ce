"""The leader's transitions: revoke, claim, hold back, time, record. Each needs `lead` in its transaction."""

from __future__ import annotations

from collections.abc import Sequence

from shared.boundary import Boundary
from shared.ids import AttemptId, WorkId, attempt_id
from shared.model.attempt import AttemptState
from shared.model.host import PASSES_KEPT, PassRecord
from shared.model.work import Permit, Reason, Work, WorkState
from shared.policy.capacity import Wait
from shared.policy.causality import depth_of_segment
from shared.policy.steps import WorkEvent, step_work
from shared.store.contract import Claimed, ClaimRefused, ClaimRequest, UnreadableRow
from shared.store.sqlite.charging import A_TURN, Charging
from shared.store.sqlite.fragments import SET_ASIDE
from shared.store.values import ClaimHeld

FOREIGN_LEASES = """SELECT attempt_id FROM lease
  WHERE revoked_at_us IS NULL AND boot_id <> :boot ORDER BY expires_mono_us, attempt_id"""
FOREIGN_TIMERS = """SELECT id FROM timer WHERE state = 'armed' AND boot_id {} :boot
  ORDER BY boot_id, since_mono_us + after_us LIMIT :limit + 0"""
CARRY_TIMER = """UPDATE timer SET after_us = after_us - min(after_us, max(0, :wall - since_at_us)),
    since_mono_us = :mono, boot_id = :boot, since_at_us = :wall WHERE id = :timer RETURNING work_id, after_us"""
CARRY_BACKOFF = """UPDATE work SET backoff_us = :after, backoff_since_mono_us = :mono, backoff_boot_id = :boot,
    backoff_since_at_us = :wall, revision = revision + 1 WHERE id = :work AND state = 'backoff'"""
UNACCEPTED_LEASES = """SELECT attempt_id FROM lease WHERE accepted_at_us IS NULL AND revoked_at_us IS NULL AND boot_id = :boot
  AND claimed_mono_us <= :mono - :timeout ORDER BY claimed_mono_us, attempt_id"""
CLAIM_WORK = """UPDATE work SET state = :state, reason = NULL, reason_limit = NULL, pool = :pool, attempts_used = :number, permits = '',
  revision = revision + 1 WHERE id = :work AND revision = :revision AND state = 'ready' RETURNING id"""
INSERT_ATTEMPT = """INSERT INTO attempt (id, work_id, number, epoch, state, exclusion, invoke, isolated, relaunches, pool, scope,
    budget_us, budget_since_mono_us, budget_boot_id, budget_since_at_us, started_at_us)
  VALUES (:attempt, :work, :number, 1, 'launching', 'held', 'pending', 0, 0, :pool, :scope, :budget, :mono, :boot, :wall, :wall)"""
INSERT_LEASE = """INSERT INTO lease (attempt_id, epoch, owner, boot_id, expires_mono_us, claimed_mono_us)
  VALUES (:attempt, 1, :owner, :boot, :expires, :mono)"""
INSERT_SEGMENT = """INSERT INTO segment (attempt_id, epoch, worker, invoke, isolated, recovered, relaunched, began_at_us)
  VALUES (:attempt, 1, :owner, 'pending', 0, 0, 0, :wall)"""
INSERT_SNAPSHOT = "INSERT INTO snapshot (attempt_id, body) VALUES (?, ?)"
CONSUME_INPUT = (
    "UPDATE input SET consumed_by = ? WHERE number = ? AND work_id = ? AND consumed_by IS NULL RETURNING depth"
)
SET_DEPTH = "UPDATE attempt SET depth = ? WHERE id = ?"
HOLD_BACK = """UPDATE work SET reason = :reason, reason_limit = :limit, revision = revision + 1
  WHERE id = :work AND state IN ('ready', 'waiting') AND (reason IS NOT :reason OR reason_limit IS NOT :limit)"""
REQUEUE = f"""UPDATE work SET reason = NULL, reason_limit = NULL, revision = revision + 1
  WHERE id = ? AND state = 'ready' AND {SET_ASIDE}"""
INSERT_RECORD = """INSERT INTO pass (generation, trigger, due_at_us, started_at_us, duration_us, planned, claimed,
    dispatched, recovered, revoked, waiting_jobs, waiting_agents, cut_short, clock_jump_us, error)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq"""
FORGET_PASSES = "DELETE FROM pass WHERE seq <= ?"
MARK_UNREADABLE = """INSERT INTO unreadable (table_name, row_key, error, seen_at_us) VALUES (?, ?, ?, ?)
  ON CONFLICT DO NOTHING RETURNING row_key"""
UNMARK_UNREADABLE = "DELETE FROM unreadable WHERE table_name = ? AND row_key = ? RETURNING row_key"
MARK_CLOCK = """INSERT INTO clock (id, boot_id, offset_us, jumped_at_us, jumped_by_us) VALUES (1, :boot, :offset, :at, :by)
  ON CONFLICT (id) DO UPDATE SET boot_id = :boot, offset_us = :offset, jumped_at_us = coalesce(:at, jumped_at_us),
    jumped_by_us = coalesce(:by, jumped_by_us)"""


class Coordination(Charging):
    """See `leader_contract.LeaderTransitions`."""

    def revoke_foreign_boots(self) -> int:
        """See `Tx.revoke_foreign_boots`."""
        self._require_leading()
        return len(self._revoke_all(FOREIGN_LEASES, {}, "other_boot"))

    def carry_timers(self, *, limit: int) -> int:
        """See `Tx.carry_timers`."""
        self._require_leading()
        carried: list[int] = []
        for order in ("<", ">"):
            room = {"limit": limit - len(carried)}
            carried += [row[0] for row in self._db.rows(FOREIGN_TIMERS.format(order), self._clock | room)]
        for timer in carried:
            row = self._db.one(CARRY_TIMER, self._clock | {"timer": timer})
            assert row is not None, "it was read in this transaction"
            self._db.rows(CARRY_BACKOFF, self._clock | {"work": row["work_id"], "after": row["after_us"]})
        if carried:
            self._event("timers.carried", {"count": len(carried)})
        self._note(Boundary.RECOVERY_COMMIT)
        return len(carried)

    def revoke_unaccepted(self, *, accept_timeout_us: int) -> list[AttemptId]:
        """See `Tx.revoke_unaccepted`."""
        self._require_leading()
        return self._revoke_all(UNACCEPTED_LEASES, {"timeout": accept_timeout_us}, "not_accepted")

    def _revoke_all(self, sql: str, params: dict[str, object], reason: str) -> list[AttemptId]:
        found = [AttemptId(row[0]) for row in self._db.rows(sql, self._clock | params)]
        for name in found:
            self._revoke(name, reason)
        self._note(Boundary.RECOVERY_COMMIT)
        return found

    def claim(self, request: ClaimRequest) -> Claimed | ClaimHeld | ClaimRefused:
        """See `Tx.claim`."""
        self._require_leading()
        work = self.work(request.work_id)
        changed = self._changed(request, work)
        if changed is not None:
            return ClaimRefused(changed, None, None)
        assert work is not None
        refusal = self._quarantine(request, work) or self._limit(request)
        if refusal is not None:
            return ClaimRefused(None, *refusal)
        held = self._held_for(request, work)
        if held is not None:
            self._note(Boundary.CLAIM_COMMIT)
            return ClaimHeld(held)
        name = self._insert_attempt(request, work)
        if request.budgets:
            self._charge(request.budgets, A_TURN, work.id, work.scope, self._now.wall_us)
        depth = self._consume(request, name)
        facts = {
            "worker": request.worker,
            "inputs": request.snapshot.inputs,
            "to": AttemptState.LAUNCHING,
            "depth": depth,
        }
        self._event("attempt.claimed", facts, attempt=name, epoch=1)
        self._note(Boundary.CLAIM_COMMIT, request.worker)
        return Claimed(name)

    def _changed(self, request: ClaimRequest, work: Work | None) -> str | None:
        """What the claim was decided on and is no longer so. Rule: E02."""
        if work is None or work.state is not WorkState.READY or work.revision != request.revision:
            return "work"
        decided = request.snapshot.inputs
        if self.pending_inputs(work.id, limit=len(decided) + 1) != list(decided):
            return "input"
        active = self.config()
        if (None if active is None else active.number) != request.snapshot.generation:
            return "config"
        if not self._offers(request.worker, request.snapshot.registration):
            return "worker"
        if request.by_permit and Permit.GATE not in work.permits:
            return "work"
        return None

    def _quarantine(self, request: ClaimRequest, work: Work) -> tuple[Reason, str | None] | None:
        """The quarantine of what the Work would run; a command of its own is none of its binding's. Rule: F03."""
        binding = request.snapshot.binding
        if work.command is None and binding is not None and binding in self.quarantined():
            return Reason.QUARANTINED, binding
        return None

    def _limit(self, request: ClaimRequest) -> tuple[Reason, str | None] | None:
        """Which limit forbids the claim. Rule: C01, C03, R10."""
        if not self._ballast.is_there():
            return Reason.DISK_FULL, None
        if self.unexcluded(request.work_id) is not None:
            return Reason.STOP_UNPROVEN, None
        return request.refusal(self.usage())

    def _held_for(self, request: ClaimRequest, work: Work) -> Reason | None:
        """Hold the Work instead of starting it: for a gate, else for a budget that has no room left. Rule: G03, B04."""
        if request.gate_hold is not None:
            gate = request.gate_hold
            self._hold_start(work, Reason.GATE_HELD, gate.gate, gate.reason, {"gate": gate.gate})
            return Reason.GATE_HELD
        return Reason.OVER_BUDGET if self._hold_over_budget(work, request.budgets) else None

    def _insert_attempt(self, request: ClaimRequest, work: Work) -> AttemptId:
        number = work.attempts_used + 1
        name = attempt_id(work.id, number)
        snapshot = request.snapshot
        params = self._clock | {
            "attempt": name,
            "work": work.id,
            "number": number,
            "revision": work.revision,
            "state": step_work(work.state, WorkEvent.CLAIMED),
            "pool": snapshot.pool,
            "scope": snapshot.scope,
            "budget": snapshot.timeout_us,
            "owner": request.worker,
            "expires": self._now.mono_us + request.lease_us,
        }
        self._db.rows(INSERT_ATTEMPT, params)
        self._db.rows(INSERT_LEASE, params)
        self._db.rows(INSERT_SEGMENT, params)
        self._db.rows(INSERT_SNAPSHOT, (name, snapshot.to_json()))
        taken = self._db.one(CLAIM_WORK, params)
        assert taken is not None, "the Work's row was read in this transaction"
        self._work_event(work, WorkEvent.CLAIMED, WorkState.RUNNING, None)
        return name

    def _consume(self, request: ClaimRequest, name: AttemptId) -> int:
        """Give the attempt its inputs; the depth it has by them."""
        depths: list[int] = []
        for number in request.snapshot.inputs:
            taken = self._db.one(CONSUME_INPUT, (name, number, request.work_id))
            assert taken is not None, "the pending inputs were read in this transaction"
            depths.append(taken["depth"])
        depth = depth_of_segment(depths)
        if depth:
            self._db.rows(SET_DEPTH, (depth, name))
        return depth

    def hold_back(self, waits: Sequence[Wait]) -> None:
        """See `Tx.hold_back`."""
        self._require_leading()
        self._note(Boundary.PASS_COMMIT)
        for wait in waits:
            self._db.rows(HOLD_BACK, {"work": wait.work_id, "reason": wait.reason, "limit": wait.limit})

    def requeue(self, work_ids: Sequence[WorkId]) -> None:
        """See `Tx.requeue`."""
        self._require_leading()
        self._note(Boundary.PASS_COMMIT)
        for work_id in work_ids:
            self._db.rows(REQUEUE, (work_id,))

    def record_pass(self, record: PassRecord) -> None:
        """See `Tx.record_pass`."""
        self._require_leading()
        seq = self._db.value(
            INSERT_RECORD,
            (
                record.generation,
                record.trigger,
                record.due_at_us,
                record.started_at_us,
                record.duration_us,
                record.planned,
                record.claimed,
                record.dispatched,
                record.recovered,
                record.revoked,
                record.waiting_jobs,
                record.waiting_agents,
                record.cut_short,
                record.clock_jump_us,
                record.error,
            ),
        )
        self._db.rows(FORGET_PASSES, (seq - PASSES_KEPT,))
        self._note(Boundary.PASS_COMMIT)
        self.notes.restore_ballast = True

    def mark_clock(self, *, offset_us: int) -> None:
        """See `Tx.mark_clock`."""
        self._require_leading()
        self._db.rows(MARK_CLOCK, {"boot": self._now.boot_id, "offset": offset_us, "at": None, "by": None})
        self._note(Boundary.PASS_COMMIT)

    def record_clock_jump(self, by_us: int, *, offset_us: int) -> None:
        """See `Tx.record_clock_jump`."""
        self._require_leading()
        before = self.clock_mark()
        if before is not None and (before.boot_id, before.offset_us) == (self._now.boot_id, offset_us):
            return  # an unanswered commit held it
        mark = {"boot": self._now.boot_id, "offset": offset_us, "at": self._now.wall_us, "by": by_us}
        self._db.rows(MARK_CLOCK, mark)
        self._event("clock.jumped", {"by_us": by_us})
        self._note(Boundary.PASS_COMMIT)

    def mark_unreadable(self, rows: Sequence[UnreadableRow]) -> None:
        """See `Tx.mark_unreadable`."""
        self._require_leading()
        self._note(Boundary.PASS_COMMIT)
        for row in rows:
            if self._db.one(MARK_UNREADABLE, (row.table, row.key, row.error, self._now.wall_us)) is not None:
                self._event("row.unreadable", {"table": row.table, "key": row.key, "column": row.error})

    def unmark_readable(self, rows: Sequence[UnreadableRow]) -> None:
        """See `Tx.unmark_readable`."""
        self._require_leading()
        self._note(Boundary.PASS_COMMIT)
        for row in rows:
            if self._db.one(UNMARK_UNREADABLE, (row.table, row.key)) is not None:
                self._event("row.readable", {"table": row.table, "key": row.key})
