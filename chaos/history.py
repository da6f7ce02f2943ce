"""What is known after a drill, as plain values: what was asked for, what the store says, what the witness says.

`record` reads; everything that judges works on the result alone. Drills with real processes and the simulation make the same
value; what only a simulation can see is empty in a drill. Rule: design §9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Protocol, TypeVar

from chaos.witness import OUTPUT, Line, Mark
from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import Attempt, Lease, Segment, Snapshot
from shared.model.budget import Budget, Period
from shared.model.cancel import Cancellation
from shared.model.host import StopOrder
from shared.model.instant import Instant
from shared.model.settings import Config
from shared.model.work import Work
from shared.policy.capacity import POOL_AGENTS, POOL_JOBS, Limits
from shared.store.contract import Event, ReadTx

R = TypeVar("R")

PAGE = 500
OUTPUT_BYTES_MAX = 64 * 1024
INPUTS_MAX = 1_000
UNHELD_MAX = 256
LEDGERS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it was submitted, and how it may end. What the drill did to it widens that; no check is ever made weaker.

    Attributes:
        status: How it ends when it is left alone: 0 to 255, or the negative number of a signal.
        cancelled: It was cancelled; it may never start, or end early.
        cannot_run: There is no such command; it is to fail for good, and never starts.
        may_time_out: Its time may be up before it ends.
        may_be_killed: The drill killed its processes, or its host; it may start and never come to its last line.
        may_need_person: Evidence of its launch was destroyed (its shim killed, its files, its host); its outcome may be unknown,
            so it may be left to a person. A job that nothing of that happened to must not.
        may_run_again: Its binding declares it safe to replay, or has a retry policy, or it takes several inputs: an attempt that
            ran may be followed by another.
        may_stay_open: The store was older than its home and was refused for good, as no newer copy of it was left; it may never be
            settled, or even start.
        statuses: How its first attempts end, by number, before those that end with `status`.
        is_standing: It rests after each input, or is held; only a cancel settles it.
        is_held: Once nothing is left to try it is held for a person, instead of failing.
        may_be_retried: A person may have tried it again.
        output: What it prints when it is left alone; None: that is not looked at.
    """

    work_id: WorkId
    status: int
    cancelled: bool = False
    cannot_run: bool = False
    may_time_out: bool = False
    may_be_killed: bool = False
    may_need_person: bool = False
    may_run_again: bool = False
    may_stay_open: bool = False
    statuses: tuple[int, ...] = ()
    is_standing: bool = False
    is_held: bool = False
    may_be_retried: bool = False
    output: str | None = OUTPUT

    def status_of(self, number: int) -> int:
        """How its attempt of that number ends when it is left alone."""
        return self.statuses[number - 1] if number <= len(self.statuses) else self.status

    @property
    def may_be_cut_short(self) -> bool:
        """Whether it may have started and not come to its last line."""
        return self.cancelled or self.may_time_out or self.may_be_killed or self.may_stay_open

    @property
    def may_never_start(self) -> bool:
        """Whether it may be settled, or left to a person, without having started."""
        return self.cancelled or self.cannot_run or self.may_time_out or self.may_need_person or self.may_stay_open


@dataclass(frozen=True, slots=True)
class Go:
    """A gate that was opened (simulation only), and what the store said of it.

    Attributes:
        epoch, pid: Of the launch whose gate it is; the shim's pid.
        now, lease: When its holder decided to open it, and the lease as committed then; whoever is frozen after that opens it late.
        attempt: As committed when GO was sent; None: the store does not know it.
        was_forgotten: That launch was pinned, in a commit that the store had lost by then.
    """

    attempt_id: AttemptId
    epoch: int
    pid: int
    now: Instant
    attempt: Attempt | None
    lease: Lease | None
    was_forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Life:
    """When a coordinator or worker surely lived, frozen or not: from one event of the changefeed to another.

    Attributes:
        until_seq: The last event that was committed when it was still alive; None: it was so at the end.
    """

    who: Incarnation
    from_seq: int
    until_seq: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """A glance at who is held, taken now and then.

    Attributes:
        at_us: Elapsed time, in microseconds, never falling; a clock that steps does not show in it.
        able: Since the look before, a leading coordinator and a worker that may take anything over ran all the while, and the
            store let them write.
        unheld: (attempt, epoch) of what is unfinished, not parked, left to nobody, and without a live lease.
    """

    at_us: int
    able: bool
    unheld: frozenset[tuple[AttemptId, int]]


@dataclass(frozen=True, slots=True)
class Accepted:
    """An input that whoever handed it in was told is accepted, under its key."""

    work_id: WorkId
    number: int
    key: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A moment at which `seq` was the last event that was committed. `at_us`: elapsed time, as in `Look`."""

    seq: int
    at_us: int


@dataclass(frozen=True, slots=True)
class Fault:
    """An actor that died of an error that is none of those it may meet: its class by name, and what it said."""

    who: str
    error: str
    text: str


@dataclass(frozen=True, slots=True)
class Backward:
    """A commit into a store that knew less than whoever committed had seen of it (simulation only).

    Attributes:
        seen_seq: The last event after the commit before of that process; `seq`: after this one.
    """

    who: str
    seen_seq: int
    seq: int


@dataclass(frozen=True, slots=True)
class History:
    """Everything the checks look at.

    Attributes:
        limits: In force all the while.
        lease_us: Of the configuration.
        lines: The witness, in the order it was written.
        snapshots: What each attempt pinned at its claim.
        pending_inputs: Numbers of the inputs of each Work that no attempt has consumed.
        events: The changefeed, from its beginning.
        open_orders: Stop orders that nobody has proven yet.
        cancellations: By Work, in order.
        outputs: What each pinned attempt wrote to its standard output.
        faults: Actors that died of an error of ours.
        accepted: What whoever handed inputs in was answered.
        budgets: In force all the while; `approvals`: the bindings whose works a person has to approve.
        ledgers: Of each budget for life, what was charged, by subject.
        is_usage_staged: Some of what was used is not charged yet.
        gos, lives, looks, ticks, backwards: As far as whoever recorded them could see; () when not at all.
        lost: Events that were committed, and that the store forgot when it went back in time; other events have their numbers now.
    """

    jobs: tuple[Job, ...]
    limits: Limits
    lease_us: int
    lines: tuple[Line, ...]
    works: Mapping[WorkId, Work]
    attempts: Mapping[AttemptId, Attempt]
    snapshots: Mapping[AttemptId, Snapshot]
    segments: Mapping[AttemptId, tuple[Segment, ...]]
    leases: Mapping[AttemptId, Lease]
    pending_inputs: Mapping[WorkId, tuple[int, ...]]
    events: tuple[Event, ...]
    open_orders: tuple[StopOrder, ...]
    cancellations: Mapping[WorkId, tuple[Cancellation, ...]]
    outputs: Mapping[AttemptId, str]
    budgets: tuple[Budget, ...] = ()
    approvals: frozenset[str] = frozenset()
    ledgers: Mapping[Budget, Mapping[str, Decimal]] = field(default_factory=dict)
    is_usage_staged: bool = False
    faults: tuple[Fault, ...] = ()
    gos: tuple[Go, ...] = ()
    lives: tuple[Life, ...] = ()
    looks: tuple[Look, ...] = ()
    backwards: tuple[Backward, ...] = ()
    lost: tuple[Event, ...] = ()
    ticks: tuple[Tick, ...] = ()
    accepted: tuple[Accepted, ...] = ()

    def lines_of(self, work_id: WorkId, mark: Mark) -> list[Line]:
        """What the jobs of one Work said."""
        return [line for line in self.lines if line.work_id == work_id and line.mark is mark]

    def attempts_of(self, work_id: WorkId) -> list[Attempt]:
        """A Work's attempts, by number."""
        found = [attempt for attempt in self.attempts.values() if attempt.work_id == work_id]
        return sorted(found, key=lambda attempt: attempt.number)

    def job(self, work_id: WorkId) -> Job | None:
        """The job behind a Work; None when it is none of the drill's."""
        return next((job for job in self.jobs if job.work_id == work_id), None)


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen besides the store and the witness; see the attributes of `History`."""

    faults: tuple[Fault, ...] = ()
    gos: tuple[Go, ...] = ()
    lives: tuple[Life, ...] = ()
    looks: tuple[Look, ...] = ()
    backwards: tuple[Backward, ...] = ()
    lost: tuple[Event, ...] = ()
    ticks: tuple[Tick, ...] = ()
    accepted: tuple[Accepted, ...] = ()


NOTHING_SEEN = Seen()


class Readable(Protocol):
    """What `record` needs of a store."""

    def read(self, fn: Callable[[ReadTx], R]) -> R: ...


def limits_of(config: Config) -> Limits:
    """The limits that a configuration sets; read here once more, as a check must not share the code that it checks."""
    settings = config.settings
    return Limits(
        {POOL_JOBS: settings.job_concurrency, POOL_AGENTS: settings.concurrency},
        {scope.name: scope.concurrency for scope in config.scopes if scope.concurrency is not None},
    )


def record(
    store: Readable,
    output_of: Callable[[Attempt], str],
    *,
    jobs: Sequence[Job],
    lines: Sequence[Line],
    config: Config,
    seen: Seen = NOTHING_SEEN,
) -> History:
    """Read everything there is to know about a home that has come to rest.

    Args:
        output_of: What a pinned attempt wrote to its standard output.
        config: The configuration that was active all the while.
    """
    return store.read(lambda tx: _record(tx, output_of, jobs, lines, config, seen))


def _record(
    tx: ReadTx,
    output_of: Callable[[Attempt], str],
    jobs: Sequence[Job],
    lines: Sequence[Line],
    config: Config,
    seen: Seen,
) -> History:
    works = _all_works(tx)
    attempts = {attempt.id: attempt for work_id in works for attempt in tx.attempts(work_id)}
    snapshots = {attempt_id: tx.snapshot(attempt_id) for attempt_id in attempts}
    leases = {attempt_id: tx.lease(attempt_id) for attempt_id in attempts}
    return History(
        jobs=tuple(jobs),
        limits=limits_of(config),
        lease_us=config.settings.lease_us,
        lines=tuple(lines),
        works=works,
        attempts=attempts,
        snapshots={name: found for name, found in snapshots.items() if found is not None},
        segments={attempt_id: tuple(tx.segments(attempt_id)) for attempt_id in attempts},
        leases={name: found for name, found in leases.items() if found is not None},
        pending_inputs={work_id: tuple(tx.pending_inputs(work_id, limit=INPUTS_MAX)) for work_id in works},
        events=all_events(tx),
        open_orders=tuple(tx.stop_orders(limit=len(attempts) + 1)),
        cancellations={work_id: tuple(tx.cancellations(work_id)) for work_id in works},
        outputs={attempt.id: output_of(attempt) for attempt in attempts.values() if attempt.pin},
        budgets=config.budgets,
        approvals=frozenset(binding.name for binding in config.bindings if binding.approval),
        ledgers={budget: _ledgers(tx, budget) for budget in config.budgets if budget.period is Period.LIFE},
        is_usage_staged=tx.has_staged_usage(),
        faults=seen.faults,
        gos=seen.gos,
        lives=seen.lives,
        looks=seen.looks,
        backwards=seen.backwards,
        lost=seen.lost,
        ticks=seen.ticks,
        accepted=seen.accepted,
    )


def pins_in(events: Sequence[Event]) -> frozenset[tuple[AttemptId, int]]:
    """The launches that some events tell of as pinned: attempt and epoch."""
    return frozenset(
        (event.attempt_id, event.epoch)
        for event in events
        if event.kind == "attempt.pinned" and event.attempt_id is not None and event.epoch is not None
    )


def _ledgers(tx: ReadTx, budget: Budget) -> dict[str, Decimal]:
    return {ledger.subject: used for ledger, used in tx.ledgers(budget, 0, limit=LEDGERS_MAX)}


def look(tx: ReadTx, *, at_us: int, able: bool) -> Look:
    """Who is held now; see `Look`."""
    unheld = frozenset((item.attempt.id, item.attempt.epoch) for item in tx.recoverable(after=None, limit=UNHELD_MAX))
    return Look(at_us, able, unheld)


def output_in(attempts_dir: Path) -> Callable[[Attempt], str]:
    """Reads outputs from the directories below a home's `attempts/`."""

    def read(attempt: Attempt) -> str:
        if attempt.pin is None:
            return ""
        try:
            with (attempts_dir / attempt.pin.directory / "out").open("rb") as file:
                return file.read(OUTPUT_BYTES_MAX).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    return read


def _all_works(tx: ReadTx) -> dict[WorkId, Work]:
    works: dict[WorkId, Work] = {}
    after = 0
    while page := tx.works(states=(), after=after, limit=PAGE):
        works.update((work.id, work) for work in page)
        after = page[-1].number
    return works


def all_events(tx: ReadTx) -> tuple[Event, ...]:
    """The whole changefeed."""
    events: list[Event] = []
    after = 0
    while page := tx.events(after=after, limit=PAGE):
        events += page
        after = page[-1].seq
    return tuple(events)
