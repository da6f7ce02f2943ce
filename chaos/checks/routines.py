"""Bindings whose works keep failing, or keep costing workers: quarantined when their numbers say so, and nothing of them starts then.

Only works that run what their binding says count. Rule: requirement F03; case C056.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.checks.inputs import TOOK_EFFECT
from chaos.checks.jobs import GIVEN_UP
from chaos.checks.slots import ENDINGS
from chaos.checks.wakes import WOKEN
from chaos.history import History
from shared.ids import AttemptId, work_of
from shared.model.attempt import Attempt, AttemptState, FailureClass, Snapshot
from shared.model.work import Reason, WorkState
from shared.store.contract import Event

QUARANTINED, RELEASED, CLAIMED, LOST = "binding.quarantined", "binding.released", "attempt.claimed", "worker.lost"
TENURE = "tenure"
"""By whom it is quarantined where no person did it."""
_COSTLY = "its works cost"
"""How the reason begins of a quarantine for the sake of workers."""
Row = tuple[int, int]
"""How many in a row came to nothing, at least and at most."""


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
    """A binding is quarantined in the commit in which so many of its works in a row have come to nothing, and not before. Rule: F03."""
    found = []
    rows: dict[object, Row] = {}
    held: set[object] = set()
    for at, event in enumerate(history.events):
        if event.kind == QUARANTINED:
            held.add(event.data["binding"])
        elif event.kind == RELEASED:
            held.discard(event.data["binding"])
            rows.pop(event.data["binding"], None)
        elif event.kind in ENDINGS and event.attempt_id is not None:
            binding = _routine_of(history, event.attempt_id)
            if binding is None:
                continue
            enough, commit = history.snapshots[event.attempt_id].quarantine_after, _rest_of_commit(history.events, at)
            least, most = rows[binding] = _row_after(event, commit, rows.get(binding, (0, 0)))
            is_told = any(one.kind == QUARANTINED and _is_for_failures(one) for one in commit)
            may_be = most >= enough and binding not in held
            must_be = least >= enough and binding not in held
            if (is_told and not may_be) or (must_be and not is_told):
                was = "was" if is_told else "was not"
                found.append(
                    f"{binding} {was} quarantined at the end of {event.attempt_id} (event {event.seq}), with {most} of {enough} in a"
                    " row that came to nothing"
                )
    return found


def _rest_of_commit(events: Sequence[Event], at: int) -> list[Event]:
    """What was told behind the end of an attempt in the same commit: nothing of another attempt stands between."""
    first = events[at]
    rest = []
    for event in events[at + 1 :]:
        if event.at_us != first.at_us or (event.kind in ENDINGS and event.attempt_id != first.attempt_id):
            break
        rest.append(event)
    return rest


def _row_after(end: Event, commit: Sequence[Event], row: Row) -> Row:
    """How many works in a row came to nothing, with that end: one that is tried again, or cancelled, counts for nothing. Of one that
    is held by a person, nobody can tell whether it would have been tried again.
    """
    assert end.attempt_id is not None, "an end is of an attempt"
    work_id, failure = work_of(end.attempt_id), end.data.get("failure")
    step = next((one for one in commit if one.work_id == work_id and one.kind.startswith("work.")), None)
    is_armed = any(one.kind == "timer.armed" and one.data.get("attempt") == end.attempt_id for one in commit)
    if step is None:
        return row
    if failure is None:
        return (0, 0) if end.data["to"] in TOOK_EFFECT else row
    if is_armed or failure == FailureClass.CANCELLED:
        return row
    if failure == FailureClass.AMBIGUOUS and step.data["to"] == WorkState.READY:
        return row
    least, most = row
    return least if step.data.get("reason") == Reason.HOLD else least + 1, most + 1


def _is_for_failures(event: Event) -> bool:
    return event.data["by"] == TENURE and not str(event.data["reason"]).startswith(_COSTLY)


@dataclass(frozen=True, slots=True)
class _Loss:
    """A worker that died while it held an attempt: the how-manieth in a row, and whether something was pinned then."""

    event: Event
    attempt_id: AttemptId
    in_row: int
    is_pinned: bool
    most: int

    @property
    def is_costly(self) -> bool:
        """It is the last that may be lost in a row, or one more."""
        return 0 < self.most <= self.in_row


def lost_workers_are_counted(history: History) -> list[str]:
    """Each worker that died over an attempt is counted once, in a row that a pin begins anew; a launch that has cost as many as it may
    is given up, and no other is. Rule: case C056.
    """
    found = []
    total: Counter[AttemptId] = Counter()
    for loss in _losses(history):
        total[loss.attempt_id] += 1
        told, row = int(str(loss.event.data["lost"])), int(str(loss.event.data["in_row"]))
        may_begin_anew = loss.is_pinned and row == 1
        if told != total[loss.attempt_id] or (row != loss.in_row and not may_begin_anew):
            found.append(
                f"{loss.attempt_id} lost {total[loss.attempt_id]} workers, {loss.in_row} in a row; told (event {loss.event.seq})"
                f" are {told} and {row}"
            )
    return found + list(_given_up_wrongly(history))


def _given_up_wrongly(history: History) -> Iterator[str]:
    """Launches that were made again beyond that, and those that were given up before; also one that was pinned and came to nothing."""
    rows = {loss.event.seq: (int(str(loss.event.data["in_row"])), loss.most) for loss in _losses(history)}
    since: dict[AttemptId, int] = {}
    for event in history.events:
        name = event.attempt_id
        if name is None:
            continue
        if event.seq in rows:
            row, most = rows[event.seq]
            if 0 < most <= row:
                since.setdefault(name, event.seq)
            else:
                since.pop(name, None)
        elif event.kind in ("attempt.pinned", WOKEN):
            since.pop(name, None)
        elif event.kind == "attempt.relaunched" and name in since:
            yield f"{name} was launched again (event {event.seq}), which had cost as many workers as it may (event {since[name]})"
        elif event.kind in ENDINGS and _is_given_up(history.attempts[name]) and name not in since:
            yield f"{name} was given up, and had not cost that many workers"


def _is_given_up(attempt: Attempt) -> bool:
    return attempt.state is AttemptState.FAILED and (attempt.error or "").startswith(GIVEN_UP)


def _losses(history: History) -> Iterator[_Loss]:
    rows: Counter[AttemptId] = Counter()
    pinned: set[AttemptId] = set()
    for event in history.events:
        name = event.attempt_id
        if name is None:
            continue
        if event.kind == "attempt.pinned":
            rows[name] = 0
            pinned.add(name)
        elif event.kind == WOKEN:
            rows[name] = 0
            pinned.discard(name)
        elif event.kind == "attempt.relaunched":
            pinned.discard(name)
        elif event.kind == LOST:
            snapshot = history.snapshots.get(name)
            most = 0 if snapshot is None else snapshot.workers_lost_max
            yield _Loss(event, name, rows[name] + 1, name in pinned, most)
            rows[name] = int(str(event.data["in_row"]))  # a wrong one is told once


def losses_quarantine_their_binding(history: History) -> list[str]:
    """A binding is quarantined in the commit that counts a worker's death, exactly where all that is to blame runs, and is its own.
    Rule: case C056.
    """
    found = []
    deaths: dict[tuple[int, object], list[_Loss]] = {}
    for loss in _losses(history):
        deaths.setdefault((loss.event.at_us, loss.event.data["worker"]), []).append(loss)
    told = {
        event.seq: str(event.data["binding"])
        for event in history.events
        if event.kind == QUARANTINED and str(event.data["reason"]).startswith(_COSTLY)
    }
    for losses in deaths.values():
        costly = [loss for loss in losses if int(str(loss.event.data["in_row"])) >= loss.most > 0]
        blamed, last = _blamed(history, costly), losses[-1].event
        quarantined = told.pop(last.seq + 1, None)
        is_held = blamed is not None and blamed in _in_quarantine(history, last.seq)
        if quarantined != blamed and not (is_held and quarantined is None):
            found.append(
                f"the death of {last.data['worker']} (event {last.seq}) is to be blamed on {blamed}, quarantined was {quarantined}"
            )
    return found + [f"{binding} was quarantined (event {seq}), and no worker had died" for seq, binding in told.items()]


def _blamed(history: History, costly: Sequence[_Loss]) -> str | None:
    """The binding of all of these, if there is one and each of them runs."""
    names = {_routine_of(history, loss.attempt_id) for loss in costly}
    return names.pop() if len(names) == 1 and all(loss.is_pinned for loss in costly) else None


def _in_quarantine(history: History, seq: int) -> set[str]:
    held: set[str] = set()
    for event in history.events:
        if event.seq >= seq:
            break
        if event.kind == QUARANTINED:
            held.add(str(event.data["binding"]))
        elif event.kind == RELEASED:
            held.discard(str(event.data["binding"]))
    return held


def _routine_of(history: History, attempt_id: AttemptId) -> str | None:
    """The binding whose command an attempt runs, if it counts for how that does; None: it does not."""
    attempt, snapshot = history.attempts.get(attempt_id), history.snapshots.get(attempt_id)
    if attempt is None or snapshot is None or not _counts(snapshot):
        return None
    return snapshot.binding if history.works[attempt.work_id].command is None else None


def _counts(snapshot: Snapshot) -> bool:
    return snapshot.binding is not None and snapshot.quarantine_after > 0
