"""Short random histories of coordinators and workers that die, stall and disagree about the time, step by step.

The site checks each GO; here each Work must have run exactly once and its recorded end must be the true one.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from shared.errors import IndeterminateError, RefusedError, StoreBusyError
from shared.ids import WorkId
from shared.model.evidence import LockState
from shared.model.instant import US_PER_S
from shared.model.settings import Config, Settings
from shared.model.work import WorkState
from tests.support.hosts import Shim
from tests.support.sites import Bench, Head, Site
from tests.support.watched_stores import TRANSITIONS

WORKS = 12
STEPS = 150
WALL_STEP_US = 86_400 * US_PER_S


class History:
    """What may happen, drawn from a seed."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site = site
        self.draw = random.Random(seed)
        self.names = 0
        self.happenings: list[Callable[[], None]] = [
            *[self.act] * 5,
            *[self.end_some_job] * 2,
            *[self.finish_slow_tasks] * 2,
            *[self.trouble_store] * 2,
            self.pass_time,
            self.step_wall_clock,
            self.kill,
            self.stall,
        ]

    def run(self) -> None:
        """Make it all happen."""
        for _ in range(STEPS):
            self.staff(2)
            self.draw.choice(self.happenings)()

    def staff(self, count: int) -> None:
        """Whoever is missing is started again."""
        while len(self.site.heads) < count:
            self.site.head()
        while len(self.site.benches) < count:
            self.names += 1
            self.site.bench(f"worker-{self.names}")

    def anyone(self) -> Head | Bench:
        everybody: list[Head | Bench] = [*self.site.heads, *self.site.benches]
        return self.draw.choice(everybody)

    def act(self) -> None:
        one = self.anyone()
        try:
            one.step()
        except StoreBusyError:
            pass  # it steps again
        except (RefusedError, IndeterminateError):
            self.site.kill(one)  # buried while it was stalled, or left without an answer: its process exits

    def running(self) -> list[Shim]:
        return [shim for shim in self.site.host.shims.values() if shim.ran and shim.alive]

    def end_some_job(self) -> None:
        if running := self.running():
            self.draw.choice(running).end(self.draw.choice([0, 3]))

    def finish_slow_tasks(self) -> None:
        for bench in self.site.benches:
            bench.launches.run()

    def pass_time(self) -> None:
        self.site.clock.advance(self.draw.randrange(20 * US_PER_S))

    def step_wall_clock(self) -> None:
        self.site.clock.step_wall(self.draw.randrange(-WALL_STEP_US, WALL_STEP_US))

    def trouble_store(self) -> None:
        store = self.anyone().store
        if self.draw.random() < 0.5:
            store.busy_writes, store.busy_look_ups = self.draw.randrange(3), self.draw.randrange(3)
        store.unanswered = (self.draw.choice(sorted(TRANSITIONS)), self.draw.random() < 0.5)

    def kill(self) -> None:
        self.site.kill(self.anyone())

    def stall(self) -> None:
        one = self.anyone()
        self.site.stall(one)
        self.site.locks[one.me] = self.draw.choice([LockState.HELD, LockState.UNPROVEN])

    def bring_to_an_end(self, works: list[WorkId]) -> None:
        """No more faults: jobs end, time passes, everything converges."""
        for store in self.site.stores():
            store.heal()
        for _ in range(60):
            self.staff(1)
            self.site.elapse(5, poll_s=5)
            for shim in self.running():
                shim.end(0)
            if all(self.site.work(work_id).state in (WorkState.COMPLETED, WorkState.FAILED) for work_id in works):
                return
        raise AssertionError("some Work never ended")


@pytest.mark.req("E03", "R02", "R03", "R04", "R15", "L01", "L02")
@pytest.mark.parametrize("seed", range(12))
def test_whoever_dies_whenever_every_job_runs_once_and_its_end_is_true(site: Site, seed: int) -> None:
    site.configure(Config(settings=Settings(job_concurrency=0, workers_lost_max=0)))
    works = [site.world.submit() for _ in range(WORKS)]
    history = History(site, seed)

    history.run()
    history.bring_to_an_end(works)

    for number, work_id in enumerate(works, 1):
        assert work_id == f"w{number}"
        ran = [shim for shim in site.host.shims.values() if shim.ran and shim.spec.attempt_id.startswith(f"{work_id}.")]
        assert len(ran) == 1, f"seed {seed}: {work_id} ran {len(ran)} times"
        assert ran[0].exit is not None
        assert site.attempt(ran[0].spec.attempt_id).exit_status == ran[0].exit.status, f"seed {seed}: {work_id}"
        assert site.work(work_id).attempts_used == 1, "no death of a host spends a retry"
