"""The part of the store contract that is about stop orders. Rule: requirements R11–R13, X03."""

from __future__ import annotations

from typing import Protocol

from shared.ids import AttemptId, Incarnation
from shared.model.stop import StopResult


class StopTransitions(Protocol):
    """Taken under a lease of their own, ended only by a confirmation for the right epoch."""

    def take_stop_order(self, order_id: int, owner: Incarnation, *, lease_us: int) -> bool:
        """Work on an order until its lease lapses; True: it is this worker's. Acknowledges the cancel behind it, if there is one."""

    def confirm_stopped(
        self, attempt_id: AttemptId, *, expected_epoch: int, proof: str, by: str, reason: str | None = None
    ) -> None:
        """Release the exclusion of an ended attempt, close its order, settle the cancel behind it.

        Args:
            proof: The rule that proved it, or `PERSON`: somebody's word, which needs a `reason`.
        Raises: NotFoundError; RefusedError when the attempt is at another epoch or unfinished, when a word has no reason, or
            comes when the stop is proven already. By a rule it may be repeated.
        Rings the coordinator. Rule: R11, X03.
        """

    def report_unproven(self, order_id: int, owner: Incarnation, result: StopResult, *, retry_us: int) -> None:
        """Keep an order open with what was found; its lease is given back, and it counts as unassigned after `retry_us`."""
