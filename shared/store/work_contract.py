"""The part of the store contract that is about a Work between its attempts: retries, timers, inputs, holds, quarantine.

Rule: requirements E12, O01, O09–O14, F02, F03; the fence and the leadership are told in `shared.store.contract`.
"""

from __future__ import annotations

from typing import Protocol

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import Attempt
from shared.model.timer import Timer
from shared.model.work import NewWork
from shared.store.budget_contract import BudgetCommands, BudgetReads
from shared.store.values import Routine, Submission


class WorkReads(BudgetReads, Protocol):
    """Reads of one snapshot."""

    def timer(self, work_id: WorkId) -> Timer | None:
        """The armed timer of a Work; None when it waits for none."""

    def last_timer(self, work_id: WorkId) -> Timer | None:
        """The timer that was armed last, whatever became of it; None when none ever was."""

    def timers_due(self, *, limit: int) -> list[Timer]:
        """Armed timers that are due, of those that were armed in this boot or carried into it, the longest overdue first."""

    def quarantined(self) -> frozenset[str]:
        """Names of the bindings in quarantine."""

    def suspects(self, *, limit: int) -> list[Attempt]:
        """Unfinished attempts whose last holders died, those of most deaths in a row first."""

    def suspects_launching(self) -> frozenset[Incarnation]:
        """Workers that hold a live lease of an attempt whose launch may have cost an earlier one its life, and that is not pinned yet."""

    def routines(self, *, limit: int) -> list[Routine]:
        """Bindings that failed lately or are quarantined, by name."""

    def submission(self, key: str) -> Submission | None:
        """What was accepted under a key; None: nothing yet."""


class WorkCommands(BudgetCommands, Protocol):
    """Transitions of people and programs, and the one of the leader that fires a timer."""

    def submit(self, work: NewWork, pool: str, *, key: str | None = None, cause: AttemptId | None = None) -> WorkId:
        """Store a Work with one input and make it ready; a standing one without an input is idle. Rings the coordinator.

        A key that was accepted before answers with the same Work and writes nothing. Raises KeyReusedError: it was accepted with
        other content; ChainTooLongError.

        Args:
            cause: The attempt from inside which it is asked for: its input is one link deeper than that one. None, or an attempt
                that is not there: it is a root. Rule: `policy.causality`.
        """

    def add_input(
        self, work_id: WorkId, body: bytes, *, by: str, key: str | None = None, cause: AttemptId | None = None
    ) -> int:
        """Accept a further input of a standing Work, and return its number. An idle one is ready; in every other state the input
        waits: for attempt N+1 while one runs, and it ends no backoff and no hold. A key and a cause are as in `submit`.
        Raises NotFoundError, RefusedError (no standing Work, or ended), KeyReusedError, ChainTooLongError. Rings the coordinator. Rule: O01, O13.
        """

    def retry_work(self, work_id: WorkId, *, by: str, reason: str) -> None:
        """A person's retry: the Work is ready at once with the inputs of its last attempt, and its failures count anew; attempt
        numbers go on. Cancels its timer.
        Raises NotFoundError; RefusedError: it is live, waiting or ready, has completed or was cancelled, a person, a budget or a
        gate holds it, the stop of its last attempt is not proven, or that did not fail. Rings the coordinator. Rule: O11, O14.
        """

    def hold_work(self, work_id: WorkId, *, by: str, reason: str) -> None:
        """Let a Work not start until it is released; one that runs is held from the end of its attempt on. Cancels its timer.
        Raises NotFoundError; RefusedError: it has ended, or is held already.
        """

    def release_work(self, work_id: WorkId, *, by: str, reason: str) -> None:
        """Lift a person's hold: the Work is ready, or idle when nothing waits for it. Where no person holds it, lift a budget's:
        the next start is admitted, or what is parked goes on, over budget or not, and charged as ever. Rule: B04.
        Raises NotFoundError; RefusedError: nobody holds it, or a gate does, which alone settles that. Rings the coordinator.
        """

    def quarantine_binding(self, binding: str, *, by: str, reason: str) -> None:
        """Let no Work start that runs what this binding runs. Raises RefusedError: it is quarantined already."""

    def release_binding(self, binding: str, *, by: str, reason: str) -> None:
        """Lift a quarantine; failures count anew. Raises RefusedError: it is not quarantined. Rings the coordinator."""

    def fire_timer(self, timer_id: int) -> None:
        """Accept the retry that a due timer asks for, fire it and make its Work ready, all at once. Each timer fires once; a due
        clock alone changes nothing. *leader* Rule: O13.
        Raises RefusedError: it is not armed, not due, or its Work does not wait for it.
        """
