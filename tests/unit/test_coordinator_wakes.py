"""The passes of a coordinator that go on with an event for which more wait than one commit wakes. Rule: O08, S01, S05."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from shared.ids import WorkId, work_of
from shared.model.wait import WAKES_MAX
from shared.model.work import WorkState
from tests.support.damage import damage
from tests.support.declarations import TICK, wait
from tests.support.sites import Site, open_site

MANY = 3 * WAKES_MAX + 1


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as site:
        yield site


def waiting(site: Site, count: int) -> list[WorkId]:
    """So many Works whose next attempt waits for a tick."""
    owner = site.world.worker()
    keys = [site.world.awaiting(owner, wait(resume=False, timer=None)) for _ in range(count)]
    leader, generation = site.world.leader, site.world.generation
    assert leader is not None
    site.world.store.write(lambda tx: tx.resign(leader, generation))
    return [work_of(key.attempt_id) for key in keys]


def publish(site: Site) -> int:
    return site.world.store.write(lambda tx: tx.publish(TICK))


def woken(site: Site) -> int:
    return sum(event.kind == "wait.satisfied" for event in site.events())


def data_given(site: Site, works: list[WorkId]) -> list[object]:
    """What each of these Works was told of the event that woke it."""
    pending = site.world.store.read(lambda tx: [tx.pending_inputs(work, limit=9) for work in works])
    numbers = [number for each in pending for number in each]
    return [json.loads(given.body)["data"] for given in site.world.store.read(lambda tx: tx.inputs(numbers))]


@pytest.mark.req("O08", "S01")
def test_passes_follow_at_once_until_all_are_woken(site: Site) -> None:
    works = waiting(site, MANY)
    publish(site)
    head = site.head()
    counts = [woken(site)]
    now_us = site.clock.now().mono_us

    while head.step() <= now_us:
        counts.append(woken(site))

    assert (counts, woken(site)) == ([WAKES_MAX, 2 * WAKES_MAX, 3 * WAKES_MAX], MANY)
    assert {site.work(work).state for work in works} == {WorkState.READY}
    assert data_given(site, works) == [1] * MANY


@pytest.mark.req("O08", "S01")
@pytest.mark.parametrize(("count", "is_written"), [(WAKES_MAX, False), (WAKES_MAX + 1, True)])
def test_a_pass_writes_for_it_only_when_there_is_something_left(site: Site, count: int, is_written: bool) -> None:
    waiting(site, count)
    publish(site)
    head = site.head()

    head.settle()

    assert ("wake_on" in site.done(head.me)) is is_written
    assert woken(site) == count


@pytest.mark.req("O08", "S05")
def test_a_damaged_event_wakes_whoever_still_waits_for_it_without_its_data(site: Site) -> None:
    """Were a pass to end of it, each further one would too."""
    works = waiting(site, WAKES_MAX + 1)
    seq = publish(site)
    damage(site.world.home, f"UPDATE event SET data = 'no JSON' WHERE seq = {seq}")

    site.head().settle()

    assert {site.work(work).state for work in works} == {WorkState.READY}
    assert sorted(map(str, data_given(site, works))) == ["1"] * WAKES_MAX + ["None"]
