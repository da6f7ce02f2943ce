"""What must hold after a random drill: each expectation fires on the one fault it is for, and on nothing without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.notes import FAILURES, WAITS, Ends
from chaos.random_drill.acts import Person
from chaos.random_drill.aftermath import Aftermath, broken_output, logged_errors
from chaos.random_drill.configuration import CONFIG
from chaos.random_drill.expectations import EXPECTATIONS, ended_as_its_kind_may
from chaos.random_drill.load import NUMBER_VARIABLE, RECIPES, Cancel, Kind, PlannedJob, Via, counted
from chaos.random_drill.manners import Door
from chaos.random_drill.operator import Answer
from chaos.random_drill.roster import Admission, number_of
from chaos.seen import Fault
from chaos.witness import Line, Mark
from shared.ids import AttemptId, WorkId
from shared.model.attempt import AttemptState
from shared.model.work import Work, WorkState
from shared.policy.capacity import Limits
from tests.support.histories import a_history, a_work, an_attempt

W1, W2, W3, W4 = (WorkId(f"w{number}") for number in range(1, 5))


def planned(
    number: int, kind: Kind, status: int = 0, *, via: Via = Via.STORE, cancel: Cancel | None = None
) -> PlannedJob:
    return PlannedJob(number, kind, 0.1, status, 0, "north/inner", 0, via, cancel)


JOBS = {
    W1: planned(1, Kind.SHORT, 7, via=Via.RUN),
    W2: planned(2, Kind.LATE),
    W3: planned(3, Kind.DEAF, cancel=Cancel(1.0, attempt=False, command=False)),
    W4: planned(4, Kind.READING, via=Via.SUBMIT),
}
ENDS = {
    W1: (WorkState.FAILED, AttemptState.FAILED),
    W2: (WorkState.FAILED, AttemptState.TIMED_OUT),
    W3: (WorkState.CANCELLED, AttemptState.CANCELLED),
    W4: (WorkState.COMPLETED, AttemptState.SUCCEEDED),
}


def work_of(work_id: WorkId, state: WorkState) -> Work:
    env = ((NUMBER_VARIABLE, str(JOBS[work_id].number)),)
    return replace(a_work(work_id, state), scope=JOBS[work_id].scope, env=env)


def line(mark: Mark, work_id: WorkId) -> Line:
    return Line(mark, work_id, AttemptId(f"{work_id}.1"), 1, 500 + JOBS[work_id].number)


def clean() -> Aftermath:
    """Four jobs, one after the other, each ended as its kind does."""
    lines = [line(mark, work_id) for work_id in JOBS for mark in (Mark.START, Mark.END, Mark.GONE)]
    attempts = {
        AttemptId(f"{work_id}.1"): replace(an_attempt(AttemptId(f"{work_id}.1"), JOBS[work_id].status), state=last)
        for work_id, (_, last) in ENDS.items()
    }
    history = a_history(
        jobs=tuple(
            job.expectation(work_id, cancelled=work_id == W3, shim_killed=False) for work_id, job in JOBS.items()
        ),
        limits=Limits({"jobs": 8}, {"north": 2, "north/inner": 1}),
        works={work_id: work_of(work_id, state) for work_id, (state, _) in ENDS.items()},
        attempts=attempts,
        lines=tuple(lines),
    )
    return Aftermath(
        history=history,
        planned={job.number: job for job in JOBS.values()},
        admissions={job.number: Admission.TAKEN for job in JOBS.values()},
        jobs=JOBS,
        answers=(Answer(JOBS[W1], 7, b"begun\ndone\n", ""),),
        troubles=(),
        broken_outputs={},
        left=(),
        not_over="",
        blows=(),
    )


def fired(after: Aftermath) -> set[str]:
    return {check.__name__ for check in EXPECTATIONS if check(after)}


def with_end(after: Aftermath, work_id: WorkId, state: WorkState, last: AttemptState) -> Aftermath:
    name = AttemptId(f"{work_id}.1")
    works = {**after.history.works, work_id: work_of(work_id, state)}
    attempts = {**after.history.attempts, name: replace(after.history.attempts[name], state=last)}
    return replace(after, history=replace(after.history, works=works, attempts=attempts))


def with_works(after: Aftermath, **changes: Work) -> Aftermath:
    works = {**after.history.works, **{WorkId(name): work for name, work in changes.items()}}
    return replace(after, history=replace(after.history, works=works))


def answered(code: int, *, out: bytes = b"begun\ndone\n", err: str = "") -> Callable[[Aftermath], Aftermath]:
    return lambda after: replace(after, answers=(Answer(JOBS[W1], code, out, err),))


def overlapping(after: Aftermath) -> Aftermath:
    """The second starts while the first still runs, in a scope for one."""
    marks = [(Mark.START, W1), (Mark.START, W4), (Mark.END, W1), (Mark.END, W4)]
    return replace(after, history=replace(after.history, lines=tuple(line(mark, work) for mark, work in marks)))


FAULTS: list[tuple[str, Callable[[Aftermath], Aftermath]]] = [
    ("comes_to_rest", lambda after: replace(after, not_over="not within 90 s")),
    ("handed_in_once", lambda after: with_works(after, w5=replace(work_of(W1, WorkState.FAILED), id=WorkId("w5")))),
    ("handed_in_once", lambda after: replace(after, admissions={**after.admissions, 1: Admission.REFUSED})),
    ("handed_in_once", lambda after: replace(after, admissions={**after.admissions, 9: Admission.TAKEN})),
    ("ended_as_its_kind_may", lambda after: with_end(after, W2, WorkState.COMPLETED, AttemptState.SUCCEEDED)),
    ("ended_as_its_kind_may", lambda after: with_end(after, W3, WorkState.FAILED, AttemptState.TIMED_OUT)),
    ("ended_as_its_kind_may", lambda after: with_end(after, W4, WorkState.FAILED, AttemptState.FAILED)),
    ("printed_whole", lambda after: replace(after, broken_outputs={AttemptId("w4.1"): "out: cut"})),
    ("run_told_the_truth", answered(0)),
    ("run_told_the_truth", answered(125, err="tenure: it timed out")),
    ("run_told_the_truth", answered(7, out=b"begun\n")),
    ("commands_said_what_they_may", lambda after: replace(after, troubles=("`tenure submit` ended with 3",))),
    ("nothing_is_left_running", lambda after: replace(after, left=("812: sleep 20",))),
    ("scopes_are_kept", overlapping),
]


def test_nothing_fires_without_a_fault() -> None:
    assert fired(clean()) == set()


def test_what_is_left_open_is_open() -> None:
    """The controls beside the faults: refused and not there, unknown and either, a command that lost sight of its job."""
    after = clean()

    assert fired(replace(after, admissions={**after.admissions, 9: Admission.REFUSED})) == set()
    assert fired(replace(after, admissions={**after.admissions, 9: Admission.UNKNOWN})) == set()
    assert fired(replace(after, admissions={**after.admissions, 1: Admission.UNKNOWN})) == set()
    assert fired(answered(125, err="tenure: w1 cannot be followed any more")(after)) == set()


@pytest.mark.req("M02", "M04", "W01")
@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_each_fires_on_its_fault_alone(name: str, fault: Callable[[Aftermath], Aftermath]) -> None:
    assert fired(fault(clean())) == {name}


def test_every_expectation_has_a_fault() -> None:
    assert {name for name, _ in FAULTS} == {check.__name__ for check in EXPECTATIONS}


class TestOutputs:
    PRINTED = counted(1, 2_000)

    @pytest.mark.parametrize("dropped", [0, 4_096])
    def test_the_tail_may_stand_behind_a_hole(self, dropped: int) -> None:
        kept = bytes(dropped) + self.PRINTED[dropped:]

        assert broken_output(kept, self.PRINTED, 4_096, capped=False) is None

    @pytest.mark.parametrize(
        ("kept", "wrong"),
        [
            (PRINTED[:-1], "bytes long"),
            (PRINTED + b"1\n", "bytes long"),
            (bytes(6_000) + PRINTED[6_000:], "are dropped"),
            (PRINTED[:5_000] + b"x" + PRINTED[5_001:], "other bytes"),
            (PRINTED[1_000:2_000] + PRINTED[1_000:], "other bytes"),
            (PRINTED, "are kept"),
        ],
    )
    def test_what_is_cut_repeated_changed_or_uncapped_is_told(self, kept: bytes, wrong: str) -> None:
        kept = kept[: len(self.PRINTED)] if wrong == "other bytes" else kept

        assert wrong in str(broken_output(kept, self.PRINTED, 4_096, capped=True))

    def test_whoever_kept_the_cap_may_have_died(self) -> None:
        assert broken_output(self.PRINTED, self.PRINTED, 1_024, capped=False) is None


class TestLogs:
    @pytest.mark.parametrize(
        ("text", "faults"),
        [
            ("12:00:00.000Z info  attempt.started attempt=w1.1\n", 0),
            ("12:00:00.000Z error stop.unproven attempt=w1.1\n", 0),
            ("12:00:00.000Z error attempt.recovery_required attempt=w1.1\n", 0),
            ("12:00:00.000Z error claims.stopped error=fence\n", 1),
            ("12:00:00.000Z warn  step.put_off\nTraceback (most recent call last):\n", 1),
        ],
    )
    def test_an_error_that_asks_for_no_person_is_a_fault(self, tmp_path: Path, text: str, faults: int) -> None:
        (tmp_path / "0007-worker-1.log").write_text(text)
        (tmp_path / "0008-submit-3.log").write_text("Traceback of somebody else\n")

        found: list[Fault] = logged_errors(tmp_path)

        assert len(found) == faults


def test_a_work_is_found_by_the_number_it_carries() -> None:
    assert number_of(work_of(W2, WorkState.READY)) == 2
    assert number_of(a_work(W2)) is None


def test_a_flaky_job_fails_twice_and_is_tried_again_by_its_binding() -> None:
    job = planned(9, Kind.FLAKY)
    policy = CONFIG.binding(job.recipe.binding)
    expected = job.expectation(WorkId("w9"), cancelled=False, shim_killed=False)

    assert (
        [job.status_of(number) for number in (1, 2, 3)]
        == [expected.status_of(number) for number in (1, 2, 3)]
        == [7, 7, 0]
    )
    assert policy is not None
    assert policy.retry is not None
    assert policy.retry.attempts_max == 3
    assert expected.may_run_again
    assert not planned(1, Kind.SHORT).expectation(WorkId("w1"), cancelled=False, shim_killed=False).may_run_again


class TestSpoken:
    """How Works that speak may end: by what their programs say, and by what was done to them."""

    @pytest.mark.parametrize(
        ("kind", "done", "ends"),
        [
            (Kind.AGENT, {}, {(WorkState.COMPLETED, AttemptState.SUCCEEDED)}),
            (Kind.STANDING, {}, {(WorkState.IDLE, AttemptState.SUCCEEDED)}),
            (Kind.HOPELESS, {}, {(WorkState.COMPLETED, AttemptState.SUCCEEDED)}),
            (Kind.HOPELESS, {"retries": False}, {(WorkState.FAILED, AttemptState.FAILED)}),
            (
                Kind.HOPELESS,
                {"cut_short": True},
                {(WorkState.COMPLETED, AttemptState.SUCCEEDED), (WorkState.FAILED, AttemptState.FAILED)},
            ),
            (Kind.AGENT, {"cut_short": True}, {(WorkState.COMPLETED, AttemptState.SUCCEEDED)}),
            (
                Kind.AGENT,
                {"shim_killed": True},
                {(WorkState.COMPLETED, AttemptState.SUCCEEDED), (WorkState.FAILED, AttemptState.FAILED)},
            ),
            (
                Kind.STANDING,
                {"shim_killed": True},
                {(WorkState.IDLE, AttemptState.SUCCEEDED), (WorkState.IDLE, AttemptState.FAILED)},
            ),
            (
                Kind.STANDING,
                {"shim_killed": True, "program_killed": True},
                {(WorkState.IDLE, AttemptState.SUCCEEDED), (WorkState.IDLE, AttemptState.FAILED)},
            ),
            (
                Kind.AGENT,
                {"program_killed": True},
                {(WorkState.COMPLETED, AttemptState.SUCCEEDED), (WorkState.FAILED, AttemptState.FAILED)},
            ),
        ],
    )
    def test_each_kind_ends_as_it_may_and_not_otherwise(
        self, kind: Kind, done: dict[str, bool], ends: set[tuple[WorkState, AttemptState]]
    ) -> None:
        person = Person(retries=done.get("retries", True))
        job = replace(planned(4, kind), person=person)
        expected = job.expectation(
            W4,
            cancelled=False,
            shim_killed=done.get("shim_killed", False),
            program_killed=done.get("program_killed", False),
        )
        tried = {
            (state, last)
            for state in (WorkState.COMPLETED, WorkState.FAILED, WorkState.IDLE, WorkState.HELD)
            for last in (AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.TIMED_OUT)
        }

        def is_possible(state: WorkState, last: AttemptState) -> bool:
            after = replace(with_end(clean(), W4, state, last), is_cut_short=done.get("cut_short", False))
            history = replace(after.history, jobs=(*after.history.jobs[:3], expected))
            return ended_as_its_kind_may(replace(after, jobs={**JOBS, W4: job}, history=history)) == []

        assert {(state, last) for state, last in tried if is_possible(state, last)} == ends

    def test_what_it_prints_and_how_it_exits_is_left_to_its_notes(self) -> None:
        expected = planned(4, Kind.AGENT).expectation(W4, cancelled=False, shim_killed=False, interrupted=True)

        assert (expected.speaks, expected.output, expected.may_be_cut_short) == (True, None, True)
        assert not planned(4, Kind.AGENT).expectation(W4, cancelled=False, shim_killed=False).may_be_cut_short

    @pytest.mark.parametrize("kind", [kind for kind in Kind if RECIPES[kind].manner is not None])
    def test_every_manner_comes_to_an_end_by_itself(self, kind: Kind) -> None:
        """The last scene is played again and again: it must take effect, so that nothing is tried for ever."""
        manner = RECIPES[kind].manner

        assert manner is not None
        assert manner.scenes[-1].ends in (Ends.COMPLETED, Ends.SILENT)
        assert all(scene.event or scene.timer for scene in manner.scenes if scene.ends in WAITS)
        binding = CONFIG.binding(RECIPES[kind].binding)
        assert binding is not None
        assert (binding.executor == "agent") is (manner.door is Door.AGENT)
        failures = sum(scene.ends in FAILURES for scene in manner.scenes)
        assert failures < (1 if binding.retry is None else binding.retry.attempts_max)
