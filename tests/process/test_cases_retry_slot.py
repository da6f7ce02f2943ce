"""A retry whose slot was given away meanwhile is neither dropped nor doubled: case C058, as far as there is no schedule.

The rule: a work that waits for its next try is still that one work. Its key answers with it; a standing one takes further input into
the same wait; its slot is free for others meanwhile, and it waits for one again, with its reason, when its time has come.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.up_sites import UpSite
from tests.support.waiting import wait_until

CONFIG = """
[settings]
job_concurrency = 1
[binding.once]
command = ["sh", "-c", "if [ ! -e NOTES/tried ]; then touch NOTES/tried; \\"$TENURE_COMMAND\\" submit other > NOTES/taker; exit 3; fi; echo again"]
retry = { delays = ["1s"] }
[binding.other]
command = ["sh", "-c", "read -r line < NOTES/valve"]
[binding.feed]
kind = "standing"
command = ["sh", "-c", "\\"$TENURE_COMMAND\\" tool input >> NOTES/fed; [ -e NOTES/hinted ] && exit 0; touch NOTES/hinted; \\"$TENURE_COMMAND\\" tool outcome failed --retry-unknown"]
"""


@pytest.fixture
def site(tmp_path: Path) -> UpSite:
    return UpSite(tmp_path, CONFIG.replace("NOTES", str(tmp_path)))


@pytest.fixture
def valve(tmp_path: Path) -> Iterator[int]:
    os.mkfifo(tmp_path / "valve")
    hold = os.open(tmp_path / "valve", os.O_RDWR)
    yield hold
    os.close(hold)


@pytest.mark.req("O09", "O13", "C04")
def test_a_retry_waits_for_the_slot_that_was_given_away_and_its_key_stays_its_own(site: UpSite, valve: int) -> None:
    with site.up():
        work = site.submit("once", "--key", "nightly-2030-01-31")
        wait_until(
            lambda: site.json("work", "show", work)["failures_used"] == 1, "it failed, having handed in the other"
        )
        taker = (site.folder / "taker").read_text().strip()
        site.await_state(taker, "running")
        assert site.submit("once", "--key", "nightly-2030-01-31") == work, (
            "what waits for its retry is the accepted one"
        )
        wait_until(lambda: site.json("work", "show", work)["reason"] == "capacity_job_concurrency", "its time has come")
        shown = site.json("work", "show", work)
        assert (shown["state"], shown["attempts_used"], shown["failures_used"]) == ("ready", 1, 1)
        assert site.pool()["holders"] == [f"{taker}.1"]

        os.write(valve, b"go\n")
        site.await_state(work, "completed")

        assert [each["exit_code"] for each in site.json("work", "show", work)["attempts"]] == [3, 0]
        assert site.submit("once", "--key", "nightly-2030-01-31") == work, "and once it is done, too"
        assert len(site.json("work", "list")["items"]) == 2


@pytest.mark.req("O12", "O13", "E12")
def test_what_a_standing_work_is_handed_while_it_waits_for_its_retry_joins_it(site: UpSite, tmp_path: Path) -> None:
    with site.up():
        work = site.submit("feed", "--input", "first")
        site.await_state(work, "backoff")

        for word in ("second", "third"):
            assert site.call("submit", work, "--input", word, "--key", word).returncode == 0
        assert site.call("submit", work, "--input", "third", "--key", "third").returncode == 0
        assert site.state(work) == "backoff", "input does not clear it"
        assert site.call("work", "retry", work).returncode == 0
        site.await_state(work, "idle")

    fed = [json.loads(line)["text"] for line in (tmp_path / "fed").read_text().splitlines()]
    assert fed == ["first", "first", "second", "third"], "the failed attempt gave back what it had"
