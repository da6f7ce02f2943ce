"""Work that takes its worker with it, as a user sees it: case C056 through the command line, with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shared.policy.settle import ending_of_exit
from shared.process.leaves import Leaves
from tests.process import fatal_worker, rogue_job
from tests.process.launch_host import Host
from tests.support.processes import Reaper
from tests.support.up_sites import UpSite
from tests.support.waiting import wait_until

CONFIG = f"""
[settings]
lease = "6s"
quarantine_after = 1
[binding.fatal]
command = ["true"]
retry = {{ delays = ["1s"] }}
[binding.orphan]
command = ["sh", "-c", "kill -9 $PPID; exec sleep 1"]
[binding.rogue]
command = ["{sys.executable}", "{rogue_job.__file__}", "3"]
[binding.eater]
command = ["{sys.executable}", "-c", "x = []\\nwhile True: x.append(bytes(1 << 20).replace(b'\\\\0', b'x'))"]
"""
MEMORY = Path("/sys/fs/cgroup/memory")
"""Where the first version of cgroups has the memory controller; the second has it nowhere that we could write here."""


@pytest.fixture
def site(tmp_path: Path) -> UpSite:
    return UpSite(tmp_path, CONFIG)


@contextmanager
def held_open(site: UpSite) -> Iterator[str]:
    """A job that runs until the block ends: whatever happens to workers meanwhile, it goes on."""
    valve = site.folder / "valve"
    os.mkfifo(valve)
    hold = os.open(valve, os.O_RDWR)
    said = site.call("submit", "--scope", "beside", "--", "sh", "-c", f"read -r line < {valve}; exit 6")
    assert said.returncode == 0, said.stderr
    try:
        yield said.stdout.decode().strip()
    finally:
        os.write(hold, b"go\n")
        os.close(hold)


def attempts(site: UpSite, work: str) -> list[Any]:
    found: list[Any] = site.json("work", "show", work)["attempts"]
    return found


@pytest.mark.req("F01", "F03", "O09")
def test_a_launch_that_ends_its_worker_is_tried_three_times_an_attempt_and_then_nothing_of_it_starts(
    site: UpSite, reaper: Reaper
) -> None:
    coordinator = reaper.start(site.argv("coordinator"), stderr=subprocess.DEVNULL)
    argv = [sys.executable, "-P", fatal_worker.__file__, *site.argv("worker", "--name", "worker-1")[1:]]
    workers: list[subprocess.Popen[bytes]] = []

    def ended(work: str) -> bool:
        if not workers or workers[-1].poll() is not None:
            workers.append(reaper.start(argv, stderr=subprocess.DEVNULL))
        return str(site.json("work", "show", work)["state"]) == "failed"

    with held_open(site) as beside:
        work = site.submit("fatal")
        wait_until(lambda: ended(work), "nothing is left to try")
        first, second = attempts(site, work)
        [other] = attempts(site, beside)
        assert other["state"] in ("running", "recovering"), "other jobs go on"
    wait_until(lambda: ended(beside), "the other job ended by itself")

    for attempt in (first, second):
        assert (attempt["state"], attempt["failure"], attempt["workers_lost"]) == ("failed", "known", 3)
        assert attempt["error"] == "worker lost: launching it cost 3 workers in a row their lives"
        assert attempt["exclusion"] == "released"
    assert [worker.wait(timeout=30) for worker in workers[:6]] == [139] * 6
    assert [each["exit_code"] for each in attempts(site, beside)] == [6], "and it was never run again"
    next_one = site.submit("fatal")
    wait_until(lambda: site.json("work", "show", next_one)["reason"] == "quarantined", "none of its works starts")
    told = site.call("doctor").stdout.decode()
    assert "binding fatal is quarantined" in told
    for process in (coordinator, workers[-1]):
        process.terminate()
        process.wait(timeout=30)


@pytest.mark.req("F03", "R04")
def test_a_job_that_kills_whoever_holds_it_runs_on_and_nothing_more_of_its_binding_starts(site: UpSite) -> None:
    with site.up(), held_open(site) as beside:
        site.await_state(beside, "running")
        rogue = site.submit("rogue")
        site.await_state(rogue, "completed")

        [attempt] = attempts(site, rogue)
        assert (attempt["exit_code"], attempt["workers_lost"], attempt["epoch"]) == (0, 3, 4)
        assert [other["state"] for other in attempts(site, beside)] == ["running"]
        [routine] = [one for one in site.json("binding", "list")["items"] if one["quarantined"]]
        assert (routine["binding"], routine["quarantined_by"]) == ("rogue", "tenure")
        assert routine["reason"] == "its works cost 3 workers in a row their lives"
        shown = site.call("attempt", "show", attempt["id"]).stdout.decode()
        assert "3 workers died while holding it" in shown

        waiting = site.submit("rogue")
        wait_until(lambda: site.json("work", "show", waiting)["reason"] == "quarantined", "it waits for a person")
        assert site.call("binding", "release", "rogue", "--reason", "mended").returncode == 0
        site.await_state(waiting, "completed")


@pytest.mark.req("R04")
def test_a_job_that_kills_its_shim_costs_no_worker(site: UpSite) -> None:
    with site.up(), held_open(site) as beside:
        site.await_state(beside, "running")
        before = {worker["id"] for worker in site.json("status")["workers"]}

        work = site.submit("orphan")
        wait_until(lambda: attempts(site, work)[:1] != [], "it was started")
        wait_until(
            lambda: attempts(site, work)[-1]["state"] in ("succeeded", "recovery_required"),
            "its end is known, or is not",
        )

        [attempt] = attempts(site, work)
        assert attempt["workers_lost"] == 0
        assert {worker["id"] for worker in site.json("status")["workers"]} == before
        assert site.json("binding", "list")["items"][0]["quarantined"] is False
        if attempt["state"] == "recovery_required":
            settle = ("attempt", "reconcile", attempt["id"], "--outcome", "failed", "--reason", "test")
            assert site.call(*settle).returncode == 0


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """A memory cgroup with room for all of tenure, and for no job without bound."""
    group = MEMORY / f"tenure-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(600 << 20))
    except OSError as error:
        pytest.skip(f"no memory controller of cgroup v1 that can be written here: {error}")
    try:
        yield group
    finally:
        wait_until(lambda: (group / "cgroup.procs").read_text() == "", "nothing is left in the group")
        group.rmdir()


def test_when_memory_is_short_the_kernel_takes_the_job_and_nobody_else(
    tmp_path: Path, small_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything of tenure shares the job's limit here, so the kernel may choose."""
    site = UpSite(tmp_path, CONFIG)
    enter = ["/bin/sh", "-c", f'echo $$ > {small_memory / "cgroup.procs"}; exec "$0" "$@"']
    argv = site.argv
    monkeypatch.setattr(site, "argv", lambda *words: [*(enter if words[0] == "up" else []), *argv(*words)])
    with site.up(), held_open(site) as beside:
        site.await_state(beside, "running")
        before = {worker["id"] for worker in site.json("status")["workers"]}

        work = site.submit("eater")
        site.await_state(work, "failed")

        [attempt] = attempts(site, work)
        assert (attempt["signal"], attempt["failure"], attempt["workers_lost"]) == (9, "known", 0)
        assert {worker["id"] for worker in site.json("status")["workers"]} == before
        assert [other["state"] for other in attempts(site, beside)] == ["running"]


@pytest.mark.parametrize("kills", [0, 1])
def test_a_job_whose_own_group_counted_a_kill_had_no_memory(host: Host, kills: int) -> None:
    """The job itself writes the group's file here, in the place of a kernel with the memory controller."""
    leaves = Leaves(str(host.home), "x")
    host.launcher._leaves = leaves
    leaf = leaves.path("w1.1.1")

    pin = host.start(["sh", "-c", f"mkdir -p {leaf}; echo 'oom_kill {kills}' > {leaf}/memory.events; kill -9 $$"])

    record = host.await_end(pin)
    assert (record.status, record.oom) == (-9, bool(kills))
    told = {0: "killed by signal 9", 1: "out of memory (signal 9)"}
    assert ending_of_exit(record, "S1").error == told[kills]
