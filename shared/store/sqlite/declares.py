"""Transitions of declarations, parks, published events and resumes. See `wait_contract.WaitTransitions`."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from shared.boundary import Boundary
from shared.errors import FenceViolationError, KeyReusedError, RefusedError
from shared.ids import AttemptId, work_of
from shared.model.attempt import SEGMENTS_KEPT, AttemptState, Ending, LeaseKey
from shared.model.budget import Budget, plain
from shared.model.declaration import Declaration
from shared.model.event import NewEvent
from shared.model.outcome import Outcome
from shared.model.usage import NO_USAGE, TURNS, Usage
from shared.model.work import Permit, Reason, Work, WorkChange, WorkState
from shared.policy.budget import first_full, lines_of, notice_of_hold, reason_of
from shared.policy.causality import depth_of_segment
from shared.policy.retry import Arm
from shared.policy.steps import AttemptEvent, WorkEvent
from shared.policy.submission import event_digest
from shared.store.sqlite.chains import KEYED
from shared.store.sqlite.charging import SET_PERMITS, SETTLED_AT_ONCE, ledger_facts
from shared.store.sqlite.fragments import CHARGE, FENCE
from shared.store.sqlite.rows import permits_text
from shared.store.sqlite.takeover import Takeovers
from shared.store.sqlite.wakes import DEPTH_OF_EVENT
from shared.store.values import Claimed, ClaimRefused, ResumeRequest, Woken
from shared.wake import COORDINATOR

PARK = f"""UPDATE attempt SET state = :state, recovered_from = NULL, invoke = NULL, isolated = 0, exclusion_proof = :proof,
    pin_epoch = NULL, pin_directory = NULL, pin_pid = NULL, pin_start_ticks = NULL, pin_boot_id = NULL, pin_pid_ns = NULL,
    pin_pidfs_ino = NULL, pin_directory_ino = NULL, pin_lock_ino = NULL, token_sha256 = NULL, usage = :usage, {CHARGE}
  WHERE {FENCE} RETURNING id"""
RESUME = f"""UPDATE attempt SET epoch = epoch + 1, launch_epoch = epoch + 1, state = :state, invoke = 'pending', isolated = 0,
    relaunches = 0, workers_lost_in_row = 0, exclusion_proof = NULL, depth = :depth, {CHARGE}
  WHERE id = :attempt AND epoch = :epoch_seen AND state = 'parked' RETURNING epoch"""
RESUME_LEASE = """UPDATE lease SET epoch = :epoch, owner = :owner, boot_id = :boot, expires_mono_us = :expires,
    claimed_mono_us = :mono, accepted_at_us = NULL, revoked_at_us = NULL, revoked_reason = NULL
  WHERE attempt_id = :attempt AND epoch < :epoch RETURNING epoch"""
RESUME_SEGMENT = """INSERT INTO segment
    (attempt_id, epoch, worker, invoke, isolated, recovered, relaunched, began_at_us, wake_event)
  VALUES (:attempt, :epoch, :owner, 'pending', 0, 0, 0, :wall, :wake)"""
DEPTH_OF_INPUTS = "SELECT coalesce(max(depth), 0) FROM input WHERE consumed_by = ?"
PUT_OFF_WAIT = """INSERT INTO wait (attempt_id, epoch, work_id, resume, event_type, correlate, since_seq, state, registered_at_us,
    registered_seq, wake_seq, woken_at_us, ask, pool)
  SELECT attempt_id, :epoch, work_id, resume, event_type, correlate, since_seq, 'satisfied', registered_at_us, registered_seq,
    wake_seq, woken_at_us, ask, pool
  FROM wait WHERE attempt_id = :attempt AND epoch = :launch - 1 AND state = 'acknowledged' RETURNING wake_seq"""
"""What had woken it wakes it once more: the wait that its resume had ended is open again, under the epoch that came to nothing."""
ACKNOWLEDGE = """UPDATE wait SET state = 'acknowledged', closed_at_us = :wall
  WHERE attempt_id = :attempt AND epoch = :epoch_seen AND state = 'satisfied' RETURNING wake_seq"""

HOLD_WAITING = """UPDATE work SET reason = :reason, reason_limit = :limit, revision = revision + 1
  WHERE id = :work AND state = 'waiting' RETURNING id"""

A_RESUME = Usage(((TURNS, Decimal(1)),))
"""What a resume consumes: a turn, and no new execution. Rule: B02."""


class Declares(Takeovers):
    """See `wait_contract.WaitTransitions`."""

    def declare(self, key: LeaseKey, declarations: Sequence[Declaration]) -> None:
        """See `WaitTransitions.declare`."""
        self._note(Boundary.DECLARE_COMMIT)
        attempt = self._held(key)
        for one in declarations:
            self._record(attempt, one)

    def park(self, key: LeaseKey, outcome: Outcome, *, proof: str) -> None:
        """See `WaitTransitions.park`. Raises RefusedError: there is no wait to resume from."""
        self._note(Boundary.PARK_COMMIT, COORDINATOR)
        if outcome.wait is None or not outcome.wait.resume:
            raise RefusedError(f"{key.attempt_id} cannot be parked: it named nothing to wait for and go on after")
        attempt = self._held(key)
        state = self._step_attempt(attempt, AttemptEvent.PARKED)
        staged = self._stage(attempt, NO_USAGE)
        self._fenced(PARK, key, self._budget(attempt) | {"state": state, "proof": proof, "usage": staged})
        self._end_segment(attempt)
        self._revoke(attempt.id, "parked")
        self._attempt_event(attempt, "parked", state, {"proof": proof})
        parked_seq = self.notes.last_seq
        work = self._work_or_refuse(attempt.work_id)
        waiting = WorkChange(WorkState.WAITING, None, None, 0, work.failures_used)
        self._step_work(work, WorkEvent.ATTEMPT_PARKED, waiting)
        self._apply_declared(attempt, outcome)
        self._register(attempt, outcome.wait, parked_seq)

    def put_off(self, key: LeaseKey, failed: Ending, *, proof: str, again: Arm) -> None:
        """See `WaitTransitions.put_off`. Raises RefusedError: it was never parked."""
        self._note(Boundary.PARK_COMMIT, COORDINATOR)
        attempt = self._held(key)
        if not attempt.was_resumed:
            raise RefusedError(f"{key.attempt_id} cannot be parked again: it was never parked")
        state = self._step_attempt(attempt, AttemptEvent.PUT_OFF)
        staged = self._stage(attempt, NO_USAGE)
        self._fenced(PARK, key, self._budget(attempt) | {"state": state, "proof": proof, "usage": staged})
        self._end_segment(attempt)
        self._revoke(attempt.id, "put off")
        told = {"proof": proof, "failure": failed.failure, "error": failed.error, "why": failed.why}
        self._attempt_event(attempt, "put_off", state, told)
        put_off_seq = self.notes.last_seq
        wait = {"attempt": attempt.id, "epoch": attempt.epoch, "launch": attempt.launch_epoch}
        if self._db.one(PUT_OFF_WAIT, wait) is None:
            raise FenceViolationError(f"{attempt.id}: nothing had woken it")
        work = self._work_or_refuse(attempt.work_id)
        failures = work.admission_failures + 1
        waiting = WorkChange(
            WorkState.WAITING, None, again.after_us, failures, work.failures_used, again.timer, why=again.why
        )
        self._step_work(work, WorkEvent.ATTEMPT_PARKED, waiting)
        self._arm(attempt, waiting, put_off_seq)

    def publish(self, event: NewEvent, *, key: str | None = None, cause: AttemptId | None = None) -> int:
        """See `WaitTransitions.publish`."""
        name = None if key is None else f"publish/{key}"
        digest = None if key is None else event_digest(event.type, event.correlate, event.data)
        known = None if key is None else self._db.one(KEYED, (name,))
        if known is not None and key is not None:
            if known["digest"] != digest:
                raise KeyReusedError(key, f"event {known['seq']}")
            return int(known["seq"])
        depth = self._depth_of(cause)
        self._note(Boundary.EVENT_COMMIT)
        self._require_ballast()
        told = {"data": event.data, "by": event.by, "key": key} | ({"cause": cause, "depth": depth} if depth else {})
        by_work = None if cause is None else work_of(cause)
        return self._publish(
            "event.published", event.type, event.correlate, told, by_work=by_work, depth=depth, key=name, digest=digest
        )

    def wake_on(self, *, limit: int) -> bool:
        """See `WaitTransitions.wake_on`."""
        self._require_leading()
        self._note(Boundary.EVENT_COMMIT, COORDINATOR)
        return self._wake_on(limit)

    def claim_resume(self, request: ResumeRequest) -> Claimed | ClaimRefused:
        """See `WaitTransitions.claim_resume`."""
        self._require_leading()
        self._note(Boundary.WAKE_COMMIT)  # also for what was staged, when a budget refuses it
        found = self._waiting_to_resume(request)
        if isinstance(found, ClaimRefused):
            return found
        attempt = found.attempt
        state = self._step_attempt(attempt, AttemptEvent.WOKEN)
        params = self._clock | {
            "attempt": attempt.id,
            "epoch_seen": request.epoch_seen,
            "epoch": request.epoch_seen + 1,
            "state": state,
            "owner": request.worker,
            "expires": self._now.mono_us + request.lease_us,
            "budget": attempt.budget_us,
            "wake": found.awaited.wake_seq,
            "depth": self._depth_woken(attempt.id, found.awaited.wake_seq),
        }
        self._charge(request.budgets, A_RESUME, found.work.id, found.work.scope, self._now.wall_us)
        for statement in (RESUME, RESUME_LEASE, ACKNOWLEDGE):
            row = self._db.one(statement, params)
            assert row is not None, "it was read in this transaction"
        self._db.rows(RESUME_SEGMENT, params)
        if request.epoch_seen + 1 > SEGMENTS_KEPT:
            self._drop_segments(attempt.id, request.epoch_seen + 1)
        told = {"worker": request.worker, "wake_event": found.awaited.wake_seq, "depth": params["depth"]}
        self._attempt_event(attempt, "woken", state, told, epoch=request.epoch_seen + 1)
        counted = WorkChange(WorkState.RUNNING, None, None, found.work.admission_failures, found.work.failures_used)
        self._step_work(found.work, WorkEvent.ATTEMPT_WOKEN, counted)
        if Permit.BUDGET in found.work.permits:
            left = permits_text(found.work.permits - {Permit.BUDGET})
            spent = self._db.one(SET_PERMITS, {"work": found.work.id, "permits": left})
            assert spent is not None, "the Work was read in this transaction"
        self._note(Boundary.WAKE_COMMIT, request.worker)
        return Claimed(attempt.id)

    def _depth_woken(self, attempt_id: AttemptId, wake_seq: int | None) -> int:
        inputs = int(self._db.value(DEPTH_OF_INPUTS, (attempt_id,)))
        return depth_of_segment([inputs], None if wake_seq is None else self._db.value(DEPTH_OF_EVENT, (wake_seq,)))

    def _over_budget(self, work: Work, budgets: Sequence[Budget]) -> tuple[Reason, str | None] | None:
        """The unit of a budget that has no room for the turn, which is then held: its control event, and why, in this transaction.

        What is parked goes on waiting, as its wait is not given up, until a person lets it go. Rule: B04.
        """
        while budgets and self._settle_staged(budgets, SETTLED_AT_ONCE):
            pass
        if Permit.BUDGET in work.permits:
            return None
        if work.reason is Reason.OVER_BUDGET:
            return Reason.OVER_BUDGET, work.reason_limit
        lines = lines_of(budgets, work.id, work.scope, self._now.wall_us)
        used = self._used(lines)
        full = first_full(lines, used)
        if full is None:
            return None
        amount, unit = used[full.ledger], full.budget.unit
        facts = ledger_facts(full.ledger) | {"limit": plain(full.budget.limit), "used": plain(amount)}
        self._event("budget.held", facts | {"why": reason_of(full, amount)}, work=work.id)
        held = self._db.one(HOLD_WAITING, {"work": work.id, "reason": Reason.OVER_BUDGET, "limit": unit})
        assert held is not None, "the Work was read in this transaction"
        self._tell(notice_of_hold(full, amount, work.scope), work.id)
        return Reason.OVER_BUDGET, unit

    def _waiting_to_resume(self, request: ResumeRequest) -> Woken | ClaimRefused:
        """What is to be resumed, or why it is not: it changed, or a limit forbids it. Rule: C01, C03."""
        attempt, snapshot = self.attempt(request.attempt_id), self.snapshot(request.attempt_id)
        if attempt is None or snapshot is None or attempt.state is not AttemptState.PARKED:
            return ClaimRefused("work", None, None)
        awaited, work = self.awaited(attempt.work_id), self._work_or_refuse(attempt.work_id)
        if awaited is None or awaited.due_seq is None or attempt.epoch != request.epoch_seen:
            return ClaimRefused("work", None, None)
        if not self._offers(request.worker, snapshot.registration):
            return ClaimRefused("worker", None, None)
        if not self._ballast.is_there():
            return ClaimRefused(None, Reason.DISK_FULL, None)
        if work.hold is not None:
            return ClaimRefused(None, Reason.HOLD, None)
        refusal = request.refusal(self.usage()) or self._over_budget(work, request.budgets)
        return Woken(awaited, attempt, snapshot, work) if refusal is None else ClaimRefused(None, *refusal)
