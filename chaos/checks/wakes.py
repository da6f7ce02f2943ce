"""Attempts that were parked and resumed: each launch of one is a program of its own, and each wait ends. Rule: requirements O08, E10."""

from __future__ import annotations

from collections import Counter

from chaos.history import History
from chaos.witness import Mark
from shared.ids import AttemptId
from shared.model.attempt import AttemptState
from shared.model.work import WorkState

PARKED, WOKEN, PUT_OFF = f"attempt.{AttemptState.PARKED}", "attempt.woken", "attempt.put_off"
PARKS = (PARKED, PUT_OFF)
"""After these an attempt holds no slot, and is not over."""
_ENDS = ("wait.satisfied", "wait.cancelled")


def waits_end(history: History) -> list[str]:
    """At rest nothing waits: each wait that was registered was satisfied or taken back, once; what was parked was resumed by that."""
    registered: Counter[tuple[object, object]] = Counter()
    ended: Counter[tuple[object, object]] = Counter()
    satisfied: set[tuple[object, object]] = set()
    found = []
    for event in history.events:
        name = (event.attempt_id, event.epoch)
        if event.kind == "wait.registered":
            registered[name] += 1
        elif event.kind == "attempt.woken":
            satisfied = {one for one in satisfied if one[0] != event.attempt_id}
        elif event.kind == PUT_OFF:
            satisfied.add(name)  # what it had waited for has come already, and wakes it once more
        elif event.kind == "wait.cancelled" and name in satisfied:
            satisfied.remove(name)  # what it waited for had come, and it was ended before a slot was free
        elif event.kind in _ENDS:
            ended[name] += 1
            if event.kind == "wait.satisfied":
                satisfied.add(name)
            if ended[name] > registered[name]:
                found.append(f"the wait of {name[0]} (epoch {name[1]}) ended {ended[name]} times (event {event.seq})")
    found += [f"{name} (epoch {epoch}) waits still" for (name, epoch), count in (registered - ended).items() if count]
    waiting = [work.id for work in history.works.values() if work.state is WorkState.WAITING]
    return found + [f"{work_id} is still waiting" for work_id in waiting if not _may_stay_open(history, work_id)]


def resumes_follow_their_wait(history: History) -> list[str]:
    """An attempt is resumed only from a park, by a wait that was satisfied since, and only once for each; again where nothing of a
    resume ran, once its backoff is over.
    """
    found = []
    due: set[AttemptId] = set()
    for event in history.events:
        if event.attempt_id is None:
            continue
        if event.kind in PARKS:
            due.discard(event.attempt_id)
        elif event.kind in ("wait.satisfied", "resume.due"):
            due.add(event.attempt_id)
        elif event.kind == WOKEN:
            if event.attempt_id not in due:
                found.append(f"{event.attempt_id} was resumed (event {event.seq}), and nothing had ended a wait of it")
            due.discard(event.attempt_id)
    return found


def nothing_that_ran_is_put_off(history: History) -> list[str]:
    """A resume is put off only where nothing of it ran, under whichever of its epochs. Rule: O08, R03."""
    found = []
    woken = woken_epochs(history)
    for event in history.events:
        if event.kind != PUT_OFF or event.attempt_id is None or event.epoch is None:
            continue
        since = max((epoch for epoch in woken.get(event.attempt_id, ()) if epoch <= event.epoch), default=0)
        found += [
            f"the resume of {line.attempt_id} was put off at epoch {event.epoch}, and its launch of epoch {line.epoch} ran"
            for line in history.lines
            if line.mark is Mark.START and line.attempt_id == event.attempt_id and since <= line.epoch <= event.epoch
        ]
    return found


def woken_epochs(history: History) -> dict[AttemptId, list[int]]:
    """Under which epochs each attempt was resumed, in order."""
    epochs: dict[AttemptId, list[int]] = {}
    for event in history.events:
        if event.kind == WOKEN and event.attempt_id is not None and event.epoch is not None:
            epochs.setdefault(event.attempt_id, []).append(event.epoch)
    return epochs


def _may_stay_open(history: History, work_id: object) -> bool:
    return any(job.may_stay_open for job in history.jobs if job.work_id == work_id)
