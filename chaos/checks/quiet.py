"""Agents whose binding bounds how long they may be quiet: who is quiet for longer is ended, and nobody else is. Rule: case C061."""

from __future__ import annotations

from itertools import pairwise

from chaos.checks.actors import NEGLECT_US
from chaos.history import History
from chaos.speech import Written
from shared.model.attempt import Attempt, AttemptState, FailureClass

IDLE = "idle:"
"""What the error of such an end begins with."""


def only_the_quiet_are_ended(history: History) -> list[str]:
    """An attempt that ended as idle had written nothing for so long, at some time before that: whoever took it over counts anew."""
    found = []
    for attempt in history.attempts.values():
        if not _is_idle_end(attempt):
            continue
        snapshot = history.snapshots.get(attempt.id)
        most_us = None if snapshot is None else snapshot.idle_us
        if most_us is None:
            found.append(f"{attempt.id} was ended as idle, and its binding lets it be quiet")
            continue
        longest_us = _longest_us(history, attempt)
        if longest_us is not None and longest_us < most_us:
            found.append(f"{attempt.id} was ended as idle after {most_us} us, it was never quiet for over {longest_us}")
    return found


def _is_idle_end(attempt: Attempt) -> bool:
    is_quiet = attempt.failure is FailureClass.TIMED_OUT and (attempt.error or "").startswith(IDLE)
    return is_quiet and attempt.state is AttemptState.FAILED


def _longest_us(history: History, attempt: Attempt) -> int | None:
    """The longest time without a word between the pin of its last launch and its end; None: that was not seen.

    The moments of the pin and of the end are those that were seen around them, so it is never too short.
    """
    pins = [event for event in history.events if (event.kind, event.attempt_id) == ("attempt.pinned", attempt.id)]
    ends = [event for event in history.events if (event.kind, event.attempt_id) == ("attempt.failed", attempt.id)]
    if not pins or not ends or attempt.pin is None:
        return None
    before = [tick.at_us for tick in history.ticks if tick.seq < pins[-1].seq]
    after = [tick.at_us for tick in history.ticks if tick.seq >= ends[-1].seq]
    if not before or not after:
        return None
    launch = attempt.id, attempt.pin.epoch
    words = [one for one in history.written if (one.attempt_id, one.epoch) == launch and not one.is_start]
    written = [one.at_us for one in words if one.at_us <= after[0]]
    return max(later - sooner for sooner, later in pairwise([before[-1], *written, after[0]]))


def the_quiet_are_ended(history: History) -> list[str]:
    """While somebody could end it, no agent is quiet for longer than its binding allows, a lease and a bound."""
    found = []
    able_since_us: int | None = None
    told: set[Written] = set()
    for look in history.looks:
        if not look.able:
            able_since_us = None
            continue
        able_since_us = look.at_us if able_since_us is None else able_since_us
        for one in sorted(look.quiet - told, key=lambda each: (each.attempt_id, each.epoch)):
            snapshot = history.snapshots.get(one.attempt_id)
            if snapshot is None or snapshot.idle_us is None:
                continue
            quiet_us = look.at_us - max(one.at_us, able_since_us)
            if quiet_us > snapshot.idle_us + history.lease_us + NEGLECT_US:
                told.add(one)
                found.append(
                    f"{one.attempt_id}.{one.epoch} has been quiet for {quiet_us} us, allowed are {snapshot.idle_us}"
                )
    return found
