"""An event that many Works wait for: a coordinator killed between the commits that wake them loses none and wakes none twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.harness import DRILL_ID
from shared.boundary import Boundary, Side
from shared.clock import SystemClock
from shared.ids import work_of
from shared.model.attempt import AttemptState
from shared.model.wait import WAKES_MAX
from shared.model.work import WorkState
from tests.support.declarations import TICK, wait
from tests.support.processes import Reaper
from tests.support.stores import SQLITE, World, ram_folder
from tests.support.waiting import wait_until

MANY = 2 * WAKES_MAX + 9
"""Woken by three commits: that of the event, and two passes."""


@pytest.fixture
def world() -> Iterator[World]:
    """On the clock of this host, so that real coordinators share it."""
    with ram_folder() as folder:
        world = World(SQLITE, folder, SystemClock())
        yield world
        world.close()


def coordinator(world: World, reaper: Reaper, log: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-P", "-m", "shared.cli", "--home", str(world.home), "coordinator"]
    with log.open("ab") as out:
        return reaper.start(argv, stdout=out, stderr=out, env={**os.environ, **env})


def woken(world: World) -> Counter[str]:
    """How often each attempt's wait has ended."""
    events = world.store.read(lambda tx: tx.events(after=0, limit=100_000))
    return Counter(str(event.attempt_id) for event in events if event.kind == "wait.satisfied")


@pytest.mark.req("O08", "S01", "M01", "L01")
@pytest.mark.parametrize(("side", "passes"), [(Side.BEFORE, 0), (Side.AFTER, 1)])
def test_a_coordinator_killed_between_two_commits_of_wakes(
    world: World, tmp_path: Path, side: Side, passes: int
) -> None:
    owner = world.worker()
    keys = [world.awaiting(owner, wait(resume=False, timer=None)) for _ in range(MANY // 2)]
    keys += [world.parked(owner, wait(resume=True, timer=None)) for _ in range(MANY - len(keys))]
    assert world.leader is not None
    leader, generation = world.leader, world.generation
    world.store.write(lambda tx: tx.resign(leader, generation))
    seq = world.store.write(lambda tx: tx.publish(TICK))
    assert sum(woken(world).values()) == WAKES_MAX
    (world.home / "drill").write_text(DRILL_ID)
    armed = {"TENURE_ARM": f"{Boundary.EVENT_COMMIT}:{side}:KILL", "TENURE_DRILL": DRILL_ID}

    with Reaper() as reaper:
        killed = coordinator(world, reaper, tmp_path / "log", armed)
        wait_until(lambda: killed.poll() is not None, "the coordinator was killed there")
        assert Boundary.EVENT_COMMIT in (world.home / "drill.log").read_text()
        assert sum(woken(world).values()) == (1 + passes) * WAKES_MAX, "it was killed between"
        assert world.store.read(lambda tx: tx.waking(limit=9)) == [seq]
        (world.home / "drill").unlink()
        coordinator(world, reaper, tmp_path / "log", {})
        wait_until(lambda: not world.store.read(lambda tx: tx.waking(limit=9)), "all are woken")

    assert woken(world) == Counter({key.attempt_id: 1 for key in keys}), "none was lost, and none twice"
    for key in keys:
        work, attempt = world.work(work_of(key.attempt_id)), world.attempt(key.attempt_id)
        inputs = world.store.read(lambda tx, name=work.id: tx.pending_inputs(name, limit=9))  # type: ignore[misc]
        if attempt.state is AttemptState.PARKED:
            assert (work.state, inputs) == (WorkState.WAITING, [])
        else:
            assert (work.state, len(inputs)) == (WorkState.READY, 1)
