"""The start pass: which ready Work starts now, and what holds each other one back.

Read, decide, write: a snapshot is read, `policy.capacity` chooses, and each claim rechecks inside its own transaction what it
was decided on. Rule: design §5 ("Start pass"); requirements E02, E03, C01–C04.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath

from coordinator.leadership import Leadership
from coordinator.marks import Marks
from coordinator.notes import Notes
from coordinator.tally import Tally
from shared.ids import Incarnation, WorkId
from shared.model.attempt import Snapshot
from shared.model.evidence import LockState
from shared.model.host import Worker
from shared.model.work import Reason, Work
from shared.policy.binding import resolve
from shared.policy.capacity import (
    POOL_AGENTS,
    POOL_JOBS,
    Limits,
    ReadyWork,
    Start,
    Usage,
    Wait,
    WorkerSlots,
    choose_starts,
    refusal_in,
)
from shared.policy.workers import eligible
from shared.store.active import ActiveConfig
from shared.store.contract import Claimed, ClaimRequest, ReadTx, Store, Tx

WINDOW_MAX = 64
WINDOW_MIN = 8
WINDOWS_MAX = 4
CLAIMS_PER_COMMIT = 8
INPUTS_MAX = 64
HOLDS_ALL = (Reason.NO_WORKER, Reason.DISK_FULL)
"""Reasons that hold back whatever else is ready in the pool."""

Place = tuple[int, int]
"""Where in the order of ready Works: (priority, ready_seq)."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one window. `waits`: whatever does not start; `raced`: something had changed since it was read."""

    waits: tuple[Wait, ...]
    raced: bool


@dataclass(frozen=True, slots=True)
class Candidates:
    """Ready Works as read, with what each would pin (None: its binding is gone), and where the look ended (None: at the end)."""

    works: tuple[Work, ...]
    ready: tuple[ReadyWork, ...]
    snapshots: Mapping[WorkId, Snapshot | None]
    usage: Usage
    end: Place | None


class Starts:
    """One start pass under one configuration."""

    def __init__(
        self,
        store: Store,
        leadership: Leadership,
        notes: Notes,
        marks: Marks,
        active: ActiveConfig,
        places: dict[str, Place],
        tally: Tally,
    ) -> None:
        """Take the doors and the configuration.

        Args:
            tally: Of the pass it belongs to.
            places: By pool, where the look of the pass before was cut short; this one goes on there, and says where it was.
        """
        self._store = store
        self._leadership = leadership
        self._notes = notes
        self._marks = marks
        self._active = active
        self._config = config = active.config
        self._places = places
        self._tally = tally
        self._limits = Limits(
            pools={POOL_JOBS: config.settings.job_concurrency, POOL_AGENTS: config.settings.concurrency},
            scopes={scope.name: scope.concurrency for scope in config.scopes if scope.concurrency},
        )

    def run(self, workers: Sequence[Worker], locks: Mapping[Incarnation, LockState]) -> None:
        """Start what may start; each pool on its own, so that a full one never blocks another."""
        self._tally.begin_starts()
        held = {worker for worker, state in locks.items() if state is LockState.HELD}
        now, usage = self._store.read(lambda tx: (tx.now, tx.usage()))
        slots = eligible(workers, now, lease_us=self._config.settings.lease_us, held_locks=held)
        for pool in (POOL_JOBS, POOL_AGENTS):
            self._run_pool(pool, slots, self._window(pool, usage))

    def _run_pool(self, pool: str, slots: Sequence[WorkerSlots], window: int) -> None:
        after: Place | None = None
        resume = self._places.pop(pool, None)
        full_scopes: set[str] = set()
        for _ in range(WINDOWS_MAX):
            found = self._store.read(
                partial(self._candidates, pool=pool, after=after, window=window, skip=sorted(full_scopes))
            )
            choice = choose_starts(found.ready, found.usage, self._limits, slots)
            written = self._write(choice.starts, choice.waits, found)
            self._tally.cut_short = self._tally.cut_short or written.raced
            self._tally.count_waits(pool, sum(map(_is_of_pool, written.waits)))
            full_scopes |= {wait.limit for wait in written.waits if wait.reason is Reason.CAPACITY_SCOPE and wait.limit}
            if any(_is_of_pool(wait) or wait.reason in HOLDS_ALL for wait in written.waits):
                return
            if self._active.fault is not None:
                return  # nothing of any pool starts
            if found.end is None:
                return
            after = found.end
            if resume is not None:  # the front was looked at, as in each pass; on where the pass before was cut short
                after, resume = max(after, resume, key=_order), None
            taken = [start.worker for start in choice.starts]
            slots = [replace(slot, free=slot.free - taken.count(slot.id)) for slot in slots]
        if after is not None:
            self._places[pool] = after
        self._tally.cut_short = True

    def _window(self, pool: str, usage: Usage) -> int:
        """How many ready Works to look at: what the pool has room for, so that a long queue costs no more than a short one."""
        limit = self._limits.pools[pool]
        if limit == 0:
            return WINDOW_MAX
        used = sum(count for (name, _), count in usage.counts.items() if name == pool)
        return max(WINDOW_MIN, min(WINDOW_MAX, limit - used))

    def _candidates(
        self, tx: ReadTx, *, pool: str, after: Place | None, window: int, skip: Sequence[str]
    ) -> Candidates:
        page = tx.ready_page(pool, after=after, limit=window, skip_scopes=skip)
        snapshots = {work.id: self._resolve(tx, work) for work in page.works}
        quarantined = tx.quarantined() if page.works else frozenset()
        self._marks.note(tx.skipped)
        return Candidates(
            page.works,
            tuple(_ready(tx, work, snapshots[work.id], quarantined) for work in page.works),
            snapshots,
            tx.usage() if page.works else Usage({}),
            page.end,
        )

    def _resolve(self, tx: ReadTx, work: Work) -> Snapshot | None:
        generation = self._active.generation
        if self._active.fault is not None:
            return None
        return resolve(
            work,
            self._config,
            generation=None if generation is None else generation.number,
            folder="/" if generation is None else str(PurePath(generation.source_path).parent),
            inputs=tuple(tx.pending_inputs(work.id, limit=INPUTS_MAX)),
            trigger_before=_trigger_before(tx, work),
        )

    def _write(self, starts: Sequence[Start], waits: Sequence[Wait], found: Candidates) -> Written:
        """Claim in small batches, so that the first starts do not wait for the last."""
        raced, refused = False, list(waits)
        self._notes.started({start.work_id for start in starts})
        ready = {work.id: work for work in found.ready}
        for at in range(0, len(starts), CLAIMS_PER_COMMIT):
            batch = starts[at : at + CLAIMS_PER_COMMIT]
            made, held_back = self._store.write(partial(self._claim, batch=batch, ready=ready, found=found))
            self._notes.written()
            self._tally.count_claims(made)
            refused += held_back
            raced = raced or made + len(held_back) < len(batch)
        self._notes.add([wait for wait in refused if not _is_noted(wait, found.works)])
        return Written(tuple(refused), raced)

    def _claim(
        self, tx: Tx, *, batch: Sequence[Start], ready: Mapping[WorkId, ReadyWork], found: Candidates
    ) -> tuple[int, list[Wait]]:
        """Claim; returns how many, and those that a limit read inside the transaction holds back after all."""
        self._leadership.assert_in(tx)
        made, held_back = 0, []
        for start in batch:
            snapshot, work = found.snapshots[start.work_id], ready[start.work_id]
            if snapshot is None:
                continue
            request = ClaimRequest(
                work_id=start.work_id,
                revision=start.revision,
                worker=start.worker,
                snapshot=snapshot,
                lease_us=self._config.settings.lease_us,
                refusal=partial(refusal_in, work, limits=self._limits),
            )
            answer = tx.claim(request)
            if isinstance(answer, Claimed):
                made += 1
            elif answer.reason is not None:
                held_back.append(Wait(start.work_id, answer.reason, answer.limit))
        self._notes.write_into(tx)
        return made, held_back


def _trigger_before(tx: ReadTx, work: Work) -> int | None:
    """What had set off the attempt that the next one retries, if it retries one. Rule: O09."""
    last = tx.last_timer(work.id) if work.attempts_used > 0 else None
    return None if last is None else last.trigger_input


def _ready(tx: ReadTx, work: Work, snapshot: Snapshot | None, quarantined: frozenset[str]) -> ReadyWork:
    executor = "" if snapshot is None else snapshot.registration
    pool = work.pool if snapshot is None else snapshot.pool
    unexcluded = work.attempts_used > 0 and tx.unexcluded(work.id) is not None
    binding = None if snapshot is None or work.command is not None else snapshot.binding
    held_back = binding if binding in quarantined else None
    return ReadyWork(work.id, work.revision, work.scope, pool, executor, unexcluded, snapshot is not None, held_back)


def _is_of_pool(wait: Wait) -> bool:
    return wait.reason in (Reason.CAPACITY_CONCURRENCY, Reason.CAPACITY_JOB_CONCURRENCY)


def _order(place: Place) -> tuple[int, int]:
    priority, ready_seq = place
    return -priority, ready_seq


def _is_noted(wait: Wait, works: Sequence[Work]) -> bool:
    return any(work.id == wait.work_id and work.reason is wait.reason for work in works)
