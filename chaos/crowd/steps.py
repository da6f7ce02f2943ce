"""The daily steps whose cost must not depend on how much a store holds: each is prepared, and then done while it is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from chaos.crowd.crowd import ALIKE, APART, Crowd, waiting
from chaos.crowd.site import APPROVED, SUCCEEDED, Site
from shared.commands import capacity, status
from shared.commands.doctor import examine_store
from shared.commands.open_home import OpenHome
from shared.commands.work_list import Wanted, page
from shared.home import Home
from shared.model.attempt import AttemptState, LeaseKey
from shared.model.event import NewEvent
from shared.model.usage import Usage
from shared.model.work import Reason, WorkState

Act = Callable[[], object]
Step = Callable[[Crowd], Act]
"""Prepares a step on a crowd; what it gives does it."""

AT_ONCE_US = 1
PAGE = 5
"""So few works that every store has them in each state that it has at all."""
SPENT = replace(SUCCEEDED, usage=Usage((("usd", Decimal("0.5")),)))


def pass_over_a_full_pool(crowd: Crowd) -> Act:
    """Nothing has changed, and no slot is free."""
    return lambda: pass_once(crowd.site)


def start_behind_full_scopes(crowd: Crowd) -> Act:
    """A slot is free; the first Work that may have it lies behind all those of full scopes."""
    free_a_slot(crowd.site)
    return lambda: pass_once(crowd.site)


def claim(crowd: Crowd) -> Act:
    """The transaction of a claim."""
    site = crowd.site
    free_a_slot(site)
    request = site.request(site.submit())
    return lambda: site.claim(request)


def finish(crowd: Crowd) -> Act:
    """The transaction of an end, with something used that budgets count."""
    key = runner(crowd.site)
    return lambda: crowd.site.finish(key, SPENT)


def settle_budgets(crowd: Crowd) -> Act:
    """The pass after such an end: what was used goes to the ledgers."""
    crowd.site.finish(runner(crowd.site), SPENT)
    return lambda: pass_once(crowd.site)


def fire_a_timer(crowd: Crowd) -> Act:
    """The pass in which one backoff of many is over."""
    crowd.site.back_off(runner(crowd.site), AT_ONCE_US)
    return lambda: pass_once(crowd.site)


def ask_a_gate(crowd: Crowd) -> Act:
    """The pass in which a gate is asked, and objects."""
    site = crowd.site
    free_a_slot(site)
    site.submit(binding=APPROVED, priority=9)
    return lambda: pass_once(site)


def wake_one_of_many(crowd: Crowd) -> Act:
    """An event for which one of many waits, and the pass that resumes it."""
    site = crowd.site
    free_a_slot(site)
    event = NewEvent(APART, f"k{next(crowd.keys)}", "1", "uid 1000")

    def act() -> None:
        site.store.write(lambda tx: tx.publish(event))
        pass_once(site)

    return act


def wake_many_at_once(crowd: Crowd) -> Act:
    """The transaction that accepts an event for which many wait; those whom it wakes no more are woken by the next passes."""
    event = NewEvent(f"{ALIKE}.{next(crowd.ticks)}", None, "1", "uid 1000")
    return lambda: crowd.site.store.write(lambda tx: tx.publish(event))


def wait_for_what_has_come(crowd: Crowd) -> Act:
    """Parking on an event, with a long changefeed behind it."""
    site, key = crowd.site, runner(crowd.site)
    declared = waiting("past", None, key=f"wait-{next(crowd.keys)}")
    return lambda: site.park(key, [declared])


def look_at_status(crowd: Crowd) -> Act:
    """`tenure status`."""
    return lambda: crowd.site.store.read(status.read)


def look_at_capacity(crowd: Crowd) -> Act:
    """`tenure capacity`."""
    return lambda: crowd.site.store.read(capacity.read)


def is_idle(crowd: Crowd) -> Act:
    """What `tenure up --until-idle` asks."""
    return lambda: crowd.site.store.read(lambda tx: tx.idle_state())


def list_works(crowd: Crowd) -> Act:
    """A first page of `tenure work list`: of all, of each state, and of two states."""
    wanted = [Wanted((), frozenset(), None, None)]
    wanted += [Wanted((state,), frozenset(), None, None) for state in WorkState]
    wanted += [Wanted((WorkState.HELD, WorkState.WAITING), frozenset(), None, None)]

    def act() -> None:
        for one in wanted:
            crowd.site.store.read(lambda tx, one=one: page(tx, one, 0, PAGE))  # type: ignore[misc]

    return act


def list_held_for_a_reason(crowd: Crowd) -> Act:
    """`tenure gate list` while many are held for other reasons."""
    return lambda: crowd.site.store.read(lambda tx: tx.held_for([Reason.GATE_HELD], limit=64))


def page_of_events(crowd: Crowd) -> Act:
    """A page in the middle of the changefeed."""
    middle = crowd.population.events // 2
    return lambda: crowd.site.store.read(lambda tx: tx.events(after=middle, limit=100))


def examine(crowd: Crowd) -> Act:
    """All that `tenure doctor` looks at in the store."""
    site = crowd.site
    door = OpenHome(Home(site.home), site.store, site.clock, None)
    return lambda: examine_store(door)


STEPS: dict[str, Step] = {
    step.__name__: step
    for step in (
        pass_over_a_full_pool,
        start_behind_full_scopes,
        claim,
        finish,
        settle_budgets,
        fire_a_timer,
        ask_a_gate,
        wake_one_of_many,
        wait_for_what_has_come,
        look_at_status,
        look_at_capacity,
        is_idle,
        list_works,
        list_held_for_a_reason,
        page_of_events,
        examine,
        wake_many_at_once,
    )
}
"""In an order in which none disturbs the next: the last one begins to wake a crowd."""


def pass_once(site: Site) -> int:
    """Have the coordinator pass until there is nothing more to do; how many steps that took."""
    site.coordinator.notice_decision()
    return site.settle()


def runner(site: Site) -> LeaseKey:
    """A running attempt that lies in no scope; slots that are free are given away before."""
    pass_once(site)
    for attempt in site.store.read(lambda tx: tx.holders(limit=64)):
        if attempt.scope == "":
            key = LeaseKey(attempt.id, attempt.epoch, site.worker)
            return key if attempt.state is AttemptState.RUNNING else site.launch(key)
    raise AssertionError("every slot is taken at rest")


def free_a_slot(site: Site) -> None:
    """End one of what runs."""
    site.finish(runner(site))
