"""Budgets and start gates: nothing starts past them but what was let through, and each unit is charged once.

Only budgets for life are looked at, that were in force from the beginning. Rule: requirements B02–B04, G01, G04.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

from chaos.checks.wakes import WOKEN, woken_epochs
from chaos.history import History
from shared.ids import WorkId, work_of
from shared.model.budget import Budget, Per, Period
from shared.model.settings import scope_chain
from shared.model.usage import COUNTED, TURNS


def starts_keep_to_their_budgets(history: History) -> list[str]:
    """No attempt is claimed or resumed once its turns are used up, but for one start after each release of its Work. Rule: B04."""
    found = []
    for budget in history.budgets:
        if budget.unit not in COUNTED or budget.period is not Period.LIFE:
            continue
        used: Counter[str] = Counter()
        released: set[WorkId] = set()
        for event in history.events:
            if event.kind == "budget.released" and event.work_id is not None:
                released.add(event.work_id)
            is_start = event.kind == "attempt.claimed" or (event.kind == WOKEN and budget.unit == TURNS)
            if not is_start or event.attempt_id is None:
                continue
            work_id = work_of(event.attempt_id)
            subject = subject_of(history, budget, work_id)
            if subject is not None and used[subject] >= budget.limit and work_id not in released:
                found.append(
                    f"{event.attempt_id} was started (event {event.seq}) with {used[subject]} of {budget.limit} {budget.unit} used"
                )
            released.discard(work_id)
            if subject is not None:
                used[subject] += 1
    return found


def usage_is_charged_once(history: History) -> list[str]:
    """Every ledger is the sum of what its attempts used; what is staged still may be missing in it. Rule: B02, B03."""
    found = []
    woken = woken_epochs(history)
    for budget, charged in history.ledgers.items():
        expected: dict[str, Decimal] = {}
        for attempt in history.attempts.values():
            subject = subject_of(history, budget, attempt.work_id)
            used = attempt.usage.amount(budget.unit)
            if budget.unit in COUNTED:
                used = Decimal(1 + (len(woken.get(attempt.id, ())) if budget.unit == TURNS else 0))
            if subject is not None and used:
                expected[subject] = expected.get(subject, Decimal(0)) + used
        may_lack = history.is_usage_staged and budget.unit not in COUNTED
        for subject in sorted({*expected, *charged}):
            known, told = expected.get(subject, Decimal(0)), charged.get(subject, Decimal(0))
            if told > known or (told < known and not may_lack):
                found.append(f"{told} {budget.unit} are charged to {budget.per} {subject!r}, {known} were used")
    return found


def gates_admit_before_the_first_start(history: History) -> list[str]:
    """No first attempt of what needs approval is claimed before that was given. Rule: G01, G04."""
    found = []
    admitted: set[WorkId] = set()
    for event in history.events:
        if event.kind == "gate.released" and event.work_id is not None:
            admitted.add(event.work_id)
        if event.kind == "attempt.claimed" and event.attempt_id is not None:
            work_id, snapshot = work_of(event.attempt_id), history.snapshots.get(event.attempt_id)
            if snapshot is not None and snapshot.binding in history.approvals and work_id not in admitted:
                found.append(f"{event.attempt_id} was claimed (event {event.seq}) without the approval that it needs")
    return found


def subject_of(history: History, budget: Budget, work_id: WorkId) -> str | None:
    """Whose ledger of a budget a Work counts on; None: on none."""
    work = history.works.get(work_id)
    if work is None or (budget.scope is not None and budget.scope not in scope_chain(work.scope)):
        return None
    if budget.per is Per.ALL:
        return ""
    return work_id if budget.per is Per.WORK else budget.scope or work.scope
