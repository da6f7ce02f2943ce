"""Launch phases: a trail for people, written under the lease, which never decides anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from shared.errors import UnsupportedError
from shared.ids import AttemptId
from shared.model.attempt import AttemptState, LeaseKey, Phase, Snapshot
from shared.model.evidence import LockState
from shared.model.settings import Binding, Config, SandboxConfig
from shared.process.launcher import LaunchError, LaunchSpec
from shared.store.contract import Assignment
from tests.support.sites import Bench, Head, Site
from worker.executors.shell import ShellExecutor
from worker.trail import SLOW_US

SECRETS = (("API_KEY", "env:API_KEY"),)
CONFIG = Config(
    bindings=(
        Binding(name="both", command=("true",), secrets=SECRETS, sandbox=SandboxConfig()),
        Binding(name="secret", command=("true",), secrets=SECRETS),
    )
)


class Sandboxing(ShellExecutor):
    """A shell that binds any sandbox there is, or says that it cannot."""

    def __init__(self) -> None:
        super().__init__({}, None)
        self.binds = True

    def sandbox_digest(self, snapshot: Snapshot) -> str | None:
        """See `Executor.sandbox_digest`."""
        return None if snapshot.sandbox is None else "plan-1"

    def prepare(self, assignment: Assignment, layer: Mapping[str, str]) -> LaunchSpec:
        """See `Executor.prepare`."""
        if not self.binds:
            raise UnsupportedError("no bwrap here")
        return super().prepare(replace(assignment, snapshot=replace(assignment.snapshot, sandbox=None)), layer)


@pytest.fixture
def shell() -> Sandboxing:
    return Sandboxing()


@pytest.fixture
def bench(site: Site, shell: Sandboxing) -> Bench:
    site.configure(CONFIG)
    return site.bench(executors={"shell@1": shell})


@pytest.fixture
def head(site: Site, bench: Bench) -> Head:
    head = site.head()
    site.settle()
    return head


def claimed(site: Site, head: Head, binding: str) -> LeaseKey:
    """Claimed for the bench, which has not looked yet."""
    attempt_id = site.submit(binding)
    head.settle()
    lease = site.world.store.read(lambda tx: tx.lease(attempt_id))
    assert lease is not None
    return LeaseKey(attempt_id, lease.epoch, lease.owner)


def trail(site: Site, attempt_id: AttemptId, epoch: int = 1) -> list[tuple[str, str | None]]:
    """Names and outcomes of the phases that are stored."""
    (segment,) = [segment for segment in site.segments(attempt_id) if segment.epoch == epoch]
    return [(phase.name, phase.outcome) for phase in segment.phases]


@pytest.mark.req("E15", "R14")
def test_the_phases_of_a_launch_are_stored_with_its_pin_under_its_lease(site: Site, bench: Bench, head: Head) -> None:
    key = claimed(site, head, "both")
    site.journal.clear()

    bench.settle()

    assert trail(site, key.attempt_id) == [("secrets", "ok"), ("sandbox", "ok"), ("executor", "ok")]
    assert site.segments(key.attempt_id)[0].sandbox_digest == "plan-1"
    assert site.done(bench.me, "accept", "record_phases", "pin") == ["accept", "record_phases", "pin"]
    (told,) = [event for event in site.events(key.attempt_id) if event.kind == "segment.phases"]
    pinned = next(event for event in site.events(key.attempt_id) if event.kind == "attempt.pinned")
    assert pinned.at_us == told.at_us, "in one commit"


@pytest.mark.req("E15")
def test_a_phase_that_a_launch_does_not_have_is_not_in_its_trail(site: Site, bench: Bench, head: Head) -> None:
    key = claimed(site, head, "secret")

    bench.settle()

    assert trail(site, key.attempt_id) == [("secrets", "ok"), ("executor", "ok")]


@pytest.mark.req("E15")
def test_a_slow_phase_shows_while_it_runs_and_a_quick_one_costs_no_commit(site: Site, bench: Bench, head: Head) -> None:
    key = claimed(site, head, "secret")
    bench.step()
    seen: list[list[tuple[str, str | None]]] = []
    began_us = site.clock.now().wall_us

    def ask(_snapshot: Snapshot) -> Mapping[str, str]:
        """The pool thread is in here; the steps go on."""
        assert bench.step() <= site.clock.now().mono_us + SLOW_US, "it wakes up for it"
        site.clock.advance(SLOW_US - 1)
        bench.step()
        seen.append(trail(site, key.attempt_id))
        for us in (1, SLOW_US, SLOW_US):
            site.clock.advance(us)
            bench.step()
            seen.append(trail(site, key.attempt_id))
        return {}

    bench.layer = ask
    site.journal.clear()
    bench.launches.run()

    assert seen == [[], *[[("secrets", None)]] * 3], "not a microsecond early"
    assert site.done(bench.me, "record_phases") == ["record_phases"], "and written once"
    bench.settle()
    assert trail(site, key.attempt_id) == [("secrets", "ok"), ("executor", "ok")]
    first = site.segments(key.attempt_id)[0].phases[0]
    assert first == Phase("secrets", began_us, began_us + 3 * SLOW_US, "ok")
    assert site.done(bench.me, "record_phases") == ["record_phases"] * 2


@pytest.mark.req("E15", "R09")
def test_a_refused_phase_leaves_the_trail_short_and_harms_nothing(site: Site, bench: Bench, head: Head) -> None:
    key = claimed(site, head, "secret")
    bench.step()
    site.bench("worker-2")
    site.locks[bench.me] = LockState.UNPROVEN  # the leader gives it nothing

    def ask(_snapshot: Snapshot) -> Mapping[str, str]:
        site.world.release(key)
        head.settle()
        site.clock.advance(SLOW_US)
        bench.step()
        bench.step()
        return {}

    bench.layer = ask
    bench.launches.run()
    assert trail(site, key.attempt_id) == [], "the lease it would be written under is gone"
    assert site.attempt(key.attempt_id).state is AttemptState.RECOVERING, "and that is no failure of the attempt"
    assert "record_phases" not in site.done(bench.me)

    site.settle()

    assert (site.attempt(key.attempt_id).state, site.host.runs(key.attempt_id)) == (AttemptState.RUNNING, 1)
    assert trail(site, key.attempt_id, epoch=1) == []
    assert trail(site, key.attempt_id, epoch=2) == [("secrets", "ok"), ("executor", "ok")], "of the relaunch"


@pytest.mark.req("E15", "M05")
@pytest.mark.parametrize("reached", [True, False])
def test_a_phase_whose_commit_was_not_answered_is_let_be(site: Site, bench: Bench, head: Head, reached: bool) -> None:
    key = claimed(site, head, "secret")
    bench.step()

    def ask(_snapshot: Snapshot) -> Mapping[str, str]:
        site.clock.advance(SLOW_US)
        bench.store.unanswered = ("record_phases", reached)
        bench.step()
        assert trail(site, key.attempt_id) == ([("secrets", None)] if reached else [])
        return {}

    bench.layer = ask
    bench.settle()

    assert site.attempt(key.attempt_id).state is AttemptState.RUNNING
    assert trail(site, key.attempt_id) == [("secrets", "ok"), ("executor", "ok")]


@pytest.mark.req("E15", "F01")
def test_the_phases_of_a_failed_launch_are_stored_with_its_end(
    site: Site, bench: Bench, head: Head, shell: Sandboxing
) -> None:
    unbound, unspawned = claimed(site, head, "both"), claimed(site, head, "secret")
    shell.binds = False
    bench.step()
    bench.launches.tasks.sort(key=lambda task: str(task[0]))
    first, second = bench.launches.tasks
    bench.launches.tasks = [first]
    bench.settle()
    shell.binds, site.host.failing = True, [LaunchError("spawn", "no more processes")]
    bench.launches.tasks = [second]
    bench.settle()

    assert trail(site, unbound.attempt_id) == [("secrets", "ok"), ("sandbox", "failed")]
    assert trail(site, unspawned.attempt_id) == [("secrets", "ok"), ("executor", "failed")]
    for key in (unbound, unspawned):
        assert site.attempt(key.attempt_id).state is AttemptState.FAILED
        kinds = [event.kind for event in site.events(key.attempt_id)]
        assert kinds.index("segment.phases") < kinds.index("attempt.failed")


@pytest.mark.req("E15", "O05")
def test_a_launch_that_ran_out_of_time_in_a_phase_leaves_that_phase_open(site: Site, bench: Bench, head: Head) -> None:
    key = claimed(site, head, "secret")
    bench.step()

    def ask(_snapshot: Snapshot) -> Mapping[str, str]:
        bench.ports.holdings[key.attempt_id].deadline_mono_us = site.clock.now().mono_us
        bench.step()
        return {}

    bench.layer = ask
    bench.launches.run()

    assert site.attempt(key.attempt_id).state is AttemptState.TIMED_OUT
    assert trail(site, key.attempt_id) == [("secrets", None)]
    bench.settle()
    assert site.host.runs(key.attempt_id) == 0, "what came in late is not let go"
