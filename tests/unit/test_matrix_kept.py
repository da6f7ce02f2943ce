"""What a cell keeps: each promise is found broken, and it alone, where one thing is not as the programs noted it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from chaos.history import History
from chaos.matrix.cell import Kept
from chaos.matrix.every import every_cell
from chaos.matrix.kept import KEEPS, broken
from chaos.notes import Ends, Note, Word
from shared.ids import AttemptId, WorkId
from shared.model.attempt import AttemptState
from shared.model.declaration import Declaration, DeclarationKind, Recorded
from shared.model.intent import Fate, Intent, IntentKind
from shared.model.stream import Place, Stream
from shared.model.usage import Usage
from shared.model.wait import WAKES_MAX
from shared.store.contract import Event
from tests.support.histories import a_history, an_attempt

W, A1, A2 = WorkId("w1"), AttemptId("w1.1"), AttemptId("w1.2")
OUTPUT = '{"type":"log"}\n{"type":"usage"}\n'
SPOKEN = frozenset({Kept.LINES, Kept.SAID, Kept.USAGE, Kept.TURN, Kept.INPUTS, Kept.ONE_INTENT})


def note(word: Word, attempt_id: AttemptId = A1, epoch: int = 1, **facts: Any) -> Note:
    return Note(word, attempt_id, epoch, 100, **facts)


def event(seq: int, kind: str, attempt_id: AttemptId | None = None, epoch: int | None = None, **data: Any) -> Event:
    return Event(seq, seq, kind, W, attempt_id, epoch, data)


def recorded(key: str, kind: DeclarationKind, seq: int) -> Recorded:
    return Recorded(Declaration(key, kind, "{}"), seq, seq, 1, 1)


def injected(**changes: Any) -> Intent:
    intent = Intent(3, IntentKind.INJECT, W, A1, 7, Fate.CONSUMED, 1, 1, "t", 1, 2, None)
    return replace(intent, **changes)


def spoken() -> History:
    """An agent that was handed an input, said what it used, its turn and its outcome, and ended."""
    attempt = an_attempt(A1, 0, usage=Usage((("tokens", Decimal(14)),)))
    kinds = (DeclarationKind.TURN, DeclarationKind.OUTCOME)
    said = tuple(recorded(f"k{number}", kind, number) for number, kind in enumerate(kinds, start=1))
    events = [event(one.seq, "declaration.recorded", A1, 1, key=one.declaration.key) for one in said]
    events += [
        event(5, "intent.recorded", A1, None, intent="i3", input=7),
        event(6, "execution.turn", A1, 1, status="done"),
    ]
    history = a_history(
        attempts={A1: attempt},
        outputs={A1: OUTPUT},
        streams={A1: Stream(1, Place(len(OUTPUT), 2))},
        declarations={A1: said},
        intents={W: (injected(),)},
        pending_inputs={W: ()},
        events=tuple(events),
    )
    notes = (
        note(Word.SAW, input=6),
        note(Word.SAW, input=7, intent="i3"),
        note(Word.AGAIN, input=7, intent="i3"),
        *(note(Word.USED, units={"tokens": Decimal(7)}) for _ in range(2)),
        note(Word.TURN, status="done-1"),
        note(Word.ENDS, ends=Ends.COMPLETED, exit_status=0),
    )
    return replace(history, notes=notes)


def interrupted() -> History:
    """An agent that was interrupted, and its next attempt."""
    first = an_attempt(A1, 0, state=AttemptState.INTERRUPTED, exit_status=None)
    history = a_history(
        attempts={A1: first, A2: an_attempt(A2, 0)},
        intents={W: (injected(kind=IntentKind.INTERRUPT, input=None, fate=Fate.ACCEPTED),)},
        events=(event(1, "intent.recorded", A1, None, intent="i3", input=None),),
    )
    return replace(history, notes=(note(Word.SAW, input=6), note(Word.SAW, A2, input=6)))


def resumed() -> History:
    """A job that waited for an event and went on."""
    events = (
        event(1, "attempt.parked", A1, 1),
        event(2, "event.published", correlate="w1"),
        event(3, "wait.satisfied", A1, 1, by_seq=2),
        event(4, "attempt.woken", A1, 2),
    )
    began = (note(Word.BEGAN), note(Word.BEGAN, epoch=2, wake={"seq": 2, "type": "matrix.go"}))
    return a_history(attempts={A1: an_attempt(A1, 0, epoch=2)}, events=events, notes=began)


def slept() -> History:
    """A job that waited for some time and went on."""
    history = resumed()
    elapsed = event(2, "wait.elapsed", A1, 1, type="wait.elapsed", correlate=None)
    return replace(history, events=tuple(elapsed if one.seq == 2 else one for one in history.events))


def crowd() -> History:
    """More attempts than one commit wakes, and the one event that all of them waited for."""
    names = [A1, *(AttemptId(f"w{number}.1") for number in range(2, WAKES_MAX + 2))]
    events = [event(1, "event.published", type="crowd.1", correlate=None)]
    for seq, name in enumerate(names, start=1):
        events += [
            event(1_000 + seq, "wait.registered", name, 1, type="crowd.1"),
            event(2_000 + seq, "wait.satisfied", name, 1, by_seq=1),
            event(3_000 + seq, "attempt.woken", name, 2),
        ]
    return a_history(events=tuple(events))


def with_attempt(case: History, **changes: Any) -> History:
    return replace(case, attempts={**case.attempts, A1: replace(case.attempts[A1], **changes)})


def with_events(case: History, *more: Event) -> History:
    return replace(case, events=(*case.events, *more))


def without_events(case: History, kind: str) -> History:
    return replace(case, events=tuple(one for one in case.events if one.kind != kind))


def with_changed(case: History, kind: str, **changes: Any) -> History:
    events = tuple(replace(one, **changes) if one.kind == kind else one for one in case.events)
    return replace(case, events=events)


def with_notes(case: History, *more: Note) -> History:
    return replace(case, notes=(*case.notes, *more))


def without_notes(case: History, word: Word, attempt_id: AttemptId = A1) -> History:
    return replace(case, notes=tuple(one for one in case.notes if (one.word, one.attempt_id) != (word, attempt_id)))


@pytest.mark.parametrize(
    ("case", "keeps"),
    [
        (spoken, SPOKEN),
        (interrupted, frozenset({Kept.HANDED_ON, Kept.ONE_INTENT})),
        (resumed, frozenset({Kept.RESUMED_ONCE})),
        (slept, frozenset({Kept.RESUMED_ONCE})),
        (crowd, frozenset({Kept.ALL_RESUMED})),
    ],
)
def test_what_is_as_the_programs_noted_it_is_kept(case: Callable[[], History], keeps: frozenset[Kept]) -> None:
    assert broken(case(), W, keeps) == []


BREAKS: list[tuple[str, Kept, Callable[[], History]]] = [
    ("a line that nobody read", Kept.LINES, lambda: replace(spoken(), outputs={A1: OUTPUT + "{}\n"})),
    ("lines read twice", Kept.LINES, lambda: replace(spoken(), streams={A1: Stream(1, Place(len(OUTPUT), 4))})),
    (
        "a line that was refused",
        Kept.LINES,
        lambda: replace(spoken(), streams={A1: Stream(1, Place(len(OUTPUT), 2), refused=1)}),
    ),
    ("nothing was read", Kept.LINES, lambda: replace(spoken(), streams={})),
    (
        "a declaration recorded twice",
        Kept.SAID,
        lambda: with_events(spoken(), event(9, "declaration.recorded", A1, 2, key="k1")),
    ),
    (
        "an outcome that was never recorded",
        Kept.SAID,
        lambda: replace(
            spoken(),
            declarations={A1: spoken().declarations[A1][:-1]},
            events=tuple(one for one in spoken().events if one.data.get("key") != "k2"),
        ),
    ),
    (
        "usage counted twice",
        Kept.USAGE,
        lambda: with_attempt(spoken(), usage=Usage((("tokens", Decimal(21)),))),
    ),
    ("usage that was lost", Kept.USAGE, lambda: with_attempt(spoken(), usage=Usage((("tokens", Decimal(7)),)))),
    ("no turn", Kept.TURN, lambda: without_events(spoken(), "execution.turn")),
    ("two turns", Kept.TURN, lambda: with_events(spoken(), event(9, "execution.turn", A1, 1))),
    ("a turn of another epoch", Kept.TURN, lambda: with_attempt(spoken(), epoch=2)),
    ("an input told twice as new", Kept.INPUTS, lambda: with_notes(spoken(), note(Word.SAW, input=7, intent="i3"))),
    (
        "an input that another attempt saw",
        Kept.INPUTS,
        lambda: with_notes(spoken(), note(Word.SAW, A2, input=7, intent="i3")),
    ),
    (
        "a fate that is not true",
        Kept.INPUTS,
        lambda: replace(spoken(), intents={W: (injected(fate=Fate.ACCEPTED),)}),
    ),
    ("an input that waits though it was taken", Kept.INPUTS, lambda: replace(spoken(), pending_inputs={W: (7,)})),
    (
        "nothing was handed over",
        Kept.INPUTS,
        lambda: replace(spoken(), intents={W: (injected(kind=IntentKind.INTERRUPT),)}),
    ),
    (
        "accepted twice",
        Kept.ONE_INTENT,
        lambda: with_events(spoken(), event(9, "intent.recorded", A1, None, intent="i4", input=8)),
    ),
    ("an input that was not handed on", Kept.HANDED_ON, lambda: without_notes(interrupted(), Word.SAW, A2)),
    ("not interrupted", Kept.HANDED_ON, lambda: with_attempt(interrupted(), state=AttemptState.FAILED)),
    ("woken twice", Kept.RESUMED_ONCE, lambda: with_events(resumed(), event(9, "attempt.woken", A1, 3))),
    ("never woken", Kept.RESUMED_ONCE, lambda: without_events(resumed(), "attempt.woken")),
    ("woken two epochs on", Kept.RESUMED_ONCE, lambda: with_changed(resumed(), "attempt.woken", epoch=3)),
    (
        "woken by another event",
        Kept.RESUMED_ONCE,
        lambda: with_changed(resumed(), "wait.satisfied", data={"by_seq": 1}),
    ),
    ("published twice", Kept.RESUMED_ONCE, lambda: with_events(resumed(), event(9, "event.published", correlate="w1"))),
    ("its time came twice", Kept.RESUMED_ONCE, lambda: with_events(slept(), event(9, "wait.elapsed", A1, 1))),
    (
        "one of many was woken twice",
        Kept.ALL_RESUMED,
        lambda: with_events(crowd(), event(9_001, "attempt.woken", AttemptId("w9.1"), 3)),
    ),
    (
        "one of many was never woken",
        Kept.ALL_RESUMED,
        lambda: replace(crowd(), events=tuple(one for one in crowd().events if one.seq != 3_009)),
    ),
    (
        "one of many was woken by another event",
        Kept.ALL_RESUMED,
        lambda: replace(
            crowd(),
            events=tuple(replace(one, data={"by_seq": 7}) if one.seq == 2_009 else one for one in crowd().events),
        ),
    ),
    (
        "there were not many",
        Kept.ALL_RESUMED,
        lambda: replace(crowd(), events=tuple(one for one in crowd().events if one.seq % 1_000 < 9)),
    ),
    ("ran twice after it was woken", Kept.RESUMED_ONCE, lambda: with_notes(resumed(), *resumed().notes)),
    ("never heard what woke it", Kept.RESUMED_ONCE, lambda: without_notes(resumed(), Word.BEGAN)),
]


@pytest.mark.parametrize(("what", "kept", "case"), BREAKS, ids=[what for what, *_ in BREAKS])
def test_what_is_not_kept_is_found_by_that_alone(what: str, kept: Kept, case: Callable[[], History]) -> None:
    sets = (
        SPOKEN,
        frozenset({Kept.HANDED_ON, Kept.ONE_INTENT}),
        frozenset({Kept.RESUMED_ONCE}),
        frozenset({Kept.ALL_RESUMED}),
    )
    keeps = next(each for each in sets if kept in each)

    found = broken(case(), W, keeps)

    assert found, what
    assert {each.partition(":")[0] for each in found} == {str(kept)}


def test_everything_that_can_be_kept_is_looked_at_in_some_cell_and_has_its_control() -> None:
    assert set(KEEPS) == set(Kept)
    assert {kept for cell in every_cell() for kept in cell.keeps} == set(Kept)
    assert {kept for _, kept, _ in BREAKS} == set(Kept)
