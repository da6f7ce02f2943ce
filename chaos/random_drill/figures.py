"""How long it took to recover, to start and to stop while everything was harmed: measured on the aftermath. Pure.

Clocks of processes were stepped by whole hours, on purpose; a drill takes less than half of one, so whole hours are taken out of every
stamp of the changefeed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from chaos.random_drill.aftermath import Aftermath
from chaos.results import Figure
from chaos.stories import LEADER, Harm
from shared.model.instant import US_PER_HOUR, US_PER_MS
from shared.store.contract import Event

_GOES_ON = frozenset({"adopted", "relaunched", "recovery_required", "succeeded", "failed", "timed_out", "cancelled"})
_HARM_KINDS = {"kill": "kill", "freeze": "stop", "thaw": "cont"}
Series = Iterator[float]


def figures(after: Aftermath) -> list[Figure]:
    """Every series that has a value."""
    clock = true_clock(after)
    found = [
        ("worker killed, until what it held goes on elsewhere", _takeovers(after, clock)),
        ("leader killed, until another leads", _successions(after, clock)),
        ("submitted, until its process is let go, waits for slots included", _starts(after, clock)),
        ("cancelled, until its stop is proven", _stops(after, clock)),
    ]
    series = [(name, list(values)) for name, values in found]
    return [Figure.of(name, "ms", values) for name, values in series if values]


def harms(after: Aftermath) -> list[Harm]:
    """What was done, as stories tell it."""
    return [
        Harm(blow.at_us, LEADER if blow.led else blow.who, _HARM_KINDS.get(blow.what, "fault"), blow.what)
        for blow in after.blows
    ]


def true_clock(after: Aftermath) -> Callable[[Event], int]:
    """When an event was committed, whatever hour the clock of its writer showed: UTC, microseconds."""
    began_us = after.history.events[0].at_us if after.history.events else 0

    def true(event: Event) -> int:
        return event.at_us - round((event.at_us - began_us) / US_PER_HOUR) * US_PER_HOUR

    return true


def _takeovers(after: Aftermath, clock: Callable[[Event], int]) -> Series:
    """From a worker's kill to the adoption, relaunch or end of each attempt it had accepted, once it was found dead."""
    events = after.history.events
    names = {
        event.data.get("pid"): str(event.data.get("worker")) for event in events if event.kind == "worker.registered"
    }
    killed = {names[blow.pid]: blow.at_us for blow in after.blows if blow.what == "kill" and blow.pid in names}
    by_attempt = _by_attempt(events)
    for attempt_id, segments in after.history.segments.items():
        for segment in segments[:-1]:
            at_us = killed.get(segment.worker)
            if at_us is None:
                continue
            later = (
                clock(event)
                for event in by_attempt.get(attempt_id, [])
                if (event.epoch or 0) > segment.epoch and event.kind.removeprefix("attempt.") in _GOES_ON
            )
            went_on = next((stamp for stamp in later if stamp >= at_us), None)
            if went_on is not None:
                yield (went_on - at_us) / US_PER_MS


def _successions(after: Aftermath, clock: Callable[[Event], int]) -> Series:
    taken = [clock(event) for event in after.history.events if event.kind == "leader.taken"]
    for blow in after.blows:
        if blow.what == "kill" and blow.led:
            later = next((at_us for at_us in taken if at_us >= blow.at_us), None)
            if later is not None:
                yield (later - blow.at_us) / US_PER_MS


def _starts(after: Aftermath, clock: Callable[[Event], int]) -> Series:
    submitted = {event.work_id: clock(event) for event in after.history.events if event.kind == "work.submitted"}
    seen = set()
    for event in after.history.events:
        attempt = None if event.attempt_id is None else after.history.attempts.get(event.attempt_id)
        if event.kind != "attempt.pinned" or attempt is None or attempt.work_id in seen:
            continue
        seen.add(attempt.work_id)
        if attempt.work_id in submitted:
            yield (clock(event) - submitted[attempt.work_id]) / US_PER_MS


def _stops(after: Aftermath, clock: Callable[[Event], int]) -> Series:
    asked: dict[str, int] = {}
    for event in after.history.events:
        if event.attempt_id is None:
            continue
        if event.kind == "cancel.requested":
            asked[event.attempt_id] = clock(event)
        elif event.kind == "attempt.stop_confirmed" and event.attempt_id in asked:
            yield (clock(event) - asked.pop(event.attempt_id)) / US_PER_MS


def _by_attempt(events: Sequence[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in events:
        if event.attempt_id is not None:
            found.setdefault(event.attempt_id, []).append(event)
    return found
