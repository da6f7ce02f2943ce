"""What is done to a history: a plan drawn from its seed, each item of which can be left out.

A hit strikes the process that comes to a named boundary, as a drill with real processes does; a blow strikes whoever has the
baton at a step. Rule: design §9.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum, auto

from shared.boundary import Boundary, Side, Victims
from shared.model.instant import US_PER_MS, US_PER_S


class Kind(StrEnum):
    """What is done."""

    CRASH = auto()
    PAUSE = auto()  # SIGSTOP, for a while
    FAULT = auto()  # the store's library fails
    WALL = auto()  # the wall clock steps
    REBOOT = auto()  # the host loses its power
    OLDER = auto()  # and with it the last commits, though they were synced
    RESTORE = auto()  # somebody writes an older copy over the store while everybody works
    DRAIN = auto()  # a coordinator or worker is asked to end
    RIVAL = auto()  # a second coordinator is started
    CANCEL = auto()  # a person cancels a Work
    RETRY = auto()  # tries one again
    HOLD = auto()  # holds one, and lets it go later
    INJECT = auto()  # hands one an input while it runs
    INTERRUPT = auto()  # ends an attempt of one
    PUBLISH = auto()  # publishes an event
    QUARANTINE = auto()  # keeps a binding from being started, and mends it later
    MISTAKE = auto()  # and says that it is stopped, meaning an epoch that is over
    TEAR = auto()  # the disk loses what a launch recorded so far
    FILL = auto()  # for a while the disk has no room for another launch


@dataclass(frozen=True, slots=True)
class Harm:
    """One item of a plan.

    Attributes:
        role: Whose process: `coordinator`, `worker`, `zygote`, `shim`, `child`, `other`, `everybody` (all coordinators and workers);
            empty: whoever has the baton.
        boundary, side: Where; None: at `step`.
        nth: The how-manieth time that role comes there (or, of a fault, makes such a transaction) counts.
        step, at_us: For what happens at a step, or at a time since the beginning: which.
        victims: For a shim or child: whether the worker that launched it is hit with it, or in its place.
        us: How long a pause lasts, how far the clock steps, how long the host is down or the disk full.
        point, code: Of a fault: `begin`, `commit` (nothing was written) or `committed` (it was), and SQLite's code.
        commits: How many of the last commits a store loses that goes back in time.
        work: Of what a person says of a Work: the how-manieth.
    """

    kind: Kind
    role: str = ""
    boundary: Boundary | None = None
    side: Side | None = None
    nth: int = 1
    step: int = 0
    at_us: int = 0
    victims: Victims = Victims.SELF
    us: int = 0
    point: str = ""
    code: int = 0
    work: int = 0
    commits: int = 0

    def __str__(self) -> str:
        where = f"step {self.step}" if self.step else f"{self.at_us / US_PER_S:.6f} s"
        if self.boundary is not None:
            where = f"{self.boundary}-{self.side} #{self.nth}"
        match self.kind:
            case Kind.CRASH | Kind.PAUSE:
                long = f" for {self.us / US_PER_S:.3f} s" if self.kind is Kind.PAUSE else ""
                whom = self.role or "whoever acts"
                return f"{self.kind} {whom} at {where}{long}, victims {self.victims}"
            case Kind.FAULT:
                return f"fault {self.code} of the {self.role}'s store at {self.point} #{self.nth}"
            case Kind.WALL | Kind.REBOOT:
                return f"{self.kind} at {where}, {self.us / US_PER_S:.3f} s"
            case Kind.OLDER | Kind.RESTORE:
                down = f", {self.us / US_PER_S:.3f} s" if self.kind is Kind.OLDER else ""
                return f"{self.kind} at {where}{down}, the store lacks its last {self.commits} commits"
            case Kind.PUBLISH:
                return f"{self.kind} at {where}"
            case Kind.FILL:
                return f"{self.kind} the disk at {where} for {self.us / US_PER_S:.3f} s"
            case Kind.CANCEL | Kind.MISTAKE | Kind.RETRY | Kind.HOLD | Kind.INJECT | Kind.INTERRUPT | Kind.QUARANTINE:
                return f"{self.kind} Work {self.work} at {where}"
            case _:
                return f"{self.kind} {self.role} at {where}"


WORKER_AT = (
    *(Boundary.QUEUE_LOCK, Boundary.INCARNATION_LOCK, Boundary.LOCK_PROBE, Boundary.REGISTER_COMMIT),
    *(Boundary.ACCEPT_COMMIT, Boundary.PIN_COMMIT, Boundary.RENEW_COMMIT, Boundary.FINISH_COMMIT),
    *(Boundary.ADOPT_COMMIT, Boundary.RELAUNCH_COMMIT, Boundary.STOP_COMMIT, Boundary.RECOVERY_COMMIT),
    *(Boundary.ATTEMPT_MKDIR, Boundary.ATTEMPT_SPEC, Boundary.ATTEMPT_SYNC, Boundary.ZYGOTE_EXEC),
    *(Boundary.SHIM_SPAWN, Boundary.READY_RECEIVE, Boundary.GO_SEND, Boundary.STOP_SIGNAL),
)
SPOKEN_AT = (
    *(Boundary.DECLARE_COMMIT, Boundary.STREAM_COMMIT, Boundary.PARK_COMMIT, Boundary.DISPATCH_COMMIT),
    *(Boundary.ACKNOWLEDGE_COMMIT, Boundary.CHANNEL_WRITE),
)
"""Where a worker comes whose programs speak; and a coordinator to `WAKE_COMMIT`."""
COORDINATOR_AT = (
    *(Boundary.QUEUE_LOCK, Boundary.INCARNATION_LOCK, Boundary.LOCK_PROBE, Boundary.REGISTER_COMMIT),
    *(Boundary.LEADER_COMMIT, Boundary.CLAIM_COMMIT, Boundary.RECOVERY_COMMIT, Boundary.PASS_COMMIT),
    *(Boundary.STOP_COMMIT, Boundary.TIMER_COMMIT),
)
SHIM_AT = (
    *(Boundary.SHIM_LOCK, Boundary.READY_SEND, Boundary.GO_RECEIVE, Boundary.CHILD_FORK, Boundary.CHILD_EXEC),
    *(
        Boundary.CHILD_REAP,
        Boundary.OUTPUT_SYNC,
        Boundary.EXIT_RENAME,
        Boundary.EXIT_SYNC,
        Boundary.EXIT_DIRECTORY_SYNC,
    ),
    Boundary.TREE_SIGNAL,
)
CHILD_AT = (
    *(Boundary.TREE_LOCK, Boundary.CHILD_RENAME, Boundary.CHILD_SYNC, Boundary.CHILD_DIRECTORY_SYNC),
    Boundary.CHILD_EXEC,
)
PLACES: dict[str, tuple[Boundary, ...]] = {
    "worker": WORKER_AT,
    "coordinator": COORDINATOR_AT,
    "shim": SHIM_AT,
    "child": CHILD_AT,
    "zygote": (Boundary.SHIM_FORK,),
}
OFTEN = (Boundary.QUEUE_LOCK, Boundary.RENEW_COMMIT, Boundary.LOCK_PROBE)
ROLE_WEIGHTS = {"worker": 8, "coordinator": 4, "shim": 4, "child": 3, "zygote": 1}
FAULTS = (("begin", 5), ("begin", 10), ("commit", 5), ("commit", 10), ("commit", 13), ("committed", 10))
NO_NEAR_SIDE = (Boundary.GO_RECEIVE, Boundary.CHILD_REAP)
"""Reached when something has come to pass."""
STEPS = 700
TIME_US = 8 * US_PER_S
EVERYBODY = "everybody"
KINDS = (
    "hit",
    "blow",
    "fault",
    "wall",
    "reboot",
    "older",
    "restore",
    "drain",
    "rival",
    "cancel",
    "retry",
    "hold",
    "tear",
)
USUAL = {
    "hit": 12,
    "blow": 8,
    "fault": 4,
    "wall": 1,
    "reboot": 1,
    "older": 1,
    "restore": 1,
    "drain": 1,
    "rival": 2,
    "cancel": 2,
    "retry": 1,
    "hold": 1,
    "tear": 1,
}
WORDS = (Kind.INJECT, Kind.INTERRUPT, Kind.PUBLISH, Kind.QUARANTINE)
WORDS_USUAL = (8, 2, 1, 1)
ONCE = (Kind.REBOOT, Kind.OLDER, Kind.RESTORE)
COMMITS_LOST = (1, 1, 2, 3, 5, 10, 30)
STRUCK = ("worker", "worker", "coordinator", "shim", "shim", "child", "other", EVERYBODY)


@dataclass(frozen=True, slots=True)
class Mood:
    """What a history is inclined to: harm of all kinds at once hides as much as it shows, so each history leaves much of it out.

    Attributes:
        kinds, roles: How often each is drawn, out of the sum; 0: never.
        most: At most so many items.
        lease_us: Of the configuration; pauses are measured by it.
    """

    kinds: dict[str, int]
    roles: dict[str, int]
    most: int
    lease_us: int


def draw_mood(chance: random.Random, *, most: int, lease_us: int) -> Mood:
    """A mood: each kind and each role as usual, much more often, or not at all."""
    kinds = {kind: USUAL[kind] * chance.choice((0, 1, 1, 4)) for kind in KINDS}
    roles = {role: weight * chance.choice((0, 1, 1, 4)) for role, weight in ROLE_WEIGHTS.items()}
    return Mood(
        kinds if any(kinds.values()) else USUAL,
        roles if any(roles.values()) else ROLE_WEIGHTS,
        chance.choice((most // 3, most, most)),
        lease_us,
    )


def draw_plan(chance: random.Random, mood: Mood, works: int) -> tuple[Harm, ...]:
    """A plan in that mood; the host goes down, or the store goes back in time, at most once."""
    plan: list[Harm] = []
    for _ in range(chance.randint(0, mood.most)):
        kind = chance.choices(KINDS, [mood.kinds[kind] for kind in KINDS])[0]
        harm = _draw(chance, kind, mood, works)
        if harm.kind not in ONCE or all(each.kind not in ONCE for each in plan):
            plan.append(harm)
    return tuple(plan)


def draw_full_disk(chance: random.Random) -> tuple[Harm, ...]:
    """In one history of five the disk is full once, while launches or resumes are due."""
    if chance.random() >= 0.2:
        return ()
    return (Harm(Kind.FILL, at_us=chance.randint(1, TIME_US), us=chance.choice((1, 4, 20)) * US_PER_S),)


def draw_words(chance: random.Random, works: int) -> tuple[Harm, ...]:
    """What a person says to programs that speak."""
    said = chance.choices(WORDS, WORDS_USUAL, k=chance.choice((0, 3, 6, 10)))
    steps = sorted(chance.randint(20, STEPS) for _ in said)
    return tuple(Harm(kind, step=step, work=chance.randint(1, works)) for kind, step in zip(said, steps, strict=True))


def draw_spoken_hits(chance: random.Random, *, most: int, lease_us: int) -> tuple[Harm, ...]:
    """Harm to whoever hears programs, hands on what they are told, or wakes them."""
    mood = Mood(USUAL, ROLE_WEIGHTS, most, lease_us)
    return tuple(_spoken_hit(chance, mood) for _ in range(chance.randint(0, most)))


def _spoken_hit(chance: random.Random, mood: Mood) -> Harm:
    is_wake = chance.random() < 0.2
    role, boundary = ("coordinator", Boundary.WAKE_COMMIT) if is_wake else ("worker", chance.choice(SPOKEN_AT))
    kind = Kind.CRASH if chance.random() < 0.6 else Kind.PAUSE
    side = chance.choice((Side.BEFORE, Side.AFTER))
    return Harm(kind, role, boundary, side, nth=chance.choice((1, 1, 2, 3, 5)), us=_pause_us(chance, mood))


def _draw(chance: random.Random, kind: str, mood: Mood, works: int) -> Harm:
    step = chance.randint(20, STEPS)
    match kind:
        case "hit":
            return _hit(chance, mood)
        case "blow":
            return _blow(chance, mood)
        case "fault":
            point, code = chance.choice(FAULTS)
            role = chance.choice(("worker", "worker", "coordinator"))
            return Harm(Kind.FAULT, role, nth=chance.randint(1, 40), point=point, code=code)
        case "wall":
            return Harm(Kind.WALL, step=step, us=int((chance.random() - 0.5) * 7200 * US_PER_S))
        case "reboot":
            return Harm(Kind.REBOOT, step=step, us=int(chance.random() * 100 * US_PER_S))
        case "older":
            us = int(chance.random() * 100 * US_PER_S)
            return Harm(Kind.OLDER, step=step, us=us, commits=chance.choice(COMMITS_LOST))
        case "restore":
            return Harm(Kind.RESTORE, step=step, commits=chance.choice(COMMITS_LOST))
        case "drain":
            return Harm(
                Kind.DRAIN, chance.choice(("worker", "coordinator")), step=step, us=chance.choice((0, US_PER_S))
            )
        case "rival":
            return Harm(Kind.RIVAL, step=step)
        case "tear":
            return Harm(Kind.TEAR, chance.choice(("shim", "child")), step=step)
        case "retry" | "hold":
            return Harm(Kind(kind), step=step, work=chance.randint(1, works))
        case _:
            kind_of_cancel = Kind.MISTAKE if chance.random() < 0.3 else Kind.CANCEL
            return Harm(kind_of_cancel, step=step, work=chance.randint(1, works))


def _hit(chance: random.Random, mood: Mood) -> Harm:
    role = chance.choices(list(mood.roles), list(mood.roles.values()))[0]
    boundary = chance.choice(PLACES[role])
    side = Side.AFTER if boundary in NO_NEAR_SIDE else chance.choice((Side.BEFORE, Side.AFTER))
    if boundary is Boundary.CHILD_EXEC:
        side = Side.BEFORE if role == "child" else Side.AFTER
    victims = Victims.SELF
    if role in ("shim", "child"):
        victims = chance.choice(tuple(Victims))
    nth = chance.choice((1, 1, 1, 2, 3, 5)) if boundary not in OFTEN else chance.randint(1, 60)
    kind = Kind.CRASH if chance.random() < 0.7 else Kind.PAUSE
    return Harm(kind, role, boundary, side, nth=nth, victims=victims, us=_pause_us(chance, mood))


def _blow(chance: random.Random, mood: Mood) -> Harm:
    """At a step, wherever that is; or at a time, which is mostly while nothing but jobs runs."""
    kind = Kind.CRASH if chance.random() < 0.6 else Kind.PAUSE
    us = _pause_us(chance, mood)
    if chance.random() < 0.4:
        return Harm(kind, chance.choice(("", *STRUCK)), step=chance.randint(20, STEPS), us=us)
    return Harm(kind, chance.choice(STRUCK), at_us=chance.randint(1, TIME_US), us=us)


def _pause_us(chance: random.Random, mood: Mood) -> int:
    """Mostly shorter than the lease, often longer; now and then longer than a leader's."""
    lease_us = mood.lease_us
    typical = chance.choice((20 * US_PER_MS, lease_us / 3, lease_us * 1.2, lease_us * 3, 6 * lease_us))
    return int(typical * (0.5 + chance.random()))
