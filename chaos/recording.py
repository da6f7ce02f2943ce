"""Reading a home that has come to rest into a `History`. Nothing is judged here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Protocol, TypeVar

from chaos.history import History
from chaos.job import Job
from chaos.seen import NOTHING_SEEN, Look, Seen
from chaos.witness import Line
from shared.ids import WorkId
from shared.model.attempt import Attempt
from shared.model.budget import Budget, Period
from shared.model.settings import Config
from shared.model.work import Work
from shared.policy.capacity import POOL_AGENTS, POOL_JOBS, Limits
from shared.store.contract import Event, ReadTx

R = TypeVar("R")
K = TypeVar("K")
V = TypeVar("V")

PAGE = 500
OUTPUT_BYTES_MAX = 64 * 1024
INPUTS_MAX = 1_000
INTENTS_MAX = 1_000
UNHELD_MAX = 256
LEDGERS_MAX = 10_000


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


@dataclass(frozen=True, slots=True)
class Known:
    """What whoever drills knows besides what the store says.

    Attributes:
        lines: The witness, in the order it was written.
        config: The configuration that was active all the while.
    """

    jobs: Sequence[Job]
    lines: Sequence[Line]
    config: Config
    seen: Seen = NOTHING_SEEN


def record(store: Readable, output_of: Callable[[Attempt], str], known: Known) -> History:
    """Read everything there is to know about a home that has come to rest.

    Args:
        output_of: What a pinned attempt wrote to its standard output.
    """
    return store.read(lambda tx: _record(tx, output_of, known))


def _record(tx: ReadTx, output_of: Callable[[Attempt], str], known: Known) -> History:
    works, config = _all_works(tx), known.config
    attempts = {attempt.id: attempt for work_id in works for attempt in tx.attempts(work_id)}
    return History(
        jobs=tuple(known.jobs),
        limits=limits_of(config),
        lease_us=config.settings.lease_us,
        lines=tuple(known.lines),
        works=works,
        attempts=attempts,
        snapshots=_found(attempts, tx.snapshot),
        segments={attempt_id: tuple(tx.segments(attempt_id)) for attempt_id in attempts},
        leases=_found(attempts, tx.lease),
        declarations={attempt_id: tuple(tx.declarations(attempt_id)) for attempt_id in attempts},
        streams=_found(attempts, tx.stream),
        intents={work_id: tuple(tx.intents(work_id, limit=INTENTS_MAX)) for work_id in works},
        pending_inputs={work_id: tuple(tx.pending_inputs(work_id, limit=INPUTS_MAX)) for work_id in works},
        events=all_events(tx),
        open_orders=tuple(tx.stop_orders(limit=len(attempts) + 1)),
        cancellations={work_id: tuple(tx.cancellations(work_id)) for work_id in works},
        outputs={attempt.id: output_of(attempt) for attempt in attempts.values() if attempt.pin},
        budgets=config.budgets,
        approvals=frozenset(binding.name for binding in config.bindings if binding.approval),
        ledgers={budget: _ledgers(tx, budget) for budget in config.budgets if budget.period is Period.LIFE},
        is_usage_staged=tx.has_staged_usage(),
        **{each.name: getattr(known.seen, each.name) for each in fields(Seen)},
    )


def _found(names: Iterable[K], read: Callable[[K], V | None]) -> dict[K, V]:
    """What is there of each; a name of which nothing is, is left out."""
    return {name: value for name in names if (value := read(name)) is not None}


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
