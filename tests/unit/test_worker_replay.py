"""An unknown outcome: shown to a person, unless the binding says that running it again does no harm."""

from __future__ import annotations

import pytest

from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import AttemptState, Exclusion, FailureClass
from shared.model.instant import US_PER_S
from shared.model.settings import Binding, Config, Settings
from shared.model.stop import StopResult, Suspect
from shared.model.work import Reason, WorkState
from shared.process.launcher import LaunchError
from tests.support.sites import Bench, Head, Site
from worker.stopping import RETRY_US

SAFE = Binding(name="safe", command=("sync",), replay="safe")
NEVER = Binding(name="never", command=("pay",), replay="never")
SUSPECT = Suspect(pid=9, ppid=1, uid=0, started_ticks=4, state="D", command_line="dd", matched=("child",))
UNPROVEN = StopResult(None, (SUSPECT,), ("S5: something may live",), None)
PROVEN = StopResult("S5", (), (), None)


@pytest.fixture
def bench(site: Site) -> Bench:
    site.configure(Config(settings=Settings(job_concurrency=2), bindings=(NEVER, SAFE)))
    return site.bench()


@pytest.fixture(autouse=True)
def head(site: Site, bench: Bench) -> Head:
    head = site.head()
    site.settle()
    return head


def named(work_id: WorkId, number: int) -> AttemptId:
    return AttemptId(f"{work_id}.{number}")


def lose_the_outcome(site: Site, attempt_id: AttemptId) -> None:
    """Shim and job are killed together: nobody saw how it ended."""
    shim = site.host.shim(attempt_id)
    assert shim.ran
    shim.child_alive = False
    shim.die()


def submitted(site: Site, binding: str) -> WorkId:
    work_id = work_of(site.submit(binding, input_=b"42"))
    site.settle()
    return work_id


@pytest.mark.req("F01", "R10", "C04")
def test_where_it_is_safe_the_next_attempt_follows_only_once_the_stop_is_proven(site: Site) -> None:
    work_id = submitted(site, "safe")
    site.host.stops = [UNPROVEN, UNPROVEN, PROVEN]
    lose_the_outcome(site, named(work_id, 1))
    site.settle()

    first = site.attempt(named(work_id, 1))
    assert (first.state, first.failure) == (AttemptState.FAILED, FailureClass.AMBIGUOUS)
    assert (first.exclusion, first.ended_at_us is not None) == (Exclusion.HELD, True)
    site.elapse(1)
    work = site.work(work_id)
    assert (work.state, work.reason, work.attempts_used) == (WorkState.READY, Reason.STOP_UNPROVEN, 1)
    assert sum(site.world.store.read(lambda tx: tx.usage()).counts.values()) == 1, "its slot is held"

    site.elapse(RETRY_US / US_PER_S)
    assert site.work(work_id).attempts_used == 1, "control: looked at again, and still not proven"
    site.elapse(RETRY_US / US_PER_S)

    assert site.attempt(named(work_id, 1)).exclusion_proof == "S5"
    second = site.attempt(named(work_id, 2))
    assert (second.state, second.epoch, site.host.runs(second.id)) == (AttemptState.RUNNING, 1, 1)
    assert site.host.shim(second.id).spec.stdin == b"42", "with the same input"


@pytest.mark.req("F01", "M02", "R10")
def test_control_where_it_is_not_declared_safe_a_person_is_asked_and_nothing_follows(site: Site) -> None:
    work_id = submitted(site, "never")
    lose_the_outcome(site, named(work_id, 1))

    site.settle()
    site.elapse(3 * RETRY_US / US_PER_S)

    attempt = site.attempt(named(work_id, 1))
    assert (attempt.state, attempt.ended_at_us) == (AttemptState.RECOVERY_REQUIRED, None)
    assert (attempt.exclusion, site.orders(), site.host.stopped) == (Exclusion.HELD, [], [])
    assert (site.work(work_id).state, site.work(work_id).attempts_used) == (WorkState.RUNNING, 1)
    assert sum(site.world.store.read(lambda tx: tx.usage()).counts.values()) == 1


@pytest.mark.req("F01", "E01")
def test_three_attempts_in_all_then_the_work_is_exhausted(site: Site) -> None:
    work_id = submitted(site, "safe")

    for number in (1, 2, 3):
        assert site.work(work_id).state is WorkState.RUNNING
        site.host.stops = [PROVEN]
        lose_the_outcome(site, named(work_id, number))
        site.settle()

    work = site.work(work_id)
    assert (work.state, work.reason, work.attempts_used) == (WorkState.FAILED, Reason.EXHAUSTED, 3)
    assert [site.host.runs(named(work_id, number)) for number in (1, 2, 3)] == [1, 1, 1]


@pytest.mark.req("F01")
def test_an_attempt_that_may_be_repeated_and_ends_well_completes_its_work(site: Site) -> None:
    work_id = submitted(site, "safe")
    site.host.stops = [PROVEN]
    lose_the_outcome(site, named(work_id, 1))
    site.settle()

    site.host.shim(named(work_id, 2)).end(0)
    site.settle()

    assert (site.work(work_id).state, site.work(work_id).attempts_used) == (WorkState.COMPLETED, 2)


@pytest.mark.req("F01")
def test_a_known_failure_is_not_repeated_because_repeating_is_safe(site: Site) -> None:
    work_id = submitted(site, "safe")

    site.host.shim(named(work_id, 1)).end(3)
    site.settle()

    assert (site.work(work_id).state, site.work(work_id).attempts_used) == (WorkState.FAILED, 1)


@pytest.mark.req("F01")
def test_launches_that_came_to_nothing_are_not_counted_among_the_three(site: Site) -> None:
    site.host.failing = [LaunchError("spawn", "no more processes")] * 2
    work_id = submitted(site, "safe")
    site.elapse(4)
    assert site.attempt(named(work_id, 3)).state is AttemptState.RUNNING, "control: two failed before anything ran"

    for number in (3, 4, 5):
        assert site.work(work_id).state is WorkState.RUNNING, number
        site.host.stops = [PROVEN]
        lose_the_outcome(site, named(work_id, number))
        site.settle()

    assert (site.work(work_id).state, site.work(work_id).attempts_used) == (WorkState.FAILED, 5)


@pytest.mark.req("F01", "R04")
def test_after_a_reboot_the_stop_is_proven_by_it_and_the_next_attempt_follows_at_once(
    site: Site, bench: Bench, head: Head
) -> None:
    safe, never = submitted(site, "safe"), submitted(site, "never")
    site.kill(bench)
    site.stall(head)
    site.host.restart()
    site.clock.reboot("boot-2", down_us=30 * US_PER_S)
    site.head()
    site.bench("worker-2")

    site.settle()

    first = site.attempt(named(safe, 1))
    assert (first.state, first.failure, first.exclusion_proof) == (AttemptState.FAILED, FailureClass.AMBIGUOUS, "S3")
    assert site.attempt(named(safe, 2)).state is AttemptState.RUNNING
    assert site.attempt(named(never, 1)).state is AttemptState.RECOVERY_REQUIRED, "control"
    assert site.work(never).attempts_used == 1
