"""An attempt is launched, recovered and controlled by exactly the executor registration it pinned, never by a replacement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from coordinator.starts import WINDOW_MAX, WINDOWS_MAX
from shared.ids import AttemptId
from shared.model.attempt import AttemptState, Snapshot
from shared.model.instant import US_PER_S
from shared.model.settings import Binding, Config, Settings
from shared.model.work import Reason, WorkState
from shared.process.launcher import LaunchSpec
from shared.store.contract import Assignment, ReadyPage
from shared.store.sqlite.ready_reads import ReadyReads
from tests.support.declarations import TICK
from tests.support.sites import Bench, Head, Site
from tests.support.stores import LEASE_US
from worker.executors.shell import ShellExecutor


class Shell(ShellExecutor):
    """A version of the shell that notes what it was asked to prepare."""

    def __init__(self) -> None:
        super().__init__({}, None)
        self.prepared: list[AttemptId] = []

    def prepare(self, assignment: Assignment, layer: Mapping[str, str]) -> LaunchSpec:
        """See `Executor.prepare`."""
        self.prepared.append(assignment.key.attempt_id)
        return super().prepare(assignment, layer)


@pytest.fixture
def head(site: Site) -> Head:
    site.configure(Config(bindings=(Binding(name="job", command=("old",)),)))
    head = site.head()
    head.settle()
    return head


@pytest.fixture
def old(site: Site, head: Head) -> Bench:
    """A worker of the version that the attempts pin."""
    bench = site.bench("worker-1", executors={"shell@1": Shell()})
    site.settle()
    return bench


def newer(site: Site, name: str = "worker-2") -> tuple[Bench, Shell]:
    """A worker of the next version, which does not offer the old registration any more."""
    shell = Shell()
    return site.bench(name, executors={"shell@2": shell}), shell


def pinned(site: Site, attempt_id: AttemptId) -> Snapshot:
    snapshot = site.world.store.read(lambda tx: tx.snapshot(attempt_id))
    assert snapshot is not None
    return snapshot


@pytest.mark.req("E08", "E09")
@pytest.mark.parametrize("stage", ["claimed", "running"])
def test_an_attempt_whose_pinned_registration_nobody_offers_waits_and_is_claimed_at_once_when_somebody_does(
    site: Site, head: Head, old: Bench, stage: str
) -> None:
    attempt_id = site.submit("job")
    if stage == "running":
        site.settle()
    else:
        head.settle()
    replacement, shell = newer(site)
    site.kill(old)

    site.elapse(2 * LEASE_US / US_PER_S)

    assert (site.attempt(attempt_id).epoch, replacement.worker.held) == (1, 0)
    assert shell.prepared == []
    assert pinned(site, attempt_id).registration == "shell@1"

    both = {"shell@1": Shell(), "shell@2": Shell()}
    able = site.bench("worker-3", executors=both)
    site.settle()

    attempt = site.attempt(attempt_id)
    assert (attempt.state, attempt.epoch, attempt_id in able.ports.holdings) == (AttemptState.RUNNING, 2, True)
    assert both["shell@1"].prepared == ([attempt_id] if stage == "claimed" else [])
    assert (both["shell@2"].prepared, shell.prepared, site.host.runs(attempt_id)) == ([], [], 1)


@pytest.mark.req("E08", "E09")
def test_of_two_workers_the_one_that_offers_it_takes_it_however_busy_it_is(site: Site, head: Head, old: Bench) -> None:
    busy = site.bench("worker-9", executors={"shell@1": Shell()})
    site.settle()
    for _ in range(3):
        site.submit("job")
    site.settle()
    idle, _ = newer(site)
    held = set(old.ports.holdings)
    assert held, "control: it held some"
    site.kill(old)

    site.settle()

    assert held <= set(busy.ports.holdings)
    assert idle.worker.held == 0


@pytest.mark.req("E09", "C04")
def test_a_start_waits_for_a_worker_that_offers_its_executor(site: Site, head: Head) -> None:
    other, shell = newer(site)
    site.settle()
    attempt_id = site.submit("job")
    site.settle()
    site.elapse(1)

    work = site.work(attempt_id.removesuffix(".1"))
    assert (work.state, work.reason, work.attempts_used) == (WorkState.READY, Reason.NO_WORKER, 0)
    assert (other.worker.held, shell.prepared) == (0, [])

    site.bench("worker-3", executors={"shell@1": Shell()})
    site.settle()
    assert site.attempt(attempt_id).state is AttemptState.RUNNING, "control"


@pytest.mark.req("E09", "E08", "E02")
def test_after_a_reload_an_old_attempt_is_recovered_as_it_was_pinned_and_a_new_one_uses_the_new_configuration(
    site: Site, head: Head, old: Bench
) -> None:
    attempt_id = site.submit("job")
    head.settle()
    site.configure(Config(bindings=(Binding(name="job", command=("new",), timeout_us=US_PER_S),)))
    site.kill(old)
    site.bench("worker-2", executors={"shell@1": Shell()})

    site.settle()
    later = site.submit("job")
    site.settle()

    assert site.attempt(attempt_id).relaunches == 1
    assert [site.host.shim(attempt_id, 2).spec.argv, site.host.shim(later).spec.argv] == [("old",), ("new",)]
    assert [pinned(site, one).generation for one in (attempt_id, later)] == [1, 2]
    assert [pinned(site, one).timeout_us for one in (attempt_id, later)] == [3600 * US_PER_S, US_PER_S]


@pytest.mark.req("E09", "E08")
def test_a_running_attempt_outlives_a_configuration_that_knows_its_binding_no_more(
    site: Site, head: Head, old: Bench
) -> None:
    attempt_id = site.submit("job")
    site.settle()
    site.configure(Config())
    site.kill(old)
    site.bench("worker-2", executors={"shell@1": Shell()})

    site.settle()
    site.host.shim(attempt_id).end(0)
    site.settle()

    assert site.attempt(attempt_id).state is AttemptState.SUCCEEDED
    late = site.submit("job")
    site.settle()
    site.elapse(1)
    work = site.work(late.removesuffix(".1"))
    assert (work.state, work.reason) == (WorkState.READY, Reason.UNSUPPORTED_GENERATION), "control: nothing new starts"


@pytest.mark.req("C02", "E09")
def test_works_whose_executor_nobody_offers_hide_no_other_work_behind_them(site: Site) -> None:
    """As many of them as one pass looks at, in the same pool."""
    agents = tuple(Binding(name, command=("speak",), executor=name) for name in ("agent", "claude-code"))
    site.configure(Config(bindings=agents))
    head = site.head()
    site.bench(executors={"agent@1": Shell()})
    for _ in range(WINDOW_MAX * WINDOWS_MAX + 1):
        site.submit("claude-code")
    behind = site.submit("agent")

    head.settle()

    assert site.attempt(behind).state is AttemptState.LAUNCHING
    assert site.work("w1").state is WorkState.READY


@pytest.mark.req("C04")
def test_nothing_more_is_looked_at_once_no_slot_is_free(site: Site) -> None:
    """The control: a crowd for which there is no slot at all costs one look."""
    site.configure(Config(Settings(job_concurrency=0)))
    head = site.head()
    site.bench(slots=1)
    for _ in range(3 * WINDOW_MAX):
        site.submit_command()
    head.settle()
    asked: list[int] = []
    reading = ReadyReads.ready_page

    def counted(self: ReadyReads, pool: str, **named: Any) -> ReadyPage:
        asked.append(1)
        return reading(self, pool, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadyReads, "ready_page", counted)
        site.world.store.write(lambda tx: tx.publish(TICK))
        head.settle()

    assert len(asked) == 2, "one page of each pool"
