"""A long job cut into pieces by handoffs, with real processes; and a worker killed around the commit of a piece's end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.harness import DRILL_ID
from shared.boundary import Boundary, Side
from tests.support.checkout import tool
from tests.support.up_sites import UpSite
from tests.support.waiting import wait_until

TOOL = str(tool("tenure"))

CONFIG = f"""
[settings]
causal_depth = 3
[binding.digest]
kind = "standing"
continue = true
command = ["sh", "-c", '''
echo "$TENURE_ATTEMPT" >> "$TENURE_HOME/../pages"
cat
[ "$(wc -l < "$TENURE_HOME/../pages")" -ge "$(cat "$TENURE_HOME/../last")" ] || "$0" tool outcome handoff --summary "after $TENURE_ATTEMPT"''', "{TOOL}"]
"""


@pytest.fixture
def site(tmp_path: Path) -> UpSite:
    return UpSite(tmp_path, CONFIG)


def pages(site: UpSite) -> list[str]:
    """Which attempts ran, in the order in which they did."""
    return (site.folder / "pages").read_text().split()


def handoffs(site: UpSite) -> list[dict[str, Any]]:
    items = site.json("events", "--limit", "1000")["items"]
    return [event for event in items if event["kind"] == "execution.handoff"]


def begin(site: UpSite, *, last: int) -> str:
    """A standing work of so many pages, fed."""
    (site.folder / "last").write_text(str(last))
    work = site.submit("digest")
    assert site.call("submit", work, "--input", "page 1").returncode == 0
    return work


@pytest.mark.req("O07")
def test_each_piece_follows_the_last_one_with_its_summary(site: UpSite) -> None:
    with site.up():
        work = begin(site, last=3)
        wait_until(lambda: (site.folder / "pages").exists() and len(pages(site)) == 3, "three pieces ran")
        site.await_state(work, "idle")

    assert pages(site) == [f"{work}.{number}" for number in (1, 2, 3)]
    assert [event["attempt"] for event in handoffs(site)] == [f"{work}.1", f"{work}.2"]
    given = json.loads(site.printed(work))
    assert (given["type"], given["data"]) == (
        "execution.handoff", {"attempt": f"{work}.2", "summary": f"after {work}.2"},
    )  # fmt: skip
    shown = site.json("work", "show", work)["attempts"]
    assert [(one["state"], one["depth"]) for one in shown] == [("handed_off", 0), ("handed_off", 1), ("succeeded", 2)]


@pytest.mark.req("O07", "M01")
@pytest.mark.parametrize("side", Side)
def test_a_worker_killed_around_the_commit_of_a_handoff_goes_on_once(site: UpSite, side: Side) -> None:
    (site.home / "drill").write_text(DRILL_ID)
    armed = {"TENURE_ARM": f"{Boundary.FINISH_COMMIT}:{side}:KILL", "TENURE_DRILL": DRILL_ID}
    with site.up(env=armed):
        work = begin(site, last=2)
        wait_until((site.home / "drill.log").exists, "the boundary was reached")
        (site.home / "drill").unlink()
        wait_until(lambda: len(pages(site)) == 2, "the second piece ran")
        site.await_state(work, "idle")

    assert pages(site) == [f"{work}.1", f"{work}.2"], "no piece twice, none left out"
    [event] = handoffs(site)
    assert event["attempt"] == f"{work}.1"
    states = [one["state"] for one in site.json("work", "show", work)["attempts"]]
    assert states == ["handed_off", "succeeded"]


@pytest.mark.req("O07", "V04")
def test_an_endless_handing_on_ends_and_is_told(site: UpSite) -> None:
    with site.up():
        work = begin(site, last=1_000)
        wait_until(lambda: (site.folder / "pages").exists() and len(pages(site)) == 4, "the chain was used up")
        site.await_state(work, "idle")
        doctor = site.json("doctor")

    assert len(pages(site)) == 4, "a root, and three links"
    [found] = [each for each in doctor["findings"] if each["code"] == "chains.stopped"]
    assert f"{work}.4 ended without its handoff" in found["message"]
