"""What whoever hands an input in may rely on: it is kept, and one attempt that takes effect has it. Rule: requirements O01, E12."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from chaos.history import History
from shared.ids import WorkId
from shared.model.attempt import Attempt, AttemptState, FailureClass
from shared.model.work import Work, WorkKind, WorkState

ACCEPTED, RETRY, TIMER = "input.accepted", "retry.requested", "timer"
_TOOK_EFFECT = (AttemptState.SUCCEEDED, AttemptState.HANDED_OFF)
_WAITS = (WorkState.READY, WorkState.BACKOFF, WorkState.HELD)


def inputs_are_kept(history: History) -> list[str]:
    """An accepted input waits, or the last attempt has it: no end of an attempt loses one, none is consumed twice."""
    found = []
    for work in history.works.values():
        attempts = history.attempts_of(work.id)
        waiting = set(history.pending_inputs.get(work.id, ()))
        carried: set[int] = set()
        for attempt in attempts:
            consumed = set(inputs_of(history, attempt))
            found += [f"{attempt.id} did not get input {one}" for one in sorted(carried - consumed - waiting)]
            carried = set() if is_spent(history, attempt) else consumed
        last = set(inputs_of(history, attempts[-1])) if attempts else set()
        if attempts and work.state in _WAITS:
            found += [f"{work.id} is {work.state}, input {one} was not returned" for one in sorted(carried - waiting)]
        elif attempts and work.state is not WorkState.CANCELLED:
            found += [f"input {one} of {work.id} waits, and {attempts[-1].id} had it" for one in sorted(last & waiting)]
        if not last | waiting and work.kind is WorkKind.RUN_ONCE:
            found.append(f"the input of {work.id} is neither waiting nor consumed")
        if work.state is WorkState.COMPLETED:
            found += [f"{work.id} is completed, input {one} never was" for one in sorted(waiting - last)]
    return found


def no_input_is_lost(history: History) -> list[str]:
    """Every input that was accepted waits in an open Work, or some attempt had it; under one key there is one, whoever asks again."""
    told = {(event.work_id, event.data["input"]) for event in history.events if event.kind == ACCEPTED}
    keys = Counter(
        str(event.data["key"]) for event in history.events if event.kind == ACCEPTED and event.data.get("key")
    )
    found = [f"key {key} was accepted {count} times" for key, count in keys.items() if count > 1]
    found += [
        f"input {one.number} of {one.work_id} was answered for, and is not in the changefeed"
        for one in history.accepted
        if (one.work_id, one.number) not in told
    ]
    for work_id, number in sorted(told, key=str):
        assert isinstance(work_id, str)
        if number not in _known(history, work_id):
            found.append(f"input {number} of {work_id} was accepted, and is neither waiting nor consumed")
    for work in history.works.values():
        if work.state is WorkState.IDLE:
            found += [f"{work.id} rests, and input {one} waits" for one in history.pending_inputs.get(work.id, ())]
    return found


def no_input_is_consumed_twice(history: History) -> list[str]:
    """Once an attempt took effect with an input, no other gets it; they are given in the order in which they were accepted."""
    found = []
    for work in history.works.values():
        spent: dict[int, Attempt] = {}
        known: set[int] = set()
        for attempt in history.attempts_of(work.id):
            numbers = list(inputs_of(history, attempt))
            found += [f"{attempt.id} got input {one} after {spent[one].id}" for one in numbers if one in spent]
            latest = max(known, default=0)
            late = [one for one in numbers if one < latest and one not in known]
            found += [f"{attempt.id} got input {one}, an earlier one had {latest}" for one in late]
            if numbers != sorted(set(numbers)):
                found.append(f"{attempt.id} got inputs {numbers}, which is not their order")
            known.update(numbers)
            if is_spent(history, attempt):
                spent |= dict.fromkeys(numbers, attempt)
        found += _overtaken(history, work, spent)
    return found


def is_spent(history: History, attempt: Attempt) -> bool:
    """Whether an attempt keeps its inputs though its Work may go on: it took effect, or failed and its standing Work went on to the
    next input, and no person asked for the same again.
    """
    if attempt.state in _TOOK_EFFECT:
        return True
    snapshot = history.snapshots.get(attempt.id)
    if snapshot is None or snapshot.kind is not WorkKind.STANDING or is_retried_by_person(history, attempt):
        return False
    if attempt.failure is FailureClass.TIMED_OUT:
        return "timeout" in snapshot.retry_on
    return attempt.failure in (FailureClass.KNOWN, FailureClass.CANCELLED)


def is_retried_by_person(history: History, attempt: Attempt) -> bool:
    """Whether somebody asked for that attempt to be made again."""
    return any(
        event.kind == RETRY and event.data.get("attempt") == attempt.id and event.data.get("by") != TIMER
        for event in history.events
    )


def inputs_of(history: History, attempt: Attempt) -> Iterable[int]:
    """Numbers of what an attempt was given."""
    snapshot = history.snapshots.get(attempt.id)
    return () if snapshot is None else snapshot.inputs


def _known(history: History, work_id: str) -> set[int]:
    waiting = history.pending_inputs.get(WorkId(work_id), ())
    return {*waiting, *(one for attempt in history.attempts_of(WorkId(work_id)) for one in inputs_of(history, attempt))}


def _overtaken(history: History, work: Work, spent: dict[int, Attempt]) -> list[str]:
    last = max(spent, default=0)
    waiting = history.pending_inputs.get(work.id, ())
    return [f"input {one} of {work.id} waits, and {spent[last].id} had {last}" for one in waiting if one < last]
