"""What simulated programs that speak do, launch by launch: a script drawn from the seed, with nothing left to chance while it runs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from shared.model.instant import US_PER_MS, US_PER_S

AGENT, BELT = "agent", "belt"
"""By which door a program speaks: lines of its output, or the tool belt."""
EVENTS = ("go", "review.given")
KEYS = ("", "pr-1", "pr-2")
TURN = "execution.turn"
TIMERS_MS = (50, 500, 3_000, 8_000)
WHILES_MS = (1, 20, 200, 1_000)
LISTENS_MS = (200, 1_000, 2_000)
LONG_MS = 20_000
"""Of a timer beside an event that nobody else is sure to publish."""


class Act(StrEnum):
    """One thing that a program does."""

    SLEEP = "sleep"  # `us`
    TURN = "turn"  # with status `word`
    USAGE = "usage"  # `count` tokens
    WAIT = "wait"  # for the event `word` with key `key`, or `us`, or both; `flag`: then this attempt goes on
    RESULT = "result"  # its outcome is `word`; see `RESULTS`
    TAKE = "take"  # for `us`, take what it is told, and say so; `flag`: and refuse it
    CONSUME = "consume"  # say that it took what it was given (by the belt: and what waits)
    NOISE = "noise"  # `count` lines of a type that nobody knows
    GARBAGE = "garbage"  # a line that is no message; by the belt: a request with a wrong token
    PIECES = "pieces"  # a message in two writes, with time between them
    UNENDED = "unended"  # a message without the end of its line, as the last thing it says
    HALF = "half"  # half of a message, and then it dies


RESULTS = ("completed", "failed", "permanent", "handoff", "reset", "past", "unknown")
"""The last three: failed, with a retry hint of a time soon, of one that is past, of none."""


@dataclass(frozen=True, slots=True)
class Deed:
    """An act, with what it needs."""

    act: Act
    us: int = 0
    word: str = ""
    key: str = ""
    count: int = 0
    flag: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """What a program does in one launch, and the status it ends with: 0 to 255, or the negative number of a signal."""

    deeds: tuple[Deed, ...] = ()
    status: int = 0


LAST = Part((Deed(Act.CONSUME), Deed(Act.RESULT, word="completed")))
"""What it does once its script is over."""


def draw_parts(chance: random.Random, voice: str) -> tuple[Part, ...]:
    """The script of a program, of one to four launches."""
    return tuple(_part(chance, voice) for _ in range(chance.choice((1, 1, 2, 3, 4))))


def _part(chance: random.Random, voice: str) -> Part:
    deeds = [_deed(chance, voice) for _ in range(chance.choice((0, 1, 2, 3, 4, 6)))]
    if voice == AGENT and chance.random() < 0.6:  # it listens for a while, before it says how it ends
        deeds.append(Deed(Act.TAKE, us=_while_us(chance, LISTENS_MS), flag=chance.random() < 0.2))
    way = chance.choice(("silent", "result", "result", "result", "wait", "wait", "both", "half"))
    if way in ("result", "both"):
        deeds.append(Deed(Act.RESULT, word=chance.choice((*RESULTS[:4], *RESULTS))))
    if way in ("wait", "both"):
        deeds.append(_wait(chance))
    if way == "half" and voice == AGENT:
        deeds.append(Deed(chance.choice((Act.HALF, Act.UNENDED)), word="done", us=chance.choice((1, 30)) * US_PER_MS))
    if chance.random() < 0.3:  # it goes on after its last word, and may be told something in that time
        deeds.append(Deed(Act.SLEEP, us=_while_us(chance)))
    waits = way in ("wait", "both")
    return Part(tuple(deeds), chance.choice((0, 0, 0, 0, 7, -9)) if not waits or chance.random() < 0.2 else 0)


def _deed(chance: random.Random, voice: str) -> Deed:
    acts = [Act.SLEEP, Act.SLEEP, Act.TURN, Act.USAGE, Act.USAGE, Act.CONSUME, Act.GARBAGE]
    if voice == AGENT:
        acts += [Act.TAKE, Act.TAKE, Act.TAKE, Act.NOISE, Act.PIECES]
    act = chance.choice(acts)
    match act:
        case Act.SLEEP:
            return Deed(act, us=_while_us(chance))
        case Act.TURN | Act.PIECES:
            return Deed(act, us=_while_us(chance), word=chance.choice(("done", "stuck", "asks")))
        case Act.USAGE | Act.NOISE:
            return Deed(act, count=chance.randint(1, 5))
        case Act.TAKE:
            return Deed(act, us=_while_us(chance), flag=chance.random() < 0.3)
        case _:
            return Deed(act)


def _wait(chance: random.Random) -> Deed:
    """For an event, a time, or both; the end of a turn is nobody's to publish, so a time stands beside it."""
    resume = chance.random() < 0.7
    timer_us = chance.choice(TIMERS_MS) * US_PER_MS
    match chance.choice(("event", "timer", "both", "turn")):
        case "timer":
            return Deed(Act.WAIT, us=timer_us, flag=resume)
        case "turn":
            return Deed(
                Act.WAIT, us=min(timer_us * 2, LONG_MS * US_PER_MS), word=TURN, key=chance.choice(KEYS), flag=resume
            )
        case "both":
            return Deed(Act.WAIT, us=timer_us, word=chance.choice(EVENTS), key=chance.choice(KEYS), flag=resume)
        case _:
            return Deed(Act.WAIT, word=chance.choice(EVENTS), key=chance.choice(KEYS), flag=resume)


def _while_us(chance: random.Random, ms: tuple[int, ...] = WHILES_MS) -> int:
    return int(chance.choice(ms) * US_PER_MS * (0.5 + chance.random()))


def reset_of(word: str, wall_us: int) -> int | None:
    """The time that a retry hint names, on the wall clock; None: it names none."""
    return {"reset": wall_us + 20 * US_PER_S, "past": wall_us - US_PER_S}.get(word)
