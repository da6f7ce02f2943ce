"""Reads of ready Works: which come next, and how many wait for what. Each walks an index of ready Works alone, and is bounded.

In order of the queue for as long as that finds something; what lies in scopes to be skipped, however much, is passed over by a look at
each scope. Rule: requirements S01, C02; a bound is written `LIMIT ? + 0`, see `reads`. The next of something is asked for by `ORDER BY … LIMIT 1`:
SQLite reads all of a partial index for a `min`.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shared.model.settings import scope_chain
from shared.model.work import Work
from shared.store.contract import ReadyPage
from shared.store.sqlite import rows
from shared.store.sqlite.wait_reads import WaitReads

READY_LOOK = 2_048
READY_STRIDE = 256
SCOPES_LOOK = 256
"""So many scopes with ready Works are looked at one by one; where there are more, the queue is walked instead."""
SCOPE_STRIDE = 8

_QUARANTINED = "CASE WHEN reason = 'quarantined' AND reason_limit = binding THEN binding END AS quarantined"
"""The binding whose quarantine holds the Work back; only where it names that itself, so that nothing but a release can lift it."""
READY_SAME_PRIORITY = """SELECT * FROM work WHERE state = 'ready' AND pool = :pool AND priority = :priority AND ready_seq > :seq
  {skip} ORDER BY ready_seq LIMIT :limit + 0"""
READY_LOWER = """SELECT * FROM work WHERE state = 'ready' AND pool = :pool AND priority < :priority
  {skip} ORDER BY priority DESC, ready_seq LIMIT :limit + 0"""
READY_FIRST = """SELECT * FROM work WHERE state = 'ready' AND pool = :pool
  {skip} ORDER BY priority DESC, ready_seq LIMIT :limit + 0"""
READY_PLACES_FIRST = f"""SELECT priority, ready_seq, scope, {_QUARANTINED} FROM work WHERE state = 'ready' AND pool = :pool
  ORDER BY priority DESC, ready_seq LIMIT :limit + 0"""
READY_PLACES_SAME = f"""SELECT priority, ready_seq, scope, {_QUARANTINED} FROM work WHERE state = 'ready' AND pool = :pool
  AND priority = :priority AND ready_seq > :seq ORDER BY ready_seq LIMIT :limit + 0"""
READY_PLACES_LOWER = f"""SELECT priority, ready_seq, scope, {_QUARANTINED} FROM work WHERE state = 'ready' AND pool = :pool
  AND priority < :priority ORDER BY priority DESC, ready_seq LIMIT :limit + 0"""
READY_AT = "SELECT * FROM work WHERE state = 'ready' AND pool = :pool AND priority = :priority AND ready_seq = :seq"
_OF_SCOPE = "FROM work INDEXED BY work_scope WHERE state = 'ready' AND pool = :pool AND scope"
_IN_SCOPES = "ORDER BY scope, priority DESC, ready_seq LIMIT 1"
SCOPE_BEHIND = f"SELECT scope, priority, ready_seq {_OF_SCOPE} > :scope {_IN_SCOPES}"
SCOPE_FROM = f"SELECT scope, priority, ready_seq {_OF_SCOPE} >= :scope {_IN_SCOPES}"
SCOPE_SAME = f"""SELECT priority, ready_seq, {_QUARANTINED} {_OF_SCOPE} = :scope AND priority = :priority AND ready_seq > :seq
  ORDER BY ready_seq LIMIT :limit + 0"""
SCOPE_LOWER = f"""SELECT priority, ready_seq, {_QUARANTINED} {_OF_SCOPE} = :scope AND priority < :priority
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
        skip_bindings: Collection[str] = (),
    ) -> ReadyPage:
        """See `ReadTx.ready_page`. Reads the row of nothing but what it gives back."""
        skipped = frozenset(skip_scopes)
        works: list[Work] = []
        looked, by_scope = 0, bool(skipped) and scopes > 0
        while len(works) < limit and looked < look:
            wanted = min(READY_STRIDE, look - looked)
            places = self._ready_places(pool, after, wanted)
            for priority, seq, scope, quarantined in places:
                after = (priority, seq)
                looked += 1
                if quarantined in skip_bindings:
                    continue
                if not isinstance(scope, str) or skipped.isdisjoint(scope_chain(scope)):
                    works += self._ready_at(pool, after)
                    if len(works) == limit:
                        return ReadyPage(tuple(works), after)
            if len(places) < wanted:
                return ReadyPage(tuple(works), None)
            if by_scope and after is not None:
                by_scope, found = False, self._by_scopes(pool, skipped, scopes)
                if found is not None:
                    return self._page_of(pool, found, after, works, limit, look, skip_bindings)
        return ReadyPage(tuple(works), after)

    def _ready_at(self, pool: str, place: Place) -> list[Work]:
        """The Work at a place; none when it cannot be read."""
        row = self._db.one(READY_AT, {"pool": pool, "priority": place[0], "seq": place[1]})
        assert row is not None, "one snapshot"
        return self._readable([row], rows.work_of_row)

    def _ready_places(self, pool: str, after: Place | None, limit: int) -> list[tuple[int, int, Any, str | None]]:
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
        skip_bindings: Collection[str],
    ) -> ReadyPage:
        """Fill a page with what comes next in the scopes that are open, in the order of the queue."""
        passed = tuple(work for place in scopes.passed.values() for work in self._ready_at(pool, place))
        queues = [self._places_of(pool, scope, after) for scope in scopes.open]
        for looked, (below, seq, quarantined) in enumerate(heapq.merge(*queues), 1):
            place = (-below, seq)
            if quarantined not in skip_bindings:
                works += self._ready_at(pool, place)
            if len(works) == limit or looked == look:
                return ReadyPage(tuple(works), place, passed)
        return ReadyPage(tuple(works), None, passed)

    def _places_of(self, pool: str, scope: str, after: Place) -> Iterator[tuple[int, int, str | None]]:
        """Places in one scope behind that one, as (-priority, ready_seq, binding in quarantine), which sort as the queue does."""
        params: dict[str, object] = {"pool": pool, "scope": scope, "limit": SCOPE_STRIDE}
        while True:
            params |= {"priority": after[0], "seq": after[1]}
            found = self._db.rows(SCOPE_SAME, params) or self._db.rows(SCOPE_LOWER, params)
            if not found:
                return
            for row in found:
                after = (row["priority"], row["ready_seq"])
                yield -after[0], after[1], row["quarantined"]

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
                limit = self._db.value(NEXT_LIMIT, (pool, reason, ""))
                while limit is not None:
                    counted = self._db.value(COUNT_LIMIT, (pool, reason, limit, cap))
                    counts[pool, limit] = counts.get((pool, limit), 0) + counted
                    limit = self._db.value(NEXT_LIMIT, (pool, reason, limit))
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
