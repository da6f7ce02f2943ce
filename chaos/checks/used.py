"""What programs say that they used is charged exactly once, and nothing starts once that has come to a budget; a hold takes no slot.

Sums are of what programs noted themselves (`chaos/notes.py`), not of what the store kept of it. Rule: requirements B02–B04, C03, G03.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from chaos.checks.budgets import subject_of
from chaos.checks.slots import ENDINGS, frees
from chaos.checks.spoken import seen_to_end
from chaos.checks.wakes import PARKED, WOKEN
from chaos.history import History
from chaos.notes import Word
from chaos.witness import Mark
from shared.ids import AttemptId, WorkId, work_of
from shared.model.budget import Period
from shared.model.usage import COUNTED, MINUTES

Launch = tuple[AttemptId, int]
_HOLDS = ("budget.held", "gate.held")
_LIFTS = ("budget.released", "gate.released")


def usage_is_what_was_said(history: History) -> list[str]:
    """What an attempt is charged with is the exact sum of what its programs said, whoever ended it; only the last word of a program
    that somebody ended may not have been said any more when it was noted.
    """
    found = []
    said, seen, unsure = _said(history), seen_to_end(history), _last_words(history)
    speaking = {job.work_id for job in history.jobs if job.speaks}
    for attempt in history.attempts.values():
        if attempt.work_id not in speaking:
            continue
        launches = {launch: units for launch, units in said.items() if launch[0] == attempt.id}
        units = {unit for used in launches.values() for unit in used} | {unit for unit, _ in attempt.usage.amounts}
        for unit in sorted(units - {MINUTES}):
            most = sum((used.get(unit, Decimal(0)) for used in launches.values()), Decimal(0))
            least = most - sum(
                (unsure[one].get(unit, Decimal(0)) for one in launches if one in unsure and one not in seen), Decimal(0)
            )
            charged = attempt.usage.amount(unit)
            if not least <= charged <= most:
                found.append(f"{attempt.id} is charged with {charged} {unit}, its programs said {least} to {most}")
    return found


def starts_keep_to_what_was_said(history: History) -> list[str]:
    """No attempt starts or goes on once the programs that were seen to end have said as much as a budget allows, but for one start
    after each release of its Work.
    """
    found = []
    said, seen = _said(history), seen_to_end(history)
    for budget in history.budgets:
        if budget.unit in (*COUNTED, MINUTES) or budget.period is not Period.LIFE:
            continue
        used: dict[str, Decimal] = {}
        counted: set[Launch] = set()
        released: set[WorkId] = set()
        for event in history.events:
            if event.kind == "budget.released" and event.work_id is not None:
                released.add(event.work_id)
            if event.attempt_id is None:
                continue
            subject = subject_of(history, budget, work_of(event.attempt_id))
            if subject is None:
                continue
            if event.kind in (*ENDINGS, PARKED):
                for launch in [
                    one for one in said if one[0] == event.attempt_id and one in seen and one not in counted
                ]:
                    if launch[1] <= (event.epoch or 0):
                        counted.add(launch)
                        used[subject] = used.get(subject, Decimal(0)) + said[launch].get(budget.unit, Decimal(0))
            elif event.kind in ("attempt.claimed", WOKEN):
                before = used.get(subject, Decimal(0))
                if before >= budget.limit and work_of(event.attempt_id) not in released:
                    found.append(
                        f"{event.attempt_id} was started (event {event.seq}), {before} of {budget.limit} {budget.unit} were used"
                    )
                released.discard(work_of(event.attempt_id))
    return found


def holds_take_no_slot(history: History) -> list[str]:
    """A Work that a budget or a gate holds has no attempt that holds a slot, gets none until it is let go, and one that was refused
    never runs. Rule: G03, G04, B04, C03; case C053.
    """
    found = []
    holding: dict[WorkId, set[AttemptId]] = {}
    held: dict[WorkId, int] = {}
    refused: set[WorkId] = set()
    for event in history.events:
        work_id = event.work_id
        if work_id is None:
            continue
        slots = holding.setdefault(work_id, set())
        if event.kind in _HOLDS:
            held[work_id] = event.seq
            found += [f"{work_id} was held (event {event.seq}), and {name} has a slot" for name in sorted(slots)]
        elif event.kind in _LIFTS:
            held.pop(work_id, None)
        elif event.kind == "gate.refused":
            refused.add(work_id)
        elif event.attempt_id is not None and event.kind in ("attempt.claimed", WOKEN):
            slots.add(event.attempt_id)
            if work_id in held:
                found.append(f"{event.attempt_id} was started (event {event.seq}), held since event {held[work_id]}")
        elif event.attempt_id is not None and frees(event):
            slots.discard(event.attempt_id)
    ran = {line.work_id for line in history.lines if line.mark is Mark.START}
    return found + [f"{work_id} was refused at a gate, and ran" for work_id in sorted(refused & ran)]


def _said(history: History) -> dict[Launch, dict[str, Decimal]]:
    """What each program said that it used, in all."""
    said: dict[Launch, dict[str, Decimal]] = {}
    for note in history.notes:
        if note.word is Word.USED:
            units = said.setdefault(note.launch, {})
            for unit, amount in note.units.items():
                units[unit] = units.get(unit, Decimal(0)) + amount
    return said


def _last_words(history: History) -> dict[Launch, Mapping[str, Decimal]]:
    """Of each program whose last note is of what it used: that."""
    last = {note.launch: note for note in history.notes}
    return {launch: note.units for launch, note in last.items() if note.word is Word.USED}
