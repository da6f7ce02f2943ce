"""One history from one seed: a home, who works there, what is asked of them, what is done to them, and what came of it.

`simulate(seed, options)` is a pure function of its arguments; nothing but the seed decides anything. Rule: design §9.
"""

from __future__ import annotations

import gc
import logging
import random
import time
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal

from chaos.checks import Finding, examine
from chaos.history import History
from chaos.simulation.baton import Baton, Step
from chaos.simulation.director import Director
from chaos.simulation.harm import Harm, draw_full_disk, draw_mood, draw_plan, draw_spoken_hits, draw_words
from chaos.simulation.homes import the_home
from chaos.simulation.jobs import FOREVER_US, binding_number, command_of, draw_jobs
from chaos.simulation.jobs import Job as Behaviour
from chaos.simulation.programs import AGENT
from shared import boundary
from shared.boundary import Boundary, Side
from shared.model.budget import Budget, Per
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.settings import (
    DEFAULT,
    Binding,
    Config,
    Exponential,
    OnExhausted,
    RetryCause,
    RetryPolicy,
    ScopeConfig,
    Settings,
)
from shared.model.work import WorkKind

REST_BOUND_US = 1_800 * US_PER_S
"""Elapsed virtual time within which everything must have come to rest."""
SCOPE_LIMITS = ((0, 0), (1, 0), (2, 1))
"""Of a scope and of the one below it; 0 is none."""
DEPTHS = (DEFAULT.settings.causal_depth, DEFAULT.settings.causal_depth, 2, 1)
STEPS_BOUND = 60_000
HOLDS = 0.3
"""Of the histories, those with budgets and approvals."""
WORKERS_LOST = (0, 0, 2, 3)
"""So many workers may be lost in a row; 0 is any number."""
PLENTY = Budget("minutes", Decimal(10**9), Per.ALL)
SHORT_US = 3 * US_PER_S
"""The time of what never ends by itself."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a history is made of, besides its seed.

    Attributes:
        works, workers: How many; `harms`: at most so many items of harm.
        plan: The harm itself, instead of what the seed draws.
        keeps_status: Whether the kernel tells how watched processes ended; None: as the seed has it.
        jobs: What each Work does, instead of what the seed draws.
        steps: It is given up after so many.
        holds: Whether there are budgets and approvals, and a person who settles what they hold; None: as the seed has it, and none
            where a plan is given.
        workers_lost_max: See `Settings`; None: as the seed has it, and any number where a plan is given.
    """

    works: int = 4
    workers: int = 2
    harms: int = 9
    lease_us: int = 3 * US_PER_S
    plan: tuple[Harm, ...] | None = None
    keeps_status: bool | None = None
    jobs: tuple[Behaviour, ...] | None = None
    steps: int = STEPS_BOUND
    holds: bool | None = None
    workers_lost_max: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one history.

    Attributes:
        jobs: What each Work did; `plan`: the harm, in the order it was drawn.
        struck: Which of it found its place.
        reached: How often each boundary was reached, as (boundary, side, ""), and how often harm of a kind struck a process of which
            this was the last boundary that it had come to.
        cpu_us: Processor time.
        elapsed_us: Virtual time.
    """

    seed: int
    options: Options
    history: History
    findings: tuple[Finding, ...]
    steps: int
    trace: tuple[Step, ...]
    jobs: tuple[Behaviour, ...]
    plan: tuple[Harm, ...]
    struck: tuple[Harm, ...]
    reached: Counter[tuple[Boundary, Side, str]]
    elapsed_us: int
    cpu_us: int


DEFAULTS = Options()


def simulate(seed: int, options: Options = DEFAULTS) -> Outcome:
    """Play the history of a seed and examine it."""
    chance = random.Random(f"{seed}/plan")
    jobs = options.jobs or draw_jobs(chance, options.works)
    plan = options.plan
    if plan is None:
        plan = draw_plan(chance, draw_mood(chance, most=options.harms, lease_us=options.lease_us), len(jobs))
        plan += _words(chance, jobs, options)
        plan += draw_full_disk(random.Random(f"{seed}/disk")) if options.harms else ()
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    gc.disable()
    try:
        if options.workers_lost_max is None:
            drawn = random.Random(f"{seed}/workers").choice(WORKERS_LOST) if options.plan is None else 0
            options = replace(options, workers_lost_max=drawn)
        config = _config(options, jobs, random.Random(f"{seed}/config"))
        holding = random.Random(f"{seed}/holds")
        is_drawn = (
            holding.random() < HOLDS
        )  # whether it counts or not, so that what follows is the same when it is asked for
        holds = options.plan is None and is_drawn if options.holds is None else options.holds
        options = replace(options, holds=holds)
        if holds:
            config = _with_holds(config, holding)
        return _play(seed, options, jobs, plan, config)
    finally:
        boundary.install(None)
        gc.enable()
        logging.disable(level)


def _play(seed: int, options: Options, jobs: tuple[Behaviour, ...], plan: tuple[Harm, ...], config: Config) -> Outcome:
    began_ns = time.process_time_ns()
    homes = the_home()
    homes.begin(config)
    baton = Baton(random.Random(f"{seed}/schedule"))
    director = Director(homes, baton, plan, jobs, config, workers=options.workers, seed=seed)
    try:
        if options.keeps_status is not None:
            director.stage.table.keeps_status = options.keeps_status
        director.prepare()
        boundary.install(baton.reached)
        baton.run(lambda: director.is_over(elapsed_us=REST_BOUND_US, steps=options.steps))
        boundary.install(None)
        history = director.record()
        findings = tuple(examine(history))
        if not director.is_at_rest:
            findings = (Finding("never_at_rest", director.why_restless()), *findings)
        return Outcome(
            seed=seed,
            options=options,
            history=history,
            findings=findings,
            steps=baton.steps,
            trace=tuple(baton.trace),
            jobs=jobs,
            plan=plan,
            struck=tuple(director.struck),
            reached=director.reached,
            elapsed_us=baton.elapsed_us,
            cpu_us=(time.process_time_ns() - began_ns) // 1_000,
        )
    finally:
        boundary.install(None)
        director.close()


def _words(chance: random.Random, jobs: tuple[Behaviour, ...], options: Options) -> tuple[Harm, ...]:
    """What a person says to programs that speak, and harm to whoever has to do with that."""
    if not any(job.voice for job in jobs):
        return ()
    said = draw_words(chance, len(jobs))
    return said + draw_spoken_hits(chance, most=options.harms // 3, lease_us=options.lease_us)


def _with_holds(config: Config, chance: random.Random) -> Config:
    """Few turns, one ledger that everything is charged to, and perhaps approvals."""
    per, scope = chance.choice(((Per.ALL, None), (Per.SCOPE, None), (Per.SCOPE, "ops"), (Per.WORK, None)))
    turns = Budget("turns", Decimal(chance.randint(1, 3)), per, scope=scope)
    approved = chance.choice(((), ("plain",), ("plain", "short")))
    bindings = tuple(replace(binding, approval=binding.name in approved) for binding in config.bindings)
    return replace(config, bindings=bindings, budgets=(turns, PLENTY))


def _config(options: Options, jobs: tuple[Behaviour, ...], chance: random.Random) -> Config:
    """Its limits, drawn, and its bindings: one for every job that may be run again, as what a binding says of that holds for its own
    command only; how a job is retried is said there too.
    """
    command = command_of(0)
    settings = Settings(
        job_concurrency=chance.choice((1, 2, 4)),
        lease_us=options.lease_us,
        quarantine_after=chance.choice((0, 1, 2)),
        workers_lost_max=options.workers_lost_max or 0,
    )
    grace_us = 500 * US_PER_MS
    long_us = 1_200 * US_PER_S
    own = [
        Binding(
            f"own-{number}",
            command_of(number),
            timeout_us=SHORT_US if job.lasts_us >= FOREVER_US else long_us,
            grace_us=grace_us,
            retry=_policy(job),
            replay="safe" if job.is_safe else "never",
            executor="agent" if job.voice == AGENT else "shell",
            on_inject_error="drop" if job.drops else "queue",
            continues=job.goes_on,
            idle_us=job.idle_us or None,
            kind=WorkKind.STANDING if job.inputs else WorkKind.RUN_ONCE,
        )
        for number, job in enumerate(jobs, start=1)
        if job.needs_binding and binding_number(jobs, number) == number
    ]
    plain = Binding("plain", command, timeout_us=long_us, grace_us=grace_us)
    short = Binding("short", command, timeout_us=SHORT_US, grace_us=grace_us)
    upper, lower = chance.choice(SCOPE_LIMITS)
    if any(job.voice for job in jobs):  # where nobody speaks, fewer configurations have to be made
        settings = replace(settings, concurrency=chance.choice((1, 2, 4)), causal_depth=chance.choice(DEPTHS))
    scopes = (ScopeConfig("ops", upper), ScopeConfig("ops/backup", lower))
    return Config(settings, scopes, (*sorted(own, key=lambda binding: binding.name), plain, short))


def _policy(job: Behaviour) -> RetryPolicy | None:
    if not job.is_retried:
        return None
    on: tuple[RetryCause, ...] = ("failure", "timeout") if job.on_timeout else ("failure",)
    exhausted: OnExhausted = "hold" if job.is_held else "fail"
    if job.tries:
        return RetryPolicy((), on, Exponential(2 * US_PER_S, 5 * US_PER_S, job.tries), exhausted)
    return RetryPolicy(job.delays_us, on, exhausted=exhausted)
