"""The kill-point table of the launch protocol, as data: where a launch is hit, and what the next holder must find.

The first 37 are the table of research "process truth" §2: seven points of the worker, and ten of the shim and child, each with
the worker left alive, killed with it, or killed alone. The rest came with this implementation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.boundary import Boundary, Side, Victims
from shared.policy.recovery import Verdict

RELAUNCH, ADOPT, ORPHAN = Verdict.RELAUNCH, Verdict.ADOPT, Verdict.ADOPT_ORPHAN
FINISHED, UNKNOWN = Verdict.FINISHED, Verdict.RECOVERY_REQUIRED


class Outcome(StrEnum):
    """How the attempt ends once nobody is killed any more."""

    RAN = "ran once, its own status recorded"
    KILLED = "killed before exec: no run, signal 9 recorded"
    HELD = "ran once, nobody saw its end: a person decides"


@dataclass(frozen=True, slots=True)
class KillPoint:
    """One cell of the table.

    Attributes:
        first: What the first take-over may decide; which of them is a matter of who is faster.
        later: What later take-overs, and the same one again after it waited, may decide besides.
        is_launch: Every relaunch comes past this point again, so a chain of take-overs dies here each time.
    """

    boundary: Boundary
    side: Side
    victims: Victims
    first: frozenset[Verdict]
    later: frozenset[Verdict]
    outcome: Outcome
    is_launch: bool

    @property
    def order(self) -> str:
        """The value of TENURE_ARM that arms it."""
        return f"{self.boundary}:{self.side}:KILL:{self.victims}"

    @property
    def kills_worker(self) -> bool:
        """The process that launched dies at this point."""
        return self.victims is not Victims.SELF or self.boundary in _WORKER_BOUNDARIES

    def __str__(self) -> str:
        return f"{self.boundary}-{self.side}-{self.victims}"


_WORKER_BOUNDARIES = frozenset(
    {
        Boundary.CLAIM_COMMIT,
        Boundary.ATTEMPT_MKDIR,
        Boundary.ATTEMPT_SPEC,
        Boundary.ATTEMPT_SYNC,
        Boundary.SHIM_SPAWN,
        Boundary.READY_RECEIVE,
        Boundary.PIN_COMMIT,
        Boundary.GO_SEND,
        Boundary.FINISH_COMMIT,
    }
)
_UNTIL_FINISHED = frozenset({ADOPT, FINISHED})


def _worker(
    boundary: Boundary,
    side: Side,
    first: set[Verdict],
    later: set[Verdict] = set(),  # noqa: B006 - never changed
    *,
    is_launch: bool = True,
) -> KillPoint:
    """A point of the worker itself."""
    return KillPoint(
        boundary,
        side,
        Victims.SELF,
        frozenset(first),
        frozenset(first | later) | _UNTIL_FINISHED,
        Outcome.RAN,
        is_launch,
    )


def _shim(
    boundary: Boundary,
    side: Side,
    alone: set[Verdict],
    outcome: Outcome = Outcome.RAN,
    *,
    worker_only: set[Verdict],
    both: set[Verdict] | None = None,
) -> tuple[KillPoint, KillPoint, KillPoint]:
    """A point of the shim or child: hit alone, with the worker, and the worker hit by it.

    Args:
        both: Where a living worker makes a difference to what the next one finds; else as `alone`.
    """
    together = alone if both is None else both
    later = frozenset(alone | together | worker_only) | _UNTIL_FINISHED
    return (
        KillPoint(boundary, side, Victims.SELF, frozenset(alone), later, outcome, RELAUNCH in alone),
        KillPoint(boundary, side, Victims.BOTH, frozenset(together), later, outcome, RELAUNCH in together),
        KillPoint(boundary, side, Victims.WORKER, frozenset(worker_only), later, Outcome.RAN, RELAUNCH in worker_only),
    )


TABLE: tuple[KillPoint, ...] = (
    _worker(Boundary.CLAIM_COMMIT, Side.AFTER, {RELAUNCH}, is_launch=False),
    _worker(Boundary.ATTEMPT_MKDIR, Side.AFTER, {RELAUNCH}),
    _worker(Boundary.SHIM_SPAWN, Side.AFTER, {RELAUNCH}),
    _worker(Boundary.READY_RECEIVE, Side.AFTER, {RELAUNCH}),
    _worker(Boundary.PIN_COMMIT, Side.BEFORE, {RELAUNCH}),
    # The shim may still stand at its gate, with the end-of-file on its way.
    _worker(Boundary.PIN_COMMIT, Side.AFTER, {RELAUNCH, ADOPT}),
    _worker(Boundary.GO_SEND, Side.AFTER, {ADOPT, FINISHED}, is_launch=False),
    *_shim(Boundary.READY_SEND, Side.BEFORE, {RELAUNCH}, worker_only={RELAUNCH}),
    # READY may have been read and pinned before the kill.
    *_shim(Boundary.READY_SEND, Side.AFTER, {RELAUNCH}, worker_only={RELAUNCH, ADOPT}),
    *_shim(Boundary.GO_RECEIVE, Side.AFTER, {RELAUNCH}, worker_only={ADOPT, FINISHED}),
    # The child goes on alone; until its exec it holds the lock it inherited.
    *_shim(Boundary.CHILD_FORK, Side.AFTER, {ADOPT, ORPHAN, FINISHED}, worker_only={ADOPT, FINISHED}),
    # The shim sees its child die; it holds the lock until it has said so.
    *_shim(Boundary.CHILD_RENAME, Side.BEFORE, {RELAUNCH, ADOPT}, worker_only={ADOPT, FINISHED}),
    *_shim(Boundary.CHILD_DIRECTORY_SYNC, Side.AFTER, {FINISHED, ADOPT}, Outcome.KILLED, worker_only={ADOPT, FINISHED}),
    *_shim(Boundary.CHILD_EXEC, Side.AFTER, {ORPHAN, FINISHED}, worker_only={ADOPT, FINISHED}),
    *_shim(Boundary.CHILD_REAP, Side.AFTER, {UNKNOWN}, Outcome.HELD, worker_only={ADOPT, FINISHED}),
    *_shim(Boundary.EXIT_RENAME, Side.BEFORE, {UNKNOWN}, Outcome.HELD, worker_only={ADOPT, FINISHED}),
    *_shim(Boundary.EXIT_DIRECTORY_SYNC, Side.AFTER, {FINISHED}, worker_only={ADOPT, FINISHED}),
)
"""The 37 points of the table."""

ADDED: tuple[KillPoint, ...] = (
    _worker(Boundary.ATTEMPT_SPEC, Side.AFTER, {RELAUNCH}),
    _worker(Boundary.ATTEMPT_SYNC, Side.AFTER, {RELAUNCH}),
    _worker(Boundary.GO_SEND, Side.BEFORE, {RELAUNCH, ADOPT}),
    _worker(Boundary.FINISH_COMMIT, Side.BEFORE, {FINISHED}, is_launch=False),
    *_shim(Boundary.SHIM_LOCK, Side.AFTER, {RELAUNCH}, worker_only={RELAUNCH}),
    # Registered, not yet durable, and not yet exec'ed.
    *_shim(Boundary.CHILD_RENAME, Side.AFTER, {FINISHED, ADOPT}, Outcome.KILLED, worker_only={ADOPT, FINISHED}),
    *_shim(Boundary.EXIT_RENAME, Side.AFTER, {FINISHED}, worker_only={ADOPT, FINISHED}),
)
"""Points that this implementation has besides."""
