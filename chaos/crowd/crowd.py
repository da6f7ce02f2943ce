"""A site with its population: made through transitions once for each kind, then copied."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from chaos.crowd.copies import Columns, Copies
from chaos.crowd.population import FULL_SCOPES, Population
from chaos.crowd.site import DAY_US, FAILING, Site, config_for
from shared.clock import Clock
from shared.ids import WorkId, work_of
from shared.model.declaration import Declaration, declaration_of
from shared.model.work import Reason

ALIKE = "tick"
TICKS = 8
APART = "review"


@dataclass(frozen=True, slots=True)
class Crowd:
    """A populated site.

    Attributes:
        ticks: Of types of event for which an eighth of those wait that are woken alike: one for each who asks.
        keys: Of parked Works that each wait for one of their own, `k1`, `k3` …: one for each who asks.
    """

    site: Site
    population: Population
    ticks: Iterator[int] = field(default_factory=lambda: iter(range(TICKS)))
    keys: Iterator[int] = field(default_factory=lambda: itertools.count(1, 2))


def populated(home: Path, clock: Clock, population: Population) -> Crowd:
    """A home of that population, at rest: every slot that a ready Work could have is taken."""
    site = Site(home, clock, config_for(population))
    for number in range(FULL_SCOPES):
        site.run(site.submit(f"full/{number}"))
    finished, parked_alike, parked_apart = _patterns(site)
    backing = site.submit()
    site.back_off(site.run(backing), DAY_US)
    held, over = site.submit(), site.submit()
    site.store.write(lambda tx: tx.hold_work(held, by="uid 1000", reason="not now"))
    gone, failing = site.submit(binding="gone"), site.submit_inheriting(FAILING)
    blocked, free = site.submit("full/0"), site.submit()
    with closing(Copies(home)) as copies:
        first = copies.works(finished, population.intents - 1)
        copies.works(finished, population.finished - population.intents, intents=False)
        copies.works(parked_alike, population.alike - 1, wait={"event_type": f"'{ALIKE}.' || (n.i % {TICKS})"})
        copies.works(parked_apart, population.apart - 1, wait=_each_its_own())
        copies.works(backing, population.backoff - 1)
        copies.works(held, population.held // 2 - 1)
        copies.works(over, population.held // 2, work=_over_budget())
        copies.works(gone, population.aside // 2 - 1, work={"reason": f"'{Reason.UNSUPPORTED_GENERATION}'"})
        copies.works(failing, population.aside // 2 - 1, work=_in_quarantine())
        scopes: Columns = {"scope": f"'full/' || (n.i % {FULL_SCOPES})"}
        copies.works(blocked, population.ready // 2 - 1, work=scopes)
        copies.works(free, population.ready // 2 - 1)
        copies.events(population.events, works=population.finished - 1, first=first)
        copies.ledgers(population.finished)
    site.settle()
    return Crowd(site, population)


def _patterns(site: Site) -> tuple[WorkId, WorkId, WorkId]:
    """One that has ended, with an intent that was settled; one parked on what others wait for too, one on its own."""
    key = site.run(site.submit())
    finished = work_of(key.attempt_id)
    site.tell(key, b"more")
    site.finish(key)
    parked = []
    for event, correlate in ((ALIKE, None), (APART, "k0")):
        key = site.run(site.submit())
        site.park(key, [waiting(event, correlate)])
        parked.append(work_of(key.attempt_id))
    return finished, parked[0], parked[1]


def waiting(event: str, correlate: str | None, *, key: str = "wait-1") -> Declaration:
    """A wait to be resumed from, for at most a day."""
    body = {"event": {"type": event, "correlate": correlate}, "timer": "1d", "resume": True}
    return declaration_of(key, "wait", body)


def _each_its_own() -> Columns:
    """Half by the key of one type of event, half by a type of their own."""
    odd = f"CASE WHEN n.i % 2 = 1 THEN '{APART}' ELSE 'event.' || n.i END"
    return {"event_type": odd, "correlate": "CASE WHEN n.i % 2 = 1 THEN 'k' || n.i END"}


def _in_quarantine() -> Columns:
    return {"reason": f"'{Reason.QUARANTINED}'", "reason_limit": f"'{FAILING}'"}


def _over_budget() -> Columns:
    return {
        "state": "'held'",
        "reason": "'over_budget'",
        "start_hold_by": "'usd'",
        "start_hold_reason": "'it is used up'",
        "start_hold_at_us": "t.submitted_at_us",
    }
