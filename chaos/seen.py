"""What can be seen of a drill besides its store and its witness: deaths, glances, gates, what was answered.

A simulation sees all of it, a drill with real processes some; what nobody could see is empty.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.notes import Note
from chaos.speech import Said, Told, Written
from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import Attempt, Lease
from shared.model.instant import Instant
from shared.store.contract import Event


@dataclass(frozen=True, slots=True)
class Go:
    """A gate that was opened (simulation only), and what the store said of it.

    Attributes:
        epoch, pid: Of the launch whose gate it is; the shim's pid.
        now, lease: When its holder decided to open it, and the lease as committed then; whoever is frozen after that opens it late.
        attempt: As committed when GO was sent; None: the store does not know it.
        was_forgotten: That launch was pinned, in a commit that the store had lost by then.
    """

    attempt_id: AttemptId
    epoch: int
    pid: int
    now: Instant
    attempt: Attempt | None
    lease: Lease | None
    was_forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Life:
    """When a coordinator or worker surely lived, frozen or not: from one event of the changefeed to another.

    Attributes:
        until_seq: The last event that was committed when it was still alive; None: it was so at the end.
    """

    who: Incarnation
    from_seq: int
    until_seq: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """A glance at who is held, taken now and then.

    Attributes:
        at_us: Elapsed time, in microseconds, never falling; a clock that steps does not show in it.
        able: Since the look before, a leading coordinator and a worker that may take anything over ran all the while, and the
            store let them write.
        unheld: (attempt, epoch) of what is unfinished, not parked, left to nobody, and without a live lease.
        quiet: Of each launch that runs, and whose binding bounds how long it may be quiet: when it began or wrote last (simulation only).
    """

    at_us: int
    able: bool
    unheld: frozenset[tuple[AttemptId, int]]
    quiet: frozenset[Written] = frozenset()


@dataclass(frozen=True, slots=True)
class Accepted:
    """An input that whoever handed it in was told is accepted, under its key.

    Attributes:
        sha256: Of what it holds; `intent`: the one it came with, `i7`. Empty: that is not known.
    """

    work_id: WorkId
    number: int
    key: str
    sha256: str = ""
    intent: str | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """A moment at which `seq` was the last event that was committed. `at_us`: elapsed time, as in `Look`."""

    seq: int
    at_us: int


@dataclass(frozen=True, slots=True)
class Fault:
    """An actor that died of an error that is none of those it may meet: its class by name, and what it said."""

    who: str
    error: str
    text: str


@dataclass(frozen=True, slots=True)
class Backward:
    """A commit into a store that knew less than whoever committed had seen of it (simulation only).

    Attributes:
        seen_seq: The last event after the commit before of that process; `seq`: after this one.
    """

    who: str
    seen_seq: int
    seq: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen besides the store and the witness; see the attributes of `History`."""

    faults: tuple[Fault, ...] = ()
    gos: tuple[Go, ...] = ()
    lives: tuple[Life, ...] = ()
    looks: tuple[Look, ...] = ()
    backwards: tuple[Backward, ...] = ()
    lost: tuple[Event, ...] = ()
    ticks: tuple[Tick, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    notes: tuple[Note, ...] = ()
    said: tuple[Said, ...] = ()
    told: tuple[Told, ...] = ()
    written: tuple[Written, ...] = ()


NOTHING_SEEN = Seen()
