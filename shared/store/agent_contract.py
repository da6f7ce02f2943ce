"""The part of the store contract that is about running agents: what was read of them, and what they are told.

Rule: requirements O01, O02, T01–T05; the fence is told in `shared.store.contract`.
"""

from __future__ import annotations

from typing import Protocol

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import LeaseKey
from shared.model.intent import Delivered, DueIntent, Intent
from shared.model.stream import Refusal, Stream, Stretch
from shared.store.values import FaultyStream


class AgentReads(Protocol):
    """Reads of one snapshot."""

    def stream(self, attempt_id: AttemptId) -> Stream | None:
        """How far the attempt's output was read; None: nothing of it yet."""

    def faulty_streams(self, *, since_at_us: int, limit: int) -> list[FaultyStream]:
        """Outputs in which lines were refused or not known, of attempts that run or ended since then; last read first."""

    def intents(self, work_id: WorkId, *, limit: int = 64) -> list[Intent]:
        """The last intents of a Work, in order."""

    def intent(self, number: int) -> Intent | None: ...
    def due_intents(self, owner: Incarnation, *, limit: int) -> list[DueIntent]:
        """Inputs for running attempts that this owner holds, in order: those nobody acts on, and those whose token is of an
        earlier lease. Rule: T03.
        """


class AgentTransitions(Protocol):
    """Transitions of whoever speaks to an attempt, and of who holds it."""

    def inject(
        self, work_id: WorkId, body: bytes, *, by: str, key: str | None = None, cause: AttemptId | None = None
    ) -> Intent:
        """Accept an input of an open Work, with an intent to hand it to the attempt that is live; without one the input waits
        for the next attempt, and the intent is returned at once. An idle Work is ready.

        A key that was accepted before answers with that intent and writes nothing. `cause`: as of `WorkCommands.submit`.
        Raises NotFoundError, RefusedError (the Work has ended), KeyReusedError, ChainTooLongError. Rings the holder and the coordinator.
        Rule: O01, T01.
        """

    def interrupt(self, work_id: WorkId, *, by: str, reason: str) -> Intent:
        """End the live attempt as interrupted and leave its Work ready, its inputs pending, in one transaction; then it is
        stopped: a stop order keeps its exclusion until that is proven.
        Raises NotFoundError, RefusedError (nothing runs). Rings the coordinator and the workers. Rule: T04.
        """

    def follow(self, key: LeaseKey, pin_epoch: int, stretch: Stretch) -> None:
        """Record a stretch of the attempt's output as read: how far, what the program used, declared and took, what it does not take,
        what was refused. An input it took settles its intent, also one that is just being handed over. What there is no room for, and
        inputs that the attempt was never handed, are refused line by line, and the rest counts.
        Raises RefusedError: the output was read further, or less far, than where the stretch begins. Fenced. Rule: T02.
        """

    def note_refusal(self, key: LeaseKey, refusal: Refusal) -> None:
        """Record that something the program said by its belt was refused for want of room, so that a person sees it too. Fenced."""

    def report_late(self, attempt_id: AttemptId, *, expected_epoch: int, pin_epoch: int, stretch: Stretch) -> None:
        """Record a stretch of the output of an attempt that ended before it was read, by whoever proves its stop.

        Its usage is charged, and the inputs that the program took while it ran are spent where the end spent those it had. What it
        declared of its end or of a turn is never applied: the attempt was fenced before. All of it is told by one event.
        Raises RefusedError: the attempt has not ended at that epoch, its stop is confirmed already, or the output was read further,
        or less far, than where the stretch begins. Rings the coordinator. Rule: B03, T02.
        """

    def dispatch(self, key: LeaseKey, number: int) -> int | None:
        """Begin to act on an intent; returns the token by which alone the result can be told. None: it is not to be acted on
        (settled, or its attempt does not run). Fenced. Rule: T01, T03.
        """

    def acknowledge(self, key: LeaseKey, number: int, *, token: int, result: Delivered, why: str | None = None) -> bool:
        """Tell what came of acting on an intent; False, and nothing is written, when the token is not the live one, or it was
        settled meanwhile. Fenced. Rule: T01, T02.
        """
