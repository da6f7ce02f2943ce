"""Coordinators and workers themselves: nothing is left without a holder, nobody is taken for dead who lives, none breaks."""

from __future__ import annotations

from chaos.history import History
from shared.ids import AttemptId
from shared.model.instant import US_PER_S

NEGLECT_US = 5 * US_PER_S
"""Beside a lease: two polls of an idle coordinator, its beat's age, and what its pass takes."""


def nothing_is_neglected(history: History) -> list[str]:
    """While somebody could, no attempt stays without lease, wait or recovery for longer than a lease and a bound. Rule: R02, W02."""
    bound_us = history.lease_us + NEGLECT_US
    found = []
    since: dict[tuple[AttemptId, int], int] = {}
    told: set[tuple[AttemptId, int]] = set()
    for look in history.looks:
        if not look.able:
            since = {}
        since = {item: since.get(item, look.at_us) for item in look.unheld}
        for attempt_id, epoch in sorted(item for item in since if item not in told):
            waited_us = look.at_us - since[attempt_id, epoch]
            if waited_us > bound_us:
                told.add((attempt_id, epoch))
                found.append(f"{attempt_id} (epoch {epoch}) had no holder for {waited_us} us, allowed are {bound_us}")
    return found


def only_the_dead_are_buried(history: History) -> list[str]:
    """A worker is declared dead only when it is. Rule: design §5, §7."""
    found = []
    lives = {life.who: life for life in history.lives}
    for event in history.events:
        if event.kind != "worker.gone" or event.data.get("reason") != "worker died":
            continue
        for who, life in lives.items():
            alive = life.from_seq < event.seq and (life.until_seq is None or event.seq <= life.until_seq)
            if who == event.data["worker"] and alive:
                found.append(f"{who} was declared dead (event {event.seq}) while it lived")
    return found


def nobody_writes_into_the_past(history: History) -> list[str]:
    """Nobody goes on writing into a store that knows less than that process has seen of it. Rule: design §4 (`store_regressed`)."""
    return [
        f"{one.who} had seen event {one.seen_seq} and wrote into a store whose last event is {one.seq}"
        for one in history.backwards
    ]


def no_actor_broke(history: History) -> list[str]:
    """No actor died of an error of ours; a second defence that had to refuse is one. Rule: design §4, §11."""
    return [f"{fault.who} died of {fault.error}: {fault.text}" for fault in history.faults]
