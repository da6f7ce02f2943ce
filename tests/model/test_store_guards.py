"""The controls of the lives: take one guard away, and they find it within a bounded number of lives.

The seed of each round is its number; `-s` prints how many lives it took.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from chaos.fold import MisfitError
from shared.errors import FenceViolationError
from shared.model.work import Reason
from shared.policy.steps import IllegalStepError
from shared.store.contract import ClaimRequest
from shared.store.sqlite import connection, holding, registration, takeover, writing
from shared.store.sqlite.connection import Connection
from shared.store.sqlite.coordination import Coordination
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.fragments import FENCE, LIVE, NOT_LIVE
from shared.store.sqlite.writing import Writing
from tests.model.lives import Lives

ROUNDS, EXAMPLES, STEPS = 8, 40, 50
FINDINGS = (AssertionError, FenceViolationError, IllegalStepError, MisfitError)

Removal = Callable[[pytest.MonkeyPatch], None]
REMOVALS: dict[str, Removal] = {}


def removal(what: str) -> Callable[[Removal], Removal]:
    """Name the guard that is taken away."""

    def named(made: Removal) -> Removal:
        REMOVALS[what] = made
        return made

    return named


def without(patch: pytest.MonkeyPatch, module: Any, name: str, guard: str, instead: str) -> None:
    """Take a condition out of one statement."""
    statement = getattr(module, name)
    assert guard in statement, "the statement has the guard"
    patch.setattr(module, name, statement.replace(guard, instead))


OPEN = (
    "id = :attempt AND ended_at_us IS NULL AND :owner = :owner AND :epoch = :epoch AND :boot = :boot AND :mono = :mono"
)
"""An attempt that is unfinished, whoever holds it."""


@removal("the fence of what only reads its attempt first: release, phases")
def _(patch: pytest.MonkeyPatch) -> None:
    without(patch, writing, "HELD_ATTEMPT", FENCE, OPEN)


@removal("the fence of an end")
def _(patch: pytest.MonkeyPatch) -> None:
    without(patch, writing, "HELD_ATTEMPT", FENCE, OPEN)
    without(patch, holding, "FINISH", FENCE, OPEN)


@removal("the fence of a pin")
def _(patch: pytest.MonkeyPatch) -> None:
    without(patch, writing, "HELD_ATTEMPT", FENCE, OPEN)
    without(patch, holding, "PIN", FENCE, OPEN)


@removal("the fence of a renewal")
def _(patch: pytest.MonkeyPatch) -> None:
    without(patch, holding, "RENEW", LIVE, "l.revoked_at_us IS NULL AND :boot = :boot")


@removal("the rule that only a lease that is not live is taken over")
def _(patch: pytest.MonkeyPatch) -> None:
    without(patch, takeover, "TAKE_OVER", NOT_LIVE, ":boot = :boot")


@removal("the rise of the epoch")
def _(patch: pytest.MonkeyPatch) -> None:
    without(patch, takeover, "TAKE_OVER", "SET epoch = epoch + 1", "SET epoch = epoch")


@removal("the rise of the epoch by one")
def _(patch: pytest.MonkeyPatch) -> None:
    without(patch, takeover, "TAKE_OVER", "SET epoch = epoch + 1", "SET epoch = epoch + 2")


@removal("the leader's generation")
def _(patch: pytest.MonkeyPatch) -> None:
    same = "owner = :owner AND generation = :generation AND "
    without(patch, registration, "LEADING", same, ":owner = :owner AND :generation = :generation AND ")
    without(patch, registration, "RENEW_LEADERSHIP", same, ":owner = :owner AND :generation = :generation AND ")


@removal("the condition of a take-over of the lead")
def _(patch: pytest.MonkeyPatch) -> None:
    without(patch, registration, "TAKE_LEADERSHIP", "generation = :dead OR", "1 OR :dead OR")


@removal("the recheck of what a claim was decided on")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordination, "_changed", lambda *_: None)


@removal("the rule that an attempt waits for the stop of the one before")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordination, "unexcluded", lambda *_: None)


@removal("the rule that claims stop on a full disk")
def _(patch: pytest.MonkeyPatch) -> None:
    def regardless(self: Coordination, request: ClaimRequest) -> tuple[Reason, str | None] | None:
        return None if self.unexcluded(request.work_id) is None else (Reason.STOP_UNPROVEN, None)

    patch.setattr(Coordination, "_limit", regardless)


@removal("the stop order of an end without proof")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Writing, "_order_stop", lambda *_: None)


@removal("the revocation of an ended attempt's lease")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Writing, "_revoke", lambda *_: None)


@removal("the charge of a segment's time")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writing, "budget_left_us", lambda attempt, _: attempt.budget_us)


@removal("the event of a pin")
def _(patch: pytest.MonkeyPatch) -> None:
    real = Writing._attempt_event

    def forgetful(self: Writing, attempt: Any, kind: str, *args: Any, **facts: Any) -> None:
        if kind != "pinned":
            real(self, attempt, kind, *args, **facts)

    patch.setattr(Writing, "_attempt_event", forgetful)


@removal("the event of a Work's new state")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Writing, "_work_event", lambda *_: None)


@removal("telling an event once")
def _(patch: pytest.MonkeyPatch) -> None:
    real = Writing._event

    def twice(self: Writing, kind: str, *args: Any, **facts: Any) -> None:
        real(self, kind, *args, **facts)
        if kind.startswith("lease."):
            real(self, kind, *args, **facts)

    patch.setattr(Writing, "_event", twice)


@removal("giving up what was interrupted")
def _(patch: pytest.MonkeyPatch) -> None:
    def keep(self: Connection) -> None:
        if self.raw.in_transaction:
            self.raw.execute("COMMIT")
        self._accounted = self.raw.total_changes

    patch.setattr(Connection, "rollback", keep)


@removal("telling an unanswered commit from one that failed")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(connection, "_KNOWN_AT_COMMIT", (*connection._KNOWN_AT_COMMIT, 10))


@removal("telling that a commit failed")
def _(patch: pytest.MonkeyPatch) -> None:
    real = Connection.commit

    def hopeful(self: Connection, at: Any) -> None:
        try:
            real(self, at)
        except Exception as error:
            if not isinstance(error.__cause__, sqlite3.Error):
                raise
            self.rollback()

    patch.setattr(Connection, "commit", hopeful)


class Numbered(Lives):
    """Lives that are counted."""

    count: ClassVar[int] = 0

    def __init__(self) -> None:
        type(self).count += 1
        super().__init__()


@pytest.mark.timeout(300)
@pytest.mark.req("D02", "E07", "R07", "M05")
@pytest.mark.parametrize("what", REMOVALS)
def test_lives_find_a_guard_that_is_taken_away(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    REMOVALS[what](monkeypatch)
    Numbered.count = 0

    found = first_finding()

    assert found is not None, f"not missed in {Numbered.count} lives"
    print(f"{what}: missed within {Numbered.count} lives: {type(found).__name__}")


def first_finding() -> Exception | None:
    bounded = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        database=None,
        phases=(Phase.generate,),
        report_multiple_bugs=False,
        print_blob=False,
    )
    for number in range(ROUNDS):
        try:
            run_state_machine_as_test(seed(number)(Numbered), settings=bounded)
        except FINDINGS as found:
            return found
    return None
