"""Agents as real programs under real workers: spoken with, interrupted, quiet, without a terminal; workers killed under them."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.boundary import Boundary, Side
from tests.support.checkout import ROOT
from tests.support.processes import Reaper
from tests.support.protocol import FROM_PROGRAM, faults
from tests.support.up_sites import UpSite, alive
from tests.support.waiting import wait_until

# Read before the fixtures clear the environment of whoever runs this.
SEED = int(os.environ.get("TENURE_SEED") or random.SystemRandom().randrange(2**32))
EXAMPLES = ROOT / "docs" / "examples"
DRILL = "agents"
CONFIG = f"""
[settings]
lease = "6s"
concurrency = 8
workers_lost_max = 0  # tests kill workers one after the other, and no agent is to blame for it
[binding.python]
executor = "agent"
command = ["{sys.executable}", "{EXAMPLES / "agent.py"}", "2"]
[binding.shell]
executor = "agent"
command = ["/bin/sh", "{EXAMPLES / "agent.sh"}"]
[binding.quiet]
executor = "agent"
command = ["/bin/sh", "-c", "read -r a; echo '{{}}'; read -r b; echo never"]
idle_timeout = "1s"
[binding.terminal]
executor = "agent"
command = ["/bin/sh", "-c", "echo y 2>&1 </dev/tty || exit 9"]
[binding.polite]
executor = "agent"
command = ["/bin/sh", "-c", "trap '' TERM; while read -r line; do echo \\"$line\\"; case $line in *interrupt*) exit 0;; esac; done"]
[binding.numbered]
executor = "agent"
kind = "standing"
command = ["{sys.executable}", "{ROOT / "tests" / "process" / "numbered_agent.py"}", "NOTES", "250", "30"]
"""


@pytest.fixture
def site(tmp_path: Path) -> UpSite:
    return UpSite(tmp_path, CONFIG.replace("NOTES", str(tmp_path / "notes")))


def show(site: UpSite, work: str) -> Any:
    return site.json("work", "show", work)


def attempt(site: UpSite, name: str) -> Any:
    return site.json("attempt", "show", name)


def inject(site: UpSite, work: str, text: str) -> Any:
    return site.json("work", "inject", work, "--input", text)


def intents(site: UpSite, work: str) -> dict[str, str]:
    return {each["id"]: each["fate"] for each in show(site, work)["intents"]}


def stdin_of(site: UpSite, name: str) -> Path:
    return site.home / "attempts" / name / "stdin"


def test_the_examples_of_the_page_run_as_the_page_says(site: UpSite) -> None:
    with site.up("--workers", "1"):
        small, talks = site.submit("shell"), site.submit("python", "--input", "hello")
        site.await_state(small, "completed")
        wait_until(lambda: b"hello" in site.printed(talks), "its first input was said back")

        inject(site, talks, "@" + str(ROOT / "shared" / "cli.py"))

        site.await_state(talks, "completed")
    assert set(intents(site, talks).values()) == {"consumed"}
    stream = attempt(site, f"{talks}.1")["stream"]
    assert stream["lines"] == len(site.printed(talks).splitlines())
    assert (stream["refused"], stream["unknown"]) == (0, {})
    said = [json.loads(line) for work in (small, talks) for line in site.printed(work).splitlines()]
    assert [fault for message in said for fault in faults(FROM_PROGRAM, message)] == []
    assert (site.home / "attempts" / f"{talks}.1.1" / "input-3").read_bytes() == (ROOT / "shared/cli.py").read_bytes()


def test_all_that_a_home_holds_is_its_owner_s_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        site = UpSite(tmp_path, CONFIG)
        with site.up("--workers", "1"):
            talks = site.submit("python", "--input", "hello")
            wait_until(lambda: b"hello" in site.printed(talks), "it runs and speaks")

            inside = [path.lstat() for path in site.home.rglob("*") if path.name != "tenure.toml"]
    finally:
        os.umask(before)

    assert {stat.S_IFMT(one.st_mode) for one in inside} >= {stat.S_IFREG, stat.S_IFDIR, stat.S_IFSOCK, stat.S_IFIFO}
    assert {one.st_mode & 0o077 for one in inside if not stat.S_ISLNK(one.st_mode)} == {0}


@pytest.mark.req("T04")
def test_an_interrupted_agent_is_told_and_stopped_and_the_next_one_gets_its_input(site: UpSite) -> None:
    with site.up("--workers", "1"):
        work = site.submit("polite", "--input", "hello")
        wait_until(lambda: b"hello" in site.printed(work), "it was told its input")

        said = site.json("work", "interrupt", work, "--reason", "wrong branch")

        assert (said["kind"], said["attempt"]) == ("interrupt", f"{work}.1")
        wait_until(lambda: len(show(site, work)["attempts"]) == 2, "the next attempt began")
        wait_until(
            lambda: b"hello" in site.call("work", "logs", work, "--attempt", "2").stdout, "it got the same input"
        )
        first = attempt(site, f"{work}.1")
        assert first["state"] == "interrupted"
        assert b'{"type":"interrupt"}' in site.call("work", "logs", work, "--attempt", "1").stdout
        site.call("work", "cancel", work, "--wait", "20s")


def test_an_agent_that_waits_for_a_person_is_ended_for_being_quiet_or_has_no_terminal_to_ask_on(site: UpSite) -> None:
    """Case C061: (a) opens the terminal, (b) reads standard input for ever, (d) says nothing."""
    with site.up("--workers", "1"):
        quiet, asks = site.submit("quiet"), site.submit("terminal")
        site.await_state(quiet, "failed")
        site.await_state(asks, "failed")

    ended = attempt(site, f"{quiet}.1")
    assert ended["error"] == "idle: no output for 1 s"
    assert ended["stream"]["refusals"] == [
        {"line": 1, "code": "invalid", "why": "a message is an object with a `type`"}
    ]
    assert attempt(site, f"{asks}.1")["exit_code"] == 9, "it fails at once, and its own message is in its output"


# --- death of the worker


class Cast:
    """A coordinator and workers, started and killed one by one."""

    def __init__(self, site: UpSite, reaper: Reaper) -> None:
        self._site, self._reaper = site, reaper
        (site.home / "drill").write_text(DRILL)
        self._log = (site.folder / "cast.log").open("ab")
        self.coordinator = self._start("coordinator")

    def worker(self, name: str, arm: str | None = None) -> Any:
        return self._start("worker", "--name", name, arm=arm)

    def _start(self, *words: str, arm: str | None = None) -> Any:
        env = {**os.environ, **({} if arm is None else {"TENURE_ARM": arm, "TENURE_DRILL": DRILL})}
        return self._reaper.start(self._site.argv(*words), env=env, stdout=self._log, stderr=self._log)

    def close(self) -> None:
        self._log.close()


@pytest.fixture
def cast(site: UpSite) -> Iterator[Cast]:
    with Reaper() as reaper:
        cast = Cast(site, reaper)
        yield cast
        for work in site.json("work", "list", "--state", "ready", "--state", "running")["items"]:
            site.call("work", "cancel", work["id"], "--wait", "20s")
        cast.close()


KILLED = [
    (boundary, side)
    for boundary in (
        Boundary.STREAM_COMMIT,
        Boundary.DISPATCH_COMMIT,
        Boundary.CHANNEL_WRITE,
        Boundary.CHANNEL_RENAME,
        Boundary.ACKNOWLEDGE_COMMIT,
    )
    for side in Side
]


@pytest.mark.req("M01", "T01", "T02", "O15")
@pytest.mark.parametrize(("boundary", "side"), KILLED)
def test_a_worker_dies_at_a_boundary_and_nothing_said_or_told_is_lost_or_counts_twice(
    site: UpSite, cast: Cast, boundary: Boundary, side: Side
) -> None:
    work = site.submit("python", "--input", "hello")
    armed = cast.worker("worker-1", arm=f"{boundary}:{side}:KILL")
    wait_until(lambda: b"hello" in site.printed(work), "the agent runs")
    inject(site, work, "x" * 5000)
    wait_until(lambda: armed.poll() is not None, "the worker died where it was to die")
    assert armed.returncode == -signal.SIGKILL
    assert (site.home / "drill.log").read_text().startswith(f"{boundary}:{side}:KILL")

    cast.worker("worker-2")
    site.await_state(work, "completed")

    stream = attempt(site, f"{work}.1")["stream"]
    said = site.call("work", "logs", work, "--attempt", "1").stdout.splitlines()
    assert stream["lines"] == len(said)
    assert stream["refused"] == 0
    logged = [json.loads(line)["text"] for line in said if b'"log"' in line]
    assert len(logged) == len(set(logged)), "an input that was told twice was taken once"
    fates = set(intents(site, work).values())
    assert fates <= {"consumed", "returned"}


@pytest.mark.req("T02", "T03", "O01", "O15")
def test_no_message_is_lost_under_workers_that_are_killed_at_random(site: UpSite, cast: Cast, tmp_path: Path) -> None:
    """Case C064: 100 numbered messages to agents that stream, take some, and end with one read and not consumed."""
    print(f"TENURE_SEED={SEED} plays it again as far as the machine does")
    dice = random.Random(SEED)
    workers = {name: cast.worker(name) for name in ("worker-1", "worker-2")}
    work = site.submit("numbered", "--input", "begin")
    kills = 0
    for number in range(100):
        inject(site, work, str(number))
        if dice.random() < 0.12:
            name = dice.choice(sorted(workers))
            workers[name].kill()
            workers[name].wait()
            kills += 1
            workers[name] = cast.worker(name)
    inject(site, work, "end")

    wait_until(lambda: show(site, work)["state"] == "idle", "everything was taken")

    notes = [line.split(" ") for line in (tmp_path / "notes").read_text().splitlines()]
    seen = [(name, int(number), intent, body) for word, name, number, intent, body in notes if word == "seen"]
    assert {body for *_, body in seen} == {"begin", "end", *map(str, range(100))}
    told = {each["id"]: each for each in show(site, work)["intents"]}
    for name, number, intent, _ in seen:
        if intent in told:
            assert (told[intent]["attempt"], told[intent]["input"]) == (name, number), "an intent is for one attempt"
    attempts = [each["id"] for each in show(site, work)["attempts"]]
    for name in attempts:
        inputs = [number for who, number, *_ in seen if who == name]
        assert inputs == sorted(inputs), f"{name} was told out of order"
        stream = attempt(site, name)["stream"]
        (folder,) = [path for path in (site.home / "attempts").glob(f"{name}.*") if (path / "out").exists()]
        lines = (folder / "out").read_bytes().splitlines()
        assert (stream["lines"], stream["refused"]) == (len(lines), 0), f"{name}: no line lost, none read twice"
    assert kills > 0
    assert all(each["state"] == "succeeded" for each in show(site, work)["attempts"])
    assert not any(alive(each.pid) for each in workers.values() if each.poll() is not None)
