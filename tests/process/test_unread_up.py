"""Agents that are ended before anybody has read what they said: it is charged once, whoever dies while it is read."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.boundary import Boundary, Side
from tests.support.processes import Reaper
from tests.support.up_sites import UpSite
from tests.support.waiting import wait_until

DRILL = "unread"
AGENT = """
import json, os, sys, time
def say(**message):
    sys.stdout.write(json.dumps(message) + "\\n")
    sys.stdout.flush()
folder = sys.argv[1]
wake = json.loads(sys.stdin.readline())
say(type="usage", units={"usd": 1})
open(os.path.join(folder, "begun"), "w").close()
while not os.path.exists(os.path.join(folder, "go")):
    time.sleep(0.02)
for number in range(2000):
    say(type="usage", units={"usd": "0.001", "calls": 1})
say(type="turn", status="done")
say(type="result", outcome="completed")
open(os.path.join(folder, "said"), "w").close()
time.sleep(600)
"""
CONFIG = f"""
[settings]
lease = "4s"
[[budget]]
unit = "usd"
max = 1000
per = "all"
[binding.chatty]
executor = "agent"
command = ["{sys.executable}", "AGENT", "FOLDER"]
timeout = "TIMEOUT"
grace = "1s"
"""
SAID = {"usd": "3", "calls": "2000"}


def made(tmp_path: Path, timeout: str) -> UpSite:
    (tmp_path / "agent.py").write_text(AGENT)
    config = CONFIG.replace("AGENT", str(tmp_path / "agent.py")).replace("FOLDER", str(tmp_path))
    return UpSite(tmp_path, config.replace("TIMEOUT", timeout))


def attempt(site: UpSite, name: str) -> Any:
    return site.json("attempt", "show", name)


def kinds(site: UpSite) -> list[str]:
    return [event["kind"] for event in site.json("events", "--limit", "5000")["items"]]


def used(site: UpSite) -> str:
    [budget] = site.json("budget", "list")["items"]
    return next((str(ledger["used"]) for ledger in budget["ledgers"]), "0")


class Cast:
    """A coordinator and workers, started and killed one by one."""

    def __init__(self, site: UpSite, reaper: Reaper) -> None:
        self._site, self._reaper = site, reaper
        (site.home / "drill").write_text(DRILL)
        self._log = (site.folder / "cast.log").open("ab")
        self.coordinator = self.start("coordinator")

    def worker(self, name: str, arm: str | None = None) -> Any:
        return self.start("worker", "--name", name, arm=arm)

    def start(self, *words: str, arm: str | None = None) -> Any:
        env = {**os.environ, **({} if arm is None else {"TENURE_ARM": arm, "TENURE_DRILL": DRILL})}
        return self._reaper.start(self._site.argv(*words), env=env, stdout=self._log, stderr=self._log)

    def close(self) -> None:
        self._log.close()


@pytest.fixture
def cast(tmp_path: Path) -> Iterator[Cast]:
    site = made(tmp_path, "30m")
    with Reaper() as reaper:
        cast = Cast(site, reaper)
        cast._site = site
        yield cast
        for work in site.json("work", "list", "--state", "ready", "--state", "running")["items"]:
            site.call("work", "cancel", work["id"], "--wait", "20s")
        cast.close()


def speaks_unheard(site: UpSite, worker: Any) -> None:
    """Its worker is killed, none is there to take it over, and it goes on speaking."""
    wait_until((site.folder / "begun").exists, "the agent runs")
    worker.kill()
    worker.wait()
    (site.folder / "go").touch()
    wait_until((site.folder / "said").exists, "it has said all that it has to say")


@pytest.mark.req("B03", "T04", "M01")
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("boundary", [Boundary.STREAM_COMMIT, Boundary.STOP_COMMIT])
def test_what_an_interrupted_agent_said_unread_is_charged_once_though_its_reader_is_killed(
    cast: Cast, tmp_path: Path, boundary: Boundary, side: Side
) -> None:
    site = cast._site
    first = cast.worker("worker-1")
    work = site.submit("chatty")
    speaks_unheard(site, first)
    site.json("work", "interrupt", work, "--reason", "enough")
    site.call("work", "hold", work)

    reader = cast.worker("worker-2", arm=f"{boundary}:{side}:KILL")
    wait_until(lambda: reader.poll() is not None, "the reader died where it was to die")
    assert reader.returncode == -signal.SIGKILL
    assert (site.home / "drill.log").read_text().startswith(f"{boundary}:{side}:KILL")
    cast.worker("worker-3")
    wait_until(lambda: attempt(site, f"{work}.1")["exclusion"] == "released", "the stop is confirmed", 30)

    ended = attempt(site, f"{work}.1")
    assert (ended["state"], ended["usage"]) == ("interrupted", SAID)
    wait_until(lambda: used(site) == "3", "it is charged, and no more")
    assert "execution.turn" not in kinds(site)
    assert "outcome.applied" not in kinds(site)
    assert ended["stream"]["offset_bytes"] == (site.home / "attempts" / f"{work}.1.1" / "out").stat().st_size


@pytest.mark.req("B03", "O05", "E14")
def test_what_an_agent_said_before_the_leader_ended_it_is_charged(tmp_path: Path) -> None:
    """Nobody holds it while its time runs out: its worker is gone, and the next one comes when it has been ended."""
    site = made(tmp_path, "8s")
    with Reaper() as reaper:
        cast = Cast(site, reaper)
        first = cast.worker("worker-1")
        work = site.submit("chatty")
        speaks_unheard(site, first)
        wait_until(lambda: attempt(site, f"{work}.1")["state"] == "timed_out", "its time is over")
        assert attempt(site, f"{work}.1")["exclusion"] == "held"
        cast.worker("worker-2")
        wait_until(lambda: attempt(site, f"{work}.1")["exclusion"] == "released", "the stop is confirmed")

        assert attempt(site, f"{work}.1")["usage"] == SAID
        wait_until(lambda: used(site) == "3", "it is charged")
        cast.close()


@pytest.mark.req("B03", "S01")
def test_an_agent_that_reports_thousands_of_times_is_charged_with_all_of_it(tmp_path: Path) -> None:
    site = made(tmp_path, "30m")
    (tmp_path / "agent.py").write_text(AGENT.replace("time.sleep(600)", ""))
    (tmp_path / "go").touch()
    with site.up("--workers", "1"):
        work = site.submit("chatty")
        site.await_state(work, "completed")

    ended = attempt(site, f"{work}.1")
    assert (ended["usage"], ended["stream"]["refused"]) == (SAID, 0)
    [applied] = [
        one["data"] for one in site.json("events", "--limit", "5000")["items"] if one["kind"] == "outcome.applied"
    ]
    assert applied["usage"] == SAID
    assert json.dumps(kinds(site)).count("declaration.recorded") == 2
