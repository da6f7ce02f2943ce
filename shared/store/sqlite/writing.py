"""What every transition needs: the fence, the step of a state table, its event, its boundary, and whom to wake."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.boundary import Boundary
from shared.errors import ChainTooLongError, FenceViolationError, LeaseLostError, RefusedError, StoreUnavailableError
from shared.ids import AttemptId, Incarnation, WorkId, work_of
from shared.model.attempt import Attempt, AttemptState, LeaseKey
from shared.model.causality import ROOT, TooDeep
from shared.model.instant import Instant
from shared.model.work import Reason, Work, WorkChange, WorkState
from shared.policy.causality import derive
from shared.policy.lease import active_us, budget_left_us
from shared.policy.steps import AttemptEvent, IllegalStepError, WorkEvent, is_final_work, step_attempt, step_work
from shared.store.sqlite import columns, rows
from shared.store.sqlite.ballast import Ballast
from shared.store.sqlite.connection import Connection
from shared.store.sqlite.fragments import FENCE
from shared.store.sqlite.reads import Reads

COUNT = """INSERT INTO counter (name, value) VALUES (?, 1)
  ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value"""
EVENT = "INSERT INTO event (at_us, kind, work_id, attempt_id, epoch, data) VALUES (?, ?, ?, ?, ?, ?) RETURNING seq"
HELD_ATTEMPT = f"SELECT * FROM attempt WHERE {FENCE}"
WORK_STEP = """UPDATE work SET state = :state, reason = :reason, reason_limit = NULL, revision = revision + 1,
  ready_seq = :ready_seq, admission_failures = :failures, failures_used = :failures_used, ended_at_us = :ended_at,
  backoff_us = :backoff_us, backoff_since_mono_us = :since_mono, backoff_boot_id = :since_boot, backoff_since_at_us = :since_at,
  hold_by = CASE WHEN :ended_at IS NULL THEN hold_by END, hold_reason = CASE WHEN :ended_at IS NULL THEN hold_reason END,
  hold_at_us = CASE WHEN :ended_at IS NULL THEN hold_at_us END,
  start_hold_by = NULL, start_hold_reason = NULL, start_hold_at_us = NULL,
  permits = CASE WHEN :ended_at IS NULL THEN permits ELSE '' END
  WHERE id = :work AND revision = :revision RETURNING id"""
END_SEGMENT = """UPDATE segment SET ended_at_us = :wall, active_us = :active
  WHERE attempt_id = :attempt AND ended_at_us IS NULL"""
REVOKE = """UPDATE lease SET revoked_at_us = :wall, revoked_reason = :reason
  WHERE attempt_id = :attempt AND revoked_at_us IS NULL RETURNING owner, epoch"""
CANCEL_TIMER = """UPDATE timer SET state = 'cancelled', closed_at_us = :wall
  WHERE work_id = :work AND state = 'armed' RETURNING id"""
PRESENT_WORKERS = "SELECT id FROM worker WHERE state <> 'gone'"
TIME_NAMESPACE = "SELECT value FROM meta WHERE key = 'time_namespace'"
SET_TIME_NAMESPACE = "UPDATE meta SET value = ? WHERE key = 'time_namespace'"


BEGINNINGS = frozenset(
    {
        Boundary.SUBMIT_COMMIT,
        Boundary.COMMAND_COMMIT,
        Boundary.TIMER_COMMIT,
        Boundary.EVENT_COMMIT,
        Boundary.WAKE_COMMIT,
        Boundary.CONFIG_COMMIT,
        Boundary.CLAIM_COMMIT,
        Boundary.ACCEPT_COMMIT,
        Boundary.PIN_COMMIT,
        Boundary.RELAUNCH_COMMIT,
        Boundary.PASS_COMMIT,
        Boundary.INTENT_COMMIT,
        Boundary.DISPATCH_COMMIT,
    }
)
"""What waits for space on a full disk."""


@dataclass(slots=True)
class Notes:
    """What a transaction leaves for its commit and for the time after it.

    Attributes:
        boundaries: Crossed by the commit, in order, each once.
        bells: Whom to wake once it is committed.
        restore_ballast: Look afterwards whether the ballast can be made again.
        last_seq: Of the last event appended; 0 without one.
        waits_ended: By what it published; bounded.
    """

    boundaries: list[Boundary] = field(default_factory=list)
    bells: list[str] = field(default_factory=list)
    restore_ballast: bool = False
    last_seq: int = 0
    waits_ended: int = 0

    @property
    def holds_or_ends(self) -> bool:
        """Whether the ballast may be given up for it: some of it keeps or ends what runs already."""
        return not BEGINNINGS.issuperset(self.boundaries)


class Writing(Reads):
    """Base of the transitions. Not a transition itself."""

    def __init__(self, connection: Connection, now: Instant, ballast: Ballast, time_ns: int) -> None:
        super().__init__(connection, now)
        self.notes = Notes()
        self._ballast = ballast
        self._time_ns = time_ns
        self._leading: Incarnation | None = None
        self._generation: int | None = None  # of the leader whose transaction it is; told in each event of it
        self._clock["wall"] = now.wall_us

    def _note(self, boundary: Boundary, *bells: str) -> None:
        if boundary not in self.notes.boundaries:
            self.notes.boundaries.append(boundary)
        self.notes.bells.extend(bell for bell in bells if bell not in self.notes.bells)

    def _require_ballast(self) -> None:
        """Refuse what is new while the ballast is given up: the space it left is for ends and holds. Rule: design §4."""
        if not self._ballast.restore():
            raise StoreUnavailableError(
                "disk_full",
                "the disk of the store is full: what is left of it is kept for the ends of what runs",
                hint="free some space; nothing was written",
            )

    def _require_leading(self) -> None:
        if self._leading is None:
            raise FenceViolationError("a leader's transition was called without `lead` in its transaction")

    def _require_time_namespace(self) -> None:
        """Whoever takes part keeps the time of this boot in one namespace: leases are compared between processes."""
        found = str(self._db.value(TIME_NAMESPACE))
        mine = time_namespace(self._now.boot_id, self._time_ns)
        if found == mine:
            return
        if found.startswith(f"{self._now.boot_id}:"):
            raise foreign_time_namespace()
        self._db.rows(SET_TIME_NAMESPACE, (mine,))
        self._note(Boundary.REGISTER_COMMIT)

    # Counting and telling
    def _count(self, name: str) -> int:
        return int(self._db.value(COUNT, (name,)))

    def _event(
        self,
        kind: str,
        data: Mapping[str, object],
        *,
        work: WorkId | None = None,
        attempt: AttemptId | None = None,
        epoch: int | None = None,
    ) -> int:
        if work is None and attempt is not None:
            work = work_of(attempt)
        if self._generation is not None:
            data = {**data, "generation": self._generation}
        fields = (self._now.wall_us, kind, work, attempt, epoch, columns.json_text(data))
        self.notes.last_seq = self._db.value(EVENT, fields)
        return self.notes.last_seq

    def _depth_of(self, cause: AttemptId | None) -> int:
        """How deep in its chain is what is asked for: by nobody of ours, or from inside an attempt. Raises ChainTooLongError."""
        attempt = None if cause is None else self.attempt(cause)
        pinned = None if attempt is None else self.snapshot(attempt.id)
        if attempt is None or pinned is None:
            return ROOT
        depth = derive(attempt.depth, pinned)
        if isinstance(depth, TooDeep):
            raise ChainTooLongError(attempt.id, depth.depth, depth.depth_max)
        return depth

    # The fence
    def _key(self, key: LeaseKey) -> dict[str, object]:
        return self._clock | {"attempt": key.attempt_id, "epoch": key.epoch, "owner": key.owner}

    def _held(self, key: LeaseKey) -> Attempt:
        """The attempt, if `key` is its live lease. Raises LeaseLostError."""
        row = self._db.one(HELD_ATTEMPT, self._key(key))
        if row is None:
            raise self._lost(key)
        return rows.attempt_of_row(row)

    def _fenced(self, sql: str, key: LeaseKey, params: dict[str, object]) -> None:
        """Run a fenced UPDATE; its RETURNING row is the permission. Raises LeaseLostError."""
        if self._db.one(sql, self._key(key) | params) is None:
            raise self._lost(key)

    def _lost(self, key: LeaseKey) -> LeaseLostError:
        attempt = self.attempt(key.attempt_id)
        lease = self.lease(key.attempt_id)
        reason = ""
        if attempt is not None and attempt.ended_at_us is not None:
            reason = f"it has ended: {attempt.state}"
        elif lease is not None and lease.epoch == key.epoch:
            reason = f"revoked: {lease.revoked_reason}" if lease.revoked_reason else ""
        return LeaseLostError(
            key.attempt_id,
            key.epoch,
            None if attempt is None else attempt.epoch,
            reason,
            has_ended=attempt is not None and attempt.ended_at_us is not None,
        )

    # Steps of the state tables
    def _step_attempt(self, attempt: Attempt, event: AttemptEvent) -> AttemptState:
        try:
            return step_attempt(attempt.state, event)
        except IllegalStepError as error:
            raise FenceViolationError(f"{attempt.id}: {error}") from error

    def _attempt_event(
        self, attempt: Attempt, kind: str, to: AttemptState, data: Mapping[str, object], *, epoch: int | None = None
    ) -> None:
        """Append the event of a change of state; folding these gives the table back."""
        facts = {"from": attempt.state, "to": to, **data}
        self._event(f"attempt.{kind}", facts, attempt=attempt.id, epoch=epoch or attempt.epoch)

    def _step_work(self, work: Work, event: WorkEvent, change: WorkChange) -> None:
        """Take a Work to the state that `change` names, by the table; writes the row and its event."""
        try:
            target = step_work(work.state, event)
        except IllegalStepError as error:
            raise FenceViolationError(f"{work.id}: {error}") from error
        if target is not change.state:
            raise FenceViolationError(f"{work.id}: {event} leads to {target}, not to {change.state}")
        backing_off = target is WorkState.BACKOFF
        params: dict[str, object] = {
            "work": work.id,
            "revision": work.revision,
            "state": target,
            "reason": change.reason,
            "ready_seq": self._count("ready") if target is WorkState.READY else work.ready_seq,
            "failures": change.admission_failures,
            "failures_used": change.failures_used,
            "ended_at": self._now.wall_us if is_final_work(target) else None,
            "backoff_us": change.backoff_us if backing_off else None,
            "since_mono": self._now.mono_us if backing_off else None,
            "since_boot": self._now.boot_id if backing_off else None,
            "since_at": self._now.wall_us if backing_off else None,
        }
        if self._db.one(WORK_STEP, params) is None:
            raise FenceViolationError(f"{work.id}: its row changed within the transaction")
        self._work_event(work, event, target, change.reason)

    def _work_event(self, work: Work, event: WorkEvent, to: WorkState, reason: Reason | None) -> None:
        facts = {"from": work.state, "to": to, "by": event, "reason": reason}
        self._event(f"work.{to}", facts, work=work.id)

    # Pieces that several transitions share
    def _end_segment(self, attempt: Attempt) -> None:
        """End the open segment, if there is one, with what it used; what is left is `_budget`'s to write."""
        params = {"attempt": attempt.id, "wall": self._now.wall_us, "active": active_us(attempt, self._now)}
        self._db.rows(END_SEGMENT, params)

    def _budget(self, attempt: Attempt) -> dict[str, object]:
        """The parameters of `fragments.CHARGE`, for the write that ends the open segment."""
        return self._clock | {"budget": budget_left_us(attempt, self._now)}

    def _revoke(self, attempt_id: AttemptId, reason: str) -> None:
        """Revoke the attempt's lease if that was not done before."""
        row = self._db.one(REVOKE, {"attempt": attempt_id, "wall": self._now.wall_us, "reason": reason})
        if row is not None:
            self._event(
                "lease.revoked", {"owner": row["owner"], "reason": reason}, attempt=attempt_id, epoch=row["epoch"]
            )

    def _order_stop(self, attempt: Attempt, why: str, by: str) -> None:
        """Order that what an ended attempt launched is stopped and proven so; any worker may be the one who can."""
        number = self._db.value(
            """INSERT INTO stop_order (attempt_id, epoch, why, ordered_by, ordered_at_us, boot_id, expires_mono_us, tries)
            VALUES (?, ?, ?, ?, ?, ?, 0, 0) RETURNING id""",
            (attempt.id, attempt.epoch, why, by, self._now.wall_us, self._now.boot_id),
        )
        self._event("stop.ordered", {"order": number, "why": why, "by": by}, attempt=attempt.id, epoch=attempt.epoch)
        self._note(Boundary.STOP_COMMIT, *(row[0] for row in self._db.rows(PRESENT_WORKERS)))

    def _cancel_timer(self, work_id: WorkId, why: str) -> None:
        """Take a Work's armed timer back, if it has one: a person's word, or the Work's end, goes before it."""
        row = self._db.one(CANCEL_TIMER, {"work": work_id, "wall": self._now.wall_us})
        if row is not None:
            self._event("timer.cancelled", {"timer": row["id"], "why": why}, work=work_id)

    def _work_or_refuse(self, work_id: WorkId) -> Work:
        work = self.work_outline(work_id)
        if work is None:
            raise FenceViolationError(f"{work_id} has an attempt but no row")
        return work

    def _offers(self, owner: Incarnation, registration: str) -> bool:
        """Whether this worker of this boot takes part, is not draining, and has exactly this executor. Rule: E08, E09."""
        offered = self._db.value(
            "SELECT executors FROM worker WHERE id = ? AND state = 'live' AND boot_id = ?", (owner, self._now.boot_id)
        )
        try:
            return offered is not None and registration in json.loads(offered)
        except (ValueError, TypeError):
            return False  # its row cannot be read

    def _require_present(self, owner: Incarnation) -> None:
        row = self._db.one("SELECT state, boot_id FROM worker WHERE id = ?", (owner,))
        if row is None or row["state"] == "gone" or row["boot_id"] != self._now.boot_id:
            raise RefusedError(f"{owner} does not take part any more", hint="it must stop; a new one registers anew")


def time_namespace(boot_id: str, time_ns: int) -> str:
    """The word by which the store remembers whose monotonic time its leases are on."""
    return f"{boot_id}:{time_ns}"


def foreign_time_namespace() -> StoreUnavailableError:
    """The refusal of a process whose monotonic clock is another one."""
    return StoreUnavailableError(
        "time_namespace",
        "this process runs in another time namespace than those that hold the store's leases",
        hint="run all of tenure in one container, or none of it",
    )
