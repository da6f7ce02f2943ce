"""Each check of the drills fires on the one fault it is for, by name, and on nothing in a history without faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chaos.checks import CHECKS, examine
from chaos.history import History, Job
from chaos.witness import OUTPUT, Line, Mark, parse
from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import Attempt, AttemptState, Exclusion, FailureClass, Segment
from shared.model.evidence import Pin, ProcessIdentity
from shared.model.host import StopOrder
from shared.model.work import Work, WorkState
from shared.policy.capacity import Limits
from shared.store.contract import Event

W1, W2, W3 = (WorkId(f"w{number}") for number in (1, 2, 3))
A1, A2, A3 = (AttemptId(f"w{number}.1") for number in (1, 2, 3))


def _attempt(attempt_id: AttemptId, status: int, **changes: Any) -> Attempt:
    work, number = attempt_id.split(".")
    pin = Pin(1, f"{attempt_id}.1", ProcessIdentity(100, 1, "boot", 1), 1, 2)
    attempt = Attempt(
        id=attempt_id,
        work_id=WorkId(work),
        number=int(number),
        epoch=1,
        state=AttemptState.SUCCEEDED if status == 0 else AttemptState.FAILED,
        recovered_from=None,
        exclusion=Exclusion.RELEASED,
        exclusion_proof="S1",
        invoke=None,
        isolated=True,
        pin=pin,
        relaunches=0,
        pool="jobs",
        scope="",
        budget_us=1,
        budget_since_mono_us=1,
        budget_boot_id="boot",
        budget_since_at_us=1,
        exit_status=status,
        failure=None if status == 0 else FailureClass.KNOWN,
        error=None,
        started_at_us=1,
        ended_at_us=2,
    )
    return replace(attempt, **changes)


def _work(work_id: WorkId, state: WorkState) -> Work:
    return Work(
        id=work_id,
        number=int(work_id[1:]),
        scope="",
        binding=None,
        command=("true",),
        env=(),
        cwd=None,
        pool="jobs",
        state=state,
        reason=None,
        priority=0,
        revision=1,
        ready_seq=1,
        attempts_used=1,
        admission_failures=0,
        backoff_since=None,
        backoff_us=None,
        submitted_by="test",
        submitted_at_us=1,
        ended_at_us=2,
    )


def _segment(epoch: int, ended_at_us: int | None = 2) -> Segment:
    return Segment(epoch, Incarnation("worker-1.1"), None, True, epoch > 1, False, 1, ended_at_us)


def _line(mark: Mark, work: WorkId, *, attempt: int = 1, epoch: int = 1, pid: int = 7) -> Line:
    return Line(mark, work, AttemptId(f"{work}.{attempt}"), epoch, pid)


@pytest.fixture
def history() -> History:
    """Two jobs, one after the other; the first was taken over once."""
    attempts = {A1: _attempt(A1, 0, epoch=2), A2: _attempt(A2, 7)}
    return History(
        jobs=(Job(W1, 0), Job(W2, 7)),
        limits=Limits({"jobs": 1}, {}),
        lease_us=60_000_000,
        lines=(_line(Mark.START, W1), _line(Mark.END, W1), _line(Mark.START, W2), _line(Mark.END, W2)),
        works={W1: _work(W1, WorkState.COMPLETED), W2: _work(W2, WorkState.FAILED)},
        attempts=attempts,
        snapshots={},
        segments={A1: (_segment(1), _segment(2)), A2: (_segment(1),)},
        leases={},
        pending_inputs={},
        cancellations={},
        events=(*(_event(seq, A1, epoch) for seq, epoch in ((1, 1), (2, 2), (3, 2))), _lead(4, 1), _lead(5, 2)),
        outputs={A1: OUTPUT, A2: OUTPUT},
        open_orders=(),
    )


def _event(seq: int, attempt_id: AttemptId, epoch: int) -> Event:
    return Event(seq, 1, "attempt.pinned", None, attempt_id, epoch, {})


def _lead(seq: int, generation: int) -> Event:
    return Event(seq, 1, "leader.taken", None, None, None, {"generation": generation})


def test_nothing_fires_without_a_fault(history: History) -> None:
    assert examine(history) == []


def test_a_cancelled_job_may_never_start(history: History) -> None:
    cancelled = _attempt(A3, 0, state=AttemptState.CANCELLED, exit_status=None, pin=None)
    with_cancelled = replace(
        history,
        jobs=(*history.jobs, Job(W3, 0, cancelled=True)),
        works={**history.works, W3: _work(W3, WorkState.CANCELLED)},
        attempts={**history.attempts, A3: cancelled},
        segments={**history.segments, A3: (_segment(1),)},
    )

    assert examine(with_cancelled) == []


def _with_attempt(history: History, attempt: Attempt) -> History:
    return replace(history, attempts={**history.attempts, attempt.id: attempt})


def _second_start(history: History) -> History:
    return replace(history, lines=(*history.lines, _line(Mark.START, W1, pid=8), _line(Mark.END, W1, pid=8)))


def _never_started(history: History) -> History:
    return replace(history, lines=history.lines[2:])


def _not_submitted(history: History) -> History:
    return replace(history, jobs=history.jobs[:1])


def _lost(history: History) -> History:
    return replace(history, works={W1: history.works[W1], W2: replace(history.works[W2], state=WorkState.READY)})


def _ran_away(history: History) -> History:
    return replace(history, lines=(*history.lines, _line(Mark.START, W3), _line(Mark.END, W3)))


def _cut_short(history: History) -> History:
    return replace(history, lines=history.lines[:-1])


def _other_status(history: History) -> History:
    return _with_attempt(history, replace(history.attempts[A2], exit_status=8))


def _false_failure(history: History) -> History:
    return replace(history, works={**history.works, W1: _work(W1, WorkState.FAILED)})


def _bare_success(history: History) -> History:
    return _with_attempt(history, replace(history.attempts[A1], pin=None))


def _pinned_elsewhere(history: History) -> History:
    pin = Pin(2, "w1.1.2", ProcessIdentity(100, 1, "boot", 1), 1, 2)
    return _with_attempt(history, replace(history.attempts[A1], pin=pin))


def _epoch_falls(history: History) -> History:
    return replace(history, events=(*history.events, _event(6, A1, 1)))


def _two_leaders(history: History) -> History:
    return replace(history, events=(*history.events, _lead(6, 2)))


def _segment_missing(history: History) -> History:
    return replace(history, segments={**history.segments, A1: (_segment(2),)})


def _segment_open(history: History) -> History:
    return replace(history, segments={**history.segments, A1: (_segment(1, None), _segment(2))})


def _second_attempt(history: History) -> History:
    second = AttemptId("w2.2")
    first = _attempt(A2, 7)
    lines = (*history.lines[:2], _line(Mark.START, W2, attempt=2), _line(Mark.END, W2, attempt=2))
    return replace(
        history,
        lines=lines,
        attempts={A1: history.attempts[A1], A2: first, second: _attempt(second, 7)},
        segments={**history.segments, second: (_segment(1),)},
        outputs={**history.outputs, second: OUTPUT},
    )


def _two_at_once(history: History) -> History:
    starts, ends = history.lines[::2], history.lines[1::2]
    return replace(history, lines=(*starts, *ends))


def _unfinished(history: History) -> History:
    extra = _attempt(A3, 0, state=AttemptState.RUNNING, exit_status=None)
    return replace(
        _with_attempt(history, extra),
        segments={**history.segments, A3: (_segment(1),)},
    )


def _slot_held(history: History) -> History:
    return _with_attempt(history, replace(history.attempts[A2], exclusion=Exclusion.HELD))


def _order_open(history: History) -> History:
    return replace(history, open_orders=(StopOrder(1, A1, 1, "why", "test", None, 0, None, 1),))


def _output_cut(history: History) -> History:
    return replace(history, outputs={**history.outputs, A2: "begun\n"})


FAULTS: dict[str, list[Callable[[History], History]]] = {
    "jobs_are_one_set": [_second_start, _never_started, _not_submitted, _lost, _ran_away],
    "started_jobs_came_to_their_end": [_cut_short],
    "statuses_are_true": [_other_status, _false_failure],
    "success_has_evidence": [_bare_success],
    "launches_follow_their_pin": [_pinned_elsewhere],
    "epochs_only_rise": [_epoch_falls, _segment_missing, _segment_open],
    "generations_only_rise": [_two_leaders],
    "retries_are_not_spent": [_second_attempt],
    "capacity_is_kept": [_two_at_once],
    "nothing_is_stuck": [_unfinished, _slot_held, _order_open],
    "outputs_are_whole": [_output_cut],
}


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        pytest.param(check, fault, id=f"{check}-{fault.__name__.strip('_')}")
        for check, faults in FAULTS.items()
        for fault in faults
    ],
)
def test_each_check_fires_on_its_fault(history: History, check: str, fault: Callable[[History], History]) -> None:
    assert check in {finding.check for finding in examine(fault(history))}


def test_every_check_has_its_fault() -> None:
    assert set(FAULTS) == {check.__name__ for check in CHECKS}


def test_an_admission_failure_may_be_followed_by_an_attempt(history: History) -> None:
    faulty = _second_attempt(history)
    first = replace(faulty.attempts[A2], failure=FailureClass.ADMISSION, exit_status=None, pin=None)

    assert examine(_with_attempt(faulty, first)) == []


def test_a_line_of_the_witness_is_read_as_it_is_written() -> None:
    assert parse("start w2 w2.1 3 7") == _line(Mark.START, W2, epoch=3)


@pytest.mark.parametrize("text", ["", "start w2 w2.1 3", "begin w2 w2.1 3 7", "start w2 w2.1 x 7"])
def test_anything_else_is_no_line_of_a_witness(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)
