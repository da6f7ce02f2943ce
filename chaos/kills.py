"""The kill drill: workers, coordinators and zygotes killed at seeded random times while short jobs run.

Every step is drawn from the seed before the first process starts, so a seed replays the same harm (the scheduler of the host
stays its own). Rule: requirement M01; design §9 ("the rest is drawn at random").
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from chaos.checks import Finding, examine
from chaos.harness import COORDINATOR, Harness, Running
from chaos.history import History
from shared.model.instant import US_PER_MS
from shared.model.settings import Settings

KILLS = 200
JOBS = 200
WORKERS = ("worker-1", "worker-2")
STANDBY = "standby"
STATUSES = (0, 0, 0, 1, 7, 77, 255, -9, -15)
PAUSE_S = (0.0, 0.2)
JOB_S_MAX = 0.15
SETTINGS = Settings(job_concurrency=8, lease_us=2_500 * US_PER_MS)


class Harm(StrEnum):
    """What one step kills."""

    WORKER = "worker"
    COORDINATOR = "coordinator"
    PAIR = "pair"  # a worker and the coordinator
    EVERYONE = "everyone"
    ZYGOTE = "zygote"  # a worker's; counted apart, as the worker survives it
    STANDBY = "standby"  # starts a second coordinator, or kills the one there is


WEIGHTS = {
    Harm.WORKER: 45,
    Harm.COORDINATOR: 20,
    Harm.PAIR: 10,
    Harm.EVERYONE: 5,
    Harm.ZYGOTE: 12,
    Harm.STANDBY: 8,
}


@dataclass(frozen=True, slots=True)
class Job:
    """A job to be submitted: how long it takes and how it ends."""

    seconds: float
    status: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step: submit, wait, harm. `worker` is the one that is meant where one is."""

    jobs: tuple[Job, ...]
    pause_s: float
    harm: Harm
    worker: str


@dataclass(slots=True)
class Outcome:
    """What a drill came to.

    Attributes:
        killed: Processes killed, by kind.
        recovered: Takeovers in all; `relaunched`: those that launched again.
    """

    seed: int
    killed: Counter[str] = field(default_factory=Counter)
    recovered: int = 0
    relaunched: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """Kills of workers and coordinators."""
        return sum(count for kind, count in self.killed.items() if kind != Harm.ZYGOTE)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.killed.items()))
        return (
            f"seed {self.seed}: {self.kills} kills ({kinds}) in {self.seconds:.1f} s, "
            f"{self.recovered} takeovers, {self.relaunched} relaunches, {len(self.findings)} findings"
        )


def plan(seed: int, *, kills: int, jobs: int) -> list[Step]:
    """The steps of a seed: at least so many kills of workers and coordinators, the jobs spread evenly over them."""
    chance = random.Random(seed)
    costs = {Harm.WORKER: 1, Harm.COORDINATOR: 1, Harm.PAIR: 2, Harm.EVERYONE: 1 + len(WORKERS)}
    harms: list[Harm] = []
    while sum(costs.get(harm, 0) for harm in harms) < kills:
        harms += chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
    steps = []
    for index, harm in enumerate(harms):
        count = jobs * (index + 1) // len(harms) - jobs * index // len(harms)
        batch = tuple(Job(chance.uniform(0, JOB_S_MAX), chance.choice(STATUSES)) for _ in range(count))
        steps.append(Step(batch, chance.uniform(*PAUSE_S), harm, chance.choice(WORKERS)))
    return steps


def run(
    folder: Path, seed: int, *, kills: int = KILLS, jobs: int = JOBS, say: Callable[[str], None] = lambda _: None
) -> Outcome:
    """Run the drill of a seed in an empty folder.

    Raises:
        StillWaitingError: it never came to rest.
    """
    began = time.monotonic()
    outcome = Outcome(seed)
    with Harness(folder, SETTINGS) as harness:
        _Drill(harness, outcome).run(plan(seed, kills=kills, jobs=jobs), say)
        history = harness.history()
    _count(history, outcome)
    outcome.findings = examine(history)
    outcome.seconds = time.monotonic() - began
    return outcome


class _Drill:
    """The processes of one run."""

    def __init__(self, harness: Harness, outcome: Outcome) -> None:
        self._harness = harness
        self._outcome = outcome
        self._running: dict[str, Running] = {}

    def run(self, steps: list[Step], say: Callable[[str], None]) -> None:
        for name in (COORDINATOR, *WORKERS):
            self._start(name)
        for index, step in enumerate(steps):
            for job in step.jobs:
                self._harness.submit(wait=job.seconds, status=job.status)
            time.sleep(step.pause_s)
            self._harm(step)
            self._harness.reap_orphans()
            if (index + 1) % 50 == 0:
                say(f"{index + 1} of {len(steps)} steps, {self._outcome.kills} kills")
        self._harness.wait_quiet()

    def _harm(self, step: Step) -> None:
        match step.harm:
            case Harm.WORKER:
                self._again(step.worker)
            case Harm.COORDINATOR:
                self._again(COORDINATOR)
            case Harm.PAIR:
                self._again(step.worker, COORDINATOR)
            case Harm.EVERYONE:
                self._again(COORDINATOR, *WORKERS)
            case Harm.ZYGOTE:
                self._outcome.killed[Harm.ZYGOTE] += self._harness.kill_zygote(self._running[step.worker])
            case Harm.STANDBY if STANDBY in self._running:
                self._kill(STANDBY)
                del self._running[STANDBY]
            case Harm.STANDBY:
                self._start(STANDBY)

    def _again(self, *names: str) -> None:
        """Kill all of them, then start them again."""
        for name in names:
            self._kill(name)
        for name in names:
            self._start(name)

    def _kill(self, name: str) -> None:
        running = self._running[name]
        died = running.process.poll()
        if died is not None:
            raise AssertionError(f"{name} had ended by itself with {died}: {running.log.read_text()[-2000:]}")
        self._harness.kill(running)
        self._outcome.killed[Harm.WORKER if name in WORKERS else Harm.COORDINATOR] += 1

    def _start(self, name: str) -> None:
        self._running[name] = self._harness.start(COORDINATOR if name == STANDBY else name)


def _count(history: History, outcome: Outcome) -> None:
    segments = [segment for found in history.segments.values() for segment in found]
    outcome.recovered = sum(segment.recovered for segment in segments)
    outcome.relaunched = sum(segment.relaunched for segment in segments)
