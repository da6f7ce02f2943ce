"""The store contract: every transition there is, its fence, its errors.

`Store.write(fn)` takes the queue lock, begins, reads one Instant (`tx.now`), runs `fn(tx)`, commits. `fn` may run again, so it
talks to `tx` only. A `write` is one commit and may hold several transitions; each appends its event to the changefeed in that
transaction. Nothing else writes.

**The fence.** A transition that takes a `LeaseKey` succeeds only while that exact lease is live: the attempt is unfinished and at
`key.epoch`, the lease row has this owner and epoch, `boot_id = now.boot_id`, `revoked_at_us IS NULL`, and
`expires_mono_us > now.mono_us`. Otherwise it raises `LeaseLostError` and nothing of the transaction is kept.

**Leadership.** A transition marked *leader* may be called only after `tx.lead(...)` in the same transaction; every event of that
transaction carries the leader's `generation`.

**Bells.** A transition that makes something due for another process notes whom to wake; the store rings after COMMIT. A lost bell
costs a bounded poll, never work.

Rule: design §4; requirements E03, E07, R07, R09, L01, V05.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeVar

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import Attempt, Ending, Lease, LeaseKey, Segment, Snapshot
from shared.model.cancel import Cancellation
from shared.model.host import ClockMark, Leader, PassRecord, StopOrder, Worker
from shared.model.instant import Instant
from shared.model.work import Input, Reason, Work, WorkChange, WorkState
from shared.policy.capacity import Usage
from shared.store.agent_contract import AgentReads, AgentTransitions
from shared.store.leader_contract import LeaderTransitions
from shared.store.stop_contract import StopTransitions
from shared.store.values import (
    PERSON,
    Assignment,
    CancelOutcome,
    Claimed,
    ClaimRefused,
    ClaimRequest,
    ConfigGeneration,
    Event,
    IdleState,
    ReadyPage,
    Recoverable,
    Registration,
    ResumeRequest,
    Routine,
    SetAside,
    Submission,
    UnreadableRow,
    Woken,
    WokenPage,
)
from shared.store.wait_contract import WaitReads, WaitTransitions
from shared.store.work_contract import WorkCommands, WorkReads
from shared.store.worker_contract import WorkerTransitions

__all__ = [
    "PERSON",
    "ConfigGeneration",
    "Registration",
    "Assignment",
    "ClaimRequest",
    "Claimed",
    "ClaimRefused",
    "ReadyPage",
    "Recoverable",
    "UnreadableRow",
    "CancelOutcome",
    "IdleState",
    "Event",
    "ResumeRequest",
    "Routine",
    "SetAside",
    "Submission",
    "Woken",
    "WokenPage",
    "ReadTx",
    "Store",
    "Tx",
]

R = TypeVar("R")


class ReadTx(WorkReads, WaitReads, AgentReads, Protocol):
    """Reads of one snapshot. All are bounded; lists are ordered as said."""

    @property
    def now(self) -> Instant:
        """The one reading of the clock of this transaction, taken after the lock."""

    @property
    def skipped(self) -> Sequence[UnreadableRow]:
        """Rows that lists of this transaction left out, because they cannot be read. What asks for one row, or needs it, raises
        UnreadableError instead. Rule: S05.
        """

    def unreadable_rows(self, *, after: tuple[str, str] | None, limit: int) -> list[UnreadableRow]:
        """Rows that are marked as unreadable, by (table, key), behind a cursor."""

    def is_unreadable(self, row: UnreadableRow) -> bool:
        """Whether a row that could not be read still cannot; False when it is gone, or was replaced (a configuration)."""

    def work(self, work_id: WorkId) -> Work | None: ...
    def work_outline(self, work_id: WorkId) -> Work | None:
        """A Work for whoever wants its state alone: what it runs is left out where that cannot be read. Rule: S05."""

    def last_work_number(self) -> int:
        """The highest number that a Work ever got; 0 before the first."""

    def works(
        self,
        *,
        states: Sequence[WorkState],
        after: int,
        limit: int,
        to: int | None = None,
        reasons: Collection[Reason] = (),
        scope: str | None = None,
        binding: str | None = None,
    ) -> list[Work]:
        """Works with `after < number <= to`, ascending. Only those of these states and reasons (empty: of all), in this scope or below
        it, and that name this binding; whatever is not asked for costs a look, and no more.
        """

    def count_works(self, state: WorkState, *, cap: int) -> int:
        """How many Works are in a state, counting at most `cap`."""

    def ready(
        self, pool: str, *, after: tuple[int, int] | None, limit: int, skip_scopes: Sequence[str] = ()
    ) -> list[Work]:
        """Ready Works in the queue of a pool, highest priority first, then by `ready_seq`; only those behind `after` = (priority,
        ready_seq) in that order; none of a scope in `skip_scopes` or below it, and none that is set aside (`model.work.SET_ASIDE`).
        """

    def ready_page(
        self,
        pool: str,
        *,
        after: tuple[int, int] | None,
        limit: int,
        skip_scopes: Sequence[str] = (),
        look: int = 2_048,
        scopes: int = 256,
    ) -> ReadyPage:
        """As `ready`, but bounded, so that a long queue of full scopes costs no more than a short one: what is not to be skipped is
        found by its scope, in the same order, when no more than `scopes` of those have ready Works, and else by a look at no more
        than `look` ready Works. Rule: S01, C02.
        """

    def set_aside(self, pool: str, *, after: tuple[int, int] | None, limit: int) -> SetAside:
        """Ready Works outside the queue of a pool, in its order, behind a place in it."""

    def out_of_quarantine(self, *, limit: int) -> list[WorkId]:
        """Ready Works that are set aside for the quarantine of a binding that is in quarantine no more. Rule: F03."""

    def pending_inputs(self, work_id: WorkId, *, limit: int) -> list[int]:
        """Numbers of the Work's unconsumed inputs, in order."""

    def inputs(self, numbers: Sequence[int]) -> list[Input]: ...
    def unexcluded(self, work_id: WorkId) -> AttemptId | None:
        """The Work's attempt that is unfinished or unexcluded; None when there is none."""

    def attempt(self, attempt_id: AttemptId) -> Attempt | None: ...
    def attempts(self, work_id: WorkId) -> list[Attempt]:
        """All attempts of a Work, by number."""

    def next_attempts(self, work_id: WorkId, *, after: int, limit: int) -> list[Attempt]:
        """The first attempts of a Work with `number > after`, by number; cost independent of how many there are."""

    def last_attempts(self, work_id: WorkId, *, before: int | None, limit: int) -> list[Attempt]:
        """The last attempts of a Work with `number < before` (None: of all), by number; cost independent of how many there were."""

    def snapshot(self, attempt_id: AttemptId) -> Snapshot | None: ...
    def segments(self, attempt_id: AttemptId) -> list[Segment]:
        """The last 50 segments, by epoch."""

    def lease(self, attempt_id: AttemptId) -> Lease | None: ...
    def usage(self) -> Usage:
        """Slots held, by pool and scope; reads only live and unexcluded attempts. Rule: C03."""

    def holders(self, *, limit: int) -> list[Attempt]:
        """Attempts that hold a slot, oldest first. Rule: C03."""

    def ready_counts(self, *, cap: int) -> dict[tuple[str, str | None], int]:
        """Ready Works by (pool, reason), counting at most `cap` of each."""

    def ready_limits(self, *, cap: int) -> dict[tuple[str, str], int]:
        """Ready Works that a full pool or scope holds back, by (pool, that limit), counting at most `cap` of each."""

    def ready_below(self, scope: str, *, cap: int) -> int:
        """Works in the queue that lie in a scope or below it, counting at most `cap` of each pool."""

    def config(self, number: int | None = None) -> ConfigGeneration | None:
        """The named generation, or the active one."""

    def leader(self) -> Leader | None: ...
    def workers(self, *, gone: bool = False) -> list[Worker]:
        """Workers not gone (or, with `gone`, all that are kept), by name and number."""

    def assignments(self, owner: Incarnation, *, limit: int) -> list[Assignment]:
        """Live claims of this owner that it has not accepted, oldest first."""

    def held(self, owner: Incarnation) -> list[LeaseKey]:
        """Live accepted leases of this owner whose attempts are unfinished."""

    def recoverable(self, *, after: AttemptId | None, limit: int) -> list[Recoverable]:
        """Unfinished attempts (not parked, not recovery_required) without a live lease, after a cursor, wrapping never."""

    def next_due_mono_us(self) -> int | None:
        """The earliest monotonic instant at which a lease lapses, an unaccepted claim is overdue, a timer is due, or the time of
        an attempt without a live lease is used up.
        """

    def stop_orders(
        self, *, owner: Incarnation | None = None, unassigned: bool = False, limit: int = 64
    ) -> list[StopOrder]:
        """Open orders, oldest first: all, those whose live lease `owner` has, or those with no live lease."""

    def open_stop_order(self, attempt_id: AttemptId) -> StopOrder | None:
        """The open order of an attempt; None when there is none, or it cannot be read."""

    def cancellations(self, work_id: WorkId, *, limit: int = 64) -> list[Cancellation]:
        """The last cancels of a Work and of its attempts, in order. Rule: X01."""

    def idle_state(self) -> IdleState: ...
    def last_pass(self) -> PassRecord | None: ...
    def clock_mark(self) -> ClockMark | None:
        """How the clocks lay to each other at the last pass that was recorded; None before the first."""

    def events(self, *, after: int, limit: int) -> list[Event]: ...
    def attempt_events(self, attempt_id: AttemptId, *, limit: int) -> list[Event]:
        """The last events of one attempt, in order; cost independent of history. Rule: S02."""

    def needs_person(self, *, limit: int) -> list[Attempt]:
        """Attempts in `recovery_required`, oldest first."""

    def attempt_directories(self, attempt_id: AttemptId) -> list[str]:
        """Names of the directories of every epoch so far, newest first."""


class Tx(
    ReadTx,
    WorkCommands,
    WaitTransitions,
    StopTransitions,
    AgentTransitions,
    LeaderTransitions,
    WorkerTransitions,
    Protocol,
):
    """Reads and transitions of one write transaction."""

    # Commands
    def cancel_work(self, work_id: WorkId, *, by: str, reason: str) -> CancelOutcome:
        """End a Work in one transaction: the Work, its queue place, its live attempt, lease and timers; a live attempt leaves
        a stop order and keeps its exclusion, unless its stop was proven before. Records a cancellation, settled at once when
        nothing is left to stop. Raises NotFoundError, RefusedError (already ended). Rule: T05, X01, X02.
        """

    def cancel_attempt(self, attempt_id: AttemptId, *, by: str, reason: str, change: WorkChange) -> CancelOutcome:
        """End exactly this attempt, in whatever unfinished state, as `cancel_work` does, and settle its Work by `change`.
        Raises NotFoundError, RefusedError (it has ended). Rule: X01, X02.
        """

    def reconcile(
        self,
        attempt_id: AttemptId,
        *,
        expected_epoch: int,
        ending: Ending,
        change: WorkChange,
        by: str,
        reason: str,
    ) -> None:
        """Settle an attempt that waits for a person, by that person's word; the event names who and why.

        Exclusion is released only with the proof that was recorded when it was left to a person (never by `ending.proof`), else
        kept with a stop order; so a Work that `change` makes ready starts N+1 only once the stop is proven.
        Raises NotFoundError, RefusedError (not `recovery_required`, or at another epoch). Rings the coordinator. Rule: R10, R11.
        """

    def activate_config(self, body: str, digest: str, source_path: str) -> int:
        """Make a configuration the active one; its generation. The same digest and path as the active one: no new, unless that one
        cannot be read. The ledgers of a budget that was never configured before count from now on. Rule: B03.
        """


class Store(Protocol):
    """One process's door to the store. Not shared between threads: pool threads never touch it."""

    def write(self, fn: Callable[[Tx], R]) -> R:
        """Run `fn` in one transaction and commit.

        Blocks: at most the store's wait bound for the queue lock, then StoreBusyError (nothing written).
        Raises: what `fn` raises (nothing is kept); IndeterminateError (COMMIT's answer is unknown); StoreUnavailableError
            (replaced, corrupt, full, …); FenceViolationError (the schema refused: our bug).
        """

    def read(self, fn: Callable[[ReadTx], R]) -> R:
        """Run `fn` on one read snapshot; writes nothing."""

    def bound_waits(self, wait_us: int) -> None:
        """Wait for the store's queue at most this long from now on (a sixth of the lease, at most what it was opened with)."""

    def changed(self) -> bool:
        """True when another connection committed since the last call (a cheap look; the first call says True)."""

    def check_file(self) -> None:
        """Raise StoreUnavailableError("store_replaced") when the path no longer names the open file."""

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database when it is large; takes the queue lock. The leader calls it."""

    def close(self) -> None: ...
