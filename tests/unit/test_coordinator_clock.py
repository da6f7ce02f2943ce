"""The wall clock jumps: it is noticed, told once, and changes nothing that goes by elapsed time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shared.errors import IndeterminateError, StoreBusyError
from shared.ids import AttemptId
from shared.model.attempt import AttemptState, LeaseKey
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.work import WorkState
from shared.process.launcher import LaunchError
from tests.support.sites import Head, Site, open_site
from tests.support.stores import LEASE_US

DAY_US = 86_400 * US_PER_S
JUMPS = pytest.mark.parametrize("by_us", [-DAY_US, -2 * US_PER_S, 2 * US_PER_S, DAY_US])


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as site:
        yield site


@pytest.fixture
def head(site: Site) -> Head:
    head = site.head()
    site.settle()
    site.elapse(2)  # its first pass is written
    return head


def told(site: Site) -> list[int]:
    """Each jump in the changefeed, in microseconds."""
    return [int(str(event.data["by_us"])) for event in site.events() if event.kind == "clock.jumped"]


def jumps_of_passes(site: Site) -> set[int | None]:
    """What the passes that are kept say of jumps."""
    rows = site.world.store._db.rows("SELECT clock_jump_us FROM pass")  # type: ignore[attr-defined]
    return {row[0] for row in rows}


@pytest.mark.req("K02")
@JUMPS
def test_a_jump_at_idle_is_told_once_and_everything_due_is_looked_at_anew(site: Site, head: Head, by_us: int) -> None:
    site.journal.clear()

    site.clock.step_wall(by_us)
    site.elapse(5)

    assert told(site) == [by_us]
    assert site.done(head.me, "record_clock_jump", "record_pass") == ["record_clock_jump", "record_pass"]
    record = site.world.store.read(lambda tx: tx.last_pass())
    assert record is not None
    assert (record.trigger, record.clock_jump_us) == ("clock", by_us)
    mark = site.world.store.read(lambda tx: tx.clock_mark())
    assert mark is not None
    assert mark.jumped_by_us == by_us


@pytest.mark.req("K02")
@pytest.mark.parametrize("by_us", [0, US_PER_S, -US_PER_S, 300 * US_PER_MS])
def test_without_a_jump_and_with_mere_drift_nothing_is_told(site: Site, head: Head, by_us: int) -> None:
    """The control."""
    site.journal.clear()

    for _ in range(3):
        site.clock.step_wall(by_us)
        site.elapse(61)  # drift adds up over passes, and is no jump all the same

    assert told(site) == []
    assert site.done(head.me, "record_clock_jump") == []
    assert jumps_of_passes(site) == {None}


@pytest.mark.req("K02")
@JUMPS
def test_a_jump_leaves_running_jobs_their_leases_and_their_time(site: Site, head: Head, by_us: int) -> None:
    bench = site.bench()
    site.settle()
    attempt_id = AttemptId(f"{site.world.submit()}.1")
    site.settle()
    key, shim = LeaseKey(attempt_id, 1, bench.me), site.host.shim(attempt_id)
    before = site.attempt(attempt_id)

    site.clock.step_wall(by_us)
    site.elapse(3 * LEASE_US / US_PER_S)

    after = site.attempt(key.attempt_id)
    assert (after.state, after.epoch, after.budget_us) == (AttemptState.RUNNING, 1, before.budget_us)
    assert site.lease_is_live(key)
    shim.end(0)
    site.settle()
    assert site.ends(key.attempt_id) == [AttemptState.SUCCEEDED]
    assert told(site) == [by_us]
    [segment] = site.segments(key.attempt_id)
    assert segment.active_us == site.clock.now().mono_us - before.budget_since_mono_us, "elapsed time, not the wall's"


@pytest.mark.req("K02")
@JUMPS
def test_a_backoff_is_neither_over_early_nor_delayed(site: Site, head: Head, by_us: int) -> None:
    bench = site.bench()
    site.settle()
    site.host.failing = [LaunchError("spawn", "no")]
    work_id = site.world.submit()
    site.settle()
    backoff_us = site.work(work_id).backoff_us
    assert backoff_us == US_PER_S

    site.clock.step_wall(by_us)
    site.clock.advance(backoff_us - 1)
    site.settle()
    assert site.work(work_id).state is WorkState.BACKOFF
    site.clock.advance(1)
    site.settle()

    assert (site.work(work_id).state, site.host.runs(f"{work_id}.2"), bench.worker.held) == (WorkState.RUNNING, 1, 1)


@pytest.mark.req("K02")
@pytest.mark.parametrize(("down_us", "left_us"), [(-50 * 365 * DAY_US, US_PER_S), (400_000, 600_000), (DAY_US, 0)])
def test_across_a_reboot_a_backoff_has_waited_what_the_wall_says_and_no_less_than_nothing(
    site: Site, head: Head, down_us: int, left_us: int
) -> None:
    """Also with a wall clock that begins in 1970 and is set later on."""
    bench = site.bench()
    site.settle()
    site.host.failing = [LaunchError("spawn", "no")]
    work_id = site.world.submit()
    site.settle()
    for one in (head, bench):
        site.kill(one)
    site.clock.reboot("boot-2", down_us=down_us)

    site.head()
    site.bench()
    site.settle()
    if left_us:
        site.clock.step_wall(DAY_US if down_us < 0 else -DAY_US)
        site.clock.advance(left_us - 1)
        site.settle()
        assert site.work(work_id).state is WorkState.BACKOFF
        site.clock.advance(1)
        site.settle()

    assert (site.work(work_id).state, site.host.runs(f"{work_id}.2")) == (WorkState.RUNNING, 1)
    assert len(told(site)) == (1 if left_us else 0), "of the boot itself nothing is told"


@pytest.mark.req("K02")
@JUMPS
def test_the_next_leader_tells_a_jump_that_came_while_nobody_led(site: Site, head: Head, by_us: int) -> None:
    site.kill(head)
    site.clock.step_wall(by_us)
    site.clock.advance(5 * US_PER_S)

    site.head()
    site.settle()
    site.elapse(3)

    assert told(site) == [by_us]


@pytest.mark.req("K02")
def test_a_leader_that_dies_right_after_telling_leaves_nothing_to_tell(site: Site, head: Head) -> None:
    """What waited to be written from before the jump must not put the old mark back."""
    site.world.submit()
    head.settle()  # a pass that is not written yet
    site.clock.step_wall(DAY_US)
    head.store.afterwards["record_clock_jump"] = lambda: 1 // 0
    with pytest.raises(ZeroDivisionError):
        head.step()
    site.kill(head)

    site.head()
    site.settle()
    site.elapse(3)

    assert told(site) == [DAY_US]


@pytest.mark.req("K02")
@pytest.mark.parametrize("reached", [True, False])
def test_a_commit_without_an_answer_tells_a_jump_neither_twice_nor_never(site: Site, head: Head, reached: bool) -> None:
    site.clock.step_wall(-DAY_US)
    head.store.unanswered = ("record_clock_jump", reached)
    with pytest.raises(IndeterminateError):
        head.step()

    site.settle()
    site.elapse(3)

    assert told(site) == [-DAY_US]


@pytest.mark.req("K02", "K05")
def test_a_jump_that_finds_the_store_busy_is_told_by_the_next_pass(site: Site, head: Head) -> None:
    site.clock.step_wall(DAY_US)
    head.store.busy_writes = 2
    for _ in range(2):
        with pytest.raises(StoreBusyError):
            head.step()

    site.elapse(3)

    assert told(site) == [DAY_US]
    record = site.world.store.read(lambda tx: tx.last_pass())
    assert record is not None
    assert (record.trigger, record.error) == ("clock", None)


@pytest.mark.req("K02")
def test_back_and_forth_are_two_jumps(site: Site, head: Head) -> None:
    site.clock.step_wall(DAY_US)
    site.elapse(2)
    site.clock.step_wall(-DAY_US)
    site.elapse(2)

    assert told(site) == [DAY_US, -DAY_US]
