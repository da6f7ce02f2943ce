"""What deaths of workers mean for the attempts they held, and for the binding of these."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.ids import AttemptId
from shared.model.attempt import Attempt, AttemptState, Exclusion, FailureClass, Snapshot
from shared.policy.losses import QUICK_US, Lost, binding_to_blame, ending_of_lost_workers, in_row_after, is_suspect
from shared.policy.settle import RELAUNCHES_MAX, ending_instead_of_relaunch
from tests.support.evidence import PIN
from tests.support.histories import an_attempt

LAUNCHING = an_attempt(
    AttemptId("w1.1"),
    1,
    epoch=3,
    state=AttemptState.RECOVERING,
    recovered_from=AttemptState.LAUNCHING,
    exclusion=Exclusion.HELD,
    exclusion_proof=None,
    pin=None,
    relaunches=2,
    exit_status=None,
    failure=None,
    ended_at_us=None,
)
RUNNING = replace(LAUNCHING, pin=PIN)
PINNED = Snapshot(
    1, "backup", "", "jobs", "shell", True, ("true",), (), "/", 9, 9, (), "never", (1,), quarantine_after=5
)


def after(attempt: Attempt, in_row: int) -> Attempt:
    return replace(attempt, workers_lost=9, workers_lost_in_row=in_row)


@pytest.mark.parametrize(
    ("attempt", "held_us", "expected"),
    [
        (LAUNCHING, 0, 3),
        (LAUNCHING, 10 * QUICK_US, 3),
        (RUNNING, 0, 3),
        (RUNNING, QUICK_US - 1, 3),
        (RUNNING, QUICK_US, 1),
    ],
)
def test_a_death_long_after_a_running_attempt_was_taken_over_begins_the_row_anew(
    attempt: Attempt, held_us: int, expected: int
) -> None:
    assert in_row_after(after(attempt, 2), held_us) == expected


@pytest.mark.req("F01", "F03")
def test_a_launch_that_cost_three_workers_their_lives_is_a_known_failure() -> None:
    assert ending_of_lost_workers(after(LAUNCHING, 2), PINNED) is None
    ending = ending_of_lost_workers(after(LAUNCHING, 3), PINNED)

    assert ending is not None
    assert (ending.state, ending.failure, ending.proof) == (AttemptState.FAILED, FailureClass.KNOWN, None)
    assert ending.error == "worker lost: launching it cost 3 workers in a row their lives"
    assert ending_of_lost_workers(after(LAUNCHING, 99), replace(PINNED, workers_lost_max=0)) is None, "never"
    strict = ending_of_lost_workers(after(LAUNCHING, 1), replace(PINNED, workers_lost_max=1))
    assert strict is not None
    assert strict.error == "worker lost: launching it cost one worker its life"


def test_launches_that_came_to_nothing_without_a_death_stay_admission_failures() -> None:
    assert ending_instead_of_relaunch(LAUNCHING, PINNED, None) is None
    many = replace(LAUNCHING, relaunches=RELAUNCHES_MAX)

    ending = ending_instead_of_relaunch(many, PINNED, "S0")

    assert ending is not None
    assert ending.failure is FailureClass.ADMISSION
    lost = ending_instead_of_relaunch(after(LAUNCHING, 3), PINNED, "S0")
    assert lost is not None
    assert lost.failure is FailureClass.KNOWN


@pytest.mark.parametrize(
    ("attempt", "in_row", "most", "expected"),
    [
        (LAUNCHING, 0, 3, False),
        (LAUNCHING, 1, 3, False),
        (LAUNCHING, 2, 3, True),
        (LAUNCHING, 1, 2, True),
        (LAUNCHING, 1, 1, True),
        (LAUNCHING, 2, 0, False),
        (RUNNING, 2, 3, False),
    ],
)
def test_only_a_launch_that_may_die_but_once_more_is_a_suspect(
    attempt: Attempt, in_row: int, most: int, expected: bool
) -> None:
    assert is_suspect(after(attempt, in_row), replace(PINNED, workers_lost_max=most)) is expected


GUILTY = Lost(after(RUNNING, 3), PINNED)


@pytest.mark.req("F03")
@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ([], "backup"),
        ([GUILTY], "backup"),
        ([Lost(after(RUNNING, 2), replace(PINNED, binding="report"))], "backup"),
        ([Lost(after(RUNNING, 3), replace(PINNED, binding="report"))], None),
        ([Lost(after(RUNNING, 3), replace(PINNED, binding=None))], None),
        ([Lost(after(LAUNCHING, 3), PINNED)], None),
        ([Lost(after(RUNNING, 3), replace(PINNED, quarantine_after=0))], None),
        ([Lost(after(RUNNING, 3), None)], "backup"),
    ],
)
def test_a_binding_is_blamed_when_all_that_is_left_to_suspect_is_its_own(
    beside: list[Lost], expected: str | None
) -> None:
    assert binding_to_blame([*beside, GUILTY]) == expected


def test_nobody_is_blamed_for_too_few() -> None:
    assert binding_to_blame([]) is None
    assert binding_to_blame([Lost(after(RUNNING, 2), PINNED)]) is None
