"""Who starts: limits are never exceeded, order is kept, a full pool blocks no other, and each refusal names what is full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.ids import Incarnation, WorkId
from shared.model.work import Reason
from shared.policy.capacity import (
    Choice,
    Limits,
    ReadyWork,
    Start,
    Usage,
    Wait,
    WorkerSlots,
    choose_starts,
    refusal_in,
)

SCOPES = ("", "ops", "ops/backup", "ops/backup/nightly", "ops2", "dev")
POOLS = ("jobs", "agents", "gpu")


class Situation(NamedTuple):
    ready: list[ReadyWork]
    usage: Usage
    limits: Limits
    workers: list[WorkerSlots]

    def choose(self) -> Choice:
        return choose_starts(self.ready, self.usage, self.limits, self.workers)


def work(number: int, *, pool: str = "jobs", scope: str = "", executor: str = "shell") -> ReadyWork:
    return ReadyWork(
        id=WorkId(f"w{number}"),
        revision=number + 100,
        scope=scope,
        pool=pool,
        executor=executor,
        unexcluded=False,
        resolved=True,
    )


def worker(name: str, free: int, *executors: str) -> WorkerSlots:
    return WorkerSlots(Incarnation(name), free, frozenset(executors or ("shell",)))


SMALL = st.integers(0, 4)
WORKS = st.lists(
    st.builds(
        ReadyWork,
        id=st.just(WorkId("w0")),
        revision=st.integers(1, 9),
        scope=st.sampled_from(SCOPES),
        pool=st.sampled_from(POOLS),
        executor=st.sampled_from(("shell", "agent")),
        unexcluded=st.sampled_from((False, False, False, True)),
        resolved=st.sampled_from((True, True, True, False)),
    ),
    max_size=14,
).map(lambda works: [replace(each, id=WorkId(f"w{number}")) for number, each in enumerate(works, 1)])
USAGE = st.dictionaries(st.tuples(st.sampled_from(POOLS), st.sampled_from(SCOPES)), SMALL, max_size=5).map(Usage)
LIMITS = st.builds(
    Limits,
    pools=st.dictionaries(st.sampled_from(POOLS), SMALL),
    scopes=st.dictionaries(st.sampled_from(SCOPES[1:]), SMALL),
)
WORKERS = st.lists(st.tuples(st.integers(-1, 5), st.sets(st.sampled_from(("shell", "agent")))), max_size=4).map(
    lambda drawn: [worker(f"worker-{n}.1", free, *(names or {"none"})) for n, (free, names) in enumerate(drawn)]
)
SITUATIONS = st.builds(Situation, WORKS, USAGE, LIMITS, WORKERS)


def pool_counts(usage: Usage, started: Sequence[ReadyWork]) -> Counter[str]:
    held = Counter[str]()
    for (pool, _), count in usage.counts.items():
        held[pool] += count
    return held + Counter(each.pool for each in started)


def scope_counts(usage: Usage, started: Sequence[ReadyWork]) -> Counter[str]:
    """By scope, counting what is in it and below it, of every pool."""
    places = [scope for (_, scope), count in usage.counts.items() for _ in range(count)]
    places += [each.scope for each in started]
    return Counter(name for place in places for name in SCOPES[1:] if f"{place}/".startswith(f"{name}/"))


def started_of(situation: Situation, choice: Choice) -> list[ReadyWork]:
    ids = {start.work_id for start in choice.starts}
    return [each for each in situation.ready if each.id in ids]


# ------------------------------------------------------------------------------------------------ invariants


def is_pool_limit_kept(situation: Situation, choice: Choice) -> bool:
    before, after = pool_counts(situation.usage, ()), pool_counts(situation.usage, started_of(situation, choice))
    return all(after[pool] <= max(limit, before[pool]) for pool, limit in situation.limits.pools.items() if limit)


def is_scope_limit_kept(situation: Situation, choice: Choice) -> bool:
    before, after = scope_counts(situation.usage, ()), scope_counts(situation.usage, started_of(situation, choice))
    return all(after[scope] <= max(limit, before[scope]) for scope, limit in situation.limits.scopes.items() if limit)


def is_worker_able(situation: Situation, choice: Choice) -> bool:
    by_name = {each.id: each for each in situation.workers}
    executor = {each.id: each.executor for each in situation.ready}
    given_to = Counter(start.worker for start in choice.starts)
    fits = all(executor[start.work_id] in by_name[start.worker].executors for start in choice.starts)
    return fits and all(count <= by_name[name].free for name, count in given_to.items())


def is_each_work_answered_once_in_order(situation: Situation, choice: Choice) -> bool:
    order = [each.id for each in situation.ready]
    starts, waits = [start.work_id for start in choice.starts], [wait.work_id for wait in choice.waits]
    return sorted(starts + waits, key=order.index) == order and all(
        part == sorted(part, key=order.index) for part in (starts, waits)
    )


def is_older_of_its_kind_first(situation: Situation, choice: Choice) -> bool:
    """Of two Works that count against the same things, the newer never starts before the older."""
    starts = {start.work_id for start in choice.starts}
    passed_over: set[tuple[str, str, str]] = set()
    for each in situation.ready:
        kind = (each.pool, each.scope, each.executor)
        if each.id in starts and kind in passed_over:
            return False
        if each.id not in starts and each.resolved and not each.unexcluded:
            passed_over.add(kind)
    return True


def is_refusal_true_and_named(situation: Situation, choice: Choice) -> bool:
    """What a wait names is really full once the starts of this pass are counted (they only ever add)."""
    started = started_of(situation, choice)
    pools, scopes = pool_counts(situation.usage, started), scope_counts(situation.usage, started)
    by_id = {each.id: each for each in situation.ready}
    for wait in choice.waits:
        each = by_id[wait.work_id]
        match wait.reason:
            case Reason.CAPACITY_SCOPE:
                name = wait.limit or ""
                true = f"{each.scope}/".startswith(f"{name}/") and scopes[name] >= situation.limits.scopes[name] > 0
            case Reason.CAPACITY_JOB_CONCURRENCY | Reason.CAPACITY_CONCURRENCY:
                jobs = wait.reason is Reason.CAPACITY_JOB_CONCURRENCY
                full = pools[each.pool] >= situation.limits.pools[each.pool] > 0
                true = wait.limit == each.pool and full and jobs == (each.pool == "jobs")
            case Reason.STOP_UNPROVEN:
                true = each.unexcluded and each.resolved and wait.limit is None
            case Reason.UNSUPPORTED_GENERATION:
                true = not each.resolved and wait.limit is None
            case _:
                taken = Counter(start.worker for start in choice.starts)
                idle = [w for w in situation.workers if w.free > taken[w.id] and each.executor in w.executors]
                true = wait.reason is Reason.NO_WORKER and wait.limit is None and not idle
        if not true:
            return False
    return True


def is_unexcluded_never_started(situation: Situation, choice: Choice) -> bool:
    return all(each.resolved and not each.unexcluded for each in started_of(situation, choice))


INVARIANTS = (
    is_pool_limit_kept,
    is_scope_limit_kept,
    is_worker_able,
    is_each_work_answered_once_in_order,
    is_older_of_its_kind_first,
    is_refusal_true_and_named,
    is_unexcluded_never_started,
)


@pytest.mark.req("C01", "C02", "E03", "R10")
@given(SITUATIONS)
@example(
    Situation([work(1, scope="ops/backup"), work(2, scope="ops")], Usage({}), Limits({}, {"ops": 1}), [worker("a", 9)])
)
def test_no_situation_violates_an_invariant(situation: Situation) -> None:
    choice = situation.choose()

    assert [rule.__name__ for rule in INVARIANTS if not rule(situation, choice)] == []


@pytest.mark.req("C01")
@given(SITUATIONS)
def test_the_recheck_in_the_claim_agrees_with_the_choice(situation: Situation) -> None:
    choice = situation.choose()
    waits = {wait.work_id: wait for wait in choice.waits}
    counts = dict(situation.usage.counts)

    for each in situation.ready:
        refusal = refusal_in(each, Usage(counts), situation.limits)
        if each.id not in waits:
            assert refusal is None
            counts[each.pool, each.scope] = counts.get((each.pool, each.scope), 0) + 1
        elif waits[each.id].reason is Reason.NO_WORKER:
            assert refusal is None
        else:
            assert refusal == (waits[each.id].reason, waits[each.id].limit)


@pytest.mark.req("C02")
@given(SITUATIONS)
def test_a_full_pool_never_blocks_another(situation: Situation) -> None:
    """Without limits on scopes and workers, what starts in a pool is the same whatever is ready in the others."""
    free = situation._replace(
        limits=Limits(situation.limits.pools, {}), workers=[worker("worker-1.1", 99, "shell", "agent")]
    )
    together = {start.work_id for start in free.choose().starts}

    for pool in POOLS:
        alone = free._replace(ready=[each for each in free.ready if each.pool == pool])
        assert {start.work_id for start in alone.choose().starts} == together & {each.id for each in alone.ready}


@given(SITUATIONS)
def test_without_limits_everything_sound_starts(situation: Situation) -> None:
    free = situation._replace(limits=Limits({}, {}), workers=[worker("worker-1.1", 99, "shell", "agent")])

    starts = {start.work_id for start in free.choose().starts}

    assert starts == {each.id for each in situation.ready if each.resolved and not each.unexcluded}


# ------------------------------------------------------------------------------------------------ controls of the invariants

FOUR = [work(number, scope="ops/backup") for number in (1, 2, 3, 4)]
BUSY = Situation(FOUR, Usage({("jobs", "ops"): 1}), Limits({"jobs": 3}, {"ops": 3}), [worker("a", 2), worker("b", 1)])


def start(number: int, name: str = "a") -> Start:
    return Start(WorkId(f"w{number}"), number + 100, Incarnation(name))


def wait(number: int, reason: Reason = Reason.CAPACITY_SCOPE, limit: str | None = "ops") -> Wait:
    return Wait(WorkId(f"w{number}"), reason, limit)


WAITS = (wait(3, Reason.CAPACITY_JOB_CONCURRENCY, "jobs"), wait(4, Reason.CAPACITY_JOB_CONCURRENCY, "jobs"))
BROKEN: dict[str, tuple[Situation, Choice, Callable[[Situation, Choice], bool]]] = {
    "one start too many in the pool": (
        BUSY._replace(limits=Limits({"jobs": 2}, {})),
        Choice((start(1), start(2)), WAITS),
        is_pool_limit_kept,
    ),
    "an ancestor's limit forgotten": (
        BUSY._replace(limits=Limits({}, {"ops": 2})),
        Choice((start(1), start(2)), WAITS),
        is_scope_limit_kept,
    ),
    "more than a worker takes": (BUSY, Choice((start(1, "b"), start(2, "b")), WAITS), is_worker_able),
    "a worker without the executor": (
        BUSY._replace(workers=[worker("a", 9, "agent")]),
        Choice((start(1),), ()),
        is_worker_able,
    ),
    "a Work unanswered": (BUSY, Choice((start(1),), WAITS), is_each_work_answered_once_in_order),
    "a newer Work first": (
        BUSY,
        Choice((start(2), start(3)), (wait(1), wait(4))),
        is_older_of_its_kind_first,
    ),
    "a limit named that is not full": (BUSY, Choice((), tuple(map(wait, (1, 2, 3, 4)))), is_refusal_true_and_named),
    "no worker said, and there is one": (
        BUSY,
        Choice((), tuple(wait(n, Reason.NO_WORKER, None) for n in (1, 2, 3, 4))),
        is_refusal_true_and_named,
    ),
    "an unexcluded Work started": (
        BUSY._replace(ready=[replace(FOUR[0], unexcluded=True)]),
        Choice((start(1),), ()),
        is_unexcluded_never_started,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_choice_violates_the_invariant_of_its_fault(name: str) -> None:
    situation, choice, rule = BROKEN[name]

    assert rule(situation, situation.choose()), "control: the choice made is sound"
    assert not rule(situation, choice)


def test_every_invariant_is_shown_to_fire() -> None:
    assert {rule for _, _, rule in BROKEN.values()} == set(INVARIANTS)
