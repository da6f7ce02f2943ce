"""Reads of ready Works: which come next, and how many wait for what. Each walks an index of ready Works alone, and is bounded.

In order of the queue for as long as that finds something; what lies in scopes to be skipped, however much, is passed over by a look at
each scope. Rule: requirements S01, C02; a bound is written `LIMIT ? + 0`, see `reads`. The next of something is asked for by `ORDER BY … LIMIT 1`:
SQLite reads all of a partial index for a `min`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shared.ids import WorkId
from shared.model.settings import scope_chain
from shared.model.work import Reason, Work
from shared.store.contract import ReadyPage, SetAside
from shared.store.sqlite import rows
from shared.store.sqlite.fragments import QUEUED, SET_ASIDE
from shared.store.sqlite.wait_reads import WaitReads

READY_LOOK = 2_048
READY_STRIDE = 256
SCOPES_LOOK = 256
"""So many scopes with ready Works are looked at one by one; where there are more, the queue is walked instead."""
SCOPE_STRIDE = 8

_IN_QUEUE = f"FROM work WHERE state = 'ready' AND {QUEUED} AND pool = :pool"
_BY_PLACE = "ORDER BY priority DESC, ready_seq LIMIT :limit + 0"
READY_SAME_PRIORITY = f"""SELECT * {_IN_QUEUE} AND priority = :priority AND ready_seq > :seq
  {{skip}} ORDER BY ready_seq LIMIT :limit + 0"""
READY_LOWER = f"SELECT * {_IN_QUEUE} AND priority < :priority {{skip}} {_BY_PLACE}"
READY_FIRST = f"SELECT * {_IN_QUEUE} {{skip}} {_BY_PLACE}"
READY_PLACES_FIRST = f"SELECT priority, ready_seq, scope {_IN_QUEUE} {_BY_PLACE}"
READY_PLACES_SAME = f"""SELECT priority, ready_seq, scope {_IN_QUEUE} AND priority = :priority AND ready_seq > :seq
  ORDER BY ready_seq LIMIT :limit + 0"""
READY_PLACES_LOWER = f"SELECT priority, ready_seq, scope {_IN_QUEUE} AND priority < :priority {_BY_PLACE}"
READY_AT = f"SELECT * {_IN_QUEUE} AND priority = :priority AND ready_seq = :seq"
_ASIDE = f"FROM work WHERE state = 'ready' AND {SET_ASIDE} AND pool = :pool"
ASIDE_FIRST = f"SELECT * {_ASIDE} {_BY_PLACE}"
ASIDE_SAME = f"SELECT * {_ASIDE} AND priority = :priority AND ready_seq > :seq ORDER BY ready_seq LIMIT :limit + 0"
ASIDE_LOWER = f"SELECT * {_ASIDE} AND priority < :priority {_BY_PLACE}"
_OF_SCOPE = f"FROM work INDEXED BY work_scope WHERE state = 'ready' AND {QUEUED} AND pool = :pool AND scope"
_IN_SCOPES = "ORDER BY scope, priority DESC, ready_seq LIMIT 1"
SCOPE_BEHIND = f"SELECT scope, priority, ready_seq {_OF_SCOPE} > :scope {_IN_SCOPES}"
SCOPE_FROM = f"SELECT scope, priority, ready_seq {_OF_SCOPE} >= :scope {_IN_SCOPES}"
SCOPE_SAME = f"""SELECT priority, ready_seq {_OF_SCOPE} = :scope AND priority = :priority AND ready_seq > :seq
  ORDER BY ready_seq LIMIT :limit + 0"""
SCOPE_LOWER = f"""SELECT priority, ready_seq {_OF_SCOPE} = :scope AND priority < :priority
  ORDER BY priority DESC, ready_seq LIMIT :limit + 0"""
COUNT_SCOPE = f"SELECT count(*) FROM (SELECT 1 {_OF_SCOPE} = :scope LIMIT :cap + 0)"
COUNT_BELOW = f"SELECT count(*) FROM (SELECT 1 {_OF_SCOPE} >= :from AND scope < :to LIMIT :cap + 0)"
READY_NEXT_POOL = """SELECT pool FROM work INDEXED BY work_waiting WHERE state = 'ready' AND pool > ?
  ORDER BY pool LIMIT 1"""
_WAITING = "FROM work INDEXED BY work_waiting WHERE state = 'ready' AND pool = ? AND reason"
NEXT_REASON = f"SELECT reason {_WAITING} > ? ORDER BY reason LIMIT 1"
NEXT_LIMIT = f"SELECT reason_limit {_WAITING} = ? AND reason_limit > ? ORDER BY reason_limit LIMIT 1"
COUNT_UNMARKED = f"SELECT count(*) FROM (SELECT 1 {_WAITING} IS NULL LIMIT ? + 0)"
COUNT_REASON = f"SELECT count(*) FROM (SELECT 1 {_WAITING} = ? LIMIT ? + 0)"
OF_LIMIT = f"SELECT id {_WAITING} = ? AND reason_limit = ? ORDER BY priority DESC, ready_seq LIMIT ? + 0"
COUNT_LIMIT = f"SELECT count(*) FROM (SELECT 1 {_WAITING} = ? AND reason_limit = ? LIMIT ? + 0)"

Place = tuple[int, int]
"""Where in the order of ready Works: (priority, ready_seq)."""


@dataclass(frozen=True, slots=True)
class _Scopes:
    """Scopes with ready Works: those to look into, and the first place in each that is skipped with all below it."""

    open: list[str]
    passed: dict[str, Place]


class ReadyReads(WaitReads):
    """See `contract.ReadTx`."""

    def ready(self, pool: str, *, after: Place | None, limit: int, skip_scopes: Sequence[str] = ()) -> list[Work]:
        """See `ReadTx.ready`."""
        params: dict[str, object] = {"pool": pool, "limit": limit}
        skip = ""
        for place, scope in enumerate(skip_scopes):
            skip += f" AND NOT (scope = :skip{place} OR substr(scope, 1, :length{place}) = :below{place})"
            params |= {f"skip{place}": scope, f"below{place}": f"{scope}/", f"length{place}": len(scope) + 1}
        if after is None:
            found = self._db.rows(READY_FIRST.format(skip=skip), params)
        else:
            params |= {"priority": after[0], "seq": after[1]}
            found = self._db.rows(READY_SAME_PRIORITY.format(skip=skip), params)
            if len(found) < limit:
                found += self._db.rows(READY_LOWER.format(skip=skip), params | {"limit": limit - len(found)})
        return self._readable(found, rows.work_of_row)

    def ready_page(
        self,
        pool: str,
        *,
        after: Place | None,
        limit: int,
        skip_scopes: Sequence[str] = (),
        look: int = READY_LOOK,
        scopes: int = SCOPES_LOOK,
    ) -> ReadyPage:
        """See `ReadTx.ready_page`. Reads the row of nothing but what it gives back."""
        skipped = frozenset(skip_scopes)
        works: list[Work] = []
        looked, by_scope = 0, bool(skipped) and scopes > 0
        while len(works) < limit and looked < look:
            wanted = min(READY_STRIDE, look - looked)
            places = self._ready_places(pool, after, wanted)
            for priority, seq, scope in places:
                after = (priority, seq)
                looked += 1
                if not isinstance(scope, str) or skipped.isdisjoint(scope_chain(scope)):
                    works += self._ready_at(pool, after)
                    if len(works) == limit:
                        return ReadyPage(tuple(works), after)
            if len(places) < wanted:
                return ReadyPage(tuple(works), None)
            if by_scope and after is not None:
                by_scope, found = False, self._by_scopes(pool, skipped, scopes)
                if found is not None:
                    return self._page_of(pool, found, after, works, limit, look)
        return ReadyPage(tuple(works), after)

    def _ready_at(self, pool: str, place: Place) -> list[Work]:
        """The Work at a place; none when it cannot be read."""
        row = self._db.one(READY_AT, {"pool": pool, "priority": place[0], "seq": place[1]})
        assert row is not None, "one snapshot"
        return self._readable([row], rows.work_of_row)

    def _ready_places(self, pool: str, after: Place | None, limit: int) -> list[tuple[int, int, Any]]:
        params: dict[str, object] = {"pool": pool, "limit": limit}
        if after is None:
            return [tuple(row) for row in self._db.rows(READY_PLACES_FIRST, params)]
        params |= {"priority": after[0], "seq": after[1]}
        found = self._db.rows(READY_PLACES_SAME, params)
        if len(found) < limit:
            found += self._db.rows(READY_PLACES_LOWER, params | {"limit": limit - len(found)})
        return [tuple(row) for row in found]

    def _by_scopes(self, pool: str, skipped: frozenset[str], most: int) -> _Scopes | None:
        """What is ready, scope by scope; None when there are too many scopes, or one cannot be read."""
        found = _Scopes([], {})
        row = self._db.one(SCOPE_FROM, {"pool": pool, "scope": ""})
        for _ in range(2 * most):
            if row is None:
                return found
            scope = row["scope"]
            if not isinstance(scope, str):
                return None
            above = next((name for name in scope_chain(scope) if name in skipped), None)
            if above is None:
                found.open.append(scope)
            else:
                found.passed.setdefault(above, (row["priority"], row["ready_seq"]))
            if above is None or above == scope:
                row = self._db.one(SCOPE_BEHIND, {"pool": pool, "scope": scope})
            else:  # past all that lies below it: "0" comes right behind "/"
                row = self._db.one(SCOPE_FROM, {"pool": pool, "scope": f"{above}0"})
        return None

    def _page_of(
        self,
        pool: str,
        scopes: _Scopes,
        after: Place,
        works: list[Work],
        limit: int,
        look: int,
    ) -> ReadyPage:
        """Fill a page with what comes next in the scopes that are open, in the order of the queue."""
        passed = tuple(work for place in scopes.passed.values() for work in self._ready_at(pool, place))
        queues = [self._places_of(pool, scope, after) for scope in scopes.open]
        for looked, (below, seq) in enumerate(heapq.merge(*queues), 1):
            place = (-below, seq)
            works += self._ready_at(pool, place)
            if len(works) == limit or looked == look:
                return ReadyPage(tuple(works), place, passed)
        return ReadyPage(tuple(works), None, passed)

    def _places_of(self, pool: str, scope: str, after: Place) -> Iterator[tuple[int, int]]:
        """Places in one scope behind that one, as (-priority, ready_seq), which sort as the queue does."""
        params: dict[str, object] = {"pool": pool, "scope": scope, "limit": SCOPE_STRIDE}
        while True:
            params |= {"priority": after[0], "seq": after[1]}
            found = self._db.rows(SCOPE_SAME, params) or self._db.rows(SCOPE_LOWER, params)
            if not found:
                return
            for row in found:
                after = (row["priority"], row["ready_seq"])
                yield -after[0], after[1]

    def set_aside(self, pool: str, *, after: Place | None, limit: int) -> SetAside:
        """See `ReadTx.set_aside`."""
        params: dict[str, object] = {"pool": pool, "limit": limit}
        if after is None:
            found = self._db.rows(ASIDE_FIRST, params)
        else:
            params |= {"priority": after[0], "seq": after[1]}
            found = self._db.rows(ASIDE_SAME, params)
            if len(found) < limit:
                found += self._db.rows(ASIDE_LOWER, params | {"limit": limit - len(found)})
        end = (found[-1]["priority"], found[-1]["ready_seq"]) if len(found) == limit else None
        works = tuple(self._readable(found, rows.work_of_row))
        return SetAside(tuple(WorkId(row["id"]) for row in found), works, end)

    def out_of_quarantine(self, *, limit: int) -> list[WorkId]:
        """See `ReadTx.out_of_quarantine`."""
        found: list[WorkId] = []
        quarantined = self.quarantined()
        for pool in self._ready_pools():
            for binding in self._limits(pool, Reason.QUARANTINED):
                if binding not in quarantined and len(found) < limit:
                    works = self._db.rows(OF_LIMIT, (pool, Reason.QUARANTINED, binding, limit - len(found)))
                    found += [WorkId(row["id"]) for row in works]
        return found

    def ready_counts(self, *, cap: int) -> dict[tuple[str, str | None], int]:
        """See `ReadTx.ready_counts`."""
        counts: dict[tuple[str, str | None], int] = {}
        for pool in self._ready_pools():
            unmarked = self._db.value(COUNT_UNMARKED, (pool, cap))
            counts |= {(pool, None): unmarked} if unmarked else {}
            for reason in self._reasons(pool):
                counts[pool, reason] = self._db.value(COUNT_REASON, (pool, reason, cap))
        return counts

    def ready_limits(self, *, cap: int) -> dict[tuple[str, str], int]:
        """See `ReadTx.ready_limits`."""
        counts: dict[tuple[str, str], int] = {}
        for pool in self._ready_pools():
            for reason in self._reasons(pool):
                for limit in self._limits(pool, reason):
                    counted = self._db.value(COUNT_LIMIT, (pool, reason, limit, cap))
                    counts[pool, limit] = counts.get((pool, limit), 0) + counted
        return counts

    def ready_below(self, scope: str, *, cap: int) -> int:
        """See `ReadTx.ready_below`. "0" comes right behind "/"."""
        counted = 0
        for pool in self._ready_pools():
            params = {"pool": pool, "scope": scope, "from": f"{scope}/", "to": f"{scope}0", "cap": cap}
            counted += min(cap, self._db.value(COUNT_SCOPE, params) + self._db.value(COUNT_BELOW, params))
        return counted

    def _ready_pools(self) -> Iterator[str]:
        pool = self._db.value(READY_NEXT_POOL, ("",))
        while pool is not None:
            yield pool
            pool = self._db.value(READY_NEXT_POOL, (pool,))

    def _reasons(self, pool: str) -> Iterator[str]:
        reason = self._db.value(NEXT_REASON, (pool, ""))
        while reason is not None:
            yield reason
            reason = self._db.value(NEXT_REASON, (pool, reason))

    def _limits(self, pool: str, reason: str) -> Iterator[str]:
        limit = self._db.value(NEXT_LIMIT, (pool, reason, ""))
        while limit is not None:
            yield limit
            limit = self._db.value(NEXT_LIMIT, (pool, reason, limit))
