"""Declared outcomes, parks and resumes as a worker and a coordinator carry them out, on a simulated host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pytest

from shared.ids import work_of
from shared.model.attempt import AttemptState, FailureClass, LeaseKey
from shared.model.budget import Budget, Per
from shared.model.declaration import Declaration, declaration_of
from shared.model.event import NewEvent
from shared.model.settings import DEFAULT, Config
from shared.model.work import Reason, WorkState
from shared.policy.retry import ADMISSION_FAILURES_MAX
from shared.policy.settle import RELAUNCHES_MAX
from shared.process.launcher import LaunchError, LaunchSpec
from shared.store.contract import Assignment
from tests.support.declarations import TICK, TURN, WAIT, WAIT_TO_RESUME
from tests.support.hosts import Shim
from tests.support.sites import Site
from tests.support.stores import TIMEOUT_US

S = AttemptState


def declared(site: Site, key: LeaseKey, *declarations: Declaration) -> None:
    site.world.store.write(lambda tx: tx.declare(key, declarations))


def publish(site: Site, event: NewEvent = TICK) -> int:
    return site.world.store.write(lambda tx: tx.publish(event))


def running(site: Site) -> tuple[LeaseKey, Shim]:
    """A job that the coordinator of the site started on its worker."""
    name = site.submit_command()
    site.settle()
    return LeaseKey(name, 1, site.benches[0].me), site.host.shim(name)


def parked(site: Site) -> tuple[LeaseKey, Shim]:
    bench = site.benches[0]
    key, shim = running(site)
    declared(site, key, WAIT_TO_RESUME)
    shim.end(0)
    bench.settle()
    assert site.attempt(key.attempt_id).state is S.PARKED
    return key, shim


@pytest.mark.req("O15")
@pytest.mark.parametrize(
    ("kind", "status", "state"),
    [("completed", 3, S.SUCCEEDED), ("failed", 0, S.FAILED), ("handoff", 0, S.HANDED_OFF)],
)
def test_what_a_program_declared_is_applied_when_its_end_is_seen(
    site: Site, kind: str, status: int, state: AttemptState
) -> None:
    bench = site.bench()
    key, shim = site.running(bench)
    declared(site, key, declaration_of("o", "outcome", {"kind": kind}))
    bench.settle()
    assert site.attempt(key.attempt_id).state is S.RUNNING, "not before"

    shim.end(status)
    bench.settle()

    assert site.attempt(key.attempt_id).state is state


@pytest.mark.req("O06", "O15")
def test_an_adopter_applies_what_was_declared_to_another(site: Site) -> None:
    first = site.bench("worker-1")
    head = site.head()
    key, shim = running(site)
    declared(site, key, TURN)
    other = site.bench("worker-2")
    site.kill(first)
    head.settle()
    other.settle()

    shim.end(0)
    other.settle()

    turns = [one for one in site.events(key.attempt_id) if one.kind == "execution.turn"]
    assert [one.epoch for one in turns] == [2]


@pytest.mark.req("M02", "O15")
def test_a_success_that_nobody_saw_the_end_of_is_none(site: Site) -> None:
    bench = site.bench()
    key, shim = site.running(bench)
    declared(site, key, declaration_of("o", "outcome", {"kind": "completed"}))
    shim.die()
    bench.settle()
    shim.end_orphan(0, is_kept=False)
    bench.settle()

    assert site.attempt(key.attempt_id).state is S.RECOVERY_REQUIRED


@pytest.mark.req("M02", "O15")
@pytest.mark.parametrize(("status", "is_applied"), [(None, False), (0, True)])
def test_what_was_declared_is_applied_only_with_a_status_that_was_seen(
    site: Site, status: int | None, is_applied: bool
) -> None:
    bench = site.bench()
    key, shim = site.running(bench)
    declared(site, key, TURN)
    shim.end(status)
    bench.settle()

    assert site.attempt(key.attempt_id).state is (S.SUCCEEDED if is_applied else S.FAILED)
    assert (site.world.store.read(lambda tx: tx.declarations(key.attempt_id, unapplied=True)) == []) is is_applied


@pytest.mark.req("O08")
def test_a_parked_attempt_is_resumed_by_an_event(site: Site) -> None:
    site.bench()
    head = site.head()
    key, _ = parked(site)
    head.settle()
    assert site.work(work_of(key.attempt_id)).state is WorkState.WAITING

    seq = publish(site, NewEvent("tick", None, '{"n": 1}', "me"))
    site.settle()

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.epoch) == (S.RUNNING, 2)
    shim = site.host.shim(key.attempt_id, 2)
    assert json.loads(shim.spec.env["TENURE_WAKE"]) == {"seq": seq, "type": "tick", "correlate": None, "data": {"n": 1}}
    assert site.segments(key.attempt_id)[-1].wake_event == seq
    shim.end(0)
    site.settle()
    assert site.attempt(key.attempt_id).state is S.SUCCEEDED
    assert site.work(work_of(key.attempt_id)).state is WorkState.COMPLETED


@pytest.mark.req("O08", "B04")
def test_what_is_parked_goes_on_over_budget_only_once_it_is_released(site: Site) -> None:
    site.configure(Config(budgets=(Budget("turns", Decimal(1), Per.ALL),)))
    site.bench()
    site.head()
    key, _ = parked(site)
    work_id = work_of(key.attempt_id)
    publish(site)
    site.settle()
    assert (site.work(work_id).state, site.work(work_id).reason) == (WorkState.WAITING, Reason.OVER_BUDGET)
    before = len(site.events(key.attempt_id))

    site.elapse(30)
    assert (site.work(work_id).state, len(site.events(key.attempt_id))) == (WorkState.WAITING, before)
    site.world.store.write(lambda tx: tx.release_work(work_id, by="t", reason="t"))
    site.settle()

    assert (site.attempt(key.attempt_id).state, site.attempt(key.attempt_id).epoch) == (S.RUNNING, 2)
    assert site.work(work_id).reason is None


@pytest.mark.req("O08", "E11")
def test_a_parked_attempt_is_resumed_by_its_timer_and_keeps_its_time(site: Site) -> None:
    site.bench()
    site.head()
    key, _ = parked(site)
    left_us = site.attempt(key.attempt_id).budget_us

    site.elapse(61)

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.epoch, attempt.budget_us) == (S.RUNNING, 2, left_us)
    site.elapse(left_us // 1_000_000 + 5, poll_s=20)
    assert site.attempt(key.attempt_id).state is S.TIMED_OUT, "it has what was left, and no more"
    assert left_us <= TIMEOUT_US


@pytest.mark.req("O08", "E10")
def test_the_environment_layer_is_asked_for_again_before_a_resume(site: Site) -> None:
    bench = site.bench()
    site.head()
    worker_asked: list[str] = []
    prepare = bench.executors["shell@1"].prepare

    class Asking:
        name, isolated = "shell", True
        takes_input, language = False, None
        sandbox_digest = bench.executors["shell@1"].sandbox_digest

        def prepare(self, assignment: Assignment, layer: Mapping[str, str]) -> LaunchSpec:
            worker_asked.append(assignment.attempt.id)
            return prepare(assignment, layer)

    bench.executors["shell@1"] = Asking()
    key, _ = parked(site)
    publish(site)
    site.settle()

    assert worker_asked == [key.attempt_id, key.attempt_id]


@pytest.mark.req("O08", "C03", "C04")
def test_a_parked_attempt_leaves_its_slot_and_waits_for_one_when_it_is_woken(site: Site) -> None:
    site.configure(replace(DEFAULT, settings=replace(DEFAULT.settings, job_concurrency=1)))
    bench = site.bench()
    site.head()
    site.settle()
    key, _ = parked(site)
    other = site.submit_command()
    site.settle()
    assert site.attempt(other).state is S.RUNNING, "the slot was free"

    publish(site)
    site.elapse(2)

    work = site.work(work_of(key.attempt_id))
    assert (site.attempt(key.attempt_id).state, work.state, work.reason) == (
        S.PARKED, WorkState.WAITING, Reason.CAPACITY_JOB_CONCURRENCY,
    )  # fmt: skip
    site.host.shim(other).end(0)
    site.settle()
    assert site.attempt(key.attempt_id).state is S.RUNNING
    assert bench.worker.held == 1


@pytest.mark.req("O08", "R03")
def test_a_resume_that_is_lost_is_launched_again_and_still_told_its_wake(site: Site) -> None:
    first = site.bench("worker-1")
    head = site.head()
    key, _ = parked(site)
    publish(site)
    head.settle()
    first.step()
    assert site.attempt(key.attempt_id).state is S.RESUMING
    other = site.bench("worker-2")
    site.kill(first)

    head.settle()
    other.settle()

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.epoch, attempt.relaunches) == (S.RUNNING, 3, 1)
    assert json.loads(site.host.shim(key.attempt_id, 3).spec.env["TENURE_WAKE"])["type"] == "tick"
    assert site.host.runs(key.attempt_id) == 2


@pytest.mark.req("O08", "F01")
def test_a_resume_that_cannot_be_launched_is_tried_again_as_the_same_attempt(site: Site) -> None:
    """What it did before its wait it does not do twice: no next attempt begins from scratch."""
    site.bench()
    site.head()
    key, _ = parked(site)
    site.host.failing = [LaunchError("spawn", "no more processes")] * 2
    seq = publish(site)
    site.settle()
    attempt, work = site.attempt(key.attempt_id), site.work(work_of(key.attempt_id))
    assert (attempt.state, attempt.epoch, work.state, work.admission_failures) == (S.PARKED, 2, WorkState.WAITING, 1)
    timer = site.world.store.read(lambda tx: tx.timer(work.id))
    assert timer is not None
    assert "no more processes" in timer.why

    site.elapse(5)

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.epoch, attempt.number) == (S.RUNNING, 4, 1)
    assert json.loads(site.host.shim(key.attempt_id, 4).spec.env["TENURE_WAKE"])["seq"] == seq
    assert site.host.runs(key.attempt_id) == 2
    site.host.shim(key.attempt_id, 4).end(0)
    site.settle()
    work = site.work(work.id)
    assert (work.state, work.attempts_used, work.admission_failures) == (WorkState.COMPLETED, 1, 0)


@pytest.mark.req("O08", "F01")
def test_a_first_launch_that_came_to_nothing_is_followed_by_the_next_attempt(site: Site) -> None:
    """The control: nothing of it ever ran."""
    site.bench()
    site.head()
    site.host.failing = [LaunchError("spawn", "no more processes")]
    name = site.submit_command()

    site.elapse(3)

    assert (site.attempt(name).state, site.attempt(f"{work_of(name)}.2").state) == (S.FAILED, S.RUNNING)


@pytest.mark.req("F01")
def test_resumes_that_come_to_nothing_again_and_again_are_given_up(site: Site) -> None:
    site.bench()
    site.head()
    key, _ = parked(site)
    site.host.failing = [LaunchError("spawn", "no more processes")] * (ADMISSION_FAILURES_MAX + 1)
    publish(site)

    site.elapse(15 * 60, poll_s=30)

    attempt, work = site.attempt(key.attempt_id), site.work(work_of(key.attempt_id))
    assert (attempt.state, attempt.failure, attempt.epoch) == (
        S.FAILED,
        FailureClass.ADMISSION,
        ADMISSION_FAILURES_MAX + 2,
    )
    assert (work.state, work.reason, work.attempts_used) == (WorkState.FAILED, Reason.EXHAUSTED, 1)
    assert site.host.failing == []


@pytest.mark.req("O08", "R03")
def test_a_resume_lost_again_and_again_before_anything_ran_is_put_off(site: Site) -> None:
    site.configure(replace(DEFAULT, settings=replace(DEFAULT.settings, workers_lost_max=0)))
    head = site.head()
    bench = site.bench()
    site.settle()
    key, _ = parked(site)
    publish(site)
    for number in range(RELAUNCHES_MAX + 1):
        head.settle()
        bench.step()
        if number:
            bench.launches.run()  # it looks what became of the launch before, and takes it up
            bench.step()
        site.kill(bench)
        bench = site.bench(f"worker-{number + 2}")
    assert site.attempt(key.attempt_id).relaunches == RELAUNCHES_MAX

    site.settle()

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.exclusion_proof) == (S.PARKED, "S0")
    site.elapse(3)
    assert site.attempt(key.attempt_id).state is S.RUNNING


@pytest.mark.req("T05", "R10")
def test_a_cancelled_resume_that_never_ran_is_proven_stopped_whatever_ran_before_its_park(site: Site) -> None:
    bench = site.bench()
    head = site.head()
    key, _ = parked(site)
    publish(site)
    head.settle()
    site.cancel(key)
    site.settle()
    bench.settle()

    attempt = site.attempt(key.attempt_id)
    assert (attempt.state, attempt.exclusion, attempt.exclusion_proof) == (S.CANCELLED, "released", "S0")


@pytest.mark.req("O08")
def test_a_wait_without_resume_makes_the_work_ready_for_the_next_attempt(site: Site) -> None:
    site.bench()
    site.head()
    key, shim = running(site)
    declared(site, key, WAIT)
    shim.end(0)
    site.settle()
    work_id = work_of(key.attempt_id)
    assert (site.attempt(key.attempt_id).state, site.work(work_id).state) == (S.HANDED_OFF, WorkState.WAITING)

    publish(site)
    site.settle()

    assert site.work(work_id).state is WorkState.RUNNING
    assert json.loads(site.host.shim(f"{work_id}.2").spec.stdin or b"")["type"] == "tick"


@pytest.mark.req("O08")
def test_a_wait_with_a_bad_exit_status_is_a_failure(site: Site) -> None:
    bench = site.bench()
    key, shim = site.running(bench)
    declared(site, key, WAIT_TO_RESUME, TURN)
    shim.end(4)
    bench.settle()

    assert site.attempt(key.attempt_id).state is S.FAILED
    assert [one.kind for one in site.events(key.attempt_id)].count("execution.turn") == 1


@pytest.mark.req("O08")
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_park_whose_commit_is_not_answered_happens_once(site: Site, is_kept: bool) -> None:
    bench = site.bench()
    site.head()
    key, shim = running(site)
    declared(site, key, WAIT_TO_RESUME)
    bench.store.unanswered = ("park", is_kept)
    shim.end(0)
    bench.settle()
    site.elapse(3 if is_kept else 70)

    attempt = site.attempt(key.attempt_id)
    assert attempt.state is S.PARKED
    assert [one.kind for one in site.events(key.attempt_id)].count("attempt.parked") == 1


@pytest.mark.req("B02", "B03")
def test_usage_is_kept_with_the_attempt(site: Site) -> None:
    bench = site.bench()
    key, shim = site.running(bench)
    for number in (1, 2):
        declared(site, key, declaration_of(f"u-{number}", "usage", {"units": {"usd": "0.25"}}))
    shim.end(0)
    bench.settle()

    attempt = site.attempt(key.attempt_id)
    assert attempt.state is S.SUCCEEDED
    assert str(attempt.usage.amount("usd")) == "0.5"
