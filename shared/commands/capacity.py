"""`tenure capacity`: limits of pools and scopes, what holds slots now, and what waits.

A slot is held from the claim until the stop is proven, so `in_use` may count attempts that have ended. Rule: C01, C03.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import get_args

from shared.commands.arguments import Parser, add_json
from shared.commands.json_views import Json
from shared.commands.open_home import opened
from shared.commands.render import Ink, escaped, print_json, table
from shared.model.settings import DEFAULT, Config, Pool, scope_chain
from shared.store.contract import ReadTx

WAITING_MAX = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """One pool or scope.

    Attributes:
        limit: 0 = unbounded.
        waiting: Ready works counted; of each pool the first `WAITING_MAX` are looked at.
    """

    name: str
    limit: int
    in_use: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """All of them. `capped`: more works are ready than were looked at, so `waiting` means "at least"."""

    pools: tuple[Line, ...]
    scopes: tuple[Line, ...]
    capped: bool


def main(argv: list[str], *, home: str | None) -> int:
    """Print the capacity."""
    parser = Parser("tenure capacity", "Limits of pools and scopes, what uses them now, and what waits; 0 = unbounded.")
    add_json(parser)
    given = parser.parse(argv)
    with opened(home) as door:
        found = door.store.read(read)
    if given.json:
        print_json(view(found))
    else:
        print("\n".join(lines(found, Ink.of(os.environ))))
    return 0


def read(tx: ReadTx) -> Capacity:
    """Count in one snapshot."""
    active = tx.config()
    config = DEFAULT if active is None else Config.from_json(active.body)
    usage = tx.usage().counts
    pools, waiting_scopes, capped = [], [], False
    for pool in get_args(Pool):
        ready = tx.ready(pool, after=None, limit=WAITING_MAX)
        capped = capped or len(ready) == WAITING_MAX
        waiting_scopes += [work.scope for work in ready]
        in_use = sum(count for (used, _), count in usage.items() if used == pool)
        pools.append(Line(pool, config.pool_limit(pool), in_use, len(ready)))
    scopes = []
    for scope in config.scopes:
        in_use = sum(count for (_, used), count in usage.items() if scope.name in scope_chain(used))
        waiting = sum(scope.name in scope_chain(name) for name in waiting_scopes)
        scopes.append(Line(scope.name, scope.concurrency or 0, in_use, waiting))
    return Capacity(tuple(pools), tuple(scopes), capped)


def view(found: Capacity) -> Json:
    """For programs."""
    return {
        "pools": [_line_view(line) for line in found.pools],
        "scopes": [_line_view(line) for line in found.scopes],
        "waiting_capped": found.capped,
    }


def lines(found: Capacity, ink: Ink) -> list[str]:
    """For people."""
    rows = [[ink.faint(head) for head in ("", "limit", "in use", "waiting")]]
    rows += [_row(f"pool {line.name}", line, ink) for line in found.pools]
    rows += [_row(f"scope {escaped(line.name)}", line, ink) for line in found.scopes]
    text = table(rows)
    if found.capped:
        text.append(ink.faint(f"waiting: only the first {WAITING_MAX} ready works of each pool were looked at"))
    return text


def _line_view(line: Line) -> Json:
    return {"name": line.name, "limit": line.limit, "in_use": line.in_use, "waiting": line.waiting}


def _row(name: str, line: Line, ink: Ink) -> list[str]:
    full = line.limit and line.in_use >= line.limit
    in_use = ink.strong(f"{line.in_use} full") if full else str(line.in_use)
    return [name, str(line.limit) if line.limit else "unbounded", in_use, str(line.waiting)]
