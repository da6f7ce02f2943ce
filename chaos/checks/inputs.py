"""What whoever hands an input in may rely on: it is kept, and one attempt that takes effect has it. Rule: requirements O01, E12."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from chaos.history import History
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt, AttemptState, FailureClass
from shared.model.intent import Fate
from shared.model.timer import TimerKind
from shared.model.work import Work, WorkKind, WorkState

ACCEPTED, RETRY, TIMER = "input.accepted", "retry.requested", "timer"
TOOK_EFFECT = (AttemptState.SUCCEEDED, AttemptState.HANDED_OFF)
_WAITS = (WorkState.READY, WorkState.BACKOFF, WorkState.HELD)


def inputs_are_kept(history: History) -> list[str]:
    """An accepted input waits, or the last attempt has it: no end of an attempt loses one, none is consumed twice."""
    found = []
    taken = taken_while_running(history)
    for work in history.works.values():
        attempts = history.attempts_of(work.id)
        waiting = set(history.pending_inputs.get(work.id, ()))
        carried: set[int] = set()
        had: set[int] = set()
        for attempt in attempts:
            consumed = {*inputs_of(history, attempt), *taken.get(attempt.id, ())}
            found += [f"{attempt.id} did not get input {one}" for one in sorted(carried - consumed - waiting)]
            carried = set() if is_spent(history, attempt) else consumed
            had |= consumed
        last = {*inputs_of(history, attempts[-1]), *taken.get(attempts[-1].id, ())} if attempts else set()
        if attempts and work.state in _WAITS:
            found += [f"{work.id} is {work.state}, input {one} was not returned" for one in sorted(carried - waiting)]
        elif attempts and work.state is not WorkState.CANCELLED:
            found += [f"input {one} of {work.id} waits, and {attempts[-1].id} had it" for one in sorted(last & waiting)]
        if not had | waiting and work.kind is WorkKind.RUN_ONCE:
            found.append(f"the input of {work.id} is neither waiting nor consumed")
        if work.state is WorkState.COMPLETED:
            found += [f"{work.id} is completed, input {one} never was" for one in sorted(waiting - last)]
    return found


def no_input_is_lost(history: History) -> list[str]:
    """Every input that was accepted waits in an open Work, or some attempt had it; under one key there is one, whoever asks again."""
    taken = taken_while_running(history)
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
    given_up = {number for number, fate in fates_of_inputs(history).items() if fate is Fate.DROPPED}
    for work_id, number in sorted(told, key=str):
        assert isinstance(work_id, str)
        if number not in _known(history, work_id, taken) and number not in given_up:
            found.append(f"input {number} of {work_id} was accepted, and is neither waiting nor consumed")
    for work in history.works.values():
        if work.state is WorkState.IDLE:
            found += [f"{work.id} rests, and input {one} waits" for one in history.pending_inputs.get(work.id, ())]
    return found


def no_input_is_consumed_twice(history: History) -> list[str]:
    """Once an attempt took effect with an input, no other gets it; they are given in the order in which they were accepted, unless
    one was handed over to a program that ran.
    """
    found = []
    taken = taken_while_running(history)
    for work in history.works.values():
        spent: dict[int, Attempt] = {}
        spent_anyhow: dict[int, Attempt] = {}
        known: set[int] = set()
        for attempt in history.attempts_of(work.id):
            numbers = list(inputs_of(history, attempt))
            every = dict.fromkeys((*numbers, *sorted(taken.get(attempt.id, ()))))
            found += [
                f"{attempt.id} got input {one} after {spent_anyhow[one].id}" for one in every if one in spent_anyhow
            ]
            latest = max(known, default=0)
            late = [one for one in numbers if one < latest and one not in known]
            found += [f"{attempt.id} got input {one}, an earlier one had {latest}" for one in late]
            if numbers != sorted(set(numbers)):
                found.append(f"{attempt.id} got inputs {numbers}, which is not their order")
            known.update(numbers)
            if is_spent(history, attempt):
                spent |= dict.fromkeys(numbers, attempt)
                spent_anyhow |= dict.fromkeys(every, attempt)
        found += _overtaken(history, work, spent)
    return found


def is_spent(history: History, attempt: Attempt) -> bool:
    """Whether an attempt keeps its inputs though its Work may go on: it took effect, or failed and its standing Work went on to the
    next input, and no person asked for the same again.
    """
    if attempt.state in TOOK_EFFECT:
        return True
    snapshot = history.snapshots.get(attempt.id)
    if snapshot is None or snapshot.kind is not WorkKind.STANDING or is_retried_by_person(history, attempt):
        return False
    if attempt.failure is FailureClass.TIMED_OUT:
        return "timeout" in snapshot.retry_on
    if attempt.failure is FailureClass.KNOWN and is_hinted(history, attempt):
        return False
    return attempt.failure in (FailureClass.KNOWN, FailureClass.CANCELLED)


def is_hinted(history: History, attempt: Attempt) -> bool:
    """Whether its failure said when trying again makes sense, so that it is. Rule: O12."""
    return any(
        event.kind == "timer.armed"
        and event.data.get("attempt") == attempt.id
        and event.data.get("kind") == TimerKind.HINT
        for event in history.events
    )


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


def taken_while_running(history: History) -> dict[AttemptId, set[int]]:
    """Numbers of the inputs that each attempt took besides those it was given: handed over while it ran, or declared as taken."""
    taken: dict[AttemptId, set[int]] = {}
    inputs = _inputs_of_intents(history)
    for event in history.events:
        if event.attempt_id is None:
            continue
        if event.kind == "intent.consumed" and event.data["intent"] in inputs:
            taken.setdefault(event.attempt_id, set()).add(inputs[event.data["intent"]])
        elif event.kind in ("outcome.applied", "inputs.taken", "report.late"):
            numbers = event.data.get("consumed", ())
            assert isinstance(numbers, (list, tuple))
            taken.setdefault(event.attempt_id, set()).update(int(one) for one in numbers)
    return taken


def fates_of_inputs(history: History) -> dict[int, Fate]:
    """What became last of the intent that each injected input came with, by the number of the input."""
    inputs = _inputs_of_intents(history)
    fates: dict[int, Fate] = {}
    for event in history.events:
        if event.kind.startswith("intent.") and event.data.get("intent") in inputs:
            word = str(event.data["fate"]) if event.kind == "intent.recorded" else event.kind.removeprefix("intent.")
            fates[inputs[event.data["intent"]]] = Fate(word)
    return fates


def _inputs_of_intents(history: History) -> dict[object, int]:
    """The input that each intent came with, by the intent's name."""
    return {
        event.data["intent"]: int(str(event.data["input"]))
        for event in history.events
        if event.kind == "intent.recorded" and event.data["input"] is not None
    }


def _known(history: History, work_id: str, taken: Mapping[AttemptId, set[int]]) -> set[int]:
    attempts = history.attempts_of(WorkId(work_id))
    had = {one for attempt in attempts for one in (*inputs_of(history, attempt), *taken.get(attempt.id, ()))}
    return {*history.pending_inputs.get(WorkId(work_id), ()), *had}


def _overtaken(history: History, work: Work, spent: dict[int, Attempt]) -> list[str]:
    last = max(spent, default=0)
    waiting = history.pending_inputs.get(work.id, ())
    return [f"input {one} of {work.id} waits, and {spent[last].id} had {last}" for one in waiting if one < last]
