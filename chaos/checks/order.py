"""The changefeed: complete, in order, and what the tables say."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from chaos.checks.slots import ENDINGS
from chaos.fold import About, FoldedAttempt, misfits_of
from chaos.history import History
from shared.ids import AttemptId, WorkId
from shared.model.work import WorkState
from shared.policy.steps import is_final_attempt, is_final_work
from shared.store.contract import Event

WORK_ENDS = frozenset(f"work.{state}" for state in WorkState if is_final_work(state))
AFTERMATH = frozenset(
    {
        "attempt.stop_confirmed",
        "stop.ordered",
        "stop.unproven",
        "cancel.requested",
        "cancel.acknowledged",
        "cancel.settled",
        "report.late",  # what its program had said that nobody had read, read with its stop
        "stream.refused",
        "intent.consumed",  # what it was still to be told, and what the next attempt waits for
        "intent.returned",
        "wait.registered",
        "wait.satisfied",
        "wait.cancelled",
        "wait.elapsed",
        *ENDINGS,  # a second end is told by `ends_happen_once`
    }
)
"""What may be told of an attempt that has ended."""
RETRY = "retry.requested"


def changefeed_has_no_gap(history: History) -> list[str]:
    """Events are numbered 1, 2, 3 … without a gap. Rule: D02."""
    numbers = [event.seq for event in history.events]
    return [f"event {later} followed {earlier}" for earlier, later in pairwise([0, *numbers]) if later != earlier + 1]


def tables_follow_the_changefeed(history: History) -> list[str]:
    """Every state in the tables is what the pure state tables make of the changefeed. Rule: D02, design §4."""
    folded, misfits = misfits_of(history.events)
    found = [str(misfit) for misfit in misfits if misfit.about in (About.STATE, About.LEASE, About.CANCEL, About.WAKE)]
    works: dict[str, WorkState] = {work.id: work.state for work in history.works.values()}
    found += _differences("state", folded.works, works)
    attempts = {}
    for attempt in history.attempts.values():
        lease = history.leases.get(attempt.id)
        revoked = lease is not None and lease.revoked_at_us is not None
        attempts[str(attempt.id)] = FoldedAttempt(attempt.state, attempt.epoch, attempt.exclusion, revoked)
    return found + _differences("attempt", folded.attempts, attempts)


def _differences(what: str, folded: object, stored: object) -> list[str]:
    assert isinstance(folded, dict)
    assert isinstance(stored, dict)
    return [
        f"{name}: the changefeed says {folded.get(name)}, its {what} is {stored.get(name)}"
        for name in sorted(folded.keys() | stored.keys())
        if folded.get(name) != stored.get(name)
    ]


def ends_happen_once(history: History) -> list[str]:
    """One end for each attempt and each Work that is over, none for one that is not. Rule: M01, X02."""
    attempts = Counter(str(event.attempt_id) for event in history.events if event.kind in ENDINGS)
    works: Counter[str] = Counter()
    failed: set[WorkId] = set()
    for event in history.events:
        if event.kind in WORK_ENDS:
            works[str(event.work_id)] += 1
        if _reopens(event, failed):
            works[str(event.work_id)] -= 1
    return [f"{name} ended {count} times" for name, count in sorted((attempts + works).items()) if count > 1]


def nothing_follows_the_end(history: History) -> list[str]:
    """Of an attempt that has ended nothing is told but its stop; nobody writes under an old lease. Rule: R05, R09."""
    found = []
    ended: set[AttemptId] = set()
    over: set[WorkId] = set()
    failed: set[WorkId] = set()
    for event in history.events:
        if _reopens(event, failed) and event.work_id is not None:
            over.discard(event.work_id)
        if event.attempt_id in ended and event.kind not in AFTERMATH:
            found.append(f"{event.attempt_id} had ended, and then came {event.kind} (event {event.seq})")
        if event.kind.startswith("work.") and event.work_id in over and event.kind not in WORK_ENDS:
            found.append(f"{event.work_id} had ended, and then came {event.kind} (event {event.seq})")
        if event.kind in ENDINGS and event.attempt_id is not None:
            ended.add(event.attempt_id)
        if event.kind in WORK_ENDS and event.work_id is not None:
            over.add(event.work_id)
    return found


def _reopens(event: Event, failed: set[WorkId]) -> bool:
    """Whether it tries a Work again that had failed, which then has not ended any more. `failed`: those so far; kept by this."""
    work_id = event.work_id
    if work_id is None:
        return False
    if event.kind == f"work.{WorkState.FAILED}":
        failed.add(work_id)
    if event.kind != RETRY or work_id not in failed:
        return False
    failed.remove(work_id)
    return True


def epochs_only_rise(history: History) -> list[str]:
    """Epochs of an attempt never fall in the changefeed, and its segments are one for each epoch, one after the other."""
    found = []
    seen: dict[str, int] = {}
    for event in history.events:
        if event.attempt_id is None or event.epoch is None:
            continue
        before = seen.get(event.attempt_id, 0)
        if event.epoch < before:
            found.append(f"{event.attempt_id} went from epoch {before} to {event.epoch} (event {event.seq})")
        seen[event.attempt_id] = max(before, event.epoch)
    for attempt_id, segments in history.segments.items():
        attempt = history.attempts[attempt_id]
        epochs = [segment.epoch for segment in segments]
        if epochs != list(range(attempt.segments_dropped + 1, attempt.epoch + 1)):
            found.append(f"{attempt_id} is at epoch {attempt.epoch}, its segments are {epochs}")
        if any(segment.ended_at_us is None for segment in segments[:-1]):
            found.append(f"{attempt_id} has a segment that its successor did not end")
        if is_final_attempt(attempt.state) and segments and segments[-1].ended_at_us is None:
            found.append(f"{attempt_id} is {attempt.state}, and its last segment is open")
    return found


def generations_only_rise(history: History) -> list[str]:
    """Each coordinator that took the lead did so under a higher generation than the one before. Rule: L01."""
    taken = [int(str(event.data["generation"])) for event in history.events if event.kind == "leader.taken"]
    return [f"generation {later} followed {earlier}" for earlier, later in pairwise(taken) if later <= earlier]


def one_leader_at_a_time(history: History) -> list[str]:
    """Everything that a leader writes carries the generation that was the last one taken then. Rule: L01, L02."""
    found = []
    current = 0
    for event in history.events:
        generation = event.data.get("generation")
        if generation is None:
            continue
        told = int(str(generation))
        if event.kind == "leader.taken":
            current = max(current, told)
        elif told != current:
            found.append(f"{event.kind} (event {event.seq}) was written by generation {told}, generation {current} led")
    return found
