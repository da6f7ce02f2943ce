"""What must hold of a cell's Work besides the word that it came to: what its programs noted, against what the store says.

The checks say what must never be; this says what must have come about in this cell. Pure. Rule: requirements O06, O08, O15, T01–T04, B03, M01.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal

from chaos.history import History
from chaos.matrix.cell import Kept
from chaos.notes import Note, Word
from shared.ids import WorkId, work_of
from shared.model.attempt import Attempt, AttemptState
from shared.model.declaration import DeclarationKind
from shared.model.event import TIMER_EVENT, TURN_EVENT
from shared.model.intent import Fate, IntentKind
from shared.model.wait import WAKES_MAX
from shared.store.contract import Event

Keeps = Callable[[History, WorkId], Iterator[str]]


def broken(history: History, work_id: WorkId, keeps: Iterable[Kept]) -> list[str]:
    """What of all that is to be kept is not, `WHAT IS KEPT: WHY NOT` each."""
    return [f"{kept}: {why}" for kept in sorted(keeps) for why in KEEPS[kept](history, work_id)]


def _lines(history: History, work_id: WorkId) -> Iterator[str]:
    for attempt in _that_took_effect(history, work_id):
        output, stream = history.outputs.get(attempt.id, ""), history.streams.get(attempt.id)
        if stream is None:
            yield f"nothing of {attempt.id} was read"
            continue
        printed = (output.count("\n"), len(output.encode()))
        read = (stream.place.lines, stream.place.offset)
        if read != printed:
            yield f"{attempt.id} printed {printed} lines and bytes, read were {read}"
        if stream.refused or stream.unknown:
            yield f"of {attempt.id}, {stream.refused} lines were refused, and {dict(stream.unknown)} not known"


def _said(history: History, work_id: WorkId) -> Iterator[str]:
    recorded = Counter(
        (event.attempt_id, event.data["key"])
        for event in _events(history, work_id)
        if event.kind == "declaration.recorded"
    )
    yield from (f"{key} of {name} is recorded {count} times" for (name, key), count in recorded.items() if count != 1)
    for attempt in _that_took_effect(history, work_id):
        told = [one.declaration for one in history.declarations.get(attempt.id, ())]
        if {(attempt.id, one.key) for one in told} != {name for name in recorded if name[0] == attempt.id}:
            yield f"what {attempt.id} declared is not what the changefeed tells"
        said = Counter(
            _DECLARED[note.word]
            for note in _notes(history, work_id)
            if note.attempt_id == attempt.id and note.word in _DECLARED
        )
        kinds = Counter(one.kind for one in told if one.kind is not DeclarationKind.USAGE)
        if not said or kinds != said:
            yield f"{attempt.id} said {dict(said)}, recorded is {dict(kinds)}"


def _usage(history: History, work_id: WorkId) -> Iterator[str]:
    notes, attempts = _notes(history, work_id), history.attempts_of(work_id)
    units = sorted({unit for note in notes for unit in note.units})
    said = {unit: sum((note.units.get(unit, Decimal(0)) for note in notes), Decimal(0)) for unit in units}
    told = {unit: sum((attempt.usage.amount(unit) for attempt in attempts), Decimal(0)) for unit in units}
    if not said or told != said:
        yield f"{work_id} used {said}, recorded is {told}"


def _turn(history: History, work_id: WorkId) -> Iterator[str]:
    told = [(event.attempt_id, event.epoch) for event in _events(history, work_id) if event.kind == TURN_EVENT]
    ended = [(attempt.id, attempt.epoch) for attempt in _that_took_effect(history, work_id)]
    if not ended or told != ended:
        yield f"turns of {told} were published, those that ended are {ended}"


def _inputs(history: History, work_id: WorkId) -> Iterator[str]:
    saw = [note for note in _notes(history, work_id) if note.word is Word.SAW]
    seen = Counter((note.attempt_id, note.intent, note.input) for note in saw)
    yield from (
        f"{name} saw input {number} as {intent} {count} times"
        for (name, intent, number), count in seen.items()
        if count > 1
    )
    injected = [one for one in history.intents.get(work_id, ()) if one.kind is IntentKind.INJECT]
    if not injected:
        yield f"nothing was handed to {work_id}"
    for one in injected:
        holders = [name for name, intent, _ in seen if intent == one.id]
        if one.fate is not Fate.CONSUMED or holders != [one.attempt_id]:
            yield f"{one.id} for {one.attempt_id} is {one.fate}, seen was it by {holders}"
    waiting = history.pending_inputs.get(work_id, ())
    if waiting:
        yield f"inputs {waiting} of {work_id} wait"


def _handed_on(history: History, work_id: WorkId) -> Iterator[str]:
    states = [attempt.state for attempt in history.attempts_of(work_id)]
    if states != [AttemptState.INTERRUPTED, AttemptState.SUCCEEDED]:
        yield f"the attempts of {work_id} are {states}"
        return
    first, second = history.attempts_of(work_id)
    had, has = (
        {note.input for note in _notes(history, work_id) if (note.word, note.attempt_id) == (Word.SAW, attempt.id)}
        for attempt in (first, second)
    )
    if not had or not had <= has:
        yield f"{first.id} saw inputs {had}, {second.id} saw {has}"


def _resumed_once(history: History, work_id: WorkId) -> Iterator[str]:
    events = _events(history, work_id)
    parked, satisfied, woken = (
        [event for event in events if event.kind == kind]
        for kind in ("attempt.parked", "wait.satisfied", "attempt.woken")
    )
    ending = [event.seq for event in history.events if _ends_wait_of(event, work_id)]
    counts = [len(each) for each in (parked, satisfied, woken, ending)]
    if counts != [1, 1, 1, 1]:
        yield f"{work_id} was parked, satisfied, woken and called for {counts} times"
        return
    if woken[0].epoch != (parked[0].epoch or 0) + 1:
        yield f"{work_id} was parked at epoch {parked[0].epoch} and woken at {woken[0].epoch}"
    began = [note for note in _notes(history, work_id) if note.word is Word.BEGAN]
    told = [note.wake["seq"] for note in began if note.wake is not None]
    if told != ending or satisfied[0].data["by_seq"] != ending[0]:
        yield f"event {ending} came for it, {satisfied[0].data['by_seq']} ended the wait, the program was told {told}"


def _all_resumed(history: History, work_id: WorkId) -> Iterator[str]:
    waits = [event for event in history.events if event.kind == "wait.registered"]
    kinds = {event.data["type"] for event in waits if event.attempt_id and work_of(event.attempt_id) == work_id}
    crowd = [event.attempt_id for event in waits if event.data["type"] in kinds]
    published = [
        event.seq for event in history.events if event.kind == "event.published" and event.data["type"] in kinds
    ]
    if len(crowd) <= WAKES_MAX or len(published) != 1:
        yield f"{len(crowd)} waited with {work_id}, for {len(published)} events"
    ended = Counter(
        (event.attempt_id, event.data["by_seq"]) for event in history.events if event.kind == "wait.satisfied"
    )
    woken = Counter(event.attempt_id for event in history.events if event.kind == "attempt.woken")
    for name in crowd:
        if [count for (other, _), count in ended.items() if other == name] != [1] or woken[name] != 1:
            yield f"{name} was woken {woken[name]} times"
        elif (name, published[0]) not in ended:
            yield f"{name} was woken by another event than {published}"


def _one_intent(history: History, work_id: WorkId) -> Iterator[str]:
    intents = history.intents.get(work_id, ())
    accepted = [event for event in _events(history, work_id) if event.kind == "intent.recorded"]
    if (len(intents), len(accepted)) != (1, 1):
        yield f"there are {len(intents)} intents for {work_id}, {len(accepted)} were accepted"


_DECLARED = {Word.TURN: DeclarationKind.TURN, Word.ENDS: DeclarationKind.OUTCOME}
"""What is declared with what a program notes, of one that ends by saying its outcome. What it uses is added up: see `_usage`."""

KEEPS: dict[Kept, Keeps] = {
    Kept.LINES: _lines,
    Kept.SAID: _said,
    Kept.USAGE: _usage,
    Kept.TURN: _turn,
    Kept.INPUTS: _inputs,
    Kept.HANDED_ON: _handed_on,
    Kept.RESUMED_ONCE: _resumed_once,
    Kept.ALL_RESUMED: _all_resumed,
    Kept.ONE_INTENT: _one_intent,
}


def _notes(history: History, work_id: WorkId) -> list[Note]:
    """What the programs of a Work noted, in order."""
    return [note for note in history.notes if note.work_id == work_id]


def _events(history: History, work_id: WorkId) -> list[Event]:
    """Everything of a Work and of its attempts."""
    return [
        event
        for event in history.events
        if event.work_id == work_id or (event.attempt_id is not None and work_of(event.attempt_id) == work_id)
    ]


def _ends_wait_of(event: Event, work_id: WorkId) -> bool:
    """Whether it is what the Work waits for: published with its name, or its time."""
    if event.kind == TIMER_EVENT:
        return event.attempt_id is not None and work_of(event.attempt_id) == work_id
    return event.kind == "event.published" and event.data.get("correlate") == work_id


def _that_took_effect(history: History, work_id: WorkId) -> list[Attempt]:
    """Those whose end was seen by tenure, with all that they said."""
    return [attempt for attempt in history.attempts_of(work_id) if attempt.state is AttemptState.SUCCEEDED]
