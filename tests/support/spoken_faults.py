"""Faults of histories of Works that speak: each makes one check fire. See `tests/unit/test_checks_spoken.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from chaos.history import History
from chaos.notes import Ends, Note, Word
from shared.ids import AttemptId, WorkId
from shared.model.intent import Fate
from tests.support.clean_histories import index_of, with_changed_event, with_event
from tests.support.spoken_histories import A_LIMIT

Fault = Callable[[History], History]
W2, W3 = WorkId("w2"), WorkId("w3")
PARKED, LISTENED, AGAIN, LAST = (AttemptId(name) for name in ("w1.1", "w2.1", "w2.2", "w5.2"))


def place_of(history: History, word: Word, attempt_id: AttemptId, *, nth: int = 0) -> int:
    """Where the nth note of a word of an attempt is."""
    found = [at for at, note in enumerate(history.notes) if (note.word, note.attempt_id) == (word, attempt_id)]
    return found[nth]


def with_changed_note(history: History, at: int, **changes: Any) -> History:
    notes = list(history.notes)
    notes[at] = replace(notes[at], **changes)
    return replace(history, notes=tuple(notes))


def without_note(history: History, at: int) -> History:
    return replace(history, notes=history.notes[:at] + history.notes[at + 1 :])


def with_note(history: History, at: int, note: Note) -> History:
    return replace(history, notes=(*history.notes[:at], note, *history.notes[at:]))


def taken_note(history: History) -> Note:
    """Of the input that was taken while its program ran."""
    return history.notes[place_of(history, Word.TOOK, LISTENED)]


# --- waits


def waits_still(history: History) -> History:
    return with_event(history, "wait.registered", attempt_id=LAST, epoch=1, work_id=WorkId("w5"))


def waited_twice(history: History) -> History:
    return with_event(history, "wait.satisfied", attempt_id=PARKED, epoch=2, work_id=WorkId("w1"), data={"by_seq": 1})


def resumed_by_nothing(history: History) -> History:
    return with_changed_event(history, "wait.satisfied", PARKED, kind="wait.cancelled")


def woken_by_another(history: History) -> History:
    at = place_of(history, Word.BEGAN, PARKED, nth=1)
    return with_changed_note(history, at, wake={**(history.notes[at].wake or {}), "seq": 1})


def waited_for_another(history: History) -> History:
    return with_changed_note(history, place_of(history, Word.ENDS, PARKED), awaits=("tock", None))


# --- inputs and intents


def never_read(history: History) -> History:
    return without_note(history, place_of(history, Word.SAW, LISTENED, nth=1))


def other_bytes(history: History) -> History:
    return with_changed_note(history, place_of(history, Word.SAW, LISTENED, nth=1), sha256="0")


def out_of_order(history: History) -> History:
    first, second = (place_of(history, Word.SAW, LISTENED, nth=nth) for nth in (1, 2))
    notes = list(history.notes)
    notes[first], notes[second] = notes[second], notes[first]
    return replace(history, notes=tuple(notes))


def consumed_but_not_taken(history: History) -> History:
    return without_note(history, place_of(history, Word.TOOK, LISTENED))


def taken_but_not_told(history: History) -> History:
    return with_note(history, len(history.notes), Note(Word.TOOK, AGAIN, 1, 500, input=history.accepted[1].number))


def declined_by_nobody(history: History) -> History:
    return without_note(history, place_of(history, Word.DECLINED, AttemptId("w6.1")))


def open_still(history: History) -> History:
    intents = [replace(one, fate=Fate.QUEUED) if one.fate is Fate.RETURNED else one for one in history.intents[W2]]
    return replace(history, intents={**history.intents, W2: tuple(intents)})


def told_to_another(history: History) -> History:
    at = place_of(history, Word.SAW, LISTENED, nth=1)
    return with_changed_note(history, at, intent=history.intents[W2][1].id)


def answered_with_another(history: History) -> History:
    first = replace(history.accepted[0], intent="i99")
    return replace(history, accepted=(first, *history.accepted[1:]))


def read_after_it_took_effect(history: History) -> History:
    taken = taken_note(history)
    again = Note(Word.SAW, AGAIN, 1, 500, input=taken.input, sha256=history.accepted[0].sha256)
    return with_note(history, place_of(history, Word.SAW, AGAIN), again)


# --- ends


def other_end(history: History) -> History:
    return with_changed_note(history, place_of(history, Word.ENDS, LAST), ends=Ends.FAILED)


def no_last_word(history: History) -> History:
    return without_note(history, place_of(history, Word.ENDS, LAST))


def other_exit_status(history: History) -> History:
    return with_changed_note(history, place_of(history, Word.ENDS, LAST), exit_status=3)


def interrupted_by_nobody(history: History) -> History:
    return replace(history, intents={**history.intents, W3: ()})


def refused(history: History) -> History:
    return with_note(history, 0, Note(Word.REFUSED, LAST, 1, 500, why="turn: declaration_invalid"))


def _with_intent(history: History, work_id: WorkId, **changes: Any) -> History:
    """The last intent of a Work is another."""
    *before, last = history.intents[work_id]
    return replace(history, intents={**history.intents, work_id: (*before, replace(last, **changes))})


def given_up_for_nothing(history: History) -> History:
    """Its binding says that it is to wait."""
    name = AttemptId("w7.1")
    queues = replace(history.snapshots[name], on_inject_error="queue")
    return replace(history, snapshots={**history.snapshots, name: queues})


def not_given_up(history: History) -> History:
    return _with_intent(history, WorkId("w7"), why="its attempt was over first")


def given_up_by_one_who_listens(history: History) -> History:
    return without_note(history, place_of(history, Word.SHUT, AttemptId("w7.1")))


def given_up_and_read(history: History) -> History:
    number = history.intents[WorkId("w7")][-1].input
    read = Note(Word.SAW, AttemptId("w7.1"), 1, 500, input=number, sha256="")
    return with_note(history, place_of(history, Word.SHUT, AttemptId("w7.1")), read)


# --- turns


def other_turn(history: History) -> History:
    return with_changed_note(history, place_of(history, Word.TURN, PARKED), status="other")


def turn_not_told(history: History) -> History:
    return with_changed_event(history, "execution.turn", PARKED, kind="declaration.recorded")


def turn_told_about_another(history: History) -> History:
    return with_changed_event(history, "execution.turn", PARKED, data={"correlate": "pr-7"})


def turn_told_twice(history: History) -> History:
    """In place of something that was told right before."""
    place = index_of(history, "execution.turn", PARKED)
    turn = history.events[place]
    events = list(history.events)
    before = max(at for at in range(place) if events[at].kind == "outcome.applied")
    events[before] = replace(turn, seq=events[before].seq)
    return replace(history, events=tuple(events))


# --- usage, budgets, gates


def said_more(history: History) -> History:
    return with_changed_note(history, place_of(history, Word.USED, PARKED), units={"tokens": Decimal(5)})


def said_less(history: History) -> History:
    return with_changed_note(history, place_of(history, Word.USED, PARKED), units={"tokens": Decimal("3.9")})


def went_on_past_its_budget(history: History) -> History:
    budgets = tuple(replace(one, limit=Decimal(4)) if one == A_LIMIT else one for one in history.budgets)
    return replace(history, budgets=budgets)


def held_with_a_slot(history: History) -> History:
    return with_changed_event(history, "declaration.recorded", LAST, kind="gate.held")


SPOKEN_FAULTS: dict[str, list[Fault]] = {
    "waits_end": [waits_still, waited_twice],
    "resumes_follow_their_wait": [resumed_by_nothing],
    "wakes_are_told": [woken_by_another, waited_for_another],
    "every_input_is_seen": [never_read, other_bytes],
    "inputs_are_read_in_order": [out_of_order],
    "takes_are_as_said": [consumed_but_not_taken, taken_but_not_told],
    "intents_are_told_the_truth": [declined_by_nobody, open_still],
    "inputs_are_given_up_as_bound": [
        given_up_for_nothing,
        not_given_up,
        given_up_by_one_who_listens,
        given_up_and_read,
    ],
    "intents_reach_whom_they_are_for": [told_to_another, answered_with_another],
    "nothing_is_read_after_it_took_effect": [read_after_it_took_effect],
    "attempts_end_as_they_said": [other_end, no_last_word, other_exit_status],
    "attempts_follow_what_was_said": [interrupted_by_nobody],
    "nothing_said_is_refused": [refused],
    "turns_are_told_once": [other_turn, turn_not_told, turn_told_about_another, turn_told_twice],
    "usage_is_what_was_said": [said_more, said_less],
    "starts_keep_to_what_was_said": [went_on_past_its_budget],
    "holds_take_no_slot": [held_with_a_slot],
}
