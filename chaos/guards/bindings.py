"""How the guards of what bindings say of their works together are taken away; see `removals.py`."""

from __future__ import annotations

from contextlib import AbstractContextManager

from chaos.guards.removals import all_of, in_sql, replaced
from shared.model.intent import Fate
from shared.policy import settle
from shared.policy.losses import Lost
from shared.store.sqlite import agents, ends, holding, losses, work_reads


def quarantine() -> AbstractContextManager[None]:
    """What is quarantined starts all the same."""
    return replaced(work_reads.WorkReads, "quarantined", lambda _tx: frozenset())


def failures_count() -> AbstractContextManager[None]:
    """A binding may fail for ever."""
    return replaced(ends.Ends, "_tell_routine", lambda _tx, _news, _work_id: None)


def success_forgives() -> AbstractContextManager[None]:
    """Failures add up, whatever came between them."""
    return in_sql(ends, "UPDATE routine SET failures = 0", "UPDATE routine SET failures = failures")


def launch_gives_up() -> AbstractContextManager[None]:
    """A launch may cost any number of workers."""
    return replaced(settle, "ending_of_lost_workers", lambda _attempt, _pinned: None)


def pin_begins_anew() -> AbstractContextManager[None]:
    """Workers that died of the launch are counted with those that died of what it launched."""
    return in_sql(holding, "workers_lost_in_row = 0", "workers_lost_in_row = workers_lost_in_row")


def blame() -> AbstractContextManager[None]:
    """What runs may cost any number of workers."""
    return replaced(losses, "binding_to_blame", lambda _lost: None)


def blame_is_certain() -> AbstractContextManager[None]:
    """The first suspect is to blame, whether it runs or not, and whoever else it may have been."""

    def first(lost: list[Lost]) -> str | None:
        named = [each.snapshot.binding for each in lost if each.snapshot is not None and each.snapshot.binding]
        return named[0] if named else None

    return replaced(losses, "binding_to_blame", first)


def pinned_fallback() -> AbstractContextManager[None]:
    """Whatever cannot be handed over is given up."""
    return replaced(agents.Agents, "_fallback", lambda _tx, _name: Fate.DROPPED)


def dropped_for_good() -> AbstractContextManager[None]:
    """What was given up waits for the next attempt all the same."""
    return all_of(
        in_sql(agents, "DELETE FROM input WHERE number = :input", "DELETE FROM input WHERE 0 AND number = :input")
    )
