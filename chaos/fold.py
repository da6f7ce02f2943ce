"""The reference of every store: the pure state tables folded over the changefeed.

It knows no SQL and no lease; it takes each event through the table it belongs to, and says where one does not fit. It always
goes on: after a misfit it believes the event, so that one fault is told once. Rule: design §4, §9.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from shared.model.attempt import AttemptState, Exclusion
from shared.model.work import WorkState
from shared.policy.steps import (
    AttemptEvent,
    IllegalStepError,
    WorkEvent,
    is_final_attempt,
    is_final_work,
    step_attempt,
    step_work,
)
from shared.store.contract import Event

_EVENT_OF_KIND = {
    "recovery_required": AttemptEvent.UNCERTAIN,
    **{event.value: event for event in AttemptEvent},
}


class About(StrEnum):
    """Which rule an event does not fit."""

    STATE = "state"  # a state table
    END = "end"  # what it speaks of is over, or it is not over yet
    EPOCH = "epoch"
    EXCLUSION = "exclusion"  # held until proof; one unexcluded attempt of a Work
    LEASE = "lease"  # revoked once within an epoch
    CANCEL = "cancel"  # requested, then acknowledged, then settled, each once
    WAKE = "wake"  # put off once, then done


@dataclass(frozen=True, slots=True)
class Misfit:
    """An event that does not fit those before it."""

    about: About
    seq: int
    what: str

    def __str__(self) -> str:
        return f"event {self.seq}: {self.what}"


class MisfitError(Exception):
    """Raised by `fold`; its arguments are the misfits."""


@dataclass
class FoldedAttempt:
    """An attempt as its events tell it."""

    state: AttemptState
    epoch: int = 1
    exclusion: Exclusion = Exclusion.HELD
    revoked: bool = False


@dataclass
class Folded:
    """What the events so far say there is. `waking`: events that have not woken all yet."""

    works: dict[str, WorkState] = field(default_factory=dict)
    attempts: dict[str, FoldedAttempt] = field(default_factory=dict)
    cancels: dict[int, str] = field(default_factory=dict)
    waking: set[int] = field(default_factory=set)

    def take(self, event: Event) -> None:
        """Apply one event. Raises MisfitError when it does not fit what came before; it is applied all the same."""
        misfits = self.follow(event)
        if misfits:
            raise MisfitError(*misfits)

    def follow(self, event: Event) -> list[Misfit]:
        """Apply one event; where it does not fit what came before."""
        group, _, word = event.kind.partition(".")
        name = str(event.attempt_id)
        if group == "work":
            return self._follow_work(event)
        if group == "cancel":
            return self._follow_cancel(event, word)
        if group == "waking":
            return self._follow_waking(event, word)
        if event.kind == "attempt.claimed":
            return self._follow_claim(event)
        if group not in ("attempt", "lease") or word == "accepted":
            return []
        if name not in self.attempts:
            return [Misfit(About.STATE, event.seq, f"{event.kind} of {name}, which was never claimed")]
        if event.kind == "attempt.stop_confirmed":
            return self._follow_proof(event, self.attempts[name])
        if event.kind == "lease.revoked":
            return self._follow_revocation(event, self.attempts[name])
        return self._follow_attempt(event, word, self.attempts[name])

    def _follow_work(self, event: Event) -> list[Misfit]:
        name = str(event.work_id)
        before = self.works.get(name)
        if event.kind == "work.submitted":
            self.works[name] = WorkState(str(event.data["to"]))
            return [] if before is None else [Misfit(About.STATE, event.seq, f"{name} was submitted twice")]
        told = WorkState(str(event.data["to"]))
        self.works[name] = told
        if before is None:
            return [Misfit(About.STATE, event.seq, f"{event.kind} of {name}, which was never submitted")]
        by = WorkEvent(str(event.data["by"]))
        if is_final_work(before) and by is not WorkEvent.RETRIED:
            return [Misfit(About.END, event.seq, f"{name} was {before} for good, and became {told}")]
        return _step_misfits(event, before, _work_step(before, by), told)

    def _follow_claim(self, event: Event) -> list[Misfit]:
        name = str(event.attempt_id)
        misfits = [
            Misfit(About.EXCLUSION, event.seq, f"{name} was claimed while {other} was not proven stopped")
            for other in self._attempts_of(event)
            if self.attempts[other].exclusion is Exclusion.HELD
        ]
        if name in self.attempts:
            return [Misfit(About.STATE, event.seq, f"{name} was claimed twice")]
        self.attempts[name] = FoldedAttempt(AttemptState.LAUNCHING)
        return misfits

    def _follow_attempt(self, event: Event, word: str, attempt: FoldedAttempt) -> list[Misfit]:
        before = attempt.state
        if is_final_attempt(before):
            return [Misfit(About.END, event.seq, f"{event.attempt_id} was {before} for good, and then {word}")]
        by = AttemptEvent(str(event.data["by"])) if word == "relaunched" else _EVENT_OF_KIND[word]
        attempt.state = AttemptState(str(event.data["to"]))
        if by in (AttemptEvent.TAKEN_OVER, AttemptEvent.WOKEN):
            attempt.epoch += 1
            attempt.revoked = False
        if is_final_attempt(attempt.state) and event.data.get("proof") is not None:
            attempt.exclusion = Exclusion.RELEASED
        return [
            *_step_misfits(event, before, _attempt_step(before, by), attempt.state),
            *_epoch_misfits(event, attempt),
        ]

    def _follow_proof(self, event: Event, attempt: FoldedAttempt) -> list[Misfit]:
        misfits = _epoch_misfits(event, attempt)
        if not is_final_attempt(attempt.state):
            misfits.append(Misfit(About.END, event.seq, f"{event.attempt_id} was proven stopped while {attempt.state}"))
        elif attempt.exclusion is Exclusion.RELEASED:
            misfits.append(Misfit(About.EXCLUSION, event.seq, f"{event.attempt_id} was proven stopped twice"))
        attempt.exclusion = Exclusion.RELEASED
        return misfits

    def _follow_revocation(self, event: Event, attempt: FoldedAttempt) -> list[Misfit]:
        again = attempt.revoked
        attempt.revoked = True
        found = _epoch_misfits(event, attempt)
        return [*found, Misfit(About.LEASE, event.seq, f"{event.attempt_id}: revoked twice")] if again else found

    def _follow_cancel(self, event: Event, word: str) -> list[Misfit]:
        number = int(str(event.data["cancellation"]))
        before = self.cancels.get(number)
        self.cancels[number] = "settled" if event.data.get("result") is not None else word
        fits = (before is None) == (word == "requested") and before not in ("settled", word)
        return [] if fits else [Misfit(About.CANCEL, event.seq, f"cancel {number} was {before}, and then {word}")]

    def _follow_waking(self, event: Event, word: str) -> list[Misfit]:
        """An event that has not woken all yet is told so once, and once that it has."""
        place = int(str(event.data["event"]))
        fits = (place in self.waking) == (word == "done") and place < event.seq
        self.waking = self.waking - {place} if word == "done" else self.waking | {place}
        return (
            [] if fits else [Misfit(About.WAKE, event.seq, f"the waking of event {place} is {word}, and should not be")]
        )

    def _attempts_of(self, event: Event) -> list[str]:
        return [name for name in self.attempts if name.rsplit(".", 1)[0] == event.work_id]


def fold(events: Iterable[Event]) -> Folded:
    """Fold from the beginning. Raises MisfitError at the first event that does not fit."""
    folded = Folded()
    for event in events:
        folded.take(event)
    return folded


def misfits_of(events: Iterable[Event]) -> tuple[Folded, list[Misfit]]:
    """Fold from the beginning, to the end; and everything that did not fit."""
    folded = Folded()
    return folded, [misfit for event in events for misfit in folded.follow(event)]


def _attempt_step(state: AttemptState, by: AttemptEvent) -> AttemptState | None:
    try:
        return step_attempt(state, by)
    except IllegalStepError:
        return None


def _work_step(state: WorkState, by: WorkEvent) -> WorkState | None:
    try:
        return step_work(state, by)
    except IllegalStepError:
        return None


def _step_misfits(event: Event, before: str, target: str | None, told: str) -> list[Misfit]:
    name = event.attempt_id or event.work_id
    if event.data["from"] != before:
        return [Misfit(About.STATE, event.seq, f"{name} was {before}, and {event.kind} came from {event.data['from']}")]
    if target != told:
        legal = "nowhere" if target is None else target
        return [Misfit(About.STATE, event.seq, f"{event.kind} leads {name} from {before} to {legal}, not to {told}")]
    return []


def _epoch_misfits(event: Event, attempt: FoldedAttempt) -> list[Misfit]:
    if event.epoch == attempt.epoch:
        return []
    what = f"{event.kind} of {event.attempt_id} at epoch {event.epoch}, which was at {attempt.epoch}"
    return [Misfit(About.EPOCH, event.seq, what)]
