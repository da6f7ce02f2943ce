"""Which ready Work starts now, on which worker, and what holds each other one back.

Rule: requirements C01–C04, E07; design §5 ("Start pass").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shared.ids import Incarnation, WorkId
from shared.model.settings import scope_chain
from shared.model.work import Reason

POOL_JOBS = "jobs"
POOL_AGENTS = "agents"


@dataclass(frozen=True, slots=True)
class ReadyWork:
    """A ready Work as the pass sees it.

    Attributes:
        unexcluded: An earlier attempt of it still claims resources.
        resolved: Its binding resolved in the active configuration.
        quarantined: The binding in quarantine that it would run; None: it is not held back by one.
    """

    id: WorkId
    revision: int
    scope: str
    pool: str
    executor: str
    unexcluded: bool
    resolved: bool
    quarantined: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerSlots:
    """An eligible worker and how many more attempts it takes."""

    id: Incarnation
    free: int
    executors: frozenset[str]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in force; 0 or an absent scope means unbounded."""

    pools: Mapping[str, int]
    scopes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Usage:
    """Attempts that hold a slot now: unfinished and not parked, or ended and unexcluded. By (pool, exact scope)."""

    counts: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Start:
    """A Work to be claimed for a worker."""

    work_id: WorkId
    revision: int
    worker: Incarnation


@dataclass(frozen=True, slots=True)
class Wait:
    """A ready Work that does not start, and why; `limit` names the full pool or scope, or the binding in quarantine, else None."""

    work_id: WorkId
    reason: Reason
    limit: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    """What a start pass does with the ready Work it looked at, in the same order."""

    starts: tuple[Start, ...]
    waits: tuple[Wait, ...]


def choose_starts(ready: Sequence[ReadyWork], usage: Usage, limits: Limits, workers: Sequence[WorkerSlots]) -> Choice:
    """Choose starts in the given order; one full pool or scope never blocks Work of another.

    Args:
        ready: Oldest first within priority.
        workers: Eligible ones only; each start goes to the one with most free slots, first by name when equal.
    """
    book = _Book(usage, limits)
    free = {worker.id: worker.free for worker in workers}
    starts: list[Start] = []
    waits: list[Wait] = []
    for work in ready:
        refusal = _refusal(work, book)
        if refusal is None:
            worker = _pick(work.executor, workers, free)
            if worker is None:
                refusal = (Reason.NO_WORKER, None)
            else:
                free[worker] -= 1
                book.take(work)
                starts.append(Start(work.id, work.revision, worker))
                continue
        waits.append(Wait(work.id, *refusal))
    return Choice(tuple(starts), tuple(waits))


def refusal_in(work: ReadyWork, usage: Usage, limits: Limits) -> tuple[Reason, str | None] | None:
    """Why this Work must not start under this usage, ignoring workers; None: it may. For the recheck inside the claim."""
    return _refusal(work, _Book(usage, limits))


def full_scopes(usage: Usage, limits: Limits) -> frozenset[str]:
    """Scopes in which nothing may start, nor below them, until a slot of theirs is free."""
    book = _Book(usage, limits)
    return frozenset(name for name in limits.scopes if book.full_scope(name) is not None)


def held_by_limits(pool: str, usage: Usage, limits: Limits) -> frozenset[tuple[Reason, str | None]]:
    """What holds Work of a pool back as long as no slot becomes free: the reason and limit that such a Work would be told."""
    full: set[tuple[Reason, str | None]] = {(Reason.CAPACITY_SCOPE, scope) for scope in full_scopes(usage, limits)}
    return frozenset(full | ({_of_full_pool(pool)} if _Book(usage, limits).pool_full(pool) else set()))


def is_of_pool(wait: Wait) -> bool:
    """Whether the limit of its pool holds it back."""
    return wait.reason in (Reason.CAPACITY_CONCURRENCY, Reason.CAPACITY_JOB_CONCURRENCY)


def slots_left(slots: Sequence[WorkerSlots], taken: Sequence[Incarnation]) -> list[WorkerSlots]:
    """The slots once some were given away; `taken`: each worker as often as a slot of it was."""
    return [replace(slot, free=slot.free - taken.count(slot.id)) for slot in slots]


def nothing_else_starts(waits: Sequence[Wait], slots: Sequence[WorkerSlots]) -> bool:
    """Whether what these wait for holds back whatever else there is of their pool: its limit, the disk, or that no slot is left.

    A slot that one Work cannot use may be another's.
    """
    if any(is_of_pool(wait) or wait.reason is Reason.DISK_FULL for wait in waits):
        return True
    return any(wait.reason is Reason.NO_WORKER for wait in waits) and not any(slot.free > 0 for slot in slots)


def _of_full_pool(pool: str) -> tuple[Reason, str]:
    return (Reason.CAPACITY_JOB_CONCURRENCY if pool == POOL_JOBS else Reason.CAPACITY_CONCURRENCY), pool


def _refusal(work: ReadyWork, book: _Book) -> tuple[Reason, str | None] | None:
    if not work.resolved:
        return Reason.UNSUPPORTED_GENERATION, None
    if work.quarantined is not None:
        return Reason.QUARANTINED, work.quarantined
    if work.unexcluded:
        return Reason.STOP_UNPROVEN, None
    if book.pool_full(work.pool):
        return _of_full_pool(work.pool)
    full = book.full_scope(work.scope)
    return None if full is None else (Reason.CAPACITY_SCOPE, full)


def _pick(executor: str, workers: Sequence[WorkerSlots], free: Mapping[Incarnation, int]) -> Incarnation | None:
    fit = [worker.id for worker in workers if free[worker.id] > 0 and executor in worker.executors]
    return min(fit, key=lambda worker: (-free[worker], worker), default=None)


class _Book:
    """Slots in use while a pass hands them out."""

    def __init__(self, usage: Usage, limits: Limits) -> None:
        self._limits = limits
        self._pools: dict[str, int] = {}
        self._scopes: dict[str, int] = {}
        for (pool, scope), count in usage.counts.items():
            self._add(pool, scope, count)

    def pool_full(self, pool: str) -> bool:
        limit = self._limits.pools.get(pool, 0)
        return limit > 0 and self._pools.get(pool, 0) >= limit

    def full_scope(self, scope: str) -> str | None:
        for name in scope_chain(scope):
            limit = self._limits.scopes.get(name, 0)
            if limit > 0 and self._scopes.get(name, 0) >= limit:
                return name
        return None

    def take(self, work: ReadyWork) -> None:
        self._add(work.pool, work.scope, 1)

    def _add(self, pool: str, scope: str, count: int) -> None:
        self._pools[pool] = self._pools.get(pool, 0) + count
        for name in scope_chain(scope):
            self._scopes[name] = self._scopes.get(name, 0) + count
