"""The start pass: what starts, what waits and why, and that nothing that cannot start hides what can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from coordinator import aside
from coordinator.starts import WINDOW_MAX, WINDOW_MIN, WINDOWS_MAX, Candidates
from shared.errors import StoreBusyError
from shared.ids import AttemptId, WorkId
from shared.model.instant import US_PER_S
from shared.model.settings import Binding, Config, ScopeConfig, Settings
from shared.model.work import NewWork, Reason, WorkState
from shared.store.sqlite.ballast import Ballast
from tests.support.sites import Head, Site

MANY = 3 * WINDOWS_MAX * WINDOW_MIN
A_PASS = WINDOWS_MAX * WINDOW_MAX
"""More than one pass looks at."""


@pytest.fixture
def head(site: Site) -> Head:
    """Who leads."""
    head = site.head()
    head.settle()
    return head


def submit(site: Site, count: int, *, scope: str = "", binding: str | None = None, priority: int = 0) -> list[WorkId]:
    command = ("true",) if binding is None else None
    work = NewWork(scope, binding, command, (), "/", None, "test", priority)
    return [site.world.store.write(lambda tx: tx.submit(work, "jobs")) for _ in range(count)]


def states(site: Site, works: list[WorkId]) -> list[tuple[WorkState, Reason | None]]:
    return [(site.work(work_id).state, site.work(work_id).reason) for work_id in works]


IN_THE_QUEUE = {
    (WorkState.READY, None),
    (WorkState.READY, Reason.CAPACITY_JOB_CONCURRENCY),
    (WorkState.READY, Reason.NO_WORKER),
}


def running(site: Site, works: list[WorkId]) -> list[WorkId]:
    return [work_id for work_id in works if site.work(work_id).state is WorkState.RUNNING]


@pytest.mark.req("E01", "C02")
def test_without_a_configuration_four_jobs_run_at_once_and_the_rest_follows_in_order(site: Site, head: Head) -> None:
    bench = site.bench()
    works = submit(site, 6)

    site.settle()
    site.elapse(1)  # the reasons are written late

    running, waiting = (WorkState.RUNNING, None), (WorkState.READY, Reason.CAPACITY_JOB_CONCURRENCY)
    assert states(site, works) == [running] * 4 + [waiting] * 2
    site.host.shim(f"{works[1]}.1").end(0)
    site.settle()
    assert states(site, works)[1:] == [(WorkState.COMPLETED, None), running, running, running, waiting]
    assert bench.worker.held == 4


@pytest.mark.req("C01", "C03")
@pytest.mark.parametrize("limit", [1, 3, 0])
def test_no_more_run_at_once_than_the_limit_and_zero_means_no_limit(site: Site, head: Head, limit: int) -> None:
    site.configure(Config(settings=Settings(job_concurrency=limit)))
    site.bench()
    works = submit(site, 9)

    site.settle()

    assert [site.work(work_id).state for work_id in works].count(WorkState.RUNNING) == (limit or 9)


@pytest.mark.req("C03", "R10")
def test_an_ended_attempt_holds_its_slot_until_its_stop_is_proven(site: Site, head: Head) -> None:
    site.configure(Config(settings=Settings(job_concurrency=1)))
    bench = site.bench()
    running, second = submit(site, 2)
    site.settle()
    site.cancel(bench.ports.holdings[AttemptId(f"{running}.1")].key)

    head.settle()
    assert site.work(second).state is WorkState.READY

    site.settle()
    assert site.work(second).state is WorkState.RUNNING, "control: with the proof it starts"


def test_higher_priority_first_then_the_oldest(site: Site, head: Head) -> None:
    site.configure(Config(settings=Settings(job_concurrency=2)))
    low, lower, high = (submit(site, 2, priority=priority) for priority in (1, 0, 5))
    site.bench()

    site.settle()

    assert running(site, [*low, *lower, *high]) == high


@pytest.mark.req("C01")
def test_a_full_scope_hides_nothing_however_many_wait_in_it(site: Site, head: Head) -> None:
    scopes = (ScopeConfig("ops", 1), ScopeConfig("ops/backup"))
    site.configure(Config(settings=Settings(job_concurrency=10), scopes=scopes))
    site.bench()
    inside = submit(site, MANY, scope="ops/backup")
    outside = submit(site, 2, scope="dev")

    head.step()
    started_at_once = [site.work(work_id).state for work_id in outside]
    site.settle()
    site.elapse(1)

    assert started_at_once == [WorkState.RUNNING] * 2, "what lies in a scope found full is not looked at again"
    assert states(site, outside) == [(WorkState.RUNNING, None)] * 2
    assert states(site, inside[:2]) == [(WorkState.RUNNING, None), (WorkState.READY, Reason.CAPACITY_SCOPE)]


@pytest.mark.req("S01", "C04")
def test_works_whose_binding_is_gone_hide_nothing_however_many_they_are(site: Site, head: Head) -> None:
    lost = submit(site, MANY, binding="gone")
    (fine,) = submit(site, 1)
    site.bench()

    site.settle()
    site.elapse(1)

    assert site.work(fine).state is WorkState.RUNNING
    assert set(states(site, lost)) == {(WorkState.READY, Reason.UNSUPPORTED_GENERATION)}


@pytest.mark.req("S01", "E02")
def test_works_whose_binding_is_gone_start_once_a_configuration_has_it_and_are_looked_at_no_more_until_then(
    site: Site, head: Head
) -> None:
    lost, elsewhere = submit(site, 4 * MANY, binding="back"), submit(site, 1, binding="gone")
    site.bench()
    site.settle()
    (urgent,) = submit(site, 1)
    before = len(site.done(head.me))
    head.step()
    assert site.work(urgent).state is WorkState.RUNNING, "in the first pass, however many wait for a configuration"
    assert not {"hold_back", "requeue"} & set(site.done(head.me)[before:]), "and none of those is told anew"

    site.configure(Config(settings=Settings(job_concurrency=3), bindings=(Binding("back", ("true",)),)))
    site.settle()

    assert running(site, lost) == lost[:2]
    assert set(states(site, lost[2:])) <= IN_THE_QUEUE
    assert states(site, elsewhere) == [(WorkState.READY, Reason.UNSUPPORTED_GENERATION)], "the control: still gone"


@pytest.mark.req("S01", "E02")
def test_a_configuration_that_came_while_works_were_set_aside_is_not_missed(site: Site, head: Head) -> None:
    """They are marked by a pass that knew the old one; the next pass knows the new one, and looks at what was marked meanwhile."""
    site.bench()
    head.settle()
    (lost,) = submit(site, 1, binding="back")
    between_look_and_claim(head, lambda: site.configure(Config(bindings=(Binding("back", ("true",)),))))

    site.settle()

    assert site.work(lost).state is WorkState.RUNNING


@pytest.mark.req("S01", "E02")
def test_a_new_leader_looks_again_at_what_the_one_before_set_aside(site: Site, head: Head) -> None:
    """It may have ended between a new configuration and its look at them."""
    lost = submit(site, aside.BOUND + 1, binding="back")
    head.settle()
    site.kill(head)
    site.configure(Config(bindings=(Binding("back", ("true",)),)))
    heir = site.head()

    heir.step()
    assert set(states(site, lost[:-1])) <= IN_THE_QUEUE
    assert site.work(lost[-1]).reason is Reason.UNSUPPORTED_GENERATION, "a pass looks at a bounded number …"
    heir.step()

    assert set(states(site, lost)) <= IN_THE_QUEUE, "… and the next one follows at once"
    assert heir.step() > site.clock.now().mono_us, "and then it rests"


@pytest.mark.req("F03", "S01")
def test_works_that_inherit_a_binding_in_quarantine_hide_nothing_and_start_when_it_ends_or_they_inherit_another(
    site: Site, head: Head
) -> None:
    bindings = (Binding("bad", ("false",)), Binding("good", ("true",)))
    scopes = {
        binding: (ScopeConfig("ops", binding=binding), ScopeConfig("dev", binding="bad")) for binding in ("bad", "good")
    }
    settings = Settings(job_concurrency=3)
    site.configure(Config(settings, scopes["bad"], bindings))
    site.world.store.write(lambda tx: tx.quarantine_binding("bad", by="test", reason="it fails"))
    inherit = NewWork("ops", None, None, (), "/", None, "test", 1)
    ops = [site.world.store.write(lambda tx: tx.submit(inherit, "jobs")) for _ in range(4 * MANY)]
    dev = site.world.store.write(lambda tx: tx.submit(replace(inherit, scope="dev"), "jobs"))
    site.bench()
    site.settle()
    (fine,) = submit(site, 1)

    head.step()

    assert site.work(fine).state is WorkState.RUNNING, "in the first pass, however many are held back"
    assert set(states(site, [*ops, dev])) == {(WorkState.READY, Reason.QUARANTINED)}
    site.configure(Config(settings, scopes["good"], bindings))
    site.settle()
    assert running(site, ops) == ops[:2]
    assert set(states(site, ops[2:])) <= IN_THE_QUEUE
    assert states(site, [dev]) == [(WorkState.READY, Reason.QUARANTINED)], "the control: it inherits what it did"
    site.world.store.write(lambda tx: tx.release_binding("bad", by="test", reason="mended"))
    site.settle()
    assert set(states(site, [dev])) <= IN_THE_QUEUE


@pytest.mark.req("F03", "S05")
def test_a_set_aside_work_that_cannot_be_read_is_told_and_starts_once_it_can(site: Site, head: Head) -> None:
    (lost,) = submit(site, 1, binding="back")
    site.bench()
    head.settle()
    with site.world.outsider() as outsider:
        outsider.execute("UPDATE work SET env = '[', revision = revision + 1 WHERE id = ?", (lost,))
    site.configure(Config(bindings=(Binding("back", ("true",)),)))
    site.settle()
    site.elapse(2)  # the mark is written late
    marked = site.world.store.read(lambda tx: tx.unreadable_rows(after=None, limit=9))
    assert [(row.table, row.key) for row in marked] == [("work", lost)]

    with site.world.outsider() as outsider:
        outsider.execute("UPDATE work SET env = '[]', revision = revision + 1 WHERE id = ?", (lost,))
    site.settle()

    assert site.work(lost).state is WorkState.RUNNING


@pytest.mark.req("F03", "S01")
def test_works_in_quarantine_hide_nothing_and_are_not_looked_at_again_and_again(site: Site, head: Head) -> None:
    site.configure(Config(bindings=(Binding("bad", ("false",)),)))
    held_back = submit(site, 4 * MANY, binding="bad", priority=1)
    site.world.store.write(lambda tx: tx.quarantine_binding("bad", by="test", reason="it fails"))
    site.settle()
    site.elapse(1)  # the reasons are written late
    site.bench()
    (fine,) = submit(site, 1)

    head.step()

    assert set(states(site, held_back)) == {(WorkState.READY, Reason.QUARANTINED)}
    assert site.work(fine).state is WorkState.RUNNING, "in the first pass, however many are held back"
    site.world.store.write(lambda tx: tx.release_binding("bad", by="test", reason="mended"))
    head.settle()
    started = running(site, held_back)
    assert started == held_back[: len(started)]
    assert started, "the control: once it is released"


@pytest.mark.req("S01")
def test_looking_at_many_that_cannot_start_comes_to_rest_and_still_sees_what_is_new_at_the_front(
    site: Site, head: Head
) -> None:
    submit(site, A_PASS, binding="gone")
    site.bench()
    head.step()  # cut short

    (urgent,) = submit(site, 1, priority=9)
    head.step()

    assert site.work(urgent).state is WorkState.RUNNING
    head.settle()


@pytest.mark.req("S01", "E07")
def test_a_pass_looks_at_a_bounded_number(site: Site, head: Head) -> None:
    submit(site, A_PASS, binding="gone")
    (fine,) = submit(site, 1)
    site.bench()

    head.step()

    assert site.work(fine).state is WorkState.READY, "that much is not looked at in one pass …"
    head.settle()
    assert site.work(fine).state is WorkState.RUNNING, "… and the next ones follow at once"


@pytest.mark.req("C04")
def test_without_a_worker_works_say_so_and_start_when_one_registers(site: Site, head: Head) -> None:
    works = submit(site, 2)
    head.settle()
    site.elapse(1)
    assert states(site, works) == [(WorkState.READY, Reason.NO_WORKER)] * 2

    site.bench()
    site.settle()

    assert states(site, works) == [(WorkState.RUNNING, None)] * 2


def test_starts_are_spread_over_workers_by_their_free_slots(site: Site, head: Head) -> None:
    site.configure(Config(settings=Settings(job_concurrency=0)))
    small, big = site.bench("worker-1", slots=2), site.bench("worker-2", slots=4)
    submit(site, 9)

    site.settle()

    assert (small.worker.held, big.worker.held) == (2, 4)


def between_look_and_claim(head: Head, happen: Callable[[], object]) -> None:
    """Let something happen once, after the leader looked at what is ready and before it claims."""
    read = head.store.read
    happened: list[object] = []

    def read_then_happen(fn: Callable[[Any], Any]) -> Any:
        found = read(fn)
        if isinstance(found, Candidates) and found.ready and not happened:
            happened.append(happen())
        return found

    head.store.read = read_then_happen  # type: ignore[method-assign]


@pytest.mark.req("E02")
def test_a_work_that_was_cancelled_between_look_and_claim_is_not_started(site: Site, head: Head) -> None:
    site.bench()
    cancelled, fine = submit(site, 2)
    cancel = partial(site.world.store.write, lambda tx: tx.cancel_work(cancelled, by="a test", reason="raced"))
    between_look_and_claim(head, cancel)

    site.settle()

    assert (site.work(cancelled).state, site.work(cancelled).attempts_used) == (WorkState.CANCELLED, 0)
    assert site.work(fine).state is WorkState.RUNNING, "one race undoes nothing else"


@pytest.mark.req("E02")
def test_a_claim_decided_under_an_old_configuration_is_decided_anew(site: Site, head: Head) -> None:
    old, new = (Config(bindings=(Binding(name="job", command=(word,)),)) for word in ("old", "new"))
    site.configure(old)
    site.bench()
    head.settle()
    (work_id,) = submit(site, 1, binding="job")
    between_look_and_claim(head, lambda: site.configure(new))

    site.settle()

    snapshot = site.world.store.read(lambda tx: tx.snapshot(AttemptId(f"{work_id}.1")))
    assert snapshot is not None
    assert (snapshot.command, snapshot.generation) == (("new",), 2)
    assert site.work(work_id).attempts_used == 1


@pytest.mark.req("M05", "C04")
def test_on_a_full_disk_claims_stop_without_a_busy_loop_and_resume_by_themselves(
    site: Site, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.bench()
    works = submit(site, 20)
    with monkeypatch.context() as full:
        full.setattr(Ballast, "is_there", lambda _: False)
        head.settle()
        site.elapse(2)
        assert set(states(site, works)[:4]) == {(WorkState.READY, Reason.DISK_FULL)}

    site.elapse(60)

    assert states(site, works)[:4] == [(WorkState.RUNNING, None)] * 4


@pytest.mark.req("M05", "K03")
def test_a_busy_store_delays_a_start_by_a_step(site: Site, head: Head) -> None:
    site.bench()
    site.settle()
    (work_id,) = submit(site, 1)
    head.store.busy_writes = 1
    with pytest.raises(StoreBusyError):
        head.step()

    head.step()

    assert site.work(work_id).state is WorkState.RUNNING


def test_a_silent_worker_is_given_nothing_new(site: Site, head: Head) -> None:
    silent = site.bench("worker-1")
    site.settle()
    site.stall(silent)
    site.elapse(21)  # a third of the lease

    (work_id,) = submit(site, 1)
    site.settle()
    assert site.work(work_id).state is WorkState.READY

    site.benches.append(silent)
    silent.settle()
    site.settle()
    assert site.work(work_id).state is WorkState.RUNNING, "control: after a sign of life it is"
    assert site.clock.now().mono_us > 20 * US_PER_S
