"""One fault for each check of bindings and of quiet agents, put into a history of `binding_histories`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chaos.history import History
from chaos.seen import Look
from chaos.speech import Written
from shared.ids import AttemptId
from shared.model.attempt import Snapshot
from shared.model.instant import US_PER_S
from tests.support.binding_histories import A1, A2, costly, failing, quiet, untellable, working
from tests.support.clean_histories import index_of, with_changed_event

Fault = Callable[[History], History]


def started_in_quarantine(history: History) -> History:
    """An event that matters to nobody is a quarantine, and the next attempt follows."""
    assert index_of(history, "segment.phases", A1) < index_of(history, "attempt.claimed", A2)
    told = {"binding": "own-1", "by": "a person", "reason": "not that again"}
    return with_changed_event(history, "segment.phases", A1, kind="binding.quarantined", data=told)


def never_quarantined(history: History) -> History:
    events = [
        replace(event, kind="nothing.told") if event.kind == "binding.quarantined" else event
        for event in history.events
    ]
    return replace(history, events=tuple(events))


def quarantined_too_early(history: History) -> History:
    return _with_snapshots(history, quarantine_after=50)


def blamed_another(history: History) -> History:
    events = [
        replace(event, data={**event.data, "binding": "own-9"}) if event.kind == "binding.quarantined" else event
        for event in history.events
    ]
    return replace(history, events=tuple(events))


def counted_twice(history: History) -> History:
    events = [
        replace(event, data={**event.data, "lost": 9}) if event.kind == "worker.lost" else event
        for event in history.events
    ]
    return replace(history, events=tuple(events))


def dropped_that_waits(history: History) -> History:
    return _with_snapshots(history, on_inject_error="queue")


def waits_that_is_dropped(history: History) -> History:
    return _with_snapshots(history, on_inject_error="drop")


def ended_that_may_be_quiet(history: History) -> History:
    return _with_snapshots(history, idle_us=None)


def ended_that_spoke(history: History) -> History:
    return _with_snapshots(history, idle_us=60 * US_PER_S)


def quiet_for_ever(history: History) -> History:
    since = Written(A1, 1, 0)
    looks = tuple(Look(at * US_PER_S, able=True, unheld=frozenset(), quiet=frozenset({since})) for at in range(15))
    return replace(history, looks=looks)


def _with_snapshots(history: History, **changes: object) -> History:
    snapshots: dict[AttemptId, Snapshot] = {
        name: replace(snapshot, **changes)  # type: ignore[arg-type]
        for name, snapshot in history.snapshots.items()
    }
    return replace(history, snapshots=snapshots)


BINDING_FAULTS: dict[str, list[tuple[Callable[[], History], Fault]]] = {
    "quarantined_bindings_start_nothing": [(working, started_in_quarantine)],
    "failures_quarantine_their_binding": [(failing, never_quarantined), (failing, quarantined_too_early)],
    "losses_quarantine_their_binding": [(costly, never_quarantined), (costly, blamed_another)],
    "lost_workers_are_counted": [(costly, counted_twice)],
    "inputs_are_dropped_as_their_binding_says": [
        (untellable, dropped_that_waits),
        (untellable, waits_that_is_dropped),
    ],
    "only_the_quiet_are_ended": [(quiet, ended_that_may_be_quiet), (quiet, ended_that_spoke)],
    "the_quiet_are_ended": [(quiet, quiet_for_ever)],
}
