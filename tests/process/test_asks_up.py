"""Programs that ask a person and wait without a slot: shown with how to answer, answered, denied when nobody does. Case C061 (c)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkout import ROOT
from tests.support.protocol import FROM_PROGRAM, faults
from tests.support.up_sites import UpSite
from tests.support.waiting import wait_until

ASKS = ROOT / "docs" / "examples" / "asks.py"
CONFIG = f"""
[settings]
concurrency = 1
job_concurrency = 1
[binding.asks]
executor = "agent"
command = ["{sys.executable}", "{ASKS}", "1h"]
[binding.hurries]
executor = "agent"
command = ["{sys.executable}", "{ASKS}", "1s"]
[binding.small]
executor = "agent"
command = ["/bin/sh", "{ROOT / "docs" / "examples" / "agent.sh"}"]
[binding.job]
command = ["sh", "-c", '''
if [ -n "$TENURE_WAKE" ]; then echo "$TENURE_WAKE"; exit 0; fi
"$TENURE_COMMAND" tool wait --ask "drop the table?" --resume''']
"""


@pytest.fixture
def site(tmp_path: Path) -> UpSite:
    return UpSite(tmp_path, CONFIG)


def needs(site: UpSite) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.json("status")["needs_you"]
    return found


def answer(site: UpSite, step: str, said: str | None = None) -> None:
    """Type what the list says; `said` in place of the answer that it shows."""
    words = shlex.split(step)
    assert words[0] == "tenure"
    if said is not None:
        words[-1] = said
    done = subprocess.run([site.argv()[0], *words[1:]], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.req("O08", "V01", "C03")
@pytest.mark.parametrize(("said", "state"), [(None, "completed"), ('"no"', "failed")])
def test_an_agent_asks_holds_no_slot_and_goes_on_with_the_answer(site: UpSite, said: str | None, state: str) -> None:
    with site.up("--workers", "1"):
        work = site.submit("asks")
        site.await_state(work, "waiting")
        [need] = needs(site)
        assert (need["kind"], need["subject"]) == ("asked", f"{work}.1")
        assert need["why"].startswith("Deploy 4.2 to production? (unanswered, it goes on 20")
        answered = f"event publish answer.given --correlate {work}.1 --data '\"yes\"'"
        assert need["step"] == f"tenure --home {site.home} {answered}"
        other = site.submit("small")
        site.await_state(other, "completed")  # the only slot of agents is free meanwhile
        text = site.call("status").stdout.decode()
        assert "needs you" in text
        assert need["step"] in text
        shown = site.call("work", "show", work).stdout.decode()
        assert "“Deploy 4.2 to production?”" in shown
        assert need["step"] in shown
        assert "agents.asked" in site.call("doctor").stdout.decode()

        answer(site, need["step"], said)
        site.await_state(work, state)

    assert needs(site) == []
    assert site.json("work", "show", work)["attempts"][0]["epoch"] == 2, "the same attempt went on"
    spoken = [json.loads(line) for line in site.printed(work).splitlines()]
    assert {message["type"] for message in spoken} >= {"wait", "result"}
    assert [fault for message in spoken for fault in faults(FROM_PROGRAM, message)] == []


@pytest.mark.req("O08")
def test_nobody_answers_and_its_own_time_takes_that_for_a_no(site: UpSite) -> None:
    with site.up("--workers", "1"):
        work = site.submit("hurries")
        site.await_state(work, "failed")

    [attempt] = site.json("work", "show", work)["attempts"]
    assert attempt["error"] == "declared failed: not deployed: nobody answered"
    assert needs(site) == []


@pytest.mark.req("O08", "O15")
def test_a_job_asks_by_its_belt_and_need_not_name_the_event(site: UpSite) -> None:
    with site.up("--workers", "1"):
        work = site.submit("job")
        site.await_state(work, "waiting")
        [need] = needs(site)
        assert need["why"] == "drop the table?"
        answer(site, need["step"])
        site.await_state(work, "completed")
        wait_until(lambda: b"answer.given" in site.printed(work), "it was told")

    wake = json.loads(site.printed(work).decode().splitlines()[-1])
    assert (wake["correlate"], wake["data"]) == (f"{work}.1", "yes")


@pytest.mark.req("O08", "T05")
def test_a_question_of_a_work_that_is_cancelled_needs_nobody(site: UpSite) -> None:
    with site.up("--workers", "1"):
        work = site.submit("asks")
        site.await_state(work, "waiting")
        assert len(needs(site)) == 1, "control"
        site.call("work", "cancel", work)
        assert needs(site) == []
