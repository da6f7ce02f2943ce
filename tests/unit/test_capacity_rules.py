"""The rules of capacity by name, each refusal beside its control. Rule: requirements C01–C04, E03."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.ids import Incarnation, WorkId
from shared.model.work import Reason
from shared.policy.capacity import Choice, Limits, ReadyWork, Usage, Wait, WorkerSlots, choose_starts, refusal_in

ONE = ReadyWork(WorkId("w1"), 1, "ops/backup", "jobs", "shell", unexcluded=False, resolved=True)
NO_LIMITS = Limits({}, {})
IDLE = Usage({})


def slots(name: str, free: int, executor: str = "shell") -> WorkerSlots:
    return WorkerSlots(Incarnation(name), free, frozenset({executor}))


def answer(work: ReadyWork, usage: Usage, limits: Limits) -> Wait | None:
    choice = choose_starts([work], usage, limits, [slots("worker-1.1", 9)])
    return choice.waits[0] if choice.waits else None


def placed(choice: Choice) -> list[str]:
    return [start.worker for start in choice.starts]


@pytest.mark.req("C01", "C04")
@pytest.mark.parametrize(
    ("pool", "reason"),
    [
        ("jobs", Reason.CAPACITY_JOB_CONCURRENCY),
        ("agents", Reason.CAPACITY_CONCURRENCY),
        ("gpu", Reason.CAPACITY_CONCURRENCY),
    ],
)
def test_a_full_pool_is_named(pool: str, reason: Reason) -> None:
    work, limits = replace(ONE, pool=pool), Limits({pool: 2}, {})
    assert answer(work, Usage({(pool, "elsewhere"): 1}), limits) is None, "control: a slot is left"

    assert answer(work, Usage({(pool, "elsewhere"): 2}), limits) == Wait(work.id, reason, pool)


@pytest.mark.req("C01", "C04")
@pytest.mark.parametrize("full", ["ops", "ops/backup"])
@pytest.mark.parametrize("pool", ["jobs", "agents"])
def test_a_full_scope_is_named_itself_or_its_ancestor_whatever_pool_filled_it(full: str, pool: str) -> None:
    limits = Limits({}, {full: 2})
    assert answer(ONE, Usage({(pool, "ops/backup"): 1}), limits) is None, "control: a slot is left"

    assert answer(ONE, Usage({(pool, "ops/backup"): 2}), limits) == Wait(ONE.id, Reason.CAPACITY_SCOPE, full)


def test_the_outermost_full_scope_is_named() -> None:
    wait = answer(ONE, Usage({("jobs", "ops/backup"): 3}), Limits({}, {"ops": 3, "ops/backup": 3}))

    assert wait is not None
    assert wait.limit == "ops"


@pytest.mark.parametrize("scope", ["ops2", "ops/backup2", "dev", "ops/backup/deeper", ""])
def test_a_full_scope_holds_back_only_what_lies_in_it(scope: str) -> None:
    usage, limits = Usage({("jobs", "ops/backup"): 1}), Limits({}, {"ops/backup": 1})
    inside = scope == "ops/backup/deeper"

    assert (answer(replace(ONE, scope=scope), usage, limits) is not None) is inside


@pytest.mark.parametrize(
    "limits", [NO_LIMITS, Limits({"jobs": 0}, {"ops": 0, "ops/backup": 0})], ids=["absent", "zero"]
)
def test_no_limit_and_zero_mean_unbounded(limits: Limits) -> None:
    assert answer(ONE, Usage({("jobs", "ops/backup"): 1_000}), limits) is None


@pytest.mark.req("E03", "R10", "C04")
def test_a_work_whose_earlier_stop_is_unproven_does_not_start() -> None:
    assert answer(ONE, IDLE, NO_LIMITS) is None, "control"

    assert answer(replace(ONE, unexcluded=True), IDLE, NO_LIMITS) == Wait(ONE.id, Reason.STOP_UNPROVEN, None)
    assert refusal_in(replace(ONE, unexcluded=True), IDLE, NO_LIMITS) == (Reason.STOP_UNPROVEN, None)


@pytest.mark.req("E09")
def test_a_work_whose_binding_is_gone_is_unsupported_and_replaced_by_nothing() -> None:
    assert answer(replace(ONE, resolved=False), IDLE, NO_LIMITS) == Wait(ONE.id, Reason.UNSUPPORTED_GENERATION, None)


@pytest.mark.req("C04")
@pytest.mark.parametrize(
    "workers", [[], [slots("worker-1.1", 0)], [slots("worker-1.1", 9, "agent")], [slots("worker-1.1", -1)]], ids=str
)
def test_without_a_worker_that_takes_it_a_work_waits_as_no_worker(workers: list[WorkerSlots]) -> None:
    choice = choose_starts([ONE], IDLE, NO_LIMITS, workers)

    assert choice == Choice((), (Wait(ONE.id, Reason.NO_WORKER, None),))


def test_a_work_that_no_worker_takes_uses_no_capacity() -> None:
    agent, shell = replace(ONE, executor="agent"), replace(ONE, id=WorkId("w2"))

    choice = choose_starts([agent, shell], IDLE, Limits({"jobs": 1}, {}), [slots("worker-1.1", 9)])

    assert [start.work_id for start in choice.starts] == ["w2"]


def test_starts_go_to_the_worker_with_most_free_slots_then_by_name() -> None:
    ready = [replace(ONE, id=WorkId(f"w{number}")) for number in range(1, 6)]

    choice = choose_starts(
        ready, IDLE, NO_LIMITS, [slots("worker-2.1", 2), slots("worker-1.1", 2), slots("worker-3.1", 3)]
    )

    assert placed(choice) == ["worker-3.1", "worker-1.1", "worker-2.1", "worker-3.1", "worker-1.1"]


def test_a_start_names_the_revision_it_was_decided_on() -> None:
    choice = choose_starts([replace(ONE, revision=41)], IDLE, NO_LIMITS, [slots("worker-1.1", 1)])

    assert [(start.work_id, start.revision, start.worker) for start in choice.starts] == [("w1", 41, "worker-1.1")]
