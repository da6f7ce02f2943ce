"""One fault for each check of overheard programs, put into the history of `speech_histories`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from chaos.history import History
from shared.ids import AttemptId, WorkId
from shared.model.declaration import Declaration, DeclarationKind
from shared.model.usage import usage_of
from shared.store.contract import Event
from tests.support.clean_histories import index_of, with_changed_event, with_event
from tests.support.speech_histories import (
    A1,
    A2,
    A3,
    A4,
    told_of,
    with_said,
    with_told,
    without_declaration,
)


def line_lost(history: History) -> History:
    """The last turn of the agent was never heard."""
    return without_declaration(history, "turn", A1)


def line_read_twice(history: History) -> History:
    stream = history.streams[A1]
    again = replace(stream, unknown={**stream.unknown, "thought": 3})
    return replace(history, streams={**history.streams, A1: again})


def line_left_unread(history: History) -> History:
    stream = history.streams[A1]
    short = replace(stream, place=replace(stream.place, lines=stream.place.lines - 1))
    return replace(history, streams={**history.streams, A1: short})


def word_forgotten(history: History) -> History:
    return without_declaration(history, "turn", A2)


def word_never_said(history: History) -> History:
    first = history.declarations[A2][0]
    body = json.dumps({"inputs": [2]})
    more = replace(first, declaration=Declaration("d9.9", DeclarationKind.CONSUMED, body))
    return replace(history, declarations={**history.declarations, A2: (*history.declarations[A2], more)})


def ended_otherwise(history: History) -> History:
    return with_said(history, "result", A2, body=json.dumps({"outcome": "completed"}))


def other_status(history: History) -> History:
    return with_said(history, "end", A2, body="3")


def other_turn(history: History) -> History:
    return with_said(history, "turn", A2, body=json.dumps({"status": "asks"}))


def turn_twice(history: History) -> History:
    told = history.events[index_of(history, "execution.turn", A1)]
    return _in_place_of(history, "stream.refused", A1, told)


def turn_of_what_nobody_saw_end(history: History) -> History:
    told = history.events[index_of(history, "execution.turn", A1)]
    return _in_place_of(history, "segment.phases", A3, told)


def _in_place_of(history: History, kind: str, attempt_id: AttemptId, told: Event) -> History:
    """An event that matters to nobody is another one, of the same attempt."""
    events = list(history.events)
    place = index_of(history, kind, attempt_id)
    events[place] = replace(events[place], kind=told.kind, data=told.data)
    return replace(history, events=tuple(events))


def used_more(history: History) -> History:
    attempt = replace(history.attempts[A2], usage=usage_of({"tokens": 3}))
    return replace(history, attempts={**history.attempts, A2: attempt})


def fate_after_the_end(history: History) -> History:
    return with_event(history, "intent.consumed", attempt_id=A1, work_id=WorkId("w1"), data={"intent": "i1"})


def consumed_by_nobody(history: History) -> History:
    kept = [one for one in history.said if one.kind == "consumed" and one.epoch == 1]
    said = tuple(replace(one, body=json.dumps({"inputs": [4]})) if one in kept else one for one in history.said)
    return replace(history, said=said)


def told_the_other_way_round(history: History) -> History:
    first, second = told_of(history, "input", A1)
    swap = {first: second, second: first}
    return replace(history, told=tuple(swap.get(one, one) for one in history.told))


def told_to_another(history: History) -> History:
    first, _ = told_of(history, "input", A1)
    return replace(history, told=(*history.told, replace(first, attempt_id=A2)))


def stopped_first(history: History) -> History:
    return with_told(history, "interrupt", A3, seq=1)


def woken_by_another(history: History) -> History:
    """By an event that came before it was declared."""
    early = next(event.seq for event in history.events if event.kind == "execution.turn")
    return with_changed_event(history, "wait.satisfied", A1, data={"by_seq": early})


def told_another_wake(history: History) -> History:
    return with_told(history, "start", A1, wake=1)


def goes_on_twice(history: History) -> History:
    told = history.events[index_of(history, "execution.handoff", A4)]
    return _in_place_of(history, "segment.phases", A4, told)


def goes_on_without_input(history: History) -> History:
    told = history.events[index_of(history, "execution.handoff", A4)]
    events = [
        replace(event, data={**event.data, "cause": None}) if event.data.get("cause") == told.seq else event
        for event in history.events
    ]
    return replace(history, events=tuple(events))


def too_deep(history: History) -> History:
    snapshots = {**history.snapshots, A4: replace(history.snapshots[A4], depth_max=0)}
    return replace(history, snapshots=snapshots)


SPEECH_FAULTS: dict[str, list[Callable[[History], History]]] = {
    "handoffs_go_on_once": [goes_on_twice, goes_on_without_input],
    "chains_keep_within_their_depth": [too_deep],
    "every_line_is_heard_once": [line_lost, line_read_twice, line_left_unread],
    "the_belt_keeps_its_word": [word_forgotten, word_never_said],
    "ends_are_as_declared": [ended_otherwise, other_status],
    "turns_are_told_of_what_ended": [other_turn, turn_twice, turn_of_what_nobody_saw_end],
    "usage_is_all_that_was_reported": [used_more],
    "intents_end_once": [fate_after_the_end],
    "fates_are_true": [consumed_by_nobody],
    "words_reach_whom_they_are_for": [told_the_other_way_round, told_to_another],
    "interrupts_are_fenced_first": [stopped_first],
    "waits_end_by_what_they_wait_for": [woken_by_another, told_another_wake],
}
