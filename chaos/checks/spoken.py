"""Programs that speak with tenure: what they noted of it themselves, held against what the store says.

Only Works whose job says that it speaks are looked at. What a program noted it may have been ended before it said; what the store has
of a program's words it must have noted. Rule: requirements O01, O02, O06, O08, O15, T02, T03, E10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from signal import SIGKILL

from chaos.checks.inputs import TOOK_EFFECT, fates_of_inputs, inputs_of, is_retried_by_person, taken_while_running
from chaos.checks.wakes import WOKEN, woken_epochs
from chaos.history import History
from chaos.job import Job
from chaos.notes import FAILURES, Ends, Note, Word
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import Attempt, AttemptState, FailureClass
from shared.model.event import TIMER_EVENT, TURN_EVENT
from shared.model.intent import OPEN_FATES, Fate, Intent
from shared.model.work import WorkKind, WorkState
from shared.policy.capacity import POOL_AGENTS

CHANNEL_GONE, NO_ROOM = "ENOENT", "ENOSPC"
"""Why an input cannot be handed over: what tenure is told by the host."""
_COMES_TO: Mapping[Ends, tuple[AttemptState, FailureClass | None]] = {
    Ends.COMPLETED: (AttemptState.SUCCEEDED, None),
    Ends.SILENT: (AttemptState.SUCCEEDED, None),
    Ends.DIES: (AttemptState.FAILED, FailureClass.KNOWN),
    Ends.FAILED: (AttemptState.FAILED, FailureClass.KNOWN),
    Ends.UNKNOWN_RESET: (AttemptState.FAILED, FailureClass.KNOWN),
    Ends.KNOWN_RESET: (AttemptState.FAILED, FailureClass.KNOWN),
    Ends.PERMANENT: (AttemptState.FAILED, FailureClass.PERMANENT),
    Ends.HANDOFF: (AttemptState.HANDED_OFF, None),
    Ends.PASSES_ON: (AttemptState.HANDED_OFF, None),
}
"""What becomes of an attempt whose program was seen to end after it had said that. Silent ones exit with 0."""


def every_input_is_seen(history: History) -> list[str]:
    """Each input that was accepted is read by some program of its Work, byte for byte, unless it waits, was given up as its binding
    says, its Work or the attempt that it was given was cancelled, or the program that it was given was killed.
    """
    found = []
    fates = fates_of_inputs(history)
    seen: dict[int, Note] = {note.input: note for note in history.notes if note.word is Word.SAW and note.input}
    told = {one.number: one for one in history.accepted}
    jobs = _speaking(history)
    cut_short = [
        one
        for one in history.attempts.values()
        if one.work_id in jobs and (_is_killed(jobs[one.work_id], one) or one.state is AttemptState.CANCELLED)
    ]
    unread = {number for attempt in cut_short for number in inputs_of(history, attempt)}
    for work_id, number in _accepted(history):
        work, note = history.works.get(work_id), seen.get(number)
        waits = number in history.pending_inputs.get(work_id, ())
        is_excused = waits or fates.get(number) is Fate.DROPPED
        is_excused = is_excused or (work is not None and work.state is WorkState.CANCELLED) or number in unread
        if note is None and not is_excused:
            found.append(f"input {number} of {work_id} was accepted, does not wait, and no program ever read it")
        if note is not None and note.work_id != work_id:
            found.append(f"input {number} of {work_id} was read by {note.attempt_id}")
    for note in history.notes:
        handed = told.get(note.input or 0)
        if note.word is Word.SAW and handed is not None and handed.sha256 not in ("", note.sha256):
            found.append(f"{note.attempt_id} read other bytes as input {note.input} than {handed.key} handed in")
    return found


def inputs_are_read_in_order(history: History) -> list[str]:
    """Each program is told its inputs in the order in which they were accepted, and each of them once, or again by the same name."""
    found = []
    last: dict[tuple[AttemptId, int], int] = {}
    for note in history.notes:
        if note.word is Word.SAW and note.input is not None:
            before = last.get(note.launch, 0)
            if note.input <= before:
                found.append(f"{note.attempt_id} (epoch {note.epoch}) read input {note.input} after {before}")
            last[note.launch] = max(before, note.input)
    return found


def takes_are_as_said(history: History) -> list[str]:
    """An attempt is told as having taken an input, besides those it was given, only if its program said so; and of one that took
    effect nothing that its program took is missing.
    """
    found = []
    taken = taken_while_running(history)
    for work_id in _speaking(history):
        for attempt in history.attempts_of(work_id):
            told = taken.get(attempt.id, set())
            said = {note.input for note in history.notes if (note.word, note.attempt_id) == (Word.TOOK, attempt.id)}
            found += [f"{attempt.id} is told as having taken input {one}, and never said so" for one in told - said]
            if attempt.state in TOOK_EFFECT:
                found += [f"{attempt.id} took input {one}, and is not told so" for one in said - told]
    return found


def intents_are_told_the_truth(history: History) -> list[str]:
    """What is said of an intent is so: not accepted means that its program said so; at rest none is open."""
    found = []
    declined = {(note.attempt_id, note.intent) for note in history.notes if note.word is Word.DECLINED}
    for one in _intents(history).values():
        if one.fate in OPEN_FATES and one.input is not None:
            found.append(f"{one.id} is {one.fate} still, and nothing runs")
        if one.fate is Fate.NOT_ACCEPTING and one.attempt_id is not None:
            is_agent = history.attempts[one.attempt_id].pool == POOL_AGENTS
            if is_agent and (one.attempt_id, one.id) not in declined:
                found.append(f"{one.id} is told as not accepted, and {one.attempt_id} never said so")
    return found


def inputs_are_given_up_as_bound(history: History) -> list[str]:
    """An input that could not be handed over to a running program is given up if the attempt's binding says so, and only then: its
    program had taken its channel away, or there was no room for what was to be handed over; no program ever reads it.
    """
    found = []
    shut = {note.attempt_id for note in history.notes if note.word is Word.SHUT}
    seen = {note.input for note in history.notes if note.word is Word.SAW}
    for one in _intents(history).values():
        if one.attempt_id is None or one.input is None or one.fate not in (Fate.DROPPED, Fate.RETURNED):
            continue
        failed = one.why in (CHANNEL_GONE, NO_ROOM)
        gives_up = history.snapshots[one.attempt_id].on_inject_error == "drop"
        if (one.fate is Fate.DROPPED) != (failed and gives_up):
            found.append(f"{one.id} for {one.attempt_id} is {one.fate}: {one.why}; {gives_up=}")
        if one.why == CHANNEL_GONE and one.attempt_id not in shut:
            found.append(f"{one.id} could not be handed over, and {one.attempt_id} still listens")
        if one.fate is Fate.DROPPED and one.input in seen:
            found.append(f"{one.id} is given up, and a program read its input {one.input}")
    return found


def intents_reach_whom_they_are_for(history: History) -> list[str]:
    """An intent is told to no program but one of its attempt, with its input; whoever handed that in was answered with its name."""
    found = []
    intents = _intents(history)
    for note in history.notes:
        if note.intent is not None:
            told = intents.get(note.intent)
            if told is None or (told.attempt_id, told.input) != (note.attempt_id, note.input):
                meant = "nobody" if told is None else f"{told.attempt_id}, input {told.input}"
                found.append(f"{note.attempt_id} was told input {note.input} as {note.intent}, which is for {meant}")
    return found + [
        f"{one.key} was answered with {one.intent}, which is not the intent of input {one.number}"
        for one in history.accepted
        if one.intent is not None and (one.intent not in intents or intents[one.intent].input != one.number)
    ]


def nothing_is_read_after_it_took_effect(history: History) -> list[str]:
    """Once an attempt took effect with an input that it was given, or that its program took, no later one reads it."""
    found = []
    spent: dict[int, Attempt] = {}
    for work_id in _speaking(history):
        for attempt in history.attempts_of(work_id):
            notes = [note for note in history.notes if note.attempt_id == attempt.id]
            found += [
                f"{attempt.id} read input {note.input}, with which {spent[note.input].id} took effect"
                for note in notes
                if note.word is Word.SAW and note.input in spent
            ]
            if attempt.state in TOOK_EFFECT:
                took = {note.input for note in notes if note.word is Word.TOOK and note.input is not None}
                spent |= dict.fromkeys(took.union(inputs_of(history, attempt)), attempt)
    return found


def attempts_end_as_they_said(history: History) -> list[str]:
    """How an attempt ended is what its last program said before it ended, unless somebody ended it, or asked a person."""
    found = []
    asked = _asked_a_person(history)
    for work_id, job in _speaking(history).items():
        for attempt in history.attempts_of(work_id):
            if attempt.id in asked or _is_ended_by_others(job, attempt) or attempt.failure is FailureClass.ADMISSION:
                continue
            if _is_killed(job, attempt):
                continue  # before it said, or right after
            said = last_words(history, attempt.id)
            if said is None or said.ends is None:
                found.append(f"{attempt.id} is {attempt.state}, and its last program did not say that it ends")
            elif said.ends in _COMES_TO:
                state, failure = _COMES_TO[said.ends]
                came_to = (attempt.state, attempt.failure, attempt.exit_status)
                if came_to != (state, failure, said.exit_status):
                    found.append(
                        f"{attempt.id} said {said.ends} and exits with {said.exit_status}, it came to {came_to}"
                    )
            else:
                found.append(f"{attempt.id} said {said.ends}, and is {attempt.state}")
    return found


def attempts_follow_what_was_said(history: History) -> list[str]:
    """A further attempt has its cause: an input that waited, a program that passed on or failed, an interrupt, a person's word."""
    found = []
    interrupted = {one.attempt_id for intents in history.intents.values() for one in intents if one.input is None}
    asked = _asked_a_person(history)
    for work_id, job in _speaking(history).items():
        for before, after in pairwise(history.attempts_of(work_id)):
            said = last_words(history, before.id)
            ends = None if said is None else said.ends
            has_cause = {
                AttemptState.SUCCEEDED: bool(tuple(inputs_of(history, after))),
                AttemptState.HANDED_OFF: ends in (Ends.HANDOFF, Ends.PASSES_ON),
                AttemptState.INTERRUPTED: before.id in interrupted,
                AttemptState.FAILED: ends in FAILURES
                or before.failure is FailureClass.ADMISSION
                or before.id in asked
                or _is_killed(job, before),
            }
            is_standing = history.snapshots[before.id].kind is WorkKind.STANDING
            by_hand = is_retried_by_person(history, before)
            if not has_cause.get(before.state, by_hand or (is_standing and before.state is AttemptState.CANCELLED)):
                found.append(f"{after.id} followed {before.id}, which is {before.state} and had said {ends}")
            if ends is Ends.PERMANENT and before.failure is FailureClass.PERMANENT and not by_hand:
                found.append(f"{after.id} followed {before.id}, which had said that it cannot help, and nobody asked")
    return found


def turns_are_told_once(history: History) -> list[str]:
    """One event for each turn, attempt, epoch and key: the last turn that the program of that epoch told, and none that was not. A
    program that was ended right behind its note may not have told that one, but the one before.
    """
    found = []
    jobs = _speaking(history)
    told: Counter[tuple[AttemptId, int, object]] = Counter()
    keys: dict[tuple[AttemptId, int], set[object]] = {}
    statuses: dict[tuple[AttemptId, int], set[object]] = {}
    for event in history.events:
        if event.kind != TURN_EVENT or event.attempt_id is None or event.epoch is None or event.work_id not in jobs:
            continue
        told[event.attempt_id, event.epoch, event.data.get("correlate")] += 1
        began = _launch_at(history, event.attempt_id, event.epoch)
        statuses.setdefault((event.attempt_id, began), set()).add(event.data["status"])
        keys.setdefault((event.attempt_id, began), set()).add(event.data.get("correlate"))
    found += [
        f"the turn of {name} (epoch {epoch}) was told {count} times for {key}"
        for (name, epoch, key), count in told.items()
        if count > 1
    ]
    turns: dict[tuple[AttemptId, int], list[str | None]] = {}
    for note in history.notes:
        if note.word is Word.TURN:
            turns.setdefault(note.launch, []).append(note.status)
    last_word = {note.launch: note.word for note in history.notes}
    for launch, known in statuses.items():
        said = turns.get(launch, [None])
        possible = said[-2:] if last_word.get(launch) is Word.TURN else said[-1:]
        if known not in [{status} for status in possible]:
            found.append(f"the turn of {launch[0]} (launch {launch[1]}) was told as {known}, it said {said[-1]}")
    for launch in seen_to_end(history):
        wanted: set[object] = set(jobs[work_of(launch[0])].correlate) or {None}
        if launch in turns and keys.get(launch) != wanted:
            found.append(f"{launch[0]} (launch {launch[1]}) told a turn, its events are about {keys.get(launch)}")
    return found


def wakes_are_told(history: History) -> list[str]:
    """A program that goes on after a wait is told the event that ended it, which is one that it waited for; no other is told one."""
    found = []
    events = {event.seq: event for event in history.events}
    by_seq: dict[AttemptId, list[int]] = {}
    for event in history.events:
        if event.kind == WOKEN and event.attempt_id is not None:
            by_seq.setdefault(event.attempt_id, []).append(int(str(event.data["wake_event"])))
    began: dict[AttemptId, list[Note]] = {}
    ends: dict[tuple[AttemptId, int], Note] = {}
    for note in history.notes:
        if note.word is Word.BEGAN:
            began.setdefault(note.attempt_id, []).append(note)
        if note.word is Word.ENDS:
            ends[note.launch] = note
    woken = woken_epochs(history)
    for name, notes in began.items():
        for note in notes:
            wakes = [seq for seq, at in zip(by_seq.get(name, ()), woken.get(name, ()), strict=True) if at <= note.epoch]
            is_told = None if note.wake is None else note.wake.get("seq")
            if is_told != (wakes[-1] if wakes else None):
                found.append(f"{name} (epoch {note.epoch}) was told that {is_told} woke it, it was {wakes[-1:]}")
        for before, after in pairwise(notes):
            said = ends.get(before.launch)
            wake = None if after.wake is None else events.get(int(str(after.wake["seq"])))
            if said is None or said.ends is not Ends.PARKS:
                found.append(f"{name} was started again (epoch {after.epoch}), and had not said that it waits")
            elif wake is not None and not _is_awaited(said, wake.data):
                found.append(f"{name} waited for {said.awaits}, and was woken by {dict(wake.data)}")
    return found


def nothing_said_is_refused(history: History) -> list[str]:
    """Nothing that a program said rightly was refused, unless somebody had ended its attempt by then."""
    jobs = _speaking(history)
    return [
        f"{note.attempt_id} (epoch {note.epoch}) was refused: {note.why}"
        for note in history.notes
        if note.word is Word.REFUSED
        and not _is_ended_by_others(jobs[work_of(note.attempt_id)], history.attempts[note.attempt_id])
    ]


def last_words(history: History, attempt_id: AttemptId) -> Note | None:
    """How the last program of an attempt said that it ends; None: it did not."""
    said: Note | None = None
    for note in history.notes:
        if note.attempt_id == attempt_id and note.word in (Word.BEGAN, Word.ENDS):
            said = note if note.word is Word.ENDS else None
    return said


def _speaking(history: History) -> dict[WorkId, Job]:
    return {job.work_id: job for job in history.jobs if job.speaks and job.work_id in history.works}


def _intents(history: History) -> dict[str, Intent]:
    """Of Works that speak, by name."""
    return {one.id: one for work_id in _speaking(history) for one in history.intents.get(work_id, ())}


def _accepted(history: History) -> Iterator[tuple[WorkId, int]]:
    """Inputs of Works that speak, as the changefeed and those that were answered for tell them."""
    speaking = _speaking(history)
    told = {(one.work_id, one.number) for one in history.accepted}
    for event in history.events:
        if event.kind == "input.accepted" and event.work_id is not None:
            told.add((event.work_id, int(str(event.data["input"]))))
    yield from sorted(one for one in told if one[0] in speaking)


def _is_ended_by_others(job: Job, attempt: Attempt) -> bool:
    """Whether it was cancelled or interrupted, or its time was up."""
    by_others = {AttemptState.CANCELLED: job.cancelled, AttemptState.INTERRUPTED: job.interrupted}
    return by_others.get(attempt.state, attempt.state is AttemptState.TIMED_OUT and job.may_time_out)


def _is_killed(job: Job, attempt: Attempt) -> bool:
    """Whether the drill killed the program that ended it."""
    return job.may_be_killed and attempt.exit_status == -SIGKILL


def _asked_a_person(history: History) -> set[AttemptId]:
    """Attempts that were left to a person, whose word may be another one."""
    excused = {job.work_id for job in history.jobs if job.may_need_person}
    return {
        event.attempt_id
        for event in history.events
        if event.kind == "attempt.recovery_required" and event.attempt_id and work_of(event.attempt_id) in excused
    }


def _launch_at(history: History, attempt_id: AttemptId, epoch: int) -> int:
    """The epoch of the launch whose program had ended when something was applied under an epoch: the last one that began by then."""
    began = [note.epoch for note in history.notes if note.attempt_id == attempt_id and note.word is Word.BEGAN]
    return max((one for one in began if one <= epoch), default=0)


def seen_to_end(history: History) -> set[tuple[AttemptId, int]]:
    """Launches that said how they end, and whose end was seen: nobody ended their attempt before."""
    asked = _asked_a_person(history)
    said = [note for note in history.notes if note.word is Word.ENDS and note.ends is not Ends.INTERRUPTED]
    last: dict[AttemptId, int] = {}
    for note in said:
        last[note.attempt_id] = max(last.get(note.attempt_id, 0), note.epoch)
    jobs = _speaking(history)
    found = set()
    for note in said:
        attempt, job = history.attempts.get(note.attempt_id), jobs.get(note.work_id)
        if attempt is None or job is None or attempt.id in asked:
            continue
        was_parked = note.epoch < last[note.attempt_id]
        if was_parked or not _is_ended_by_others(job, attempt):
            found.add(note.launch)
    return found


def _is_awaited(said: Note, told: Mapping[str, object]) -> bool:
    kind, correlate = said.awaits
    if told.get("type") == TIMER_EVENT:
        return True
    return told.get("type") == kind and (correlate is None or told.get("correlate") == correlate)
