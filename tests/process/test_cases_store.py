"""Cases of the store, of scale and of the host in which other systems went wrong, tried from outside as a user would."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from chaos.checks import examine
from chaos.harness import COORDINATOR, Harness, Running
from chaos.witness import Mark
from shared.clock import SystemClock
from shared.model.attempt import Attempt, AttemptState
from shared.model.instant import US_PER_S
from shared.model.settings import Settings
from shared.policy.capacity import POOL_JOBS
from shared.store.sqlite.driver import sqlite3  # never two libraries in one process
from shared.store.sqlite.schema import SCHEMA_VERSION
from shared.store.sqlite.store import open_store
from tests.support.checkout import ROOMS, ROOT
from tests.support.processes import Reaper
from tests.support.small_disks import fill, small_disk
from tests.support.stores import SQLITE, World, new_work
from tests.support.trials import Valve, at_work, attempt_of, wait_running
from tests.support.up_sites import UpSite
from tests.support.waiting import wait_until

LEASE_US = 2 * US_PER_S
HELD_US = 600_000
"""Longer than anyone waits for the store here: a sixth of the lease."""
CLI = (sys.executable, "-P", "-m", "shared.cli")


def call(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command, to its end."""
    return subprocess.run([*CLI, "--home", home, *words], capture_output=True, text=True, timeout=60, check=False)


# --- STORE


@pytest.mark.req("S01", "S03")
def test_no_lock_error_reaches_a_client_or_a_run(tmp_path: Path, reaper: Reaper) -> None:
    """C047: clients hand in and read while an outsider takes the write lock again and again."""
    with at_work(tmp_path, LEASE_US, "worker-1", "worker-2") as (harness, running):
        marks, said = tmp_path / "marks", tmp_path / "said"
        submit = f"for _ in 1 2 3; do {' '.join(CLI)} --home $1 submit -- sh -c 'echo x >> '$2 || exit; done"
        page = f"for _ in 1 2 3; do {' '.join(CLI)} --home $1 work list --json || exit; done"
        with said.open("wb") as errors:
            clients = [
                reaper.start(
                    ["sh", "-c", script, "client", harness.home.path, marks], stdout=subprocess.DEVNULL, stderr=errors
                )
                for script in (submit, submit, submit, page)
            ]
        with closing(sqlite3.connect(harness.home.store, isolation_level=None, timeout=20)) as outsider:
            for _ in range(2):
                outsider.execute("BEGIN IMMEDIATE")
                wait_passed(harness, HELD_US)
                outsider.execute("ROLLBACK")
        assert [client.wait(timeout=60) for client in clients] == [0] * 4
        harness.wait_quiet()

        assert said.read_text() == ""
        assert marks.read_text() == "x\n" * 9
        assert not any("Traceback" in each.log.read_text() for each in running)


def wait_passed(harness: Harness, duration_us: int) -> None:
    until = harness.clock.now().mono_us + duration_us
    harness.wait(lambda: harness.clock.now().mono_us > until, "it was held for a while")


@pytest.mark.req("M05", "C04", "V04")
def test_full_disk_stops_what_is_new_and_nothing_else(tmp_path: Path, valve: Valve) -> None:
    """C049: what runs ends and is told so; with space back it goes on by itself."""
    with small_disk(tmp_path / "disk", "16m") as disk:
        site = UpSite(tmp_path, '[settings]\njob_concurrency = 1\nlease = "2s"\n', home=disk / "home")
        mark = tmp_path / "mark"
        with site.up("--workers", "1"):
            script = f"echo ran >> {mark}; read -r _ < {valve.path}; exit 3"
            runs, waits = site.submit("--", "sh", "-c", script), site.submit("--", "sh", "-c", f"echo waited >> {mark}")
            wait_until(mark.exists, "the first one runs")
            fill(disk / "filler")
            wait_until(lambda: not (site.home / "ballast").exists(), "a renewal needed the reserve")

            said = site.call("submit", "--", "true")
            assert (said.returncode, said.stdout) == (3, b"")
            assert b"the disk of the store is full" in said.stderr
            assert len(site.json("work", "list")["items"]) == 2
            assert b"disk.full" in site.call("doctor").stdout
            valve.open()
            site.await_state(runs, "failed")
            assert site.json("attempt", "show", f"{runs}.1")["exit_code"] == 3
            assert site.state(waits) == "ready"

            (disk / "filler").unlink()
            site.await_state(waits, "completed")
            site.await_state(site.submit("--", "true"), "completed")
            assert mark.read_text() == "ran\nwaited\n"


@pytest.mark.req("M05")
def test_start_up_with_a_full_disk_waits_for_space(tmp_path: Path) -> None:
    """C049: nothing is launched without an intent on disk; nobody has to come and start it again."""
    with small_disk(tmp_path / "disk", "16m") as disk:
        site = UpSite(tmp_path, '[settings]\nlease = "2s"\n', home=disk / "home")
        mark = tmp_path / "mark"
        work = site.submit("--", "sh", "-c", f"echo ran >> {mark}")
        fill(disk / "filler")
        with site.up("--workers", "1"):
            wait_until(lambda: site.log.exists() and b"worker.started" in site.log.read_bytes(), "it is up")
            assert site.state(work) == "ready"
            (disk / "filler").unlink()
            site.await_state(work, "completed")
        assert mark.read_text() == "ran\n"
        assert b"Traceback" not in site.log.read_bytes()


@pytest.mark.req("R15", "L01")
def test_recovery_of_a_big_old_store_goes_in_steps_and_does_not_start_from_zero(tmp_path: Path, reaper: Reaper) -> None:
    """C050, a five-hundredth of its figures: others write in between, and a second start goes on where the first one died."""
    count = 200
    clock = SystemClock()
    world = World(SQLITE, tmp_path, clock)
    old = world.worker("old")
    works = world.store.write(lambda tx: [tx.submit(new_work(), POOL_JOBS) for _ in range(count)])
    keys = [world.running(old, work) for work in works]
    for key in keys:
        world.release(key)
    leader = world.leader
    assert leader is not None
    world.store.write(lambda tx: tx.resign(leader, world.generation))
    (world.home / "store.db").chmod(0o600)
    store = open_store(world.home, clock)

    def start(*words: str) -> subprocess.Popen[bytes]:
        return reaper.start([*CLI, "--home", world.home, *words], stderr=subprocess.DEVNULL)

    def last_attempts() -> list[Attempt]:
        return store.read(lambda tx: [tx.attempts(work)[-1] for work in works])

    def settled() -> int:
        return sum(attempt.state is AttemptState.RECOVERY_REQUIRED for attempt in last_attempts())

    coordinator = start("coordinator")
    for number in range(1, 5):
        start("worker", "--name", f"worker-{number}")
    wait_until(lambda: settled() > 0, "some are recovered")
    coordinator.kill()
    assert call(world.home, "submit", "--", "true").returncode == 0
    before = settled()
    start("coordinator")
    wait_until(lambda: settled() == count, "all are recovered")

    assert 0 < before <= count
    assert {attempt.epoch for attempt in last_attempts()} <= {2, 3}, "once, or once more for what was not accepted"
    store.close()
    world.close()
    reaper.kill_all()


# --- SLOT


@pytest.mark.req("C03", "C04", "C05")
def test_long_queue_of_a_full_scope_hides_nothing(tmp_path: Path, reaper: Reaper) -> None:
    """C055, a twentieth of its figures: what can start does, the oldest first; the list comes in pages."""
    config = '[settings]\njob_concurrency = 2\nlease = "5s"\n[scope.full]\nconcurrency = 1\n[scope.open]\n'
    site = UpSite(tmp_path, config)
    mark = tmp_path / "mark"
    holder = site.submit("--scope", "full", "--", "sleep", "300")
    with closing(open_store(site.home, SystemClock())) as store:
        store.write(lambda tx: [tx.submit(new_work(scope="full"), POOL_JOBS) for _ in range(5_000)])
    for number in range(3):
        site.submit("--scope", "open", "--", "sh", "-c", f"echo {number} >> {mark}")
    page = site.json("work", "list", "--limit", "50")
    assert (len(page["items"]), page["next"] is None) == (50, False)

    reaper.start(site.argv("up", "--workers", "1"), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    said = site.call("run", "--scope", "open", "--", "echo", "through")

    assert (said.returncode, said.stdout) == (0, b"through\n")
    assert mark.read_text() == "0\n1\n2\n"
    assert site.json("work", "cancel", page["items"][-1]["id"])["state"] == "cancelled"
    assert site.json("work", "cancel", holder, "--wait", "20s")["exclusion"] == "released"
    site.await_state(page["items"][1]["id"], "completed")
    reaper.kill_all()


# --- HOST


@pytest.mark.req("S04", "R02")
@pytest.mark.parametrize("other", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1], ids=["older", "newer"])
def test_store_of_another_version_is_left_alone_and_its_jobs_lose_nothing(
    tmp_path: Path, valve: Valve, other: int
) -> None:
    """C077: jobs run and wait while only programs of another version are there, which refuse; with the right one all end once."""
    with Harness(tmp_path / "drill", Settings(job_concurrency=2, lease_us=LEASE_US)) as harness:
        home = harness.home.path
        running = [harness.start(name) for name in (COORDINATOR, "worker-1")]
        works = [harness.submit(wait=valve.path) for _ in range(2)] + [harness.submit(status=4) for _ in range(2)]
        wait_running(harness, *works[:2])
        for each in running:
            harness.kill(each)
        version(home, other)
        before = (home / "store.db").read_bytes()

        for words in (["submit", "--", "true"], ["status"], ["coordinator"], ["worker"], ["up"]):
            said = call(home, *words)
            assert said.returncode == 3, words
            assert f"the store has schema {other}, this version of tenure" in said.stderr
        assert (home / "store.db").read_bytes() == before

        version(home, SCHEMA_VERSION)
        for name in (COORDINATOR, "worker-1"):
            harness.start(name)
        valve.open(2)
        harness.wait_quiet()
        assert examine(harness.history()) == []
        assert [attempt_of(harness, work).exit_status for work in works] == [0, 0, 4, 4]


def version(home: Path, number: int) -> None:
    with closing(sqlite3.connect(home / "store.db", isolation_level=None, timeout=10)) as outsider:
        outsider.execute(f"PRAGMA user_version = {number}")
        outsider.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.req("X05")
def test_signals_in_a_storm_hang_nothing(tmp_path: Path) -> None:
    """C079, scaled to a hundred launches: signals all the while, and at the end many where one would do."""
    with at_work(tmp_path, LEASE_US, "worker-1") as (harness, running):
        harness.wait(lambda: harness.read(lambda tx: tx.workers()), "a worker is there")
        for _ in range(100):
            harness.submit()

        def all_ended() -> bool:
            storm(running, signal.SIGCHLD, signal.SIGWINCH)
            return len([line for line in harness.witness.lines() if line.mark is Mark.END]) == 100

        harness.wait(all_ended, "all jobs have said that they ended")
        harness.wait_quiet()
        assert examine(harness.history()) == []

        def all_left() -> bool:
            storm(running, signal.SIGTERM)
            return all(each.process.poll() is not None for each in running)

        harness.wait(all_left, "both have left")
        assert [each.process.returncode for each in running] == [0, 0]


def storm(running: list[Running], *numbers: signal.Signals) -> None:
    for each in running:
        for number in numbers:
            if each.process.poll() is None:
                os.kill(each.pid, number)


def test_nothing_of_python_runs_between_fork_and_exec_but_in_the_shim() -> None:
    """C079: no `preexec_fn` anywhere; `os.fork` itself is kept to its boundary by the linter."""
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            names = {node.arg for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.keyword)}
            assert "preexec_fn" not in names, path
