"""Each finding of `tenure doctor` about what a store says, provoked; beside it the same home without the fault."""

from __future__ import annotations

import signal
from contextlib import closing

import pytest

from shared.commands import findings_store
from shared.ids import WorkId
from shared.model.instant import US_PER_MINUTE, US_PER_S
from shared.model.settings import Config, ScopeConfig, Settings
from shared.model.stop import StopResult
from shared.model.work import Reason
from shared.policy.capacity import Wait
from shared.process.filelock import IncarnationLock
from shared.process.identity import identify, is_stopped
from shared.store.sqlite.driver import sqlite3
from tests.support.command_homes import AHEAD_US, Ask, CommandHome, Launch, ending
from tests.support.examinations import Found
from tests.support.passes import pass_record
from tests.support.processes import Reaper
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("quiet")


def test_standby_is_named(home: CommandHome, found: Found, ask: Ask) -> None:
    home.staff()
    with IncarnationLock.take(home.home / "run" / "coordinator.9.lock"):
        assert found() == {"leader.standby": "info"}
        assert "coordinator.9 stands by" in ask("doctor").out

    assert found() == {}


@pytest.mark.req("X03")
def test_a_stopped_shim_is_named(home: CommandHome, found: Found, ask: Ask, reaper: Reaper) -> None:
    shim = reaper.start(["sleep", "60"])
    with closing(Launch(home, home.staff(), shim=identify(shim.pid))):
        assert found() == {}, "control: it runs"

        shim.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_stopped(identify(shim.pid)), "the process is stopped")

        assert found() == {"attempts.shim_stopped": "warning"}
        assert f"kill -CONT {shim.pid}" in ask("doctor").out


def test_silent_worker(home: CommandHome, found: Found, ask: Ask) -> None:
    home.take_lead()
    home.clock.advance(-AHEAD_US - 25 * US_PER_S)
    home.worker()
    home.clock.advance(AHEAD_US + 25 * US_PER_S)

    assert found() == {"workers.silent": "warning"}
    assert "next: kill -CONT 100" in ask("doctor").out


@pytest.mark.parametrize(
    ("age_us", "error", "expected"),
    [
        (5 * US_PER_MINUTE, None, {"passes.stale": "warning"}),
        (US_PER_MINUTE, None, {}),
        (0, "a row is damaged", {"passes.failing": "error"}),
    ],
)
def test_passes(home: CommandHome, found: Found, age_us: int, error: str | None, expected: dict[str, str]) -> None:
    home.staff()
    at_us = home.clock.now().wall_us - AHEAD_US - age_us
    record = pass_record(at_us=at_us, error=error)
    home.as_leader(lambda tx: tx.record_pass(record))

    assert found() == expected


def test_unknown_outcome(home: CommandHome, found: Found, ask: Ask) -> None:
    home.abandon(home.running(home.staff()))

    assert found() == {"attempts.recovery_required": "error"}
    text = ask("doctor").out
    assert "what became of w1.1 is unknown, its slot stays held: nobody saw how it ended" in text
    assert f"next: see the evidence, then settle it: tenure --home {home.home} attempt reconcile w1.1" in text


def test_unproven_stop(home: CommandHome, found: Found) -> None:
    worker = home.staff()
    home.end(home.running(worker), ending(7, proof=None))
    assert found() == {}  # nobody has tried yet

    order = home.store.read(lambda tx: tx.stop_orders())[0]
    home.store.write(lambda tx: tx.take_stop_order(order.id, worker, lease_us=30 * US_PER_S))
    result = StopResult(None, (), ("S1: no exit record",), None)
    home.store.write(lambda tx: tx.report_unproven(order.id, worker, result, retry_us=US_PER_S))

    assert found() == {"stops.unproven": "warning"}


def test_work_whose_binding_is_gone(home: CommandHome, found: Found) -> None:
    home.staff()
    home.submit()
    home.as_leader(lambda tx: tx.hold_back([Wait(WorkId("w1"), Reason.UNSUPPORTED_GENERATION, None)]))

    assert found() == {"works.no_binding": "warning"}


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.NO_WORKER, "works.no_worker"),
        (Reason.STOP_UNPROVEN, "works.stop_unproven"),
        (Reason.DISK_FULL, "works.disk_full"),
    ],
)
@pytest.mark.req("C04")
def test_work_that_waits_for_what_does_not_come_by_itself(
    home: CommandHome, found: Found, ask: Ask, reason: Reason, code: str
) -> None:
    home.staff()
    home.submit()
    assert found() == {}

    home.as_leader(lambda tx: tx.hold_back([Wait(WorkId("w1"), reason, None)]))

    assert found() == {code: "warning"}
    assert f"work list --state ready --reason {reason}" in ask("doctor").out


def test_lapsed_lease_that_nobody_takes_up(home: CommandHome, found: Found, ask: Ask) -> None:
    key = home.running(home.staff())
    assert found() == {}

    home.clock.advance(-AHEAD_US - 60 * US_PER_S)
    home.store.write(lambda tx: tx.release(key, reason="its worker died"))
    home.clock.advance(AHEAD_US + 60 * US_PER_S)

    assert found() == {"leases.lapsed": "warning"}
    text = ask("doctor").out
    assert "nobody holds w1.1, for up to 1m" in text
    assert f"tenure --home {home.home} attempt show w1.1" in text


def test_lapsed_lease_while_nobody_is_up_is_adopted_by_whoever_comes(home: CommandHome, found: Found, ask: Ask) -> None:
    worker = home.staff()
    leader, generation = home.leader, home.generation
    assert leader is not None
    key = home.running(worker)
    home.clock.advance(-AHEAD_US - 60 * US_PER_S)
    home.store.write(lambda tx: tx.release(key, reason="its worker left"))
    home.clock.advance(AHEAD_US + 60 * US_PER_S)
    home.store.write(lambda tx: tx.retire_worker(worker, reason="left"))
    home.store.write(lambda tx: tx.resign(leader, generation))

    assert found() == {"leases.lapsed": "warning", "leader.none": "error", "workers.none": "error"}
    assert f"it is adopted once they are up: tenure --home {home.home} up" in ask("doctor").out


@pytest.mark.req("C05")
def test_full_pool_names_its_holders(home: CommandHome, found: Found, ask: Ask) -> None:
    home.activate(Config(Settings(job_concurrency=2), (ScopeConfig("ops", 1),)))
    worker = home.staff()
    home.running(worker)
    key = home.running(worker, home.submit(scope="ops"))
    assert found() == {}

    waits = home.submit()
    home.as_leader(lambda tx: tx.hold_back([Wait(waits, Reason.CAPACITY_JOB_CONCURRENCY, "jobs")]))

    assert found() == {"capacity.full": "info"}
    assert "pool jobs is full (2 of 2) and 1 work waits; held by w1.1, w2.1" in ask("doctor").out

    home.end(key, ending(7, proof=None))

    assert found() == {"capacity.stuck": "warning"}
    assert "slots of what no longer runs: w2.1 (stop_unproven)" in ask("doctor").out
    assert "attempt show w2.1" in ask("doctor").out


@pytest.mark.req("C05")
def test_full_scope_names_what_waits_for_a_person(home: CommandHome, found: Found, ask: Ask) -> None:
    home.activate(Config(Settings(), (ScopeConfig("ops", 1),)))
    home.abandon(home.running(home.staff(), home.submit(scope="ops/backup")))
    waits = home.submit(scope="ops")
    home.as_leader(lambda tx: tx.hold_back([Wait(waits, Reason.CAPACITY_SCOPE, "ops")]))

    assert found() == {"attempts.recovery_required": "error", "capacity.stuck": "warning"}
    assert "scope ops is full (1 of 1) and 1 work waits; slots of what no longer runs: w1.1 (recovery_required)" in (
        ask("doctor").out
    )


def test_clock_that_was_set_back(home: CommandHome, found: Found) -> None:
    home.staff()
    ahead_us = home.clock.now().wall_us + 3600 * US_PER_S
    record = pass_record(at_us=ahead_us)
    home.as_leader(lambda tx: tx.record_pass(record))

    assert found() == {"clock.set_back": "warning"}


def test_foreign_time_namespace(home: CommandHome, found: Found) -> None:
    home.staff()
    with closing(sqlite3.connect(home.home / "store.db")) as outsider:
        here = home.clock.now().boot_id
        outsider.execute("UPDATE meta SET value = ? WHERE key = 'time_namespace'", (f"{here}:12",))
        outsider.commit()

    assert found()["store.time_namespace"] == "error"


def test_worker_of_another_pid_namespace(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
    assert found() == {}

    monkeypatch.setattr(findings_store, "pid_namespace", lambda: 1)

    assert found() == {"workers.pid_namespace": "warning"}


@pytest.mark.req("V04")
def test_store_that_went_back_in_time(home: CommandHome, found: Found, ask: Ask) -> None:
    home.staff()
    (home.home / "attempts" / "w7.1.1").mkdir()

    assert found() == {"store.regressed": "error"}
    assert "w7 has a directory" in ask("doctor").out
