"""The cases that need several real processes on one store."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.clock import SystemClock
from shared.errors import StoreBusyError
from tests.support.processes import Reaper
from tests.support.store_processes import LIMITS
from tests.support.stores import Backend, World, ram_folder
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def real(backend: Backend) -> Iterator[World]:
    """A world on the host's clock, as its processes are."""
    with ram_folder() as folder:
        world = World(backend, folder, SystemClock())
        yield world
        world.close()


def start(reaper: Reaper, world: World, role: str, *words: object) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "tests.support.store_processes",
        role,
        world.backend.name,
        str(world.home),
        *map(str, words),
    ]
    return reaper.start(command, cwd=ROOT, stdout=subprocess.PIPE)


def answer(process: subprocess.Popen[bytes]) -> list[str]:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    said: list[str] = json.loads(out)
    return said


def go(world: World, *names: str) -> None:
    wait_until(lambda: all((world.home / f"ready-{name}").exists() for name in names), "every process is ready")
    (world.home / "go").touch()


@pytest.mark.req("E07", "C01", "C03", "L02", "E03")
def test_competing_coordinators_never_pass_the_limit_nor_claim_twice(real: World, reaper: Reaper) -> None:
    works = [real.submit() for _ in range(40)]
    workers = [real.worker("worker-1"), real.worker("worker-2")]
    schedulers = [start(reaper, real, "schedule") for _ in range(3)]
    hands = [start(reaper, real, "work", owner) for owner in workers]

    claimed = [attempt for process in schedulers for attempt in answer(process)]
    ended = [attempt for process in hands for attempt in answer(process)]

    assert sorted(claimed) == sorted(ended) == sorted(f"{work_id}.1" for work_id in works)
    live, most = 0, 0
    events = real.store.read(lambda tx: tx.events(after=0, limit=100_000))
    for event in events:
        live += {"attempt.claimed": 1, "attempt.failed": -1}.get(event.kind, 0)
        most = max(most, live)
    assert most == LIMITS.pools["jobs"], "the limit was reached, and never passed"
    led = {event.data["owner"] for event in events if event.kind == "leader.taken"}
    assert len(led) == len(schedulers), "each of them led at some time"


@pytest.mark.req("E07", "R02", "R05")
def test_of_several_adopters_one_wins(real: World, reaper: Reaper) -> None:
    key = real.running(real.worker("worker-9"))
    real.release(key)
    owners = [real.worker(f"worker-{number}") for number in range(1, 5)]
    processes = [start(reaper, real, "adopt", key.attempt_id, owner) for owner in owners]
    go(real, *owners)

    epochs = [epoch for process in processes for epoch in answer(process)]

    assert Counter(epochs) == {2: 1, None: 3}
    lease = real.store.read(lambda tx: tx.lease(key.attempt_id))
    assert lease is not None
    assert lease.owner == owners[epochs.index(2)]  # type: ignore[arg-type]


@pytest.mark.req("E07", "M05")
def test_a_stopped_writer_is_named_and_its_death_frees_the_queue(real: World, reaper: Reaper) -> None:
    holder = start(reaper, real, "hold")
    wait_until((real.home / "held").exists, "the holder is in its transaction")
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(StoreBusyError) as caught:
        real.submit()
    assert caught.value.hint == f"see whether process {holder.pid} is stopped or stuck"
    assert real.store.read(lambda tx: tx.works(states=(), after=0, limit=9)) == [], "readers are not held up"

    holder.kill()
    holder.wait(timeout=30)

    assert real.submit() == "w1", "what the dead one had begun is gone"


def test_no_writer_starves_behind_others_that_never_stop(real: World, reaper: Reaper) -> None:
    """Each commits and begins again at once, and none stops before every one has made its own. In what proportion they get
    there is the scheduler's: the kernel wakes whoever waits for the queue, and promises no order among those that ask.
    """
    names = ["a", "b", "c"]
    processes = [start(reaper, real, "insist", name, 40) for name in names]
    go(real, *names)

    wait_until(lambda: all((real.home / f"made-{name}").exists() for name in names), "each has made its own")
    (real.home / "enough").touch()
    made = [answer(process) for process in processes]

    assert min(len(own) for own in made) >= 40
    ids = [work_id for own in made for work_id in own]
    assert len(set(ids)) == len(ids), "and no two have made the same"


@pytest.mark.req("E07")
def test_a_waiting_writer_gets_the_queue_when_it_is_free(real: World, reaper: Reaper) -> None:
    holder = start(reaper, real, "hold")
    wait_until((real.home / "held").exists, "the holder is in its transaction")
    waiter = start(reaper, real, "submit", "late", 1)
    (real.home / "go").touch()
    with pytest.raises(StoreBusyError):
        real.submit()

    holder.kill()
    holder.wait(timeout=30)

    assert answer(waiter) == ["w1"]
