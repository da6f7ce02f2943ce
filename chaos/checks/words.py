"""What programs are told while they run or wait: by whom, in which order, and of what. Rule: requirements O08, T01–T04."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.checks.inputs import TOOK_EFFECT
from chaos.checks.speech import overheard_works
from chaos.checks.wakes import WOKEN
from chaos.history import History
from chaos.seen import Tick
from shared.ids import AttemptId, work_of
from shared.model.intent import OPEN_FATES, Fate, IntentKind
from shared.policy.capacity import POOL_AGENTS
from shared.policy.steps import is_final_attempt
from shared.store.contract import Event

FINAL_FATES = frozenset(fate for fate in Fate if fate not in OPEN_FATES)
ELAPSED, SATISFIED = "wait.elapsed", "wait.satisfied"


def intents_end_once(history: History) -> list[str]:
    """Each input for a running attempt ends in one fate, and nothing is told of it afterwards; none is open once its attempt is over."""
    found = []
    fates: dict[object, str] = {}
    overheard = overheard_works(history)
    for event in history.events:
        group, _, word = event.kind.partition(".")
        if group != "intent" or event.work_id not in overheard:
            continue
        name = event.data["intent"]
        if fates.get(name) in FINAL_FATES:
            found.append(f"{name} was {fates[name]}, and then came {event.kind} (event {event.seq})")
        fates[name] = str(event.data["fate"]) if word == "recorded" else word
    for intents in (every for work_id, every in history.intents.items() if work_id in overheard):
        for intent in intents:
            if fates.get(intent.id) != intent.fate:
                found.append(f"the changefeed says {intent.id} is {fates.get(intent.id)}, it is {intent.fate}")
            attempt = None if intent.attempt_id is None else history.attempts.get(intent.attempt_id)
            is_over = attempt is None or is_final_attempt(attempt.state)
            if intent.kind is IntentKind.INJECT and intent.settled_at_us is None and is_over:
                found.append(f"{intent.id} is {intent.fate}, and its attempt is over")
    return found


def fates_are_true(history: History) -> list[str]:
    """An input is told as consumed, or as not accepted, because the program says so; and what it took of its own launch is told so,
    unless a store that went back in time no longer knows that the program was handed it, or a power cut took its word for it.
    """
    found = []
    unknown = {event.data["intent"] for event in history.lost if event.kind == "intent.dispatched"}
    overheard = overheard_works(history)
    took, surely, refused = _taken(history), _taken(history, surely=True), _refused(history)
    for intent in (one for every in history.intents.values() for one in every):
        if intent.work_id not in overheard or intent.attempt_id is None or intent.input is None:
            continue
        has_taken = intent.input in took.get(intent.attempt_id, ())
        is_agent = history.attempts[intent.attempt_id].pool == POOL_AGENTS
        if intent.fate is Fate.CONSUMED and not has_taken:
            found.append(f"{intent.id} is consumed, and {intent.attempt_id} never took input {intent.input}")
        if intent.fate is Fate.NOT_ACCEPTING and is_agent and (intent.attempt_id, intent.id) not in refused:
            found.append(f"{intent.id} is not accepted, and {intent.attempt_id} never said so")
        is_over = history.attempts[intent.attempt_id].state in TOOK_EFFECT
        has_said = intent.input in surely.get(intent.attempt_id, ())
        if intent.fate is Fate.RETURNED and has_said and is_over and intent.id not in unknown:
            found.append(f"{intent.id} is returned, and {intent.attempt_id} took input {intent.input}")
    return found


def inputs_are_dropped_as_their_binding_says(history: History) -> list[str]:
    """An input that could not be handed to a running agent is given up where its binding says so, and then nobody ever gets it; where
    it does not, it waits for the next attempt. Rule: T02.
    """
    found = []
    overheard = overheard_works(history)
    why = {event.data["intent"]: event.data.get("why") for event in history.events if event.kind == "intent.returned"}
    given = {number for snapshot in history.snapshots.values() for number in snapshot.inputs}
    given |= {number for one in history.told for number in one.inputs}
    waiting = {number for numbers in history.pending_inputs.values() for number in numbers}
    for intent in (one for every in history.intents.values() for one in every):
        snapshot = None if intent.attempt_id is None else history.snapshots.get(intent.attempt_id)
        if intent.kind is not IntentKind.INJECT or snapshot is None or intent.work_id not in overheard:
            continue
        drops = snapshot.on_inject_error == "drop"
        if intent.fate is Fate.DROPPED and not drops:
            found.append(f"{intent.id} was dropped, its binding says that it waits")
        if intent.fate is Fate.RETURNED and drops and why.get(intent.id):
            found.append(f"{intent.id} could not be handed over ({why[intent.id]}), and was not dropped")
        if intent.fate is Fate.DROPPED and intent.input in given | waiting:
            found.append(f"{intent.id} was dropped, and input {intent.input} is given to an attempt, or waits for one")
    return found


def _taken(history: History, *, surely: bool = False) -> dict[AttemptId, set[int]]:
    """Inputs that each attempt's programs say they took; `surely`: in words that no power cut has touched."""
    taken: dict[AttemptId, set[int]] = {}
    for one in history.said:
        if one.kind == "consumed" and not (surely and one.is_cut):
            numbers = one.fields["inputs"]
            assert isinstance(numbers, list)
            taken.setdefault(one.attempt_id, set()).update(numbers)
    return taken


def _refused(history: History) -> set[tuple[AttemptId, object]]:
    return {(one.attempt_id, one.fields["id"]) for one in history.said if one.kind == "not_accepting"}


def words_reach_whom_they_are_for(history: History) -> list[str]:
    """Nobody is told what is for another attempt, and inputs come in the order in which they were accepted; but a store that went back
    in time gives the number of what it has forgotten to another one.
    """
    found = []
    intents = {intent.number: intent for every in history.intents.values() for intent in every}
    forgotten = {(one.attempt_id, one.data["intent"]) for one in history.lost if one.kind == "intent.recorded"}
    last: dict[tuple[AttemptId, int], int] = {}
    seen: set[tuple[AttemptId, int, int]] = set()
    for one in history.told:
        if one.intent is None or (one.attempt_id, one.epoch, one.intent) in seen:
            continue
        seen.add((one.attempt_id, one.epoch, one.intent))
        intent, launch = intents.get(one.intent), (one.attempt_id, one.epoch)
        if intent is None:
            found += [] if history.lost else [f"{one.attempt_id} was told i{one.intent}, which is not in the store"]
            continue
        if intent.attempt_id != one.attempt_id or (intent.input,) != one.inputs:
            if (one.attempt_id, intent.id) in forgotten:
                continue
            found.append(f"{one.attempt_id} was told {one}, which is {intent}")
        if one.intent < last.get(launch, 0):
            found.append(f"{one.attempt_id} was told i{one.intent} after i{last[launch]}")
        last[launch] = max(last.get(launch, 0), one.intent)
    return found


def interrupts_are_fenced_first(history: History) -> list[str]:
    """A program hears that it is interrupted only once its attempt has ended so. Rule: T04."""
    ended = {event.attempt_id: event.seq for event in history.events if event.kind == "attempt.interrupted"}
    return [
        f"{one.attempt_id} was told to stop at event {one.seq}, it had not been interrupted"
        for one in history.told
        if one.kind == "interrupt" and not history.lost and ended.get(one.attempt_id, one.seq + 1) > one.seq
    ]


def waits_end_by_what_they_wait_for(history: History) -> list[str]:
    """A wait is ended by the first event behind its declaration that fits it and is not its own Work's, or by its time; and what is
    resumed is told which it was. Rule: O08.
    """
    found = []
    by_seq = {event.seq: event for event in history.events}
    specs = {(event.attempt_id, event.epoch): event for event in history.events if event.kind == "wait.registered"}
    for event in history.events:
        if event.kind != SATISFIED or event.attempt_id is None:
            continue
        waker, spec = by_seq[int(str(event.data["by_seq"]))], specs.get((event.attempt_id, event.epoch))
        if spec is None:
            continue  # that is for `waits_end`
        since = _declared_at(history, event.attempt_id, event.epoch)
        name = f"the wait of {event.attempt_id} epoch {event.epoch}"
        if waker.kind == ELAPSED:
            if (waker.attempt_id, waker.epoch) != (event.attempt_id, event.epoch):
                found.append(f"{name} was ended by the time of another (event {waker.seq})")
        elif not _fits(waker, spec, since):
            found.append(f"{name} was ended by event {waker.seq} ({waker.kind}), which is not what it waits for")
        first = next((one for one in history.events if _fits(one, spec, since)), None)
        if first is not None and first.seq < waker.seq:
            found.append(f"{name} was ended by event {waker.seq}, event {first.seq} had come before")
    return found + list(_told_another_wake(history)) + list(_fired_early(history))


def _declared_at(history: History, attempt_id: AttemptId, epoch: int | None) -> int:
    """The event that recorded what a segment waits for."""
    waits = [one for one in history.declarations.get(attempt_id, ()) if one.declaration.kind == "wait"]
    return max((one.seq for one in waits if one.applied_epoch == epoch), default=0)


def _fits(event: Event, spec: Event, since: int) -> bool:
    """Whether an accepted event is what a wait waits for."""
    if event.kind not in ("event.published", "execution.turn") or event.seq <= since:
        return False
    assert spec.attempt_id is not None, "a wait has its attempt"
    if event.work_id == work_of(spec.attempt_id) or event.data.get("type") != spec.data["type"]:
        return False
    return spec.data["correlate"] is None or spec.data["correlate"] == event.data.get("correlate")


def _told_another_wake(history: History) -> Iterator[str]:
    """Programs that were resumed, and were not told by what; or the first time, and were told something."""
    woken: dict[AttemptId, list[Event]] = {}
    for event in history.events:
        if event.kind == WOKEN and event.attempt_id is not None:
            woken.setdefault(event.attempt_id, []).append(event)
    for one in history.told:
        if one.kind != "start" or history.lost:
            continue
        last = [event for event in woken.get(one.attempt_id, ()) if (event.epoch or 0) <= one.epoch]
        wake = last[-1].data["wake_event"] if last else None
        if one.wake != wake:
            yield f"{one.attempt_id}.{one.epoch} was told that event {one.wake} woke it, it was {wake}"


def _fired_early(history: History) -> Iterator[str]:
    """Waits that ended before their time, by what elapsed between the moments that were seen around it."""
    armed = {event.data["timer"]: event for event in history.events if event.kind == "timer.armed"}
    for event in history.events:
        before = armed.get(event.data.get("timer")) if event.kind == ELAPSED else None
        if before is None:
            continue
        waited_us = waited_between(history.ticks, before.seq, event.seq)
        if waited_us is not None and waited_us < int(str(before.data["after_us"])):
            yield f"timer {event.data['timer']} fired after {waited_us} us, it was armed for {before.data['after_us']}"


def waited_between(ticks: tuple[Tick, ...], since: int, until: int) -> int | None:
    """The longest that can have elapsed between two events; None: that was not seen."""
    before = [tick.at_us for tick in ticks if tick.seq < since]
    after = [tick.at_us for tick in ticks if tick.seq >= until]
    return None if not before or not after else after[0] - before[-1]
