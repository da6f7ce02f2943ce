"""A history without a fault in which works are tried again and fed; and faults of it, each of which makes one check fire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from chaos.history import History
from chaos.seen import Accepted, Tick
from chaos.simulation.harm import Harm, Kind
from chaos.simulation.jobs import Job
from chaos.simulation.run import Options, simulate
from shared.ids import AttemptId, WorkId
from shared.model.instant import US_PER_MS, US_PER_S
from tests.support.clean_histories import with_event
from tests.support.history_faults import with_attempt

SHORT_US = 20 * US_PER_MS
RETRIED = Job(SHORT_US, statuses=(7, 1), delays_us=(US_PER_S, 2 * US_PER_S))
FED = Job(SHORT_US, inputs=3)
EXHAUSTED = Job(SHORT_US, status=7, delays_us=(US_PER_S,))
W1, W2, W3 = (WorkId(f"w{number}") for number in (1, 2, 3))
FIRST, SECOND, LAST = AttemptId("w1.1"), AttemptId("w1.2"), AttemptId("w3.2")
OTHER_FED = AttemptId("w2.2")


@cache
def retried_history() -> History:
    """w1 fails twice and then succeeds, w2 gets three inputs, one attempt each, w3 has nothing left to try after two failures."""
    outcome = simulate(2, Options(plan=(), jobs=(RETRIED, FED, EXHAUSTED)))
    assert outcome.findings == ()
    return outcome.history


@cache
def asked_history() -> History:
    """A person tries again what has nothing left to try."""
    outcome = simulate(0, Options(plan=(Harm(Kind.RETRY, step=1, work=1),), jobs=(EXHAUSTED,)))
    assert outcome.findings == ()
    return outcome.history


def events_of(history: History, kind: str, work_id: WorkId) -> list[int]:
    """Places in the changefeed."""
    return [place for place, event in enumerate(history.events) if (event.kind, event.work_id) == (kind, work_id)]


def with_event_at(history: History, place: int, *, kind: str | None = None, **data: object) -> History:
    event = history.events[place]
    changed = replace(event, kind=kind or event.kind, data={**event.data, **data})
    return replace(history, events=(*history.events[:place], changed, *history.events[place + 1 :]))


def with_snapshot(history: History, attempt_id: AttemptId, **changes: Any) -> History:
    snapshot = replace(history.snapshots[attempt_id], **changes)
    return replace(history, snapshots={**history.snapshots, attempt_id: snapshot})


# --- inputs


def input_lost(history: History) -> History:
    return with_snapshot(history, OTHER_FED, inputs=())


def answered_for_nothing(history: History) -> History:
    return replace(history, accepted=(*history.accepted, Accepted(W2, 99, "2-9")))


def accepted_twice(history: History) -> History:
    place = events_of(history, "input.accepted", W2)[0]
    return with_event(history, "input.accepted", work_id=W2, data=history.events[place].data)


def rests_with_an_input(history: History) -> History:
    return replace(history, pending_inputs={**history.pending_inputs, W2: (99,)})


def consumed_twice(history: History) -> History:
    before = history.snapshots[AttemptId("w2.1")].inputs
    return with_snapshot(history, OTHER_FED, inputs=(*before, *history.snapshots[OTHER_FED].inputs))


def out_of_order(history: History) -> History:
    """Two attempts have each other's."""
    mine, others = history.snapshots[OTHER_FED].inputs, history.snapshots[AttemptId("w2.3")].inputs
    return with_snapshot(with_snapshot(history, OTHER_FED, inputs=others), AttemptId("w2.3"), inputs=mine)


# --- retries


def spent_on_another_end(history: History) -> History:
    return with_attempt(history, FIRST, exit_status=-9)


def nobody_asked(history: History) -> History:
    return with_event_at(history, events_of(history, "retry.requested", W1)[1], kind="note.made")


def asked_before_it_failed(history: History) -> History:
    """The request behind the first failure is said to be one for the second, which is still to come."""
    return with_event_at(history, events_of(history, "retry.requested", W1)[0], attempt=SECOND)


def asked_twice(history: History) -> History:
    return with_event(
        history, "retry.requested", work_id=W1, data={"attempt": FIRST, "by": "timer", "timer": 99, "generation": 1}
    )


def fired_twice(history: History) -> History:
    first, second = events_of(history, "retry.requested", W1)
    return with_event_at(history, second, timer=history.events[first].data["timer"])


def one_failure_too_many(history: History) -> History:
    return with_snapshot(history, SECOND, retry_delays_us=())


def not_in_the_policy(history: History) -> History:
    return with_snapshot(history, FIRST, retry_on=("timeout",))


def gave_up_early(history: History) -> History:
    return with_snapshot(history, LAST, retry_delays_us=(US_PER_S, US_PER_S))


def another_wait(history: History) -> History:
    return with_event_at(history, events_of(history, "timer.armed", W1)[1], after_us=US_PER_S)


def fired_early(history: History) -> History:
    return replace(history, ticks=tuple(Tick(tick.seq, tick.at_us // 2) for tick in history.ticks))


RETRY_FAULTS: dict[str, list[Callable[[History], History]]] = {
    "no_input_is_lost": [input_lost, answered_for_nothing, accepted_twice, rests_with_an_input],
    "no_input_is_consumed_twice": [consumed_twice, out_of_order],
    "retries_are_not_spent": [spent_on_another_end],
    "retries_come_from_accepted_events": [nobody_asked, asked_before_it_failed, asked_twice, fired_twice],
    "retries_keep_the_policy": [one_failure_too_many, not_in_the_policy, gave_up_early, another_wait, fired_early],
}
