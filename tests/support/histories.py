"""Histories of drills for tests that need no store: values with every field filled in, to be changed as a test needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chaos.history import History
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt, AttemptState, Exclusion, FailureClass
from shared.model.evidence import Pin, ProcessIdentity
from shared.model.work import Work, WorkState
from shared.policy.capacity import Limits


def an_attempt(attempt_id: AttemptId, status: int, **changes: Any) -> Attempt:
    """One that ran once and ended with that status, its stop proven."""
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


def a_work(work_id: WorkId, state: WorkState = WorkState.COMPLETED) -> Work:
    """One that was submitted and is settled."""
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


def a_history(**changes: Any) -> History:
    """One in which nothing happened."""
    empty = History(
        jobs=(),
        limits=Limits({"jobs": 1}, {}),
        lease_us=60_000_000,
        lines=(),
        works={},
        attempts={},
        snapshots={},
        segments={},
        leases={},
        declarations={},
        streams={},
        intents={},
        pending_inputs={},
        cancellations={},
        events=(),
        outputs={},
        open_orders=(),
    )
    return replace(empty, **changes)
