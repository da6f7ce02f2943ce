"""Every pass leaves one record that says what it did, also when it failed half-way or was cut short."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from coordinator import recovery, starts
from coordinator.coordinator import Coordinator
from shared.errors import FenceViolationError, IndeterminateError, LeadershipLostError, StoreBusyError
from shared.model.host import PASSES_KEPT
from shared.model.instant import US_PER_S
from shared.model.settings import Config, Settings
from tests.support.sites import Head, Site, open_site
from tests.support.stores import LEASE_US

COUNTS = ("planned", "claimed", "dispatched", "recovered", "revoked", "waiting_jobs", "waiting_agents")


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as site:
        yield site


@pytest.fixture
def head(site: Site) -> Head:
    site.configure(Config(settings=Settings(job_concurrency=3)))
    head = site.head()
    site.settle()
    site.elapse(2)
    return head


def records(site: Site, head: Head) -> list[dict[str, Any]]:
    """Every record, in order, once what waits is written."""
    head.coordinator._notes.flush()
    rows = site.world.store._db.rows("SELECT * FROM pass ORDER BY seq")  # type: ignore[attr-defined]
    return [dict(row) for row in rows]


def counts(record: dict[str, Any]) -> tuple[object, ...]:
    return tuple(record[name] for name in COUNTS)


@pytest.fixture
def passes_made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each pass that is begun, by whomever."""
    made: list[int] = []
    do_pass = Coordinator._do_pass

    def counted(self: Coordinator, *arguments: Any) -> None:
        made.append(len(made))
        do_pass(self, *arguments)

    monkeypatch.setattr(Coordinator, "_do_pass", counted)
    return made


@pytest.mark.req("K05")
def test_each_pass_leaves_exactly_one_record_whatever_became_of_it(
    site: Site, head: Head, passes_made: list[int]
) -> None:
    before = len(records(site, head))
    site.bench()
    for number in range(40):
        site.world.submit()
        head.store.busy_writes = number % 3
        for _ in range(4):
            try:
                head.step()
            except StoreBusyError:
                continue
        site.clock.advance(700_000)

    written = records(site, head)[before:]

    assert len(written) == len(passes_made)
    errors = [record["error"] for record in written]
    assert {None, "store_busy"} == set(errors)


@pytest.mark.req("K05")
def test_a_pass_that_was_cut_short_says_so_and_so_does_each_that_goes_on(
    site: Site, head: Head, passes_made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = site.bench()
    site.settle()
    for _ in range(3):
        site.world.submit()
    site.settle()
    for key in site.world.store.read(lambda tx: tx.held(bench.me)):
        site.world.release(key)
    monkeypatch.setattr(recovery, "BOUND", 1)
    before = len(records(site, head))
    passes_made.clear()

    head.settle()

    written = records(site, head)[before:]
    assert len(written) == len(passes_made)
    assert [record["recovered"] for record in written][:3] == [1, 1, 1]
    assert [record["cut_short"] for record in written] == [1, 1, 1] + [0] * (len(written) - 3)


@pytest.mark.req("K05")
def test_a_record_says_when_it_was_due_when_it_began_and_what_came_of_it(site: Site, head: Head) -> None:
    first, second = site.bench("worker-1"), site.bench("worker-2")
    for _ in range(5):
        site.world.submit()
    site.settle()
    site.kill(first if first.worker.held else second)
    held = (first if first.worker.held else second).worker.held
    due_us = site.clock.now().wall_us
    site.clock.advance(US_PER_S)
    for bench in site.benches:
        bench.settle()

    head.step()

    record = records(site, head)[-1]
    assert (record["trigger"], record["error"], record["cut_short"]) == ("wake", None, 0)
    assert record["started_at_us"] == site.clock.now().wall_us
    assert due_us <= record["due_at_us"] <= record["started_at_us"]
    assert held > 0
    assert counts(record) == (None, 0, held, held, held, 2, 0)
    events = [event.kind for event in site.events()]
    assert events.count("attempt.taken_over") == held
    assert events.count("attempt.claimed") == 3


@pytest.mark.req("K05")
def test_an_attempt_out_of_time_is_recovered_and_given_to_nobody(site: Site, head: Head) -> None:
    bench = site.bench()
    site.settle()
    work_id = site.world.submit()
    site.settle()
    [timeout_us] = [site.attempt(f"{work_id}.1").budget_us]
    site.stall(bench)
    site.clock.advance(timeout_us + LEASE_US)
    site.head()  # the one before has lost its leadership meanwhile, too

    site.heads[-1].step()

    record = records(site, site.heads[-1])[-1]
    assert counts(record) == (None, 0, 0, 1, 0, 0, 0)


@pytest.mark.req("K05")
def test_a_pass_that_fails_names_its_error_and_leaves_open_what_it_did_not_come_to(
    site: Site, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its first part, in its last, and between two batches of claims."""

    def failing(*_: object, **__: object) -> None:
        raise StoreBusyError("busy, as told")

    site.bench()
    site.settle()
    with monkeypatch.context() as patch:
        patch.setattr(recovery.Recovery, "run", failing)
        site.world.submit()
        with pytest.raises(StoreBusyError):
            head.step()
    assert counts(records(site, head)[-1]) == (None,) * 7
    with monkeypatch.context() as patch:
        patch.setattr(starts.Starts, "_run_pool", failing)
        with pytest.raises(StoreBusyError):
            head.step()
    assert counts(records(site, head)[-1]) == (None, 0, 0, 0, 0, 0, 0)

    site.world.submit()
    monkeypatch.setattr(starts, "CLAIMS_PER_COMMIT", 1)
    head.store.afterwards["claim"] = lambda: setattr(head.store, "busy_writes", 1)
    with pytest.raises(StoreBusyError):
        head.step()

    record = records(site, head)[-1]
    assert (record["error"], counts(record)) == ("store_busy", (None, 1, 1, 0, 0, 0, 0))
    assert [event.kind for event in site.events()].count("attempt.claimed") == 1
    head.settle()
    assert records(site, head)[-1]["error"] is None, "and the next one goes on"
    assert [event.kind for event in site.events()].count("attempt.claimed") == 2


@pytest.mark.req("K05")
@pytest.mark.parametrize("error", [FenceViolationError("a bug"), RuntimeError("another")])
def test_an_error_that_ends_the_coordinator_is_on_record_before_it_does(
    site: Site, head: Head, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(starts.Starts, "run", failing)
    site.world.submit()

    with pytest.raises(type(error)):
        head.step()

    last = site.world.store.read(lambda tx: tx.last_pass())
    assert last is not None
    assert last.error == {FenceViolationError: "fence_violation", RuntimeError: "RuntimeError"}[type(error)]


@pytest.mark.req("K05")
def test_a_claim_whose_commit_was_not_answered_is_not_counted(site: Site, head: Head) -> None:
    site.bench()
    site.settle()
    site.world.submit()
    head.store.unanswered = ("claim", True)

    with pytest.raises(IndeterminateError):
        head.step()

    record = records(site, head)[-1]
    assert (record["error"], record["claimed"]) == ("indeterminate", 0)


@pytest.mark.req("K05", "L01")
def test_a_pass_in_which_the_leadership_was_lost_is_written_when_it_leads_again(
    site: Site, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise LeadershipLostError(1, 2)

    generation = head.leadership.generation
    with monkeypatch.context() as patch:
        patch.setattr(recovery.Recovery, "run", failing)
        site.world.submit()
        head.step()
    assert not head.coordinator.leads
    site.clock.advance(20 * US_PER_S)

    head.settle()

    lost = [record for record in records(site, head) if record["error"] == "leadership_lost"]
    assert [record["generation"] for record in lost] == [generation]


@pytest.mark.req("K05", "S03")
def test_a_store_that_stays_busy_makes_no_endless_list(site: Site, head: Head) -> None:
    site.bench()
    site.settle()
    site.world.submit()
    head.store.busy_writes = PASSES_KEPT + 50
    for _ in range(PASSES_KEPT + 50):
        with pytest.raises(StoreBusyError):
            head.step()

    assert len(head.coordinator._notes._passes) == PASSES_KEPT
    head.settle()
    assert len(records(site, head)) == PASSES_KEPT
