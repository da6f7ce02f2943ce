"""The start pass: which ready Work starts now, and what holds each other one back.

Read, decide, write: a snapshot is read, `policy.capacity` chooses, and each claim rechecks inside its own transaction what it
was decided on. Rule: design §5 ("Start pass"); requirements E02, E03, C01–C04.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath

from coordinator.gates import Answer, Gates, Question, Undecided, digest_of
from coordinator.leadership import Leadership
from coordinator.marks import Marks
from coordinator.notes import Notes
from coordinator.tally import Tally
from shared.ids import Incarnation, WorkId
from shared.model.attempt import Snapshot
from shared.model.evidence import LockState
from shared.model.host import Worker
from shared.model.work import SET_ASIDE, Permit, Reason, Work
from shared.policy.binding import resolve
from shared.policy.capacity import (
    POOL_AGENTS,
    POOL_JOBS,
    ReadyWork,
    Start,
    Usage,
    Wait,
    WorkerSlots,
    choose_starts,
    full_scopes,
    is_of_pool,
    nothing_else_starts,
    refusal_in,
    slots_left,
)
from shared.policy.limits import limits_of
from shared.policy.workers import eligible
from shared.store.active import ActiveConfig
from shared.store.contract import Claimed, ClaimRequest, ReadTx, Store, Tx
from shared.store.values import ClaimHeld, GateHold

WINDOW_MAX = 64
WINDOW_MIN = 8
WINDOWS_MAX = 4
CLAIMS_PER_COMMIT = 8
INPUTS_MAX = 64
Place = tuple[int, int]
"""Where in the order of ready Works: (priority, ready_seq)."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one window. `waits`: whatever does not start; `raced`: something had changed since it was read, or became a
    hold, so that there may be room for others.
    """

    waits: tuple[Wait, ...]
    raced: bool


@dataclass(frozen=True, slots=True)
class Candidates:
    """Ready Works as read, with what each would pin (None: its binding is gone), and where the look ended (None: at the end).

    Attributes:
        passed: A ready Work of each full scope that was passed over.
    """

    works: tuple[Work, ...]
    ready: tuple[ReadyWork, ...]
    snapshots: Mapping[WorkId, Snapshot | None]
    usage: Usage
    end: Place | None
    passed: tuple[Work, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is claimed of one window.

    Attributes:
        starts: Including those that a gate turns into a hold, which take no slot.
        holds: By Work, what its gate said.
    """

    starts: tuple[Start, ...]
    holds: Mapping[WorkId, GateHold]
    waits: tuple[Wait, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of some claims. `held`: they became holds; `held_back`: a limit read inside the transaction forbids them."""

    made: list[WorkId]
    held: list[WorkId]
    held_back: list[Wait]


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
        gates: Gates,
    ) -> None:
        """Take the doors and the configuration.

        Args:
            gates: Asked before a first attempt.
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
        self._gates = gates
        self._limits = limits_of(config)

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
        for _ in range(WINDOWS_MAX):
            found = self._store.read(partial(self._candidates, pool=pool, after=after, window=window))
            plan = self._plan(found, slots)
            written = self._write(plan, found)
            self._tally.cut_short = self._tally.cut_short or written.raced
            self._tally.count_waits(pool, sum(map(is_of_pool, written.waits)))
            slots = slots_left(slots, [start.worker for start in plan.starts if start.work_id not in plan.holds])
            if nothing_else_starts(written.waits, slots):
                return
            if self._active.fault is not None:
                return  # nothing of any pool starts
            if found.end is None:
                return
            after = found.end
            if resume is not None:  # the front was looked at, as in each pass; on where the pass before was cut short
                after, resume = max(after, resume, key=_order), None
            if all(wait.reason in SET_ASIDE for wait in written.waits) and not plan.starts:
                window = WINDOW_MAX  # none of them is met again: the sooner they are aside, the better
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

    def _candidates(self, tx: ReadTx, *, pool: str, after: Place | None, window: int) -> Candidates:
        """The front of the queue as it is; behind it, what lies in no full scope."""
        usage = tx.usage()
        full = frozenset() if after is None else full_scopes(usage, self._limits)
        quarantined = tx.quarantined()
        page = tx.ready_page(pool, after=after, limit=window, skip_scopes=sorted(full))
        snapshots = {work.id: self._resolve(tx, work) for work in page.works}
        self._marks.note(tx.skipped)
        return Candidates(
            page.works,
            tuple(_ready(tx, work, snapshots[work.id], quarantined) for work in page.works),
            snapshots,
            usage,
            page.end,
            page.passed,
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

    def _plan(self, found: Candidates, slots: Sequence[WorkerSlots]) -> Plan:
        """Choose, and ask the gates about what could start. What they object to takes no room from what lies behind it."""
        waits: list[Wait] = []
        stopped: list[Start] = []
        holds: dict[WorkId, GateHold] = {}
        ready = list(found.ready)
        while True:
            choice = choose_starts(ready, found.usage, self._limits, slots)
            said = self._ask(choice.starts, found)
            for start in choice.starts:
                match said.get(start.work_id):
                    case GateHold() as hold:
                        stopped.append(start)
                        holds[start.work_id] = hold
                    case Undecided() as undecided:
                        waits.append(Wait(start.work_id, Reason.GATE_UNDECIDED, undecided.told))
            objected = {start.work_id for start in stopped} | {wait.work_id for wait in waits}
            if not objected.intersection(work.id for work in ready):
                return Plan((*stopped, *choice.starts), holds, (*choice.waits, *waits))
            ready = [work for work in ready if work.id not in objected]

    def _ask(self, starts: Sequence[Start], found: Candidates) -> dict[WorkId, Answer]:
        """What the gates say to first attempts; a Work they do not concern, or that one of them admitted, is not in it."""
        said: dict[WorkId, Answer] = {}
        works = {work.id: work for work in found.works}
        for start in starts:
            work, snapshot = works[start.work_id], found.snapshots[start.work_id]
            if snapshot is None or work.attempts_used or Permit.GATE in work.permits:
                continue
            gates = self._gates.concerned(work, snapshot, self._config)
            if gates:
                body = self._store.read(partial(_first_input, snapshot=snapshot))
                question = Question(work, snapshot, digest_of(snapshot), body, self._config)
                said[work.id] = self._gates.answer(gates, question)
        return said

    def _write(self, plan: Plan, found: Candidates) -> Written:
        """Claim in small batches, so that the first starts do not wait for the last."""
        raced, refused, starts = False, list(plan.waits), plan.starts
        self._notes.started({start.work_id for start in starts})
        ready = {work.id: work for work in found.ready}
        for at in range(0, len(starts), CLAIMS_PER_COMMIT):
            batch = starts[at : at + CLAIMS_PER_COMMIT]
            done = self._store.write(partial(self._claim, batch=batch, ready=ready, found=found, plan=plan))
            self._notes.written()
            for work_id in (*done.made, *done.held):
                self._gates.forget(work_id)
            self._tally.count_claims(len(done.made))
            refused += done.held_back
            raced = raced or len(done.made) + len(done.held_back) < len(batch)
        aside = [wait for wait in refused if wait.reason in SET_ASIDE]
        if aside:
            self._store.write(partial(self._set_aside, waits=aside))
            self._notes.written()
        told = [*(wait for wait in refused if wait.reason not in SET_ASIDE), *self._passed_over(found)]
        self._notes.add([wait for wait in told if not _is_noted(wait, (*found.works, *found.passed))])
        return Written(tuple(refused), raced)

    def _set_aside(self, tx: Tx, *, waits: Sequence[Wait]) -> None:
        """Take them out of the queue, in this very pass: the next one may know more, and must not be told what this one thought."""
        self._leadership.assert_in(tx)
        self._notes.write_into(tx)
        tx.hold_back(waits)

    def _passed_over(self, found: Candidates) -> list[Wait]:
        """Why those wait that stand for a full scope."""
        refusals = ((work.id, refusal_in(_in_scope(work), found.usage, self._limits)) for work in found.passed)
        return [Wait(work_id, *refusal) for work_id, refusal in refusals if refusal is not None]

    def _claim(
        self,
        tx: Tx,
        *,
        batch: Sequence[Start],
        ready: Mapping[WorkId, ReadyWork],
        found: Candidates,
        plan: Plan,
    ) -> Batch:
        """Claim what is planned."""
        self._leadership.assert_in(tx)
        done = Batch([], [], [])
        permitted = {work.id for work in found.works if Permit.GATE in work.permits}
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
                budgets=self._config.budgets,
                gate_hold=plan.holds.get(start.work_id),
                by_permit=start.work_id in permitted,
            )
            answer = tx.claim(request)
            if isinstance(answer, Claimed):
                done.made.append(start.work_id)
            elif isinstance(answer, ClaimHeld):
                done.held.append(start.work_id)
            elif answer.reason is not None:
                done.held_back.append(Wait(start.work_id, answer.reason, answer.limit))
        self._notes.write_into(tx)
        return done


def _first_input(tx: ReadTx, *, snapshot: Snapshot) -> bytes | None:
    first = tx.inputs(snapshot.inputs[:1])
    return first[0].body if first else None


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


def _in_scope(work: Work) -> ReadyWork:
    """A Work of which nothing matters but where it lies."""
    return ReadyWork(work.id, work.revision, work.scope, work.pool, "", unexcluded=False, resolved=True)


def _order(place: Place) -> tuple[int, int]:
    priority, ready_seq = place
    return -priority, ready_seq


def _is_noted(wait: Wait, works: Sequence[Work]) -> bool:
    return any(work.id == wait.work_id and work.reason is wait.reason for work in works)
