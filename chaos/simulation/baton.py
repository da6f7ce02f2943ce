"""The baton: one actor runs at a time, and the seed alone says who is next and when time moves on.

Every thread of control is a greenlet. It keeps the baton until it reaches a boundary, calls a port or waits. An actor whose process
was killed is never resumed: its greenlet is kept until the history is over, as dropping it would run its `finally` blocks,
which no SIGKILL does. Rule: design §9.
"""

from __future__ import annotations

import random
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from greenlet import GreenletExit, getcurrent, greenlet

from shared.boundary import Boundary, Side
from shared.errors import TenureError
from shared.model.instant import US_PER_MS, US_PER_S, Instant

NEVER = 1 << 62
TRACE_KEPT = 4_000
STEP_MOST_US = 120
LAG_MOST_US = 30 * US_PER_MS
REBOOT_MONO_US = 5 * US_PER_S


class BuriedError(BaseException):
    """Raised by every port once the history is over, in whatever of the dead still unwinds."""


@dataclass(eq=False)
class Actor:
    """One thread of control of a process.

    Attributes:
        due_us: While it waits: when it goes on at the latest, on the monotonic clock. 0: it may run now.
    """

    name: str
    thread: Thread
    body: greenlet | None = None
    due_us: int = 0


class Thread:
    """What the baton needs to know of a process: whether it may run.

    Attributes:
        is_alive: A dead one never runs again.
        stopped_until_us: Stopped, as by SIGSTOP, until then.
    """

    is_alive: bool
    stopped_until_us: int

    def resume(self) -> None:
        """Called when it goes on after a stop."""

    def fail(self, error: BaseException) -> None:
        """Called when one of its actors ended with an error."""


class Step(NamedTuple):
    """One boundary reached. `at_us`: virtual microseconds since the history began."""

    number: int
    at_us: int
    actor: str
    boundary: Boundary
    side: Side
    harm: str = ""

    def __str__(self) -> str:
        harm = f"   ← {self.harm}" if self.harm else ""
        return f"{self.number:6} {self.at_us / US_PER_S:11.6f}  {self.actor:24} {self.boundary}-{self.side}{harm}"


class Signal:
    """Something that actors wait for."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._waiting: list[Actor] = []

    def notify(self) -> None:
        """Let everybody who waits look again."""
        for actor in self._waiting:
            actor.due_us = 0
        self._waiting.clear()

    def wait(self, until_us: int) -> None:
        """Wait for the next notice, or until the monotonic instant."""
        actor = self._baton.current
        assert actor is not None, "only an actor waits"
        self._waiting.append(actor)
        self._baton.park(until_us)
        if actor in self._waiting:
            self._waiting.remove(actor)


@dataclass(eq=False)
class Baton:
    """Decides who runs.

    Attributes:
        current: Who has the baton; None: nobody's code runs, the history is set up or judged.
        steps: Boundaries reached so far.
        trace: The last of them.
        eager: How likely whoever just ran goes on, from 0 to 1; drawn for each history.
        on_step: Asked at each boundary: what harm is done there, as a word for the trace.
        has_death: Somebody died since the last turn.
    """

    random: random.Random
    wall_us: int = 1_800_000_000 * US_PER_S
    mono_us: int = 1_000 * US_PER_S
    boot: int = 1
    eager: float = 0.0
    current: Actor | None = None
    steps: int = 0
    turns: int = 0
    began_us: int = 0
    elapsed_us: int = 0
    trace: deque[Step] = field(default_factory=lambda: deque(maxlen=TRACE_KEPT))
    on_step: Callable[[Actor, Boundary, Side], str] = lambda _actor, _boundary, _side: ""
    has_death: bool = False

    def __post_init__(self) -> None:
        self._actors: list[Actor] = []
        self._dead: list[Actor] = []
        self._timed: list[tuple[int, int, Callable[[], None]]] = []
        self._timed_count = 0
        self._hub = getcurrent()
        self._is_over = False
        self.eager = self.random.choice((0.0, 0.5, 0.8, 0.95))

    # --- time

    def now(self) -> Instant:
        """The clock, as every process reads it."""
        return Instant(self.wall_us, self.mono_us, f"boot-{self.boot}")

    def advance(self, us: int) -> None:
        """Let time pass."""
        self.mono_us += us
        self.wall_us += us
        self.elapsed_us += us

    def reboot(self, down_us: int) -> None:
        """Begin another boot; killing everybody is the caller's."""
        self.boot += 1
        self.wall_us += down_us
        self.elapsed_us += down_us
        self.mono_us = REBOOT_MONO_US
        self._timed.clear()

    def later(self, us: int, act: Callable[[], None]) -> None:
        """Do something small when that time has passed; forgotten at a reboot."""
        self._timed_count += 1
        self._timed.append((self.mono_us + us, self._timed_count, act))

    # --- called by actors

    def hand_over(self) -> None:
        """Let the seed decide who goes on."""
        if self._is_over:
            raise BuriedError
        if self.current is not None:
            self._hub.switch()

    def park(self, until_us: int) -> None:
        """Do not run before a notice or that instant."""
        if self._is_over:
            raise BuriedError
        actor = self.current
        assert actor is not None, "only an actor waits"
        actor.due_us = until_us
        self._hub.switch()

    def sleep(self, us: int) -> None:
        """Wait so long."""
        self.park(self.mono_us + us)

    def reached(self, boundary: Boundary, side: Side) -> None:
        """The hook of `shared.boundary`."""
        if self._is_over:
            raise BuriedError
        actor = self.current
        if actor is None:
            return
        self.steps += 1
        harm = self.on_step(actor, boundary, side)
        self.trace.append(Step(self.steps, self.elapsed_us, actor.name, boundary, side, harm))
        self._hub.switch()

    # --- called by whoever sets up and judges

    def start(self, name: str, thread: Thread, run: Callable[[], None]) -> Actor:
        """A new actor, which may run from now on."""
        actor = Actor(name, thread)

        def live() -> None:
            try:
                run()
            except (GreenletExit, BuriedError):
                raise
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is the death of a process and is judged
                thread.fail(error)

        actor.body = greenlet(live, self._hub)
        self._actors.append(actor)
        return actor

    def run(self, is_over: Callable[[], bool]) -> None:
        """Let actors run until that is so, or nobody will ever run again."""
        self._hub = getcurrent()
        last: Actor | None = None
        while not is_over():
            last = self._turn(last)
            if last is None:
                return

    def bury(self) -> None:
        """End every greenlet that is left; nothing they still try does anything."""
        self._is_over = True
        self.current = None
        for actor in [*self._actors, *self._dead]:
            body = actor.body
            if body is not None and not body.dead:
                try:
                    body.throw(GreenletExit)
                except BaseException:  # noqa: BLE001, S110 - what the dead say while they unwind counts for nothing
                    pass
            actor.body = None
        self._actors.clear()
        self._dead.clear()

    # --- the hub

    def _turn(self, last: Actor | None) -> Actor | None:
        now = self.mono_us
        if self._timed:
            self._act_timed(now)
        runnable = [actor for actor in self._actors if actor.due_us <= now and actor.thread.stopped_until_us <= now]
        if not runnable:
            due = min(
                (max(actor.due_us, actor.thread.stopped_until_us) for actor in self._actors),
                default=NEVER,
            )
            due = min([due, *(at for at, _, _ in self._timed)])
            if due >= NEVER:
                return None
            self.advance(due - now)
            return last or self._actors[0]
        pick = self.random.random()
        if last is not None and pick < self.eager and last in runnable:
            actor = last
        else:
            actor = runnable[int(self.random.random() * len(runnable))]
        self.advance(1 + int(pick * STEP_MOST_US))
        if self.random.random() < 0.004:
            actor.due_us = self.mono_us + 1 + int(self.random.random() * LAG_MOST_US)
            return actor
        actor.due_us = 0
        if actor.thread.stopped_until_us:
            actor.thread.resume()
        self.turns += 1
        if actor.thread.is_alive:
            self._give(actor)
        if self.has_death or actor.body is None or actor.body.dead:
            self.has_death = False
            self._actors = [each for each in self._actors if self._stays(each)]
        return actor

    def _give(self, actor: Actor) -> None:
        body = actor.body
        assert body is not None
        self.current = actor
        try:
            body.switch()
        finally:
            self.current = None

    def _stays(self, actor: Actor) -> bool:
        if actor.body is None or actor.body.dead:
            return False
        if actor.thread.is_alive:
            return True
        self._dead.append(actor)
        return False

    def _act_timed(self, now: int) -> None:
        due = [entry for entry in self._timed if entry[0] <= now]
        if due:
            self._timed = [entry for entry in self._timed if entry[0] > now]
            for _, _, act in sorted(due, key=lambda entry: entry[:2]):
                act()


def told(error: BaseException) -> str:
    """An error, and where it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-4:]))
    kind = f"{type(error).__name__}({error.code})" if isinstance(error, TenureError) else type(error).__name__
    return f"{kind}: {error} [{where}]"
