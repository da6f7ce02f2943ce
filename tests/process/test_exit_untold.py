"""The end of a real job is found though nobody was told of it: the wake of the watcher is lost. Rule: M04, K03."""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Hashable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from shared.clock import SystemClock
from shared.home import Home
from shared.model.attempt import Attempt, AttemptState, LeaseKey
from shared.model.instant import US_PER_S
from shared.model.settings import Config, Settings
from shared.process.identity import identify
from shared.process.watcher import Watcher
from shared.store.contract import Claimed
from tests.support.processes import Reaper
from tests.support.stores import SQLITE, World
from tests.support.waiting import wait_until
from worker.bootstrap import _ports
from worker.holding import Phase
from worker.pool import Completion
from worker.worker import Worker


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(SQLITE, tmp_path, SystemClock())
    config = Config(settings=Settings(lease_us=US_PER_S))  # renewed three times a second
    world.store.write(lambda tx: tx.activate_config(config.to_json(), config.digest, "/tenure.toml"))
    yield world
    world.close()


@pytest.mark.req("M04", "K03")
@pytest.mark.parametrize("is_told", [False, True])
def test_the_end_of_a_job_is_found_whether_or_not_its_worker_was_told(
    world: World, reaper: Reaper, tmp_path: Path, is_told: bool
) -> None:
    os.mkfifo(tmp_path / "gate")
    told: list[Hashable] = []
    completions: queue.SimpleQueue[Completion] = queue.SimpleQueue()

    def completed(completion: Completion) -> None:
        if isinstance(completion.key, LeaseKey):
            told.append(completion.key)
            if not is_told:
                return
        completions.put(completion)

    def attempt() -> Attempt:
        worker.step()
        return world.attempt(key.attempt_id)

    with ExitStack() as closing:
        me = world.worker()
        ports = _ports(Home(world.home), me, world.open(), SystemClock(), completed, closing)
        worker = Worker(ports, completions)
        work = world.submit()
        snapshot = replace(world.request(work, me).snapshot, command=("cat", str(tmp_path / "gate")))
        answer = world.try_claim(work, me, snapshot=snapshot)
        assert isinstance(answer, Claimed)
        key = LeaseKey(answer.attempt_id, 1, me)
        wait_until(lambda: attempt().state is AttemptState.RUNNING, "it runs")
        wait_until(lambda: worker._ports.holdings[key.attempt_id].phase is Phase.WATCHING, "it is watched")

        (tmp_path / "gate").write_bytes(b"")

        wait_until(lambda: told, "the watcher knows of the end")
        wait_until(lambda: attempt().state is AttemptState.SUCCEEDED, "its end was found")

    assert world.attempt(key.attempt_id).exit_status == 0


@pytest.mark.req("M04")
def test_a_watcher_answers_whether_what_it_watches_has_ended(reaper: Reaper) -> None:
    told: list[Hashable] = []
    watcher = Watcher(told.append)
    process = reaper.start(["sleep", "60"])
    try:
        assert watcher.watch("job", identify(process.pid))
        assert not watcher.has_ended("job")

        process.send_signal(signal.SIGKILL)

        wait_until(lambda: watcher.has_ended("job"), "it has ended")
        wait_until(lambda: told == ["job"], "it was told, once")
        assert watcher.has_ended("job"), "told or not"
        assert watcher.exit_status("job") == -signal.SIGKILL, "asking takes nothing away"
        watcher.unwatch("job")
        assert watcher.has_ended("job"), "what is not watched is to be looked at"
    finally:
        watcher.close()
        process.wait(30)
