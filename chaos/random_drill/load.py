"""What the random drill has done: kinds of jobs as data, and how each may end.

Some kinds are spoken with: agents, and jobs that use their tool belt. What their programs do is in `manners`; what is done to them
besides, and what a person is to settle, is part of the plan.

A kind says what its job does and, by that, what may become of it; the checks go by nothing else. Pure.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from chaos.job import Job
from chaos.notes import Ends
from chaos.random_drill import manners
from chaos.random_drill.acts import PLAIN_PERSON, Act, Person
from chaos.random_drill.configuration import (
    BREAKING,
    CONFIG,
    CONFIGURED,
    LINGERING,
    METERED,
    SECONDS_VARIABLE,
    SHARED,
    STATUS_VARIABLE,
)
from chaos.random_drill.manners import Door, Manner
from shared.ids import WorkId
from shared.policy.capacity import POOL_AGENTS, POOL_JOBS

FOREVER_S = 600.0
"""How long a job waits that is to be ended by others; longer than any drill."""
NUMBER_VARIABLE = "DRILL_JOB"
"""Names the planned job in its environment, so that it is found again whoever handed it in."""

STATUSES = (0, 0, 0, 1, 7, 77, 255, -9, -15)
GOOD = (0,)

SCOPES = ("", "", "", "north", "north/inner", "south")
SPOKEN_SCOPES = ("", "", "north", METERED, SHARED)
"""Two of them have budgets that are soon used up."""
PRIORITIES = (0, 0, 0, 5)
LISTENS_S = (0.2, 1.5)
"""So long an agent waits for another input before it ends."""
SHUT_S = (2.0, 4.0)
"""So long one goes on to which nothing can be handed."""


class Kind(StrEnum):
    """What a job does."""

    SHORT = "short"
    LONG = "long"
    ESCAPING = "escaping"  # leaves processes in sessions of their own, one with no trace of the job in its environment
    STRAGGLING = "straggling"  # leaves children behind, one of which does not hear TERM
    DEAF = "deaf"  # does not hear TERM, and goes on until it is cancelled
    LATE = "late"  # goes on until its time is up
    DEAF_LATE = "deaf and late"
    PRINTING = "printing"  # megabytes on both streams
    CAPPED = "capped"  # more than is kept
    READING = "reading"  # its standard input
    FLAKY = "flaky"  # fails twice, and is tried again each time
    APPROVED = "approved"  # a person has to let it start, and may refuse
    TALKING = "talking"  # tells turns and usage, and that it is completed though it exits with 3
    PARKING = "parking"  # waits for an event, then for a time, and goes on each time
    PASSING = "passing"  # ends, and lets its next attempt wait
    HINTED = "hinted"  # says that what it ran into is reset some time; a person does not wait so long
    BREAKING = "breaking"  # does what its binding says, and fails so often that nothing more of that starts, until it is let go
    LINGERING = "lingering"  # does what its binding says for long; whoever holds it is hounded
    HOPELESS = "hopeless"  # says that trying again cannot help
    HANDING = "handing"  # hands its work on to its next attempt, which follows at once
    STANDING = "standing"  # rests between inputs, and reads them by its belt
    AGENT = "agent"  # takes inputs while it runs, until none came for a while
    STANDING_AGENT = "standing agent"
    LEAVING_AGENT = "leaving agent"  # ends with an input read and not taken
    CRASHING_AGENT = "crashing agent"  # dies with an input read and not taken
    DECLINING_AGENT = "declining agent"
    PARKING_AGENT = "parking agent"
    HANDING_AGENT = "handing agent"
    SHUTTING_AGENT = "shutting agent"  # lets nothing more be handed to it; such inputs wait for its next attempt
    DROPPING_AGENT = "dropping agent"  # the same; its binding says that they are given up
    FAILING_AGENT = "failing agent"  # names the time of a reset, fails once more, then does well


class Via(StrEnum):
    """How a job is handed in."""

    STORE = "store"
    SUBMIT = "submit"  # the command
    RUN = "run"  # the command, which also follows it


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a kind of job is made of.

    Attributes:
        weight: How often it is drawn, relative to the others.
        binding: Which of `CONFIG` it takes.
        body: Shell text before its wait; `{size}` is put in.
        seconds: Its wait, drawn between these; both the same: always that.
        statuses: How it may end by itself, each as likely.
        sizes: Lines printed to each stream; () prints none but its own words.
        cancel_s: Cancelled so long after it was handed in, drawn between these; None: only now and then, see `plan`.
        may_time_out: Its time is short.
        reads: It gets an input and prints its digest.
        fails: How its first attempts end, by number; its binding tries it again.
        scopes: Where it runs, each as likely.
        manner: How its program speaks; None: it does not.
        standing: It rests between inputs.
        fed: How many inputs it gets besides its first one, drawn between these; an agent gets them while it runs, too.
        interrupts: At most so many interrupts.
    """

    weight: int
    binding: str
    body: str = ""
    seconds: tuple[float, float] = (0.0, 0.1)
    statuses: tuple[int, ...] = STATUSES
    sizes: tuple[int, ...] = ()
    cancel_s: tuple[float, float] | None = None
    may_time_out: bool = False
    reads: bool = False
    fails: tuple[int, ...] = ()
    scopes: tuple[str, ...] = SCOPES
    manner: Manner | None = None
    standing: bool = False
    fed: tuple[int, int] = (0, 0)
    interrupts: int = 0

    @property
    def is_agent(self) -> bool:
        """It runs as an agent."""
        return self.manner is not None and self.manner.door is Door.AGENT

    @property
    def is_configured(self) -> bool:
        """It runs its binding's command, and counts for how that does."""
        return self.binding in CONFIGURED


_LEAVE_ESCAPEES = "setsid sh -c 'sleep 20 & env -i setsid sleep 20 & exit 0' </dev/null >/dev/null 2>&1"
_LEAVE_STRAGGLERS = "sleep 20 & (trap '' TERM; exec sleep 20) & :"
_BE_DEAF = "trap '' TERM"
_PRINT = "seq 1 {size}; seq 7 {size} >&2"
_READ = "sha256sum | cut -c1-64"
_FAIL_TWICE = 'case $TENURE_ATTEMPT in *.1|*.2) set -- "$1" "$2" 7 "$4" ;; esac'


def _spoken(
    weight: int,
    binding: str,
    manner: Manner,
    *,
    seconds: tuple[float, float] = LISTENS_S,
    standing: bool = False,
    fed: tuple[int, int] = (0, 0),
    interrupts: int = 0,
) -> Recipe:
    return Recipe(
        weight,
        binding,
        seconds=seconds,
        statuses=GOOD,
        scopes=SPOKEN_SCOPES,
        manner=manner,
        standing=standing,
        fed=fed,
        interrupts=interrupts,
    )


RECIPES: dict[Kind, Recipe] = {
    Kind.SHORT: Recipe(36, "plain"),
    Kind.LONG: Recipe(9, "plain", seconds=(1.0, 2.5)),
    Kind.ESCAPING: Recipe(9, "stopped", _LEAVE_ESCAPEES),
    Kind.STRAGGLING: Recipe(9, "stopped", _LEAVE_STRAGGLERS),
    Kind.DEAF: Recipe(6, "stopped", _BE_DEAF, (FOREVER_S, FOREVER_S), GOOD, cancel_s=(0.1, 1.5)),
    Kind.LATE: Recipe(6, "late", "", (FOREVER_S, FOREVER_S), GOOD, may_time_out=True),
    Kind.DEAF_LATE: Recipe(4, "late", _BE_DEAF, (FOREVER_S, FOREVER_S), GOOD, may_time_out=True),
    Kind.PRINTING: Recipe(6, "plain", _PRINT, sizes=(60_000, 200_000, 400_000)),
    Kind.CAPPED: Recipe(5, "capped", _PRINT, sizes=(100_000, 300_000)),
    Kind.READING: Recipe(10, "plain", _READ, reads=True),
    Kind.FLAKY: Recipe(10, "retried", _FAIL_TWICE, statuses=GOOD, fails=(7, 7), scopes=SPOKEN_SCOPES),
    Kind.APPROVED: Recipe(8, "approved", scopes=SPOKEN_SCOPES),
    Kind.BREAKING: Recipe(14, BREAKING, statuses=(0, 7, 7, 7, 7, 7, 7, 7)),
    Kind.LINGERING: Recipe(0, LINGERING, seconds=(16.0, 20.0), statuses=GOOD, scopes=("",)),  # one comes with its harm
    Kind.TALKING: _spoken(6, "plain", manners.TALKS),
    Kind.PARKING: _spoken(6, "plain", manners.PARKS),
    Kind.PASSING: _spoken(5, "plain", manners.PASSES),
    Kind.HINTED: _spoken(4, "retried", manners.IS_HINTED),
    Kind.HOPELESS: _spoken(4, "retried", manners.GIVES_UP),
    Kind.HANDING: _spoken(4, "handing", manners.HANDS_ON, standing=True, fed=(0, 2)),
    Kind.STANDING: _spoken(6, "standing", manners.STANDS, standing=True, fed=(2, 5)),
    Kind.AGENT: _spoken(10, "agent", manners.LISTENS, fed=(1, 6), interrupts=2),
    Kind.STANDING_AGENT: _spoken(8, "standing-agent", manners.LISTENS, standing=True, fed=(2, 8), interrupts=2),
    Kind.LEAVING_AGENT: _spoken(6, "agent", manners.LEAVES, fed=(3, 6), interrupts=1),
    Kind.CRASHING_AGENT: _spoken(5, "retried-agent", manners.CRASHES, fed=(2, 6)),
    Kind.DECLINING_AGENT: _spoken(4, "agent", manners.DECLINES, fed=(1, 4), interrupts=1),
    Kind.PARKING_AGENT: _spoken(6, "agent", manners.AGENT_PARKS, fed=(1, 4), interrupts=1),
    Kind.HANDING_AGENT: _spoken(5, "handing-agent", manners.AGENT_HANDS_ON, standing=True, fed=(0, 4), interrupts=1),
    Kind.SHUTTING_AGENT: _spoken(3, "agent", manners.SHUTS, seconds=SHUT_S, fed=(1, 4), interrupts=1),
    Kind.DROPPING_AGENT: _spoken(6, "dropping-agent", manners.SHUTS, seconds=SHUT_S, fed=(3, 6), interrupts=1),
    Kind.FAILING_AGENT: _spoken(4, "retried-agent", manners.AGENT_FAILS, fed=(0, 3)),
}


@dataclass(frozen=True, slots=True)
class Cancel:
    """A cancel that is planned. `attempt`: of the one that is live then, instead of the Work; `command`: by the command."""

    after_s: float
    attempt: bool
    command: bool


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """One job of a plan.

    Attributes:
        number: From 1, within the plan.
        size: Lines it prints to each stream; 0 prints none but its own words.
        status: How it ends when it is left alone.
        acts: In the order of their times.
    """

    number: int
    kind: Kind
    seconds: float
    status: int
    size: int
    scope: str
    priority: int
    via: Via
    cancel: Cancel | None
    acts: tuple[Act, ...] = ()
    person: Person = PLAIN_PERSON

    @property
    def recipe(self) -> Recipe:
        """What its kind is made of."""
        return RECIPES[self.kind]

    def status_of(self, number: int) -> int:
        """How its attempt of that number ends when it is left alone."""
        fails = self.recipe.fails
        return fails[number - 1] if number <= len(fails) else self.status

    @property
    def env(self) -> tuple[tuple[str, str], ...]:
        """What its environment says of it besides."""
        env = [(NUMBER_VARIABLE, str(self.number))]
        if self.recipe.is_configured:
            env += [(SECONDS_VARIABLE, f"{self.seconds:.3f}"), (STATUS_VARIABLE, str(self.status))]
        return tuple(env)

    @property
    def body(self) -> str:
        """Shell text that it runs before it waits."""
        return self.recipe.body.replace("{size}", str(self.size))

    @property
    def input(self) -> bytes | None:
        """Its first input; None: it gets none."""
        if self.recipe.manner is not None:
            return f"first of job {self.number}\n".encode()
        return f"{self.number} of a drill\n".encode() * 300 if self.recipe.reads else None

    @property
    def output_max_bytes(self) -> int:
        """How much is kept of each of its streams; more than it ever prints unless its binding says less."""
        binding = CONFIG.binding(self.recipe.binding)
        cap = None if binding is None else binding.output_max_bytes
        return CONFIG.settings.output_max_bytes if cap is None else cap

    @property
    def prints(self) -> tuple[bytes, bytes]:
        """Everything it writes to each of its streams when it is left alone."""
        middle, errors = b"", b""
        if self.size:
            middle, errors = counted(1, self.size), counted(7, self.size)
        elif self.input is not None:
            middle = f"{hashlib.sha256(self.input).hexdigest()}\n".encode()
        return b"begun\n" + middle + b"done\n", errors

    @property
    def pool(self) -> str:
        """The pool it counts against."""
        return POOL_AGENTS if self.recipe.is_agent else POOL_JOBS

    @property
    def is_hopeless(self) -> bool:
        """It says that trying again cannot help, and is tried again all the same if a person wants that."""
        manner = self.recipe.manner
        return manner is not None and any(scene.ends is Ends.PERMANENT for scene in manner.scenes)

    @property
    def correlations(self) -> tuple[str, ...]:
        """Keys that events of its turns carry: none, one or two; the first is the one of what it waits for."""
        if self.recipe.manner is None:
            return ()
        return (manners.key_of(self.number), f"pair-{self.number}")[: self.number % 3]

    def fed(self, act: Act) -> bytes:
        """The input that an act hands in."""
        return f"input {act.number} of job {self.number}\n".encode().ljust(act.size, b".")

    def expectation(
        self,
        work_id: WorkId,
        *,
        cancelled: bool,
        shim_killed: bool,
        disk_fills: bool = False,
        interrupted: bool = False,
        program_killed: bool = False,
    ) -> Job:
        """How it may end, after what was done to it.

        Args:
            cancelled: A cancel of it was accepted.
            shim_killed: The drill killed a shim of it, so that its end may have gone unseen.
            disk_fills: The disk may have been full when it printed.
            interrupted: An interrupt of it was accepted.
            program_killed: The drill killed a program of it.
        """
        if self.recipe.manner is not None:
            return Job(
                work_id,
                self.status,
                cancelled=cancelled,
                may_be_killed=program_killed,
                may_need_person=shim_killed,
                may_run_again=True,
                may_be_retried=True,
                is_standing=self.recipe.standing,
                speaks=True,
                correlate=self.correlations,
                interrupted=interrupted,
                output=None,
            )
        return Job(
            work_id,
            self.status,
            cancelled=cancelled,
            may_time_out=self.recipe.may_time_out,
            may_need_person=shim_killed,
            may_run_again=bool(self.recipe.fails),
            statuses=self.recipe.fails,
            output=None if self.size or disk_fills else self.prints[0].decode(),
        )


@lru_cache(maxsize=16)
def counted(first: int, last: int) -> bytes:
    """What `seq FIRST LAST` prints."""
    return "".join(f"{number}\n" for number in range(first, last + 1)).encode()
