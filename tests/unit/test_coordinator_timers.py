"""Coordinator and worker together: failures are tried again by policy, once each, whoever dies in between."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from coordinator.recovery import BOUND
from shared.ids import AttemptId, WorkId, work_of
from shared.model.instant import US_PER_S
from shared.model.settings import Binding, Config, RetryPolicy, Settings
from shared.model.timer import TimerState
from shared.model.work import Reason, WorkState
from tests.support.sites import Head, Site
from tests.support.stores import BACKED_OFF, FAILED

POLICY = RetryPolicy(delays_us=(10 * US_PER_S, 20 * US_PER_S), on=("failure",))
CONFIG = Config(
    settings=Settings(quarantine_after=2),
    bindings=(Binding("flaky", ("false",), retry=POLICY), Binding("plain", ("false",))),
)


@pytest.fixture(autouse=True)
def head(site: Site) -> Head:
    site.configure(CONFIG)
    site.bench()
    head = site.head()
    site.settle()
    return head


def submitted(site: Site, binding: str) -> WorkId:
    work_id = work_of(site.submit(binding, input_=b"42"))
    site.settle()
    return work_id


def fail(site: Site, work_id: WorkId, status: int = 1) -> None:
    """Let its running attempt end."""
    assert site.work(work_id).state is WorkState.RUNNING
    site.host.shim(AttemptId(f"{work_id}.{site.work(work_id).attempts_used}")).end(status)
    site.settle()


@pytest.mark.req("O09", "O03", "F02")
def test_each_failure_is_tried_again_after_its_delay_until_the_policy_is_used_up(site: Site) -> None:
    work_id = submitted(site, "flaky")
    for number, delay_s in ((1, 10), (2, 20)):
        fail(site, work_id)
        assert site.work(work_id).state is WorkState.BACKOFF
        site.elapse(delay_s - 1)
        assert site.work(work_id).attempts_used == number, "not before"
        site.elapse(2)
        assert (site.work(work_id).state, site.work(work_id).attempts_used) == (WorkState.RUNNING, number + 1)

    fail(site, work_id)

    work = site.work(work_id)
    assert (work.state, work.reason, work.failures_used) == (WorkState.FAILED, Reason.EXHAUSTED, 3)


def backed_off(site: Site, count: int) -> list[WorkId]:
    """So many Works that wait for their next try, a minute, but for what passed before the clock began anew."""
    owner = site.world.worker()
    change = replace(BACKED_OFF, backoff_us=60 * US_PER_S)
    keys = [site.world.ended(owner, FAILED, change) for _ in range(count)]
    leader, generation = site.world.leader, site.world.generation
    assert leader is not None
    site.world.store.write(lambda tx: tx.resign(leader, generation))
    return [work_of(key.attempt_id) for key in keys]


def waits_us(site: Site, works: list[WorkId]) -> Counter[int | None]:
    """How many wait for how long yet, counted from when their clock began."""
    return Counter(site.work(work_id).backoff_us for work_id in works)


@pytest.mark.req("K01", "S01", "L01")
@pytest.mark.parametrize("reached", [True, False, None])
def test_many_timers_are_carried_over_a_reboot_by_bounded_passes_whoever_dies_between(
    site: Site, head: Head, reached: bool | None
) -> None:
    head.coordinator.leave()
    site.kill(head)
    works = backed_off(site, 2 * BOUND + 1)
    site.clock.reboot("boot-2", down_us=50 * US_PER_S)
    first = site.head()
    if reached is not None:  # it dies in its second pass, after or before the commit
        first.step()
        first.store.unanswered = ("carry_timers", reached)
        with pytest.raises(Exception, match="not answered"):
            first.step()
        assert waits_us(site, works)[10 * US_PER_S] == (2 if reached else 1) * BOUND
        site.kill(first)
        site.clock.advance(4 * US_PER_S)
        first = site.head()
    now_us, counts = site.clock.now().mono_us, [waits_us(site, works)[60 * US_PER_S]]
    while first.step() <= now_us:
        counts.append(waits_us(site, works)[60 * US_PER_S])

    left = {None: [2 * BOUND + 1, BOUND + 1, 1], True: [1], False: [BOUND + 1, 1]}[reached]
    assert counts == left, "passes follow at once, each of them bounded"
    assert waits_us(site, works).total() - waits_us(site, works)[10 * US_PER_S] == (0 if reached is None else left[0])
    site.clock.advance(10 * US_PER_S)
    first.settle()
    assert {site.work(work_id).state for work_id in works} == {WorkState.READY}
    fired = Counter(event.work_id for event in site.events() if event.kind == "retry.requested")
    assert fired == Counter(dict.fromkeys(works, 1)), "each was waited for, and none twice"


@pytest.mark.req("O09", "O14")
def test_a_success_ends_it_and_begins_the_count_anew(site: Site) -> None:
    work_id = submitted(site, "flaky")
    fail(site, work_id)
    site.elapse(11)

    fail(site, work_id, status=0)

    assert (site.work(work_id).state, site.work(work_id).failures_used) == (WorkState.COMPLETED, 0)


@pytest.mark.req("O13", "L01")
@pytest.mark.parametrize("reached", [True, False])
def test_a_coordinator_that_dies_while_it_fires_leaves_one_retry_to_the_next(
    site: Site, head: Head, reached: bool
) -> None:
    work_id = submitted(site, "flaky")
    fail(site, work_id)
    head.store.unanswered = ("fire_timer", reached)
    site.clock.advance(11 * US_PER_S)
    with pytest.raises(Exception, match="not answered"):
        head.step()
    site.kill(head)

    site.head()
    site.elapse(2)

    timer = site.world.store.read(lambda tx: tx.last_timer(work_id))
    assert timer is not None
    assert timer.state is TimerState.FIRED
    assert (site.work(work_id).state, site.work(work_id).attempts_used) == (WorkState.RUNNING, 2)
    assert len([event for event in site.events() if event.kind == "retry.requested"]) == 1


@pytest.mark.req("O13", "O09", "K01")
def test_a_retry_armed_before_a_reboot_comes_after_it(site: Site, head: Head) -> None:
    work_id = submitted(site, "flaky")
    fail(site, work_id)
    site.kill(head)
    site.kill(site.benches[0])
    site.clock.reboot("boot-2", down_us=4 * US_PER_S)
    site.host.restart()
    site.bench()
    site.head()
    site.settle()
    assert site.work(work_id).state is WorkState.BACKOFF

    site.elapse(7)

    assert (site.work(work_id).state, site.work(work_id).attempts_used) == (WorkState.RUNNING, 2)


@pytest.mark.req("O09", "O13")
def test_what_had_set_the_first_attempt_off_sets_its_retry_off(site: Site) -> None:
    work_id = submitted(site, "flaky")
    first = site.world.store.read(lambda tx: tx.snapshot(AttemptId(f"{work_id}.1")))
    fail(site, work_id)
    site.elapse(11)

    second = site.world.store.read(lambda tx: tx.snapshot(AttemptId(f"{work_id}.2")))

    assert first is not None
    assert second is not None
    assert (second.trigger, second.inputs) == (first.trigger, first.inputs)
    assert first.trigger is not None


@pytest.mark.req("F03", "C04")
def test_a_binding_that_keeps_failing_holds_its_work_back_until_a_person_releases_it(site: Site) -> None:
    for _ in range(2):
        fail(site, submitted(site, "plain"))
    work_id = submitted(site, "plain")
    site.elapse(2)
    assert (site.work(work_id).state, site.work(work_id).reason) == (WorkState.READY, Reason.QUARANTINED)
    other = submitted(site, "flaky")
    assert site.work(other).state is WorkState.RUNNING, "control: another binding starts"

    site.world.store.write(lambda tx: tx.release_binding("plain", by="me", reason="mended"))
    site.settle()

    assert site.work(work_id).state is WorkState.RUNNING
