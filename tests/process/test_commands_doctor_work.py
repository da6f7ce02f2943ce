"""What `tenure doctor` finds in work that is to be tried again, provoked; beside it the same home without the fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.commands.findings_work import STUCK_US
from shared.ids import WorkId, work_of
from shared.model.instant import US_PER_MINUTE
from shared.model.timer import TimerKind
from tests.support.command_homes import Ask, CommandHome
from tests.support.examinations import Found
from tests.support.stores import BACKED_OFF, FAILED

pytestmark = pytest.mark.usefixtures("quiet")


def overdue(home: CommandHome, by_us: int) -> WorkId:
    """A Work whose timer should have fired so long ago."""
    due_at_us = home.clock.now().wall_us - by_us
    change = replace(BACKED_OFF, backoff_us=US_PER_MINUTE, timer=TimerKind.HINT, due_at_us=due_at_us)
    return work_of(home.ended(home.staff(), FAILED, change).attempt_id)


@pytest.mark.req("V04", "O13")
def test_a_retry_that_nobody_asks_for(home: CommandHome, found: Found, ask: Ask) -> None:
    work_id = overdue(home, STUCK_US + US_PER_MINUTE)

    assert found() == {"retries.stuck": "error"}
    assert f"{work_id} should have been tried again 3m" in ask("doctor").out

    home.fire(work_id)
    assert found() == {}, "it has fired"


@pytest.mark.req("V04")
def test_a_retry_that_is_due_is_left_its_time(home: CommandHome, found: Found) -> None:
    overdue(home, STUCK_US - US_PER_MINUTE)

    assert found() == {}
