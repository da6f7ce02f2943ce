"""`tenure capacity`: limits of pools and scopes, who holds the slots now, and what waits for which reason.

A slot is held from the claim until the stop is proven, so holders may have ended. `waiting` of a pool or scope is what its own
limit held back: work held back by a scope counts in no pool, all that is ready in a full scope counts in it, but for what another
configuration or the end of a quarantine has to let go first, and what no pass has looked at yet is listed as such.

Rule: requirements C01, C03–C05.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import get_args

from shared.commands.arguments import Parser, add_json
from shared.commands.json_views import Json, finding_of
from shared.commands.open_home import OpenHome, opened
from shared.commands.render import Ink, counted, duration, escaped, print_json, table
from shared.commands.work_text import WHY, counted_tries
from shared.model.attempt import Attempt, AttemptState
from shared.model.host import StopOrder
from shared.model.instant import Instant
from shared.model.settings import Pool, scope_chain
from shared.model.work import Reason
from shared.store.active import active_config
from shared.store.contract import ReadTx

COUNTED_MAX = 10_000
"""Ready works counted of each pool and reason."""
HOLDERS_MAX = 1_000
HOLDERS_SHOWN = 20

POOL_REASONS = {"jobs": Reason.CAPACITY_JOB_CONCURRENCY, "agents": Reason.CAPACITY_CONCURRENCY}
NOT_LOOKED_AT = "no pass has looked at it yet"


@dataclass(frozen=True, slots=True)
class Line:
    """One pool or scope.

    Attributes:
        limit: 0 = unbounded.
        waiting: Ready works that this very limit held back in the last pass.
    """

    name: str
    limit: int
    in_use: int
    waiting: int

    @property
    def is_full(self) -> bool:
        """No further attempt fits."""
        return self.limit > 0 and self.in_use >= self.limit


@dataclass(frozen=True, slots=True)
class Holder:
    """An attempt that holds a slot. `order`: of one that has ended, whose stop is not proven."""

    attempt: Attempt
    order: StopOrder | None

    @property
    def runs(self) -> bool:
        """It is under way: nothing but time stands between its slot and the next."""
        return self.order is None and self.attempt.state is not AttemptState.RECOVERY_REQUIRED


@dataclass(frozen=True, slots=True)
class Capacity:
    """All of it, read in one snapshot at `now`.

    Attributes:
        waiting: Ready works by reason; under None those that no pass has looked at.
        holders: Oldest first; at most `HOLDERS_MAX`.
        capped: More works are ready than were counted, so each `waiting` means "at least".
    """

    pools: tuple[Line, ...]
    scopes: tuple[Line, ...]
    waiting: tuple[tuple[Reason | None, int], ...]
    holders: tuple[Holder, ...]
    capped: bool
    now: Instant


def main(argv: list[str], *, home: str | None) -> int:
    """Print the capacity."""
    parser = Parser("tenure capacity", "Limits of pools and scopes, who holds their slots, what waits; 0 = unbounded.")
    add_json(parser)
    given = parser.parse(argv)
    with opened(home) as door:
        found = door.store.read(read)
        if given.json:
            print_json(view(found))
        else:
            print("\n".join(lines(found, door, Ink.of(os.environ))))
    return 0


def read(tx: ReadTx) -> Capacity:
    """Count in one snapshot."""
    config = active_config(tx).config
    usage = tx.usage().counts
    counts = tx.ready_counts(cap=COUNTED_MAX)
    pools, by_scope = [], Counter[str]()
    for (_, limit_name), count in tx.ready_limits(cap=COUNTED_MAX).items():
        by_scope[limit_name] += count
    for pool in get_args(Pool):
        in_use = sum(count for (used, _), count in usage.items() if used == pool)
        limit = config.pool_limit(pool)
        waiting = counts.get((pool, POOL_REASONS[pool]), 0)
        if limit and in_use >= limit:  # the pass stops at the first work that a full pool holds back, and marks no more
            waiting += counts.get((pool, None), 0)
        pools.append(Line(pool, limit, in_use, waiting))
        by_scope[pool] -= counts.get((pool, POOL_REASONS[pool]), 0)  # a scope may be called as a pool is
    scopes = []
    for scope in config.scopes:
        in_use = sum(count for (_, used), count in usage.items() if scope.name in scope_chain(used))
        line = Line(scope.name, scope.concurrency or 0, in_use, by_scope[scope.name])
        if line.is_full:  # the pass passes over what lies in a full scope, and marks the first of it
            line = replace(line, waiting=tx.ready_below(scope.name, cap=COUNTED_MAX))
        scopes.append(line)
    capped = any(line.waiting >= COUNTED_MAX for line in scopes) or max(counts.values(), default=0) >= COUNTED_MAX
    return Capacity(tuple(pools), tuple(scopes), _by_reason(counts), read_holders(tx), capped, tx.now)


def read_holders(tx: ReadTx) -> tuple[Holder, ...]:
    """Attempts that hold a slot, oldest first; those that have ended with their open stop order."""
    return tuple(
        Holder(attempt, None if attempt.ended_at_us is None else tx.open_stop_order(attempt.id))
        for attempt in tx.holders(limit=HOLDERS_MAX)
    )


def view(found: Capacity) -> Json:
    """For programs."""
    return {
        "pools": [_line_view(line) for line in found.pools],
        "scopes": [_line_view(line) for line in found.scopes],
        "waiting": [{"reason": reason, "count": count} for reason, count in found.waiting],
        "waiting_capped": found.capped,
        "holders": [holder_view(holder) for holder in found.holders],
        "holders_capped": len(found.holders) == HOLDERS_MAX,
    }


def holder_view(holder: Holder) -> Json:
    """An attempt that holds a slot, and why it still does."""
    attempt, order = holder.attempt, holder.order
    return {
        "attempt": attempt.id,
        "work": attempt.work_id,
        "state": attempt.state,
        "epoch": attempt.epoch,
        "pool": attempt.pool,
        "scope": attempt.scope,
        "why": why_held(holder),
        "tries": None if order is None else order.tries,
        "suspects": None if order is None else suspect_count(order),
    }


def why_held(holder: Holder) -> str:
    """`under_way`, `recovery_required`, or `stop_unproven`."""
    if holder.order is not None:
        return Reason.STOP_UNPROVEN.value
    return "under_way" if holder.runs else AttemptState.RECOVERY_REQUIRED.value


def counts_against(holder: Holder, kind: str, name: str) -> bool:
    """Whether a holder takes a slot of that `pool` or `scope`."""
    attempt = holder.attempt
    return attempt.pool == name if kind == "pool" else name in scope_chain(attempt.scope)


def suspect_count(order: StopOrder) -> int:
    """How many processes the last try found that may be what is left."""
    suspects = (finding_of(order) or {}).get("suspects")
    return len(suspects) if isinstance(suspects, list) else 0


def lines(found: Capacity, door: OpenHome, ink: Ink) -> list[str]:
    """For people."""
    rows = [[ink.faint(head) for head in ("", "limit", "in use", "waiting")]]
    rows += [_row(f"pool {line.name}", line, ink) for line in found.pools]
    rows += [_row(f"scope {escaped(line.name)}", line, ink) for line in found.scopes]
    text = table(rows)
    if found.waiting:
        text += ["", ink.faint("waiting")]
        text += table([[str(count), *_reason_words(reason)] for reason, count in found.waiting], indent="  ")
    if found.capped:
        text.append(ink.faint("  at least: not all that wait were counted"))
    if found.holders:
        text += ["", ink.faint("holding a slot")]
        text += table([_holder_row(each, found.now, ink) for each in found.holders[:HOLDERS_SHOWN]], indent="  ")
        if len(found.holders) > HOLDERS_SHOWN:
            text.append(f"  and {len(found.holders) - HOLDERS_SHOWN} more: {door.command('capacity --json')}")
    return text


def _by_reason(counts: dict[tuple[str, str | None], int]) -> tuple[tuple[Reason | None, int], ...]:
    sums = Counter[Reason | None]()
    for (_, reason), count in counts.items():
        sums[None if reason is None else Reason(reason)] += count
    return tuple(sorted(sums.items(), key=lambda item: (-item[1], item[0] or "")))


def _reason_words(reason: Reason | None) -> list[str]:
    return ["", NOT_LOOKED_AT] if reason is None else [reason, WHY[reason]]


def _line_view(line: Line) -> Json:
    return {"name": line.name, "limit": line.limit, "in_use": line.in_use, "waiting": line.waiting}


def _row(name: str, line: Line, ink: Ink) -> list[str]:
    in_use = ink.strong(f"{line.in_use} full") if line.is_full else str(line.in_use)
    return [name, str(line.limit) if line.limit else "unbounded", in_use, str(line.waiting)]


def _holder_row(holder: Holder, now: Instant, ink: Ink) -> list[str]:
    attempt, order = holder.attempt, holder.order
    since = duration(max(0, now.wall_us - attempt.started_at_us))
    where = f"pool {attempt.pool}{f', scope {escaped(attempt.scope)}' if attempt.scope else ''}"
    if order is not None:
        left = f", {counted(suspect_count(order), 'suspect')}" if order.tries else ""
        why = ink.strong(
            f"stop unproven after {counted_tries(order.tries)}{left}" if order.tries else "stop not tried yet"
        )
    else:
        why = "" if holder.runs else ink.strong("waits for a person")
    return [attempt.id, ink.state(attempt.state), where, f"for {since}", why]
