"""Retries, standing work and quarantine with real processes, through the command line alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.harness import DRILL_ID
from shared.boundary import Boundary, Side
from tests.support.up_sites import UpSite

CONFIG = """
[settings]
quarantine_after = 2
[binding.flaky]
command = ["sh", "-c", "echo try; exit 3"]
retry = { delays = ["1s", "1s"], exhausted = "hold" }
[binding.plain]
command = ["false"]
[binding.feed]
command = ["cat"]
kind = "standing"
"""


@pytest.fixture
def site(tmp_path: Path) -> UpSite:
    return UpSite(tmp_path, CONFIG)


@pytest.mark.req("O09", "O11", "O14", "F02")
def test_a_work_is_tried_three_times_then_held_and_once_more_by_a_person(site: UpSite) -> None:
    with site.up():
        work = site.submit("flaky")
        site.await_state(work, "held")
        shown = site.json("work", "show", work)
        assert (shown["reason"], shown["failures_used"], shown["failures_max"]) == ("exhausted", 3, 3)
        assert [attempt["exit_code"] for attempt in shown["attempts"]] == [3, 3, 3]
        assert site.call("work", "retry", work).returncode == 0
        site.await_state(work, "held")

    assert site.json("work", "show", work)["attempts_used"] == 6, "the budget was new, the numbers went on"


@pytest.mark.req("O13", "L01", "M01")
def test_a_coordinator_killed_right_after_it_fired_a_timer_leaves_one_retry(site: UpSite) -> None:
    """Each coordinator that `up` starts again dies there too, one timer further."""
    log = site.home / "drill.log"
    (site.home / "drill").write_text(DRILL_ID)
    armed = {"TENURE_ARM": f"{Boundary.TIMER_COMMIT}:{Side.AFTER}:KILL", "TENURE_DRILL": DRILL_ID}
    work = site.submit("flaky")
    with site.up(env=armed):
        site.await_state(work, "held")

    assert Boundary.TIMER_COMMIT in log.read_text()
    assert [attempt["number"] for attempt in site.json("work", "show", work)["attempts"]] == [1, 2, 3]


@pytest.mark.req("E12", "O01")
def test_a_standing_work_takes_one_input_after_the_other(site: UpSite) -> None:
    with site.up():
        work = site.submit("feed")
        for number, text in enumerate(("one", "two"), start=1):
            assert site.call("submit", work, "--input", text).returncode == 0
            site.await_state(work, "idle")
            assert site.json("work", "show", work)["attempts_used"] == number


@pytest.mark.req("F03", "V03")
def test_a_binding_that_keeps_failing_waits_for_a_person(site: UpSite) -> None:
    with site.up():
        for _ in range(2):
            site.await_state(site.submit("plain"), "failed")
        held_back = site.submit("plain")
        assert site.call("binding", "release", "plain", "--reason", "mended").returncode == 0
        site.await_state(held_back, "failed")
        assert [item["failures"] for item in site.json("binding", "list")["items"]] == [0, 0, 1]
