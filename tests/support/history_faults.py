"""Faults of histories that concern jobs and their launches: each makes one check fire. See `tests/unit/test_checks.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chaos.history import History
from chaos.witness import Line, Mark
from shared.ids import AttemptId, WorkId
from shared.model.attempt import FailureClass
from shared.model.evidence import Pin
from shared.model.work import WorkState
from tests.support.clean_histories import (
    index_of,
    with_changed_event,
    with_changed_lines,
    with_event,
    with_late_ends,
    without_lines,
)

W1, W2, W3, W7 = (WorkId(f"w{number}") for number in (1, 2, 3, 7))
A1, A2, A3, A6 = (AttemptId(f"w{number}.1") for number in (1, 2, 3, 6))
LOST, AGAIN = AttemptId("w4.1"), AttemptId("w4.2")
REFUSED = AttemptId("w5.1")


def with_attempt(history: History, attempt_id: AttemptId, **changes: Any) -> History:
    attempt = replace(history.attempts[attempt_id], **changes)
    return replace(history, attempts={**history.attempts, attempt_id: attempt})


def with_job(history: History, work_id: WorkId, **changes: Any) -> History:
    jobs = [replace(job, **changes) if job.work_id == work_id else job for job in history.jobs]
    return replace(history, jobs=tuple(jobs))


def with_line(history: History, mark: Mark, attempt_id: AttemptId, epoch: int = 1, pid: int = 500) -> History:
    line = Line(mark, WorkId(attempt_id.partition(".")[0]), attempt_id, epoch, pid, len(history.events))
    return replace(history, lines=(*history.lines, line))


# --- jobs


def second_start(history: History) -> History:
    for mark in (Mark.START, Mark.END, Mark.GONE):
        history = with_line(history, mark, A2, pid=8)
    return history


def never_started(history: History) -> History:
    return without_lines(history, A2)


def not_submitted(history: History) -> History:
    return replace(history, jobs=tuple(job for job in history.jobs if job.work_id != W2))


def lost(history: History) -> History:
    """A job that was submitted, and of which nothing more was heard."""
    work = replace(history.works[W2], id=W7, number=7, state=WorkState.READY, attempts_used=0, ended_at_us=None)
    submitted = with_event(history, "work.submitted", work_id=W7, data={"to": "ready"})
    return replace(
        submitted,
        jobs=(*history.jobs, replace(history.jobs[0], work_id=W7)),
        works={**history.works, W7: work},
        pending_inputs={**history.pending_inputs, W7: (99,)},
    )


def cut_short(history: History) -> History:
    return without_lines(history, A2, Mark.END)


def ended_by_another(history: History) -> History:
    return with_changed_lines(with_job(history, W2, may_be_killed=True), Mark.END, A2, pid=501)


def other_status(history: History) -> History:
    return with_attempt(history, A2, exit_status=8)


def not_cancelled(history: History) -> History:
    return with_job(history, W3, cancelled=False, may_be_killed=True)


def output_cut(history: History) -> History:
    return replace(history, outputs={**history.outputs, A2: "begun\n"})


def output_twice(history: History) -> History:
    return replace(history, outputs={**history.outputs, A3: "begun\nbegun\n"})


def input_waits_though_consumed(history: History) -> History:
    return replace(history, pending_inputs={**history.pending_inputs, W2: history.snapshots[A2].inputs})


def input_gone(history: History) -> History:
    return replace(history, snapshots={**history.snapshots, A2: replace(history.snapshots[A2], inputs=())})


def input_lost_between_attempts(history: History) -> History:
    other = replace(history.snapshots[AGAIN], inputs=(99,))
    return replace(history, snapshots={**history.snapshots, AGAIN: other})


def retry_spent(history: History) -> History:
    return with_attempt(history, REFUSED, failure=FailureClass.AMBIGUOUS)


def ran_after_all(history: History) -> History:
    return with_line(history, Mark.CHILD, REFUSED)


# --- launches


def two_launches_at_once(history: History) -> History:
    return with_late_ends(history, LOST)


def started_unpinned(history: History) -> History:
    return with_changed_event(history, "attempt.pinned", A2, kind="attempt.accepted")


def started_too_early(history: History) -> History:
    return with_changed_lines(history, Mark.START, A2, seq=index_of(history, "attempt.pinned", A2))


def go(history: History, **changes: Any) -> History:
    go = replace(history.gos[0], **changes)
    return replace(history, gos=(*history.gos, go))


def go_without_pin(history: History) -> History:
    attempt = history.gos[0].attempt
    assert attempt is not None
    return go(history, attempt=replace(attempt, pin=None))


def go_of_another_launch(history: History) -> History:
    return go(history, pid=501)


def go_too_late(history: History) -> History:
    now = history.gos[0].now
    lease = history.gos[0].lease
    assert lease is not None
    return go(history, now=replace(now, mono_us=lease.expires_mono_us))


def go_after_takeover(history: History) -> History:
    lease = history.gos[0].lease
    assert lease is not None
    return go(history, lease=replace(lease, epoch=2))


def relaunched_though_it_ran(history: History) -> History:
    """Its first launch, pinned under epoch 1, is seen to start; the second, cancelled, never did."""
    return replace(
        history,
        lines=tuple(replace(line, epoch=1) if line.attempt_id == A6 else line for line in history.lines),
        attempts={**history.attempts, A6: pinned_at_first(history)},
    )


def pinned_at_first(history: History) -> Any:
    attempt = history.attempts[A6]
    pin = attempt.pin
    assert pin is not None
    return replace(attempt, pin=Pin(1, "w6.1.1", pin.shim, pin.directory_ino, pin.lock_ino))


def bare_success(history: History) -> History:
    return with_attempt(history, A1, pin=None)


def success_of_a_job_cut_short(history: History) -> History:
    return with_job(without_lines(history, A1, Mark.END), W1, may_be_killed=True)
