"""Bindings whose works keep failing, or keep costing workers: quarantined when their numbers say so, and nothing of them starts then.

Only works that run what their binding says count. Rule: requirement F03; case C056.
"""

from __future__ import annotations

from collections import Counter

from chaos.checks.inputs import TOOK_EFFECT
from chaos.checks.slots import ENDINGS
from chaos.history import History
from shared.ids import AttemptId
from shared.model.attempt import Snapshot
from shared.model.work import Reason, WorkKind
from shared.store.contract import Event

QUARANTINED, RELEASED, CLAIMED = "binding.quarantined", "binding.released", "attempt.claimed"
TENURE = "tenure"
"""By whom it is quarantined where no person did it."""
_EFFECTS = frozenset(f"attempt.{state}" for state in TOOK_EFFECT)
_NOTHING_LEFT = (Reason.EXHAUSTED, Reason.PERMANENT_FAILURE, Reason.TIMED_OUT)


def quarantined_bindings_start_nothing(history: History) -> list[str]:
    """Between the quarantine of a binding and its release no attempt is claimed that would run what it says."""
    found = []
    since: dict[str, int] = {}
    for event in history.events:
        if event.kind == QUARANTINED:
            since[str(event.data["binding"])] = event.seq
        elif event.kind == RELEASED:
            since.pop(str(event.data["binding"]), None)
        elif event.kind == CLAIMED and event.attempt_id is not None:
            binding = _routine_of(history, event.attempt_id)
            if binding in since:
                found.append(
                    f"{event.attempt_id} was claimed (event {event.seq}), {binding} is quarantined since event {since[binding]}"
                )
    return found


def failures_quarantine_their_binding(history: History) -> list[str]:
    """A binding is quarantined for failures with the Work that was one too many in a row, no sooner and no later. Only bindings of
    run-once works are looked at: what a failure of a standing one means, `retries` knows.
    """
    found = []
    rests = {
        _routine_of(history, one.id)
        for one in history.attempts.values()
        if history.works[one.work_id].kind is not WorkKind.RUN_ONCE
    }
    failures: Counter[str] = Counter()
    held: set[str] = set()
    last: dict[str, AttemptId] = {}
    due: str | None = None
    for event in history.events:
        if event.kind == QUARANTINED:
            binding = str(event.data["binding"])
            if event.data["by"] == TENURE and event.work_id is not None and binding not in rests:
                most = history.snapshots[last[event.work_id]].quarantine_after
                if failures[binding] < most:
                    found.append(
                        f"{binding} was quarantined (event {event.seq}) for {failures[binding]} failures of {most}"
                    )
            held.add(binding)
            due = None
            continue
        if due is not None and (event.kind in ENDINGS or event.kind == CLAIMED):
            found.append(f"{due} failed {failures[due]} times in a row until event {event.seq}, and is not quarantined")
            due = None
        if event.kind == RELEASED:
            held.discard(str(event.data["binding"]))
            failures[str(event.data["binding"])] = 0
        elif event.kind in ENDINGS and event.attempt_id is not None and event.work_id is not None:
            last[event.work_id] = event.attempt_id
            effective = _routine_of(history, event.attempt_id)
            if event.kind in _EFFECTS and effective is not None:
                failures[effective] = 0
        elif _has_nothing_left(history, event) and event.work_id in last:
            name = last[event.work_id]
            binding_failed = _routine_of(history, name)
            if binding_failed is not None:
                failures[binding_failed] += 1
                is_one_too_many = failures[binding_failed] >= history.snapshots[name].quarantine_after
                due = binding_failed if is_one_too_many and binding_failed not in {*held, *rests} else None
    return found + ([f"{due} failed {failures[due]} times in a row, and is not quarantined"] if due is not None else [])


def losses_quarantine_their_binding(history: History) -> list[str]:
    """A binding is quarantined for lost workers only where what runs of it has lost as many holders as it may since its pin."""
    found = []
    lost: Counter[AttemptId] = Counter()
    for event in history.events:
        name = event.attempt_id
        if event.kind == "worker.lost" and name is not None:
            lost[name] += 1
        elif event.kind in ("attempt.pinned", *ENDINGS) and name is not None:
            lost[name] = 0
        elif event.kind == QUARANTINED and event.data["by"] == TENURE and event.work_id is None:
            binding = event.data["binding"]
            if not any(
                count >= history.snapshots[one].workers_lost_max > 0
                for one, count in lost.items()
                if _routine_of(history, one) == binding
            ):
                found.append(
                    f"{binding} was quarantined (event {event.seq}), and nothing of it had cost so many workers"
                )
    return found


def _routine_of(history: History, attempt_id: AttemptId) -> str | None:
    """The binding whose command an attempt runs, if it counts for how that does; None: it does not."""
    attempt, snapshot = history.attempts.get(attempt_id), history.snapshots.get(attempt_id)
    if attempt is None or snapshot is None or not _counts(snapshot):
        return None
    return snapshot.binding if history.works[attempt.work_id].command is None else None


def _counts(snapshot: Snapshot) -> bool:
    return snapshot.binding is not None and snapshot.quarantine_after > 0


def _has_nothing_left(history: History, event: Event) -> bool:
    """Whether a run-once Work came to nothing: it failed, or is held with nothing left to try."""
    work = None if event.work_id is None else history.works.get(event.work_id)
    if work is None or work.kind is not WorkKind.RUN_ONCE:
        return False
    return event.kind == "work.failed" or (event.kind == "work.held" and event.data.get("reason") in _NOTHING_LEFT)
