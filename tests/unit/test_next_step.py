"""What a person is told to do about a work that does not run: something for each state and reason that a person can lift."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from shared import cli
from shared.commands.next_step import Step, next_step
from shared.commands.work_facts import WorkFacts
from shared.ids import AttemptId, WorkId
from shared.model.instant import Instant
from shared.model.wait import Awaited, WaitState
from shared.model.work import Hold, Permit, Reason, StartHold, Work, WorkState

S, R = WorkState, Reason
NOW = Instant(10, 10, "boot-1")
WORK = Work(
    WorkId("w1"), 1, "", "backup", None, (), "/", "jobs", S.HELD, None, 0, 2, 1, 1, 0, None, None, "test", 0, None
)
AT_GATE = StartHold("approval", "needs approval of a person", 3)
WAITS = Awaited(
    AttemptId("w1.1"),
    1,
    WorkId("w1"),
    resume=True,
    event_type="review.given",
    correlate="4 2",
    since_seq=1,
    state=WaitState.REGISTERED,
    registered_at_us=1,
    wake_seq=None,
    woken_at_us=None,
)


def test_a_question_is_answered_by_the_event_that_its_asker_waits_for() -> None:
    waiting = replace(WORK, state=S.WAITING)

    step = step_of(waiting, replace(WAITS, ask="deploy?"))

    assert step == Step("answer it, yes or no", "event publish review.given --correlate '4 2' --data '\"yes\"'")
    assert step_of(waiting, WAITS) == Step("wake it", "event publish review.given --correlate '4 2'"), "control"


def step_of(work: Work, awaited: Awaited | None = None) -> Step | None:
    return next_step(
        WorkFacts(work, (), timer=None, awaited=awaited, correlate=(), retry=None, cancellations=(), now=NOW)
    )


@pytest.mark.req("B06", "C04", "G05")
@pytest.mark.parametrize(
    ("work", "command"),
    [
        (replace(WORK, hold=Hold("me", "wait", 1), reason=R.HOLD), "work release w1"),
        (replace(WORK, hold=Hold("me", "wait", 1), reason=R.OVER_BUDGET), "work release w1"),
        (replace(WORK, reason=R.GATE_HELD, start_hold=AT_GATE), "gate admit w1"),
        (replace(WORK, reason=R.GATE_HELD, start_hold=replace(AT_GATE, by="other")), None),
        (replace(WORK, reason=R.OVER_BUDGET, start_hold=replace(AT_GATE, by="usd")), "work release w1"),
        *((replace(WORK, reason=why), "work retry w1") for why in (R.EXHAUSTED, R.PERMANENT_FAILURE, R.TIMED_OUT)),
        (replace(WORK, state=S.BACKOFF), "work retry w1"),
        (replace(WORK, state=S.FAILED, reason=R.EXHAUSTED), "work retry w1"),
        (replace(WORK, state=S.IDLE), "submit w1 --input TEXT"),
        (replace(WORK, state=S.READY), None),
        (replace(WORK, state=S.READY, reason=R.QUARANTINED, reason_limit="backup"), 'binding release backup --reason "…"'),
        (replace(WORK, state=S.READY, reason=R.CAPACITY_SCOPE, reason_limit="ops"), "capacity"),
        (replace(WORK, state=S.READY, reason=R.NO_WORKER), "doctor"),
        (replace(WORK, state=S.READY, reason=R.GATE_UNDECIDED), "doctor"),
        (replace(WORK, state=S.WAITING, reason=R.OVER_BUDGET), "work release w1"),
        (replace(WORK, state=S.WAITING, reason=R.OVER_BUDGET, permits=frozenset({Permit.BUDGET})), None),
        *((replace(WORK, state=state), None) for state in (S.RUNNING, S.COMPLETED, S.CANCELLED)),
    ],
)  # fmt: skip
def test_what_keeps_a_work_says_what_lifts_it(work: Work, command: str | None) -> None:
    step = step_of(work)

    assert (None if step is None else step.command) == command


def test_what_waits_for_an_event_says_how_to_publish_it() -> None:
    waiting = replace(WORK, state=S.WAITING)

    assert step_of(waiting, WAITS) == Step("wake it", "event publish review.given --correlate '4 2'")
    assert step_of(waiting, replace(WAITS, event_type=None, correlate=None)) is None, "a time alone"
    assert step_of(waiting, replace(WAITS, state=WaitState.SATISFIED)) is None


def test_every_held_work_has_a_step_and_every_step_is_a_command_that_there_is() -> None:
    known = {name for group in cli.COMMANDS.values() for name in group}
    for state, reason in product(WorkState, [None, *Reason]):
        step = step_of(replace(WORK, state=state, reason=reason, start_hold=AT_GATE, reason_limit="backup"))
        assert step is not None or state is not S.HELD
        assert step is None or step.command.split()[0] in known
