"""The part of the store contract that is about what programs declare, what is published, and what Works wait for.

Rule: requirements O01, O02, O06–O08, O15, S01; the fence and the leadership are told in `shared.store.contract`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt, Ending, LeaseKey
from shared.model.causality import ChainRefusal
from shared.model.declaration import Declaration, Recorded
from shared.model.event import NewEvent
from shared.model.outcome import Outcome
from shared.model.usage import Usage
from shared.model.wait import Awaited, Wake
from shared.model.work import Reason
from shared.policy.retry import Arm
from shared.store.values import Claimed, ClaimRefused, ResumeRequest, WokenPage


class WaitReads(Protocol):
    """Reads of one snapshot."""

    def declarations(self, attempt_id: AttemptId, *, unapplied: bool = False) -> list[Recorded]:
        """What the attempt declared, in order: all of it, or what was not applied yet."""

    def reported(self, attempt_id: AttemptId) -> Usage:
        """All that the attempt's program reported to have consumed, through either door; charged or not yet."""

    def awaited(self, work_id: WorkId) -> Awaited | None:
        """What the Work waits for, or what has come and waits for a slot; None: nothing."""

    def asked(self, *, limit: int) -> list[Awaited]:
        """Waits that ask a person and have no answer yet, the first one first."""

    def woken(
        self,
        pool: str,
        *,
        after: tuple[int, str] | None = None,
        limit: int,
        told: Collection[tuple[Reason, str | None]] = (),
    ) -> WokenPage:
        """Parked attempts of a pool that may be resumed as soon as there is a slot, in the order in which they came to that, behind a place.

        Passes over, without reading them, those whose Work says already what holds it back, if that still does: a person's hold, a
        budget nobody let it past, or one of `told` (reason and limit). Bounded, however many there are. Rule: S01, C02.
        """

    def wake(self, attempt: Attempt) -> Wake | None:
        """What woke the attempt into its present launch; None: that is its first."""

    def waking(self, *, limit: int) -> list[int]:
        """Places of the published events that have not yet ended all the waits that they match, in order."""

    def chain_refusals(self, attempt_id: AttemptId) -> list[ChainRefusal]:
        """What an attempt's outcomes did not get because its chain was too long, by epoch."""

    def chains_stopped(self, *, limit: int) -> list[ChainRefusal]:
        """Refusals at the end of what open Works did last, the latest first: nothing has come of these Works since."""

    def correlations(self, work_id: WorkId) -> tuple[str, ...]:
        """The Work's correlation keys, sorted."""


class WaitTransitions(Protocol):
    """Transitions of workers, of whoever publishes, and the one of the leader that resumes."""

    def declare(self, key: LeaseKey, declarations: Sequence[Declaration]) -> None:
        """Record what the running program declares: usage is added up at once, and charged by whatever ends the attempt; the rest is
        kept unapplied.

        A declaration's key within the attempt makes it one: the same again is answered and writes nothing.
        Raises DeclarationError: its key was used for another declaration, the segment has `DECLARATIONS_MAX` turns, waits or
        outcomes already, the attempt reported in `UNITS_KEPT` units already, or it says that an input was taken which is neither
        the attempt's nor waits for its Work.
        Fenced. Rule: O15, B03.
        """

    def park(self, key: LeaseKey, outcome: Outcome, *, proof: str) -> None:
        """End the segment and let the attempt wait: its lease revoked, its pin cleared, its slot free, what is left of its
        time kept, its Work waiting, the wait registered and its timer armed, all at once. What was published since the
        wait was declared ends it at once.

        Args:
            outcome: Of kind `waiting`, with a wait that resumes; what it says besides is applied as with `finish`.
            proof: That nothing of the segment is left.
        Fenced. Rings the coordinator. Rule: O08, E13.
        """

    def put_off(self, key: LeaseKey, failed: Ending, *, proof: str, again: Arm) -> None:
        """Park an attempt again of whose resume nothing ran: as `park`, but what had woken it counts on, and its next resume waits
        for a timer of its own, which may be cancelled with its Work alone.

        Args:
            failed: How it would have ended; it spends no retry.
            proof: That nothing of the launch is left.
            again: When it is tried again; `policy.resumption`.
        Fenced. Rings the coordinator. Rule: O08, F01.
        """

    def publish(self, event: NewEvent, *, key: str | None = None, cause: AttemptId | None = None) -> int:
        """Accept an event, and end the waits that it matches; returns its place in the changefeed. At most so many waits end with
        it as one transaction may end; the others end by `wake_on`.

        It never wakes the Work whose attempt published it. A key that was accepted before answers with the same place and writes
        nothing. `cause` is as in `submit`. Raises KeyReusedError: it was accepted with other content; ChainTooLongError. Rings the coordinator. Rule: O06, O08, S01.
        """

    def wake_on(self, *, limit: int) -> bool:
        """Go on ending the waits that published events match, of at most `limit` events, the oldest first, within what one
        transaction may end; True: there is more to do. *leader* Rule: O08, S01.
        """

    def claim_resume(self, request: ResumeRequest) -> Claimed | ClaimRefused:
        """Resume a parked attempt whose wait is over: epoch + 1, lease for the chosen worker, a segment with the wake's event
        and `invoke = pending`, what was left of its time. Rings the worker. *leader* Rule: O08, E11, E13.
        """
