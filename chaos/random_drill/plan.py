"""What a random drill is going to do: jobs and harm, drawn from the seed before the first process starts. Pure.

The plan is a function of the seed. When a step comes to its turn, and what the host does meanwhile, is not: a replay repeats the
harm, not the interleaving.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from chaos.random_drill.acts import Act, ActKind, Person
from chaos.random_drill.load import PRIORITIES, RECIPES, Cancel, Kind, PlannedJob, Recipe, Via
from chaos.random_drill.manners import EVENT

KILLS = 200
JOBS = 200
COORDINATOR = "coordinator"
STANDBY = "standby"
WORKERS = ("worker-1", "worker-2")
EXTRA = "worker-3"

HASTE = 0.3
HASTY_PAUSE_S = (0.0, 0.05)
"""So short is the pause before three steps in ten: whoever was just started is killed before it takes part."""
PAUSE_S = (0.1, 0.35)
FROZEN_S = 3.0
"""A freeze outlasts the leases of workers and leaders, by a fifth."""
BUSY_S = (0.2, 1.5)
LEADER_FREEZE_KILLS = 60
"""One freeze of the leader with nothing else meanwhile for so many kills; it takes long."""
HOUND_KILLS = 150
"""One job is hounded for so many kills; that takes long, too."""
HOUNDED_IN = 0.75
"""In this part of the drill, so that it does not last for that alone."""
HOUNDED_PRIORITY = 9
CLOCK_HOURS = (-3, -1, 1, 26)
CLOCK_AFTER_S = (0.0, 2.0)
CANCEL_SHARE = 0.12
CANCEL_S = (0.0, 1.0)
SPOKEN_CANCEL_S = (0.0, 6.0)
FED_S = (0.0, 5.0)
"""So long after it was handed in a Work gets a further input, or is interrupted, or what it waits for comes."""
AT_ONCE = 0.25
"""In so many interrupts one of its inputs comes right before."""
HELD_SHARE = 0.15
"""Of what can be spoken with so much is held for a while."""
LARGE_SHARE, LARGE_BYTES = 0.15, 9_000
"""Inputs that come as a file."""
AGAIN_SHARE = 0.25
COMMAND_SHARE = 0.12
PERSON_S = (0.0, 2.0)
ADMITS_SHARE = 0.75
SURE_FROM = 3
"""With so many times as many jobs as there are kinds, there is one of each."""
RETRIES_SHARE = 0.6


class Harm(StrEnum):
    """What one step does."""

    WORKER = "worker"  # these are killed, and started again
    COORDINATOR = "coordinator"
    PAIR = "pair"  # a worker and the coordinator
    EVERYONE = "everyone"
    ZYGOTE = "zygote"  # a worker's, which survives it
    SHIM = "shim"  # of a job that runs
    PROGRAM = "program"  # one that speaks, as the kernel does when memory runs out
    FREEZE_SHIM = "freeze a shim"  # for a while, as a debugger does
    FREEZE = "freeze"  # a worker or the coordinator, until the leases have lapsed, while all goes on
    FREEZE_LEADER = "freeze the leader"  # until its own lease has lapsed, with a standby beside it
    HOUND = "hound"  # whoever holds the job that comes with it is killed, again and again, until its binding is blamed for that
    STANDBY = "standby"  # a second coordinator comes, or the one there is is killed
    DRAIN = "drain"  # a worker is asked to leave, and another comes
    EXTRA = "extra"  # a third worker comes, or is asked to leave
    BUSY = "busy"  # another process holds the store's lock for a while
    FULL = "full"  # the disk of the home has no room for a while; only where it is a small one
    CLOCK = "clock"  # a worker or the coordinator is killed, and started with a wall clock that steps


WEIGHTS = {
    Harm.WORKER: 34,
    Harm.COORDINATOR: 16,
    Harm.PAIR: 9,
    Harm.EVERYONE: 4,
    Harm.ZYGOTE: 8,
    Harm.SHIM: 8,
    Harm.PROGRAM: 8,
    Harm.FREEZE_SHIM: 3,
    Harm.FREEZE: 5,
    Harm.STANDBY: 6,
    Harm.DRAIN: 4,
    Harm.EXTRA: 4,
    Harm.BUSY: 4,
    Harm.CLOCK: 6,
}
FULL_WEIGHT = 12
"""Only with a small disk."""
SMALL_DISK_SHARE = 20
"""What is printed there, by this part less."""
COSTS = {Harm.WORKER: 1, Harm.COORDINATOR: 1, Harm.PAIR: 2, Harm.EVERYONE: 1 + len(WORKERS), Harm.CLOCK: 1}
"""Kills of workers and coordinators that a step is sure to make."""

_VIAS = {Via.STORE: 88, Via.SUBMIT: 7, Via.RUN: 5}


class Held(StrEnum):
    """Which lock of the store a busy step holds."""

    QUEUE = "queue"  # tenure's own, in front of the database
    DATABASE = "database"  # SQLite's, as any other program could


@dataclass(frozen=True, slots=True)
class Step:
    """One step: submit, wait, harm.

    Attributes:
        target: Name of the process that is meant, where one is.
        draw: From 0 to 1: which of those that are there then, where that shows only then.
        lasts_s: How long the store is held.
        clock: (after, by) in seconds: when and by how much the wall clock of the process started anew steps.
    """

    jobs: tuple[PlannedJob, ...]
    pause_s: float
    harm: Harm
    target: str
    draw: float
    lasts_s: float
    held: Held
    clock: tuple[float, float]


def plan(seed: int, *, kills: int = KILLS, jobs: int = JOBS, small_disk: bool = False) -> list[Step]:
    """The steps of a seed: at least so many kills of workers and coordinators, the jobs spread evenly over them.

    Args:
        small_disk: The home lies on a small disk, which is filled too; less is printed.
    """
    chance = random.Random(seed)
    weights = WEIGHTS | {Harm.FULL: FULL_WEIGHT} if small_disk else WEIGHTS
    share = SMALL_DISK_SHARE if small_disk else 1
    harms: list[Harm] = []
    sure = 0
    while sure < kills:
        harms += chance.choices(list(weights), list(weights.values()))
        sure += COSTS.get(harms[-1], 0)
    for _ in range(kills // LEADER_FREEZE_KILLS):
        harms.insert(chance.randrange(len(harms)), Harm.FREEZE_LEADER)
    for _ in range(kills // HOUND_KILLS):
        harms.insert(chance.randrange(int(len(harms) * HOUNDED_IN)), Harm.HOUND)
    hounded = {jobs * (index + 1) // len(harms) for index, harm in enumerate(harms) if harm is Harm.HOUND} - {0}
    drawn = iter(_kinds(chance, jobs - len(hounded)))
    kinds = [Kind.LINGERING if number in hounded else next(drawn) for number in range(1, jobs + 1)]
    steps = []
    for index, harm in enumerate(harms):
        first, behind = jobs * index // len(harms), jobs * (index + 1) // len(harms)
        batch = tuple(_job(chance, number, share, kinds[number - 1]) for number in range(first + 1, behind + 1))
        steps.append(_step(chance, batch, harm))
    return steps


def _step(chance: random.Random, jobs: tuple[PlannedJob, ...], harm: Harm) -> Step:
    with_coordinator = harm in (Harm.FREEZE, Harm.CLOCK)
    return Step(
        jobs=jobs,
        pause_s=chance.uniform(*(HASTY_PAUSE_S if chance.random() < HASTE else PAUSE_S)),
        harm=harm,
        target=chance.choice((*WORKERS, COORDINATOR) if with_coordinator else WORKERS),
        draw=chance.random(),
        lasts_s=chance.uniform(*BUSY_S),
        held=chance.choice(tuple(Held)),
        clock=(round(chance.uniform(*CLOCK_AFTER_S), 2), chance.choice(CLOCK_HOURS) * 3600.0),
    )


def _kinds(chance: random.Random, jobs: int) -> list[Kind]:
    """A kind for each job: all that are drawn where there are enough jobs, the others as often as they weigh."""
    sure = [kind for kind in Kind if RECIPES[kind].weight] if jobs >= SURE_FROM * len(Kind) else []
    kinds = sure + chance.choices(list(Kind), [RECIPES[kind].weight for kind in Kind], k=jobs - len(sure))
    chance.shuffle(kinds)
    return kinds


def _job(chance: random.Random, number: int, share: int, kind: Kind) -> PlannedJob:
    recipe = RECIPES[kind]
    via = chance.choices(list(_VIAS), list(_VIAS.values()))[0]
    is_cancelled = recipe.cancel_s is not None or (
        (kind in (Kind.SHORT, Kind.LONG, Kind.LATE) or recipe.manner is not None) and chance.random() < CANCEL_SHARE
    )
    cancel = None
    if is_cancelled:
        spans = recipe.cancel_s or (CANCEL_S if recipe.manner is None else SPOKEN_CANCEL_S)
        attempt = chance.random() < 0.5 and not recipe.standing
        cancel = Cancel(chance.uniform(*spans), attempt, command=chance.random() < 0.1)
        via = Via.STORE if via is Via.RUN else via  # whoever follows it does not say its name
    if via is Via.RUN and (recipe.fails or recipe.manner is not None or recipe.is_configured or kind is Kind.APPROVED):
        via = Via.SUBMIT  # whoever follows one attempt would not see the last, and brings a command
    return PlannedJob(
        number=number,
        kind=kind,
        seconds=chance.uniform(*recipe.seconds),
        status=chance.choice(recipe.statuses),
        size=chance.choice(recipe.sizes) // share if recipe.sizes else 0,
        scope=chance.choice(recipe.scopes),
        priority=HOUNDED_PRIORITY if kind is Kind.LINGERING else chance.choice(PRIORITIES),
        via=via,
        cancel=cancel,
        acts=_acts(chance, recipe),
        person=Person(
            chance.uniform(*PERSON_S), admits=chance.random() < ADMITS_SHARE, retries=chance.random() < RETRIES_SHARE
        ),
    )


def _acts(chance: random.Random, recipe: Recipe) -> tuple[Act, ...]:
    """What is said to it: inputs, interrupts, the event that it may wait for, each at its own moment."""
    acts = []
    for number in range(1, 1 + chance.randint(*recipe.fed)):
        submits = recipe.standing and (not recipe.is_agent or chance.random() < 0.4)
        size = LARGE_BYTES if chance.random() < LARGE_SHARE else 0
        kind = ActKind.SUBMIT if submits else ActKind.FEED
        acts.append(_act(chance, kind, number, size=size, again=chance.random() < AGAIN_SHARE))
    for number in range(1, 1 + chance.randint(0, recipe.interrupts)):
        after_s = chance.choice(acts).after_s if acts and chance.random() < AT_ONCE else chance.uniform(*FED_S)
        acts.append(_act(chance, ActKind.INTERRUPT, number, after_s=after_s))
    if recipe.manner is not None and chance.random() < HELD_SHARE:
        acts.append(_act(chance, ActKind.HOLD, 1))
    if recipe.manner is not None and any(scene.event == EVENT for scene in recipe.manner.scenes):
        kinds = (ActKind.DECOY, ActKind.PUBLISH) if chance.random() < 0.5 else (ActKind.DECOY,)
        acts += [_act(chance, kind, number) for number, kind in enumerate(kinds, 1)]
    return tuple(sorted(acts, key=lambda act: act.after_s))


def _act(
    chance: random.Random,
    kind: ActKind,
    number: int,
    *,
    size: int = 0,
    again: bool = False,
    after_s: float | None = None,
) -> Act:
    at_s = chance.uniform(*FED_S) if after_s is None else after_s
    return Act(kind, at_s, number, size=size, again=again, command=chance.random() < COMMAND_SHARE)
