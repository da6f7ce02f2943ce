"""Make a failing history short: leave out one item of harm after the other, then Works, for as long as the same check still fires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from chaos.simulation.harm import Harm
from chaos.simulation.jobs import Job
from chaos.simulation.run import Options, Outcome, simulate

TRIES_MAX = 400


class Shrinker:
    """Looks for the smallest history in which a check fires that fired in the first one.

    Attributes:
        best: The smallest so far.
        tries: Histories played.
    """

    def __init__(
        self, failed: Outcome, *, tries: int = TRIES_MAX, play: Callable[[int, Options], Outcome] = simulate
    ) -> None:
        self.best = failed
        self.tries = 0
        self._most = tries
        self._play = play
        self._checks = {finding.check for finding in failed.findings}

    def shrink(self) -> Outcome:
        """The smallest history found; the first one when nothing could be left out."""
        has_shrunk = True
        while has_shrunk and self.tries < self._most:
            has_shrunk = any(self._try(options) for options in self._smaller())
        return self.best

    def _smaller(self) -> Iterator[Options]:
        """What is left when one thing is left out: half of the harm first, then one at a time, then the last Work."""
        best = self.best
        plan, jobs = best.plan, best.jobs
        half = len(plan) // 2
        if half > 1:
            yield self._options(plan[:half], jobs)
            yield self._options(plan[half:], jobs)
        unstruck = tuple(harm for harm in plan if harm in best.struck)
        if len(unstruck) < len(plan):
            yield self._options(unstruck, jobs)
        for place in range(len(plan)):
            yield self._options(plan[:place] + plan[place + 1 :], jobs)
        if len(jobs) > 1:
            yield self._options(plan, jobs[:-1])
        for place, job in enumerate(jobs):
            if job != Job(job.lasts_us):
                yield self._options(plan, (*jobs[:place], Job(job.lasts_us), *jobs[place + 1 :]))
        if best.options.workers > 1:
            yield replace(self._options(plan, jobs), workers=best.options.workers - 1)

    def _options(self, plan: tuple[Harm, ...], jobs: tuple[Job, ...]) -> Options:
        return replace(self.best.options, plan=plan, jobs=jobs)

    def _try(self, options: Options) -> bool:
        if self.tries >= self._most:
            return False
        self.tries += 1
        outcome = self._play(self.best.seed, options)
        if self._checks.isdisjoint(finding.check for finding in outcome.findings):
            return False
        self.best = outcome
        return True
