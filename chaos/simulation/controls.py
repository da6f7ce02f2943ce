"""The negative controls of the simulation: each guard taken away, and how many seeds it takes until the check for it fires.

A guard has a scene: the jobs and the harm in which it matters, drawn from the seed, so that few histories are enough. The same
scenes with every guard in place find nothing. Rule: design §9.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from chaos.checks import Finding
from chaos.guards import GUARDS, Guard
from chaos.simulation.harm import Harm, Kind
from chaos.simulation.homes import forget_template
from chaos.simulation.jobs import Job
from chaos.simulation.run import DEFAULTS, Options, Outcome, simulate
from chaos.simulation.spoken_scenes import SPOKEN_SCENES
from shared.boundary import Boundary, Side
from shared.model.instant import US_PER_MS, US_PER_S

SEEDS_MAX = 5_000
STEPS_MAX = 6_000
"""A history in which nothing comes to rest any more is given up after so many; others take some hundred."""
LEASE_US = DEFAULTS.lease_us
LONG_US = 2 * LEASE_US

SHORT = Job(20 * US_PER_MS)
HALF_SECOND = Job(500 * US_PER_MS)
SECONDS = Job(1_500 * US_PER_MS)
LEAVES_ONE = Job(200 * US_PER_MS, straggler_us=1_500 * US_PER_MS, is_safe=True)
COSTLY = Job(20 * US_PER_S, is_safe=True)
STUBBORN = Job(10 * US_PER_S, ignores_term=True)

Scene = Callable[[random.Random], Options]


class WrongCheckError(Exception):
    """Without a guard, another check fired than the one that is to catch it.

    Attributes: guard, outcome.
    """

    def __init__(self, guard: Guard, outcome: Outcome) -> None:
        self.guard = guard
        self.outcome = outcome
        super().__init__(guard, outcome)

    def __str__(self) -> str:
        told = "; ".join(str(finding) for finding in self.outcome.findings)
        return f"without {self.guard.name}, seed {self.outcome.seed}: {told}"


@dataclass(frozen=True, slots=True)
class Caught:
    """What became of one guard.

    Attributes:
        seeds: How many histories were played.
        outcome: The one in which its check fired; None: it did not.
    """

    guard: Guard
    seeds: int
    outcome: Outcome | None

    @property
    def finding(self) -> Finding | None:
        """What its check saw first."""
        findings = () if self.outcome is None else self.outcome.findings
        return next((finding for finding in findings if finding.check == self.guard.caught_by), None)


def hunt(guard: Guard, *, first: int = 0, seeds: int = SEEDS_MAX) -> Caught:
    """Play the guard's scene without it, seed by seed, until its check fires.

    Raises:
        WrongCheckError: something else was found.
    """
    with _without(guard):
        for seed in range(first, first + seeds):
            outcome = play(guard, seed)
            names = {finding.check for finding in outcome.findings}
            if guard.caught_by in names and names <= guard.entails | {guard.caught_by}:
                return Caught(guard, seed - first + 1, outcome)
            if names:
                raise WrongCheckError(guard, outcome)
    return Caught(guard, seeds, None)


def play(guard: Guard, seed: int) -> Outcome:
    """One history of a guard's scene, as things stand."""
    scene = SCENES.get(guard.name, _anything)
    return simulate(seed, replace(scene(random.Random(f"{seed}/scene")), steps=STEPS_MAX))


def hunted() -> Sequence[Guard]:
    """The guards that a simulation can catch."""
    return [guard for guard in GUARDS if guard.caught_by is not None]


@contextmanager
def _without(guard: Guard) -> Iterator[None]:
    with guard.removed():
        if guard.alters_schema:
            forget_template()
        try:
            yield
        finally:
            if guard.alters_schema:
                forget_template()


# --- scenes


def _anything(_chance: random.Random) -> Options:
    return DEFAULTS


def _late_go(chance: random.Random) -> Options:
    """Workers are frozen right behind the commit of a pin until the lease is over."""
    pauses = _hits(chance, Kind.PAUSE, "worker", Boundary.PIN_COMMIT, Side.AFTER, nths=range(1, 5), count=2)
    return Options(plan=pauses, jobs=(HALF_SECOND,) * 4)


def _given_up_launch(chance: random.Random) -> Options:
    """Workers die between READY and the pin."""
    received = _hits(chance, Kind.CRASH, "worker", Boundary.READY_RECEIVE, Side.AFTER, nths=range(1, 5), count=1)
    pinning = _hits(chance, Kind.CRASH, "worker", Boundary.PIN_COMMIT, Side.BEFORE, nths=range(1, 4), count=1)
    return Options(plan=received + pinning, jobs=(SHORT,) * 4)


def _late_writes(chance: random.Random) -> Options:
    """Workers are frozen before a write until their leases are over."""
    pauses = _hits(chance, Kind.PAUSE, "worker", Boundary.QUEUE_LOCK, Side.BEFORE, nths=range(6, 40), count=4)
    return Options(plan=pauses, jobs=(SHORT, SHORT, HALF_SECOND, HALF_SECOND))


def _lost_worker(chance: random.Random) -> Options:
    """Workers die while their jobs run."""
    crashes = _hits(chance, Kind.CRASH, "worker", Boundary.GO_SEND, Side.AFTER, nths=range(1, 4), count=2)
    return Options(plan=crashes, jobs=(STUBBORN,) * 3)


def _lost_shims(chance: random.Random) -> Options:
    """Shims die while what they launched runs, and leaves something behind."""
    crashes = _hits(chance, Kind.CRASH, "shim", Boundary.CHILD_EXEC, Side.AFTER, nths=range(1, 6), count=3)
    return Options(plan=crashes, jobs=(LEAVES_ONE,) * 4)


def _lost_launches(chance: random.Random) -> Options:
    """Shims die, and soon after them what they launched."""
    crashes = _hits(chance, Kind.CRASH, "shim", Boundary.CHILD_EXEC, Side.AFTER, nths=range(1, 5), count=4)
    blows = tuple(Harm(Kind.CRASH, "child", step=step) for step in sorted(chance.sample(range(150, 500), 6)))
    return Options(plan=crashes + blows, jobs=(SECONDS,) * 4)


def _torn(chance: random.Random) -> Options:
    """Shims die, and with them what they recorded."""
    crashes = _hits(chance, Kind.CRASH, "shim", Boundary.CHILD_EXEC, Side.AFTER, nths=range(1, 6), count=3)
    torn = tuple(replace(crash, kind=Kind.TEAR) for crash in crashes)
    return Options(plan=torn + crashes, jobs=(HALF_SECOND,) * 4)


def _cancelled_when_claimed(chance: random.Random) -> Options:
    """The coordinator is slow to get the store's queue while Works are cancelled."""
    pauses = _hits(chance, Kind.PAUSE, "coordinator", Boundary.QUEUE_LOCK, Side.BEFORE, nths=range(3, 25), count=4)
    slow = tuple(replace(pause, us=LEASE_US // 3) for pause in pauses)
    cancels = tuple(Harm(Kind.CANCEL, step=chance.randint(20, 300), work=work) for work in range(1, 7))
    return Options(plan=slow + cancels, jobs=(SHORT,) * 6)


def _cancelled(chance: random.Random) -> Options:
    """Jobs are cancelled while they run."""
    cancels = tuple(Harm(Kind.CANCEL, step=chance.randint(100, 400), work=work) for work in (1, 2))
    return Options(plan=cancels, jobs=(STUBBORN,) * 2)


def _mistaken(chance: random.Random) -> Options:
    """Somebody confirms the stop of what was taken over meanwhile."""
    crashes = _hits(chance, Kind.CRASH, "worker", Boundary.GO_SEND, Side.AFTER, nths=range(1, 5), count=1)
    mistakes = tuple(Harm(Kind.MISTAKE, step=chance.randint(200, 500), work=work) for work in range(1, 5))
    return Options(plan=crashes + mistakes, jobs=(STUBBORN,) * 4)


def _two_coordinators(chance: random.Random) -> Options:
    """One is frozen at the beginning of a pass until the other leads, while much is left to start."""
    pauses = _hits(chance, Kind.PAUSE, "coordinator", Boundary.LOCK_PROBE, Side.BEFORE, nths=range(4, 20), count=3)
    return Options(plan=(Harm(Kind.RIVAL, step=20), *pauses), jobs=(SECONDS,) * 12)


def _succession(chance: random.Random) -> Options:
    """Coordinators die, one after the other."""
    crashes = _hits(chance, Kind.CRASH, "coordinator", Boundary.QUEUE_LOCK, Side.BEFORE, nths=range(4, 20), count=2)
    return Options(plan=crashes, jobs=(HALF_SECOND,) * 4)


def _scoped(_chance: random.Random) -> Options:
    """More Works than their scopes allow."""
    return Options(plan=(), jobs=(replace(HALF_SECOND, scope="ops"), replace(HALF_SECOND, scope="ops/backup")) * 3)


def _held(_chance: random.Random) -> Options:
    """More Works than there are turns, some of them to be approved."""
    return Options(plan=(), jobs=(HALF_SECOND,) * 6, holds=True)


def _unknown_commits(chance: random.Random) -> Options:
    """The disk fails at commits, which did not happen."""
    nths = chance.sample(range(4, 20), 3)
    return Options(
        plan=tuple(Harm(Kind.FAULT, "worker", nth=nth, point="commit", code=10) for nth in nths), jobs=(SHORT,) * 4
    )


def _forgotten_pins(chance: random.Random) -> Options:
    """The host loses its power right behind the start of a job, and with it the commit of its pin."""
    older = Harm(
        Kind.OLDER, "shim", Boundary.CHILD_EXEC, Side.AFTER, nth=chance.randint(1, 4), commits=chance.randint(1, 3)
    )
    return Options(plan=(replace(older, us=US_PER_S),), jobs=(SECONDS,) * 4)


def _forgotten_claims(chance: random.Random) -> Options:
    """The host loses its power while jobs run, and with it all commits since their claims."""
    older = Harm(Kind.OLDER, step=chance.randint(150, 400), commits=chance.randint(3, 12), us=US_PER_S)
    return Options(plan=(older,), jobs=(SECONDS,) * 4)


def _written_over(chance: random.Random) -> Options:
    """Somebody writes an older copy over the store while everybody works."""
    return Options(
        plan=(Harm(Kind.RESTORE, step=chance.randint(100, 400), commits=chance.randint(1, 10)),),
        jobs=(HALF_SECOND,) * 4,
    )


def _hits(
    chance: random.Random, kind: Kind, role: str, boundary: Boundary, side: Side, *, nths: range, count: int
) -> tuple[Harm, ...]:
    drawn = chance.sample(nths, count)
    return tuple(Harm(kind, role, boundary, side, nth=nth, us=LONG_US) for nth in drawn)


def _retried(_chance: random.Random) -> Options:
    """Jobs fail twice; the second wait is long."""
    return Options(plan=(), jobs=(replace(SHORT, statuses=(7, 7), delays_us=(US_PER_S, 5 * US_PER_S)),) * 2)


def _fed(_chance: random.Random) -> Options:
    """Inputs come while attempts run."""
    return Options(plan=(), jobs=(replace(SECONDS, inputs=4),) * 2)


def _failing(_chance: random.Random) -> Options:
    """Works of one binding fail one after the other, and now and then one does not."""
    standing = replace(SHORT, statuses=(7, 0, 7, 0, 7, 7), inputs=4)
    return Options(plan=(), jobs=(standing, replace(standing, like=1)))


def _costly_launches(_chance: random.Random) -> Options:
    """Each launch is the death of its worker."""
    deaths = tuple(Harm(Kind.CRASH, "worker", Boundary.SHIM_SPAWN, Side.AFTER, nth=nth) for nth in range(1, 8))
    return Options(plan=deaths, jobs=(HALF_SECOND,), workers_lost_max=3)


def _costly_jobs(chance: random.Random) -> Options:
    """What runs is the death of whoever holds it, and sometimes its launch was before."""
    spawns = tuple(
        Harm(Kind.CRASH, "worker", Boundary.SHIM_SPAWN, Side.AFTER, nth=nth) for nth in range(1, chance.randint(1, 3))
    )
    held = tuple(
        Harm(Kind.CRASH, "worker", boundary, Side.AFTER, nth=nth)
        for boundary in (Boundary.GO_SEND, Boundary.ADOPT_COMMIT)
        for nth in range(1, 6)
    )
    return Options(plan=spawns + held, jobs=(COSTLY, COSTLY), workers_lost_max=2)


SCENES: dict[str, Scene] = {
    **SPOKEN_SCENES,
    "timer_fires_once": _retried,
    "timer_is_due": _retried,
    "retry_event": _retried,
    "effect_spends_inputs": _fed,
    "fence": _late_writes,
    "lease_at_go": _late_go,
    "closed_gate": _given_up_launch,
    "unexcluded_recheck": _lost_shims,
    "one_unexcluded": _lost_shims,
    "claim_recheck": _cancelled_when_claimed,
    "leader_generation": _two_coordinators,
    "generation_rises": _succession,
    "pool_limit": _scoped,
    "scope_limit": _scoped,
    "budget_limit": _held,
    "turn_charge": _held,
    "approval": _held,
    "recovery": _lost_worker,
    "proof_of_stop": _lost_shims,
    "confirmed_epoch": _mistaken,
    "stop_orders": _cancelled,
    "uncertain_asks": _lost_shims,
    "unreadable_is_not_absent": _torn,
    "unknown_is_no_success": _lost_launches,
    "unknown_commit": _unknown_commits,
    "unknown_commit_kept": _unknown_commits,
    "returned_inputs": _lost_shims,
    "accept_timeout": _given_up_launch,
    "capacity_recheck": _two_coordinators,
    "child_record": _forgotten_pins,
    "same_store": _written_over,
    "older_store": _forgotten_claims,
    "quarantine": _failing,
    "failures_count": _failing,
    "success_forgives": _failing,
    "launch_gives_up": _costly_launches,
    "pin_begins_anew": _costly_jobs,
    "blame": _costly_jobs,
    "blame_is_certain": _costly_jobs,
}
