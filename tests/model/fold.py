"""The reference of every store: the pure state tables folded over the changefeed.

It knows no SQL and no lease; it takes each event through the table it belongs to, and refuses one that does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shared.model.attempt import AttemptState, Exclusion
from shared.model.work import WorkState
from shared.policy.steps import AttemptEvent, WorkEvent, is_final_attempt, step_attempt, step_work
from shared.store.contract import Event, ReadTx

_EVENT_OF_KIND = {
    "recovery_required": AttemptEvent.UNCERTAIN,
    **{event.value: event for event in AttemptEvent},
}


@dataclass
class FoldedAttempt:
    """An attempt as its events tell it."""

    state: AttemptState
    epoch: int = 1
    exclusion: Exclusion = Exclusion.HELD
    revoked: bool = False


@dataclass
class Folded:
    """What the events so far say there is."""

    works: dict[str, WorkState] = field(default_factory=dict)
    attempts: dict[str, FoldedAttempt] = field(default_factory=dict)
    cancels: dict[int, str] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Apply one event; AssertionError or IllegalStepError when it does not fit what came before."""
        group, _, word = event.kind.partition(".")
        if event.kind == "work.submitted":
            assert event.work_id not in self.works
            self.works[str(event.work_id)] = WorkState.READY
        elif group == "work":
            self._take_work(event)
        elif event.kind == "attempt.claimed":
            assert event.attempt_id not in self.attempts
            assert not any(self._holds(name) for name in self._attempts_of(event)), (
                "two unexcluded attempts of one Work"
            )
            self.attempts[str(event.attempt_id)] = FoldedAttempt(AttemptState.LAUNCHING)
        elif event.kind == "attempt.stop_confirmed":
            attempt = self.attempts[str(event.attempt_id)]
            assert is_final_attempt(attempt.state)
            assert (attempt.exclusion, attempt.epoch) == (Exclusion.HELD, event.epoch)
            attempt.exclusion = Exclusion.RELEASED
        elif group == "cancel":
            self._take_cancel(int(str(event.data["cancellation"])), word, settled=event.data.get("result") is not None)
        elif event.kind == "lease.revoked":
            attempt = self.attempts[str(event.attempt_id)]
            assert (attempt.revoked, attempt.epoch) == (False, event.epoch)
            attempt.revoked = True
        elif group == "attempt" and word != "accepted":
            self._take_attempt(event, word)

    def _take_work(self, event: Event) -> None:
        work_id = str(event.work_id)
        assert event.data["from"] == self.works[work_id]
        self.works[work_id] = step_work(self.works[work_id], WorkEvent(str(event.data["by"])))
        assert event.data["to"] == self.works[work_id]

    def _take_attempt(self, event: Event, word: str) -> None:
        attempt = self.attempts[str(event.attempt_id)]
        assert event.data["from"] == attempt.state
        step = AttemptEvent(str(event.data["by"])) if word == "relaunched" else _EVENT_OF_KIND[word]
        attempt.state = step_attempt(attempt.state, step)
        assert event.data["to"] == attempt.state
        if step is AttemptEvent.TAKEN_OVER:
            attempt.epoch += 1
            attempt.revoked = False
        if is_final_attempt(attempt.state) and event.data.get("proof") is not None:
            attempt.exclusion = Exclusion.RELEASED
        assert event.epoch == attempt.epoch

    def _take_cancel(self, number: int, word: str, *, settled: bool) -> None:
        before = self.cancels.get(number)
        assert (before is None) == (word == "requested")
        assert before != "settled"
        assert not (word == "acknowledged" and before == "acknowledged")
        self.cancels[number] = "settled" if settled else word

    def _attempts_of(self, event: Event) -> list[str]:
        return [name for name in self.attempts if name.rsplit(".", 1)[0] == event.work_id]

    def _holds(self, name: str) -> bool:
        return self.attempts[name].exclusion is Exclusion.HELD


def fold(events: Iterable[Event]) -> Folded:
    """Fold from the beginning."""
    folded = Folded()
    for event in events:
        folded.take(event)
    return folded


def tables(tx: ReadTx) -> Folded:
    """What the tables say, in the same form."""
    found = Folded()
    for work in tx.works(states=(), after=0, limit=10_000):
        found.works[work.id] = work.state
        for cancel in tx.cancellations(work.id, limit=1_000):
            acknowledged = "requested" if cancel.acknowledged_at_us is None else "acknowledged"
            found.cancels[cancel.id] = acknowledged if cancel.settled_at_us is None else "settled"
        for attempt in tx.attempts(work.id):
            lease = tx.lease(attempt.id)
            assert lease is not None
            found.attempts[attempt.id] = FoldedAttempt(
                attempt.state, attempt.epoch, attempt.exclusion, lease.revoked_at_us is not None
            )
    return found
