"""Scenes of the negative controls in which programs speak; see `controls.py`."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from chaos.simulation.harm import Harm, Kind
from chaos.simulation.jobs import Job
from chaos.simulation.programs import AGENT, BELT, TURN, Act, Deed, Part
from chaos.simulation.run import Options
from shared.boundary import Boundary, Side
from shared.model.instant import US_PER_MS, US_PER_S

TALKER = Job(
    1,
    voice=AGENT,
    parts=(
        Part(
            (
                Deed(Act.NOISE, count=3),
                Deed(Act.SLEEP, us=200 * US_PER_MS),
                Deed(Act.USAGE, count=2),
                Deed(Act.SLEEP, us=US_PER_S),
                Deed(Act.USAGE, count=3),
                Deed(Act.TURN, word="done"),
                Deed(Act.RESULT, word="permanent"),
            )
        ),
    ),
)
"""Says much, reads nothing, and fails for good."""
LISTENER = Job(
    1,
    voice=AGENT,
    parts=(Part((Deed(Act.TAKE, us=1), Deed(Act.SLEEP, us=3 * US_PER_MS)) * 2_000),),
)
"""Reads what it is told, now and then, all there is."""
WAITER = Job(
    1,
    voice=BELT,
    keys=("pr-1",),
    parts=(
        Part(
            (
                Deed(Act.GARBAGE),
                Deed(Act.WAIT, word=TURN, key="pr-1", us=3 * US_PER_S, flag=True),
                Deed(Act.TURN, word="done"),
            )
        ),
        Part((Deed(Act.RESULT, word="completed"),)),
    ),
)
"""Says that its turn is over and waits for that of another, with its own key."""
HANDS_OFF = Job(
    1,
    voice=BELT,
    inputs=1,
    goes_on=True,
    parts=(Part((Deed(Act.TURN, word="done"), Deed(Act.RESULT, word="handoff"))),) * 4,
)
"""Standing, and goes on by itself."""
SILENT = Job(
    1, voice=AGENT, idle_us=US_PER_S, parts=(Part((Deed(Act.NOISE, count=1), Deed(Act.SLEEP, us=60 * US_PER_S))),)
)
"""Says one thing, and then nothing for a minute, which is longer than it may."""
CHATTY = replace(SILENT, parts=(Part((Deed(Act.NOISE, count=1), Deed(Act.SLEEP, us=300 * US_PER_MS)) * 12),))
"""Is never quiet for as long as it may be."""
LAST_WORD = Job(1, voice=AGENT, parts=(Part((Deed(Act.USAGE, count=2), Deed(Act.RESULT, word="failed"))),))
"""Says that it failed, and ends with 0."""
UNTELLABLE = Job(
    1,
    voice=AGENT,
    is_deaf=True,
    parts=(Part((Deed(Act.SLEEP, us=2 * US_PER_S), Deed(Act.RESULT, word="failed"))),),
)
"""What it is to be told while it runs cannot be handed to it."""
WAITS_FOR_EVENTS = (Part((Deed(Act.SLEEP, us=500 * US_PER_MS), Deed(Act.WAIT, word="go", us=US_PER_S, flag=True))),)
WAITS_AND_WORKS = (
    Part((Deed(Act.WAIT, us=US_PER_S, flag=True),)),
    Part((Deed(Act.SLEEP, us=3 * US_PER_S), Deed(Act.RESULT, word="completed"))),
)


def _taken_over(chance: random.Random) -> Options:
    """Workers die while they listen to agents."""
    nths = chance.sample(range(1, 6), 2)
    crashes = tuple(Harm(Kind.CRASH, "worker", Boundary.STREAM_COMMIT, Side.AFTER, nth=nth) for nth in nths)
    return Options(plan=crashes, jobs=(TALKER,) * 3)


def _talking(_chance: random.Random) -> Options:
    return Options(plan=(), jobs=(TALKER,) * 3)


def _interrupted(chance: random.Random) -> Options:
    """Agents are interrupted while they speak."""
    interrupts = tuple(Harm(Kind.INTERRUPT, step=chance.randint(120, 400), work=work) for work in (1, 2, 3))
    return Options(plan=interrupts, jobs=(TALKER,) * 3)


def _told(chance: random.Random) -> Options:
    """Agents are told things that they do not read."""
    injects = tuple(Harm(Kind.INJECT, step=chance.randint(120, 300), work=work) for work in (1, 2, 3, 1, 2, 3))
    return Options(plan=injects, jobs=(TALKER,) * 3)


def _much_told(chance: random.Random) -> Options:
    """An agent is told more at once than has room, and begins to read meanwhile."""
    injects = tuple(Harm(Kind.INJECT, step=step, work=1) for step in sorted(chance.sample(range(20, 80), 12)))
    return Options(plan=injects, jobs=(LISTENER,))


def _handing_off(_chance: random.Random) -> Options:
    """One attempt hands off to the next, and so on."""
    return Options(plan=(), jobs=(HANDS_OFF,) * 2)


def _not_going_on(_chance: random.Random) -> Options:
    return Options(plan=(), jobs=(replace(HANDS_OFF, goes_on=False),) * 2)


def _waiting(_chance: random.Random) -> Options:
    """Each waits for a turn of its own or of another, and goes on then."""
    return Options(plan=(), jobs=(WAITER,) * 3)


def _published_before(chance: random.Random) -> Options:
    """What is waited for was published before."""
    events = tuple(Harm(Kind.PUBLISH, step=step, work=1) for step in chance.sample(range(20, 200), 6))
    return Options(plan=events, jobs=(replace(WAITER, parts=WAITS_FOR_EVENTS),) * 3)


def _resumed_at_once(_chance: random.Random) -> Options:
    """Many go on at the same time."""
    return Options(plan=(), jobs=(replace(WAITER, parts=WAITS_AND_WORKS, scope="ops"),) * 6)


def _power_cut(chance: random.Random) -> Options:
    """The host loses its power right behind the end of an agent, before anybody has heard its last word."""
    cut = Harm(Kind.REBOOT, "shim", Boundary.EXIT_DIRECTORY_SYNC, Side.AFTER, nth=chance.randint(1, 3), us=US_PER_S)
    return Options(plan=(cut,), jobs=(LAST_WORD,) * 3)


def _untellable(chance: random.Random) -> Options:
    """Agents are told what cannot be handed to them; some bindings drop it, some keep it for the next attempt."""
    injects = tuple(Harm(Kind.INJECT, step=chance.randint(80, 300), work=work) for work in (1, 2, 1, 2))
    return Options(plan=injects, jobs=(UNTELLABLE, replace(UNTELLABLE, drops=True)))


def _silent(_chance: random.Random) -> Options:
    return Options(plan=(), jobs=(SILENT,) * 2)


def _chatty(_chance: random.Random) -> Options:
    return Options(plan=(), jobs=(CHATTY,) * 2)


SPOKEN_SCENES: Mapping[str, Callable[[random.Random], Options]] = {
    "read_once": _taken_over,
    "last_words": _talking,
    "late_report": _interrupted,
    "belt_token": _waiting,
    "declared_once": _waiting,
    "own_event": _waiting,
    "since_declared": _published_before,
    "settled_intents": _told,
    "handed_in_order": _much_told,
    "chain_limit": _handing_off,
    "handoff_asked": _not_going_on,
    "resume_limit": _resumed_at_once,
    "durable_words": _power_cut,
    "pinned_fallback": _untellable,
    "dropped_for_good": _untellable,
    "idle_limit": _silent,
    "idle_since_heard": _chatty,
}
