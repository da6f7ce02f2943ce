"""What random drills brought to light, and what they rest on, as single scenes on real processes."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from chaos.checks import examine
from chaos.harness import COORDINATOR, Harness
from chaos.witness import Mark
from shared.ids import WorkId
from shared.model.attempt import Attempt
from shared.model.instant import US_PER_HOUR, US_PER_MS
from shared.model.settings import Settings
from shared.process.filelock import holders
from shared.store.contract import Event

SETTINGS = Settings(job_concurrency=8, lease_us=2_000 * US_PER_MS)
JOB_S = 5.0
"""Longer than two leases."""


def started(harness: Harness, work_id: WorkId) -> bool:
    return any(line.work_id == work_id and line.mark is Mark.START for line in harness.witness.lines())


def last_attempt(harness: Harness, work_id: WorkId) -> Attempt:
    return harness.read(lambda tx: tx.attempts(work_id))[-1]


def events(harness: Harness) -> list[Event]:
    return harness.read(lambda tx: tx.events(after=0, limit=1_000))


@pytest.mark.req("L02", "R10")
def test_a_standby_is_no_suspect(tmp_path: Path) -> None:
    """Seed 1 of the drill: its shim is dead, so nothing but a look at all processes proves its stop, and a standby that came
    later was taken for what it left, for as long as it stood by. The control: a stranger that came later is a suspect.
    """
    with Harness(tmp_path / "drill", SETTINGS) as harness:
        harness.start(COORDINATOR)
        harness.start("worker-1")
        work_id = harness.submit(wait=600)
        harness.wait(lambda: started(harness, work_id), "the job has started")
        standby = harness.start(COORDINATOR)
        harness.wait(lambda: standby.pid in holders(harness.home.run, COORDINATOR), "the standby stands by")
        stranger = harness.spawn("stranger", [sys.executable, "-c", "import time; time.sleep(60)"], env={})
        pin = last_attempt(harness, work_id).pin
        assert pin is not None
        os.kill(pin.shim.pid, signal.SIGKILL)

        harness.cancel(work_id)

        orders = harness.wait(
            lambda: [order for order in harness.read(lambda tx: tx.stop_orders()) if order.finding], "a look was taken"
        )
        suspects = {suspect["pid"] for suspect in json.loads(str(orders[0].finding))["suspects"]}
        assert stranger.pid in suspects
        assert standby.pid not in suspects


@pytest.mark.req("K02", "K01")
def test_wall_clocks_that_step_either_way_change_nothing_for_leases(tmp_path: Path) -> None:
    with Harness(tmp_path / "drill", SETTINGS) as harness:
        harness.start(COORDINATOR, clock=(1.5, 26 * 3_600.0))
        harness.start("worker-1", clock=(2.5, -3 * 3_600.0))
        work_id = harness.submit(wait=JOB_S, status=7)
        harness.wait(lambda: started(harness, work_id), "the job has started")
        late = harness.submit(wait=0)
        harness.wait_quiet()

        assert examine(harness.history()) == []
        for each in (work_id, late):
            attempt = last_attempt(harness, each)
            assert (attempt.number, attempt.epoch) == (1, 1), "nobody lost it, nobody took it over"
        stamps = [event.at_us for event in events(harness)]
        assert max(stamps) - min(stamps) > US_PER_HOUR, "control: a clock did step"
