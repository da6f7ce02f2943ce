"""How the guards of retries and inputs are taken away; see `removals.py`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from chaos.guards.removals import all_of, in_sql, replaced
from shared.boundary import Boundary
from shared.model.work import WorkChange, WorkState
from shared.policy.settle import settle
from shared.policy.steps import WorkEvent
from shared.store import settling
from shared.store.sqlite import controls, ends, work_reads
from shared.store.sqlite.rows import timer_of_row


def timer_fires_once() -> AbstractContextManager[None]:
    """Whatever is due fires when its Work backs off, whether it has fired before, and whichever failure armed it."""

    def fire(tx: Any, timer_id: int) -> None:
        timer = timer_of_row(tx._db.one("SELECT * FROM timer WHERE id = ?", (timer_id,)))
        work = tx._work_or_refuse(timer.work_id)
        tx._note(Boundary.TIMER_COMMIT)
        if work.state is not WorkState.BACKOFF:
            return
        facts = {"timer": timer_id, "attempt": timer.attempt_id, "by": "timer"}
        seq = tx._event("retry.requested", facts, work=work.id)
        tx._db.one(controls.FIRE_TIMER, {"timer": timer_id, "seq": seq, "wall": tx.now.wall_us})
        ready = WorkChange(WorkState.READY, None, None, work.admission_failures, work.failures_used)
        tx._step_work(work, WorkEvent.RETRY_DUE, ready)

    backs_off = "state <> 'cancelled' AND work_id IN (SELECT id FROM work WHERE state = 'backoff')"
    due = work_reads.TIMERS_DUE.replace("state = 'armed'", backs_off)
    if due == work_reads.TIMERS_DUE:
        raise LookupError("no statement reads armed timers alone")
    return all_of(replaced(work_reads, "TIMERS_DUE", due), replaced(controls.Controls, "fire_timer", fire))


def timer_is_due() -> AbstractContextManager[None]:
    return all_of(
        in_sql(work_reads, "AND since_mono_us + after_us <= :mono", ""),
        replaced(controls, "is_due", lambda _timer, _now: True),
    )


def retry_event() -> AbstractContextManager[None]:
    """A failure makes its Work ready by itself."""

    def without(ending: Any, before: Any, now: Any) -> WorkChange:
        change = settle(ending, before, now)
        if change.state is not WorkState.BACKOFF:
            return change
        return replace(change, state=WorkState.READY, backoff_us=None, due_at_us=None)

    return replaced(settling, "settle", without)


def effect_spends_inputs() -> AbstractContextManager[None]:
    """Whatever may be tried again gets the inputs back, also where they took effect."""
    return all_of(
        replaced(ends, "_TOOK_EFFECT", ()),
        replaced(settling, "settle", lambda *given: replace(settle(*given), spends_inputs=False)),
    )
