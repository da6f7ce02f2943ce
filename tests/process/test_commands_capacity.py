"""What `tenure capacity` says: limits, who holds each slot, what waits and for which reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.commands import capacity
from shared.ids import WorkId
from shared.model.settings import Binding, Config, ScopeConfig, Settings
from shared.model.work import Reason
from shared.policy.capacity import Wait
from tests.support.command_homes import Ask, CommandHome, command_home, ending

LIMITS = Config(
    Settings(job_concurrency=3, concurrency=0),
    (ScopeConfig("ops", 2), ScopeConfig("ops/backup")),
    (Binding("backup", ("true",)),),
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CommandHome]:
    with command_home(tmp_path) as home:
        home.activate(LIMITS)
        yield home


def hold_back(home: CommandHome, work_id: WorkId, reason: Reason, limit: str | None) -> None:
    home.as_leader(lambda tx: tx.hold_back([Wait(work_id, reason, limit)]))


@pytest.mark.req("C03", "C05")
def test_slots_are_counted_until_the_stop_is_proven_and_each_holder_is_named(home: CommandHome, ask: Ask) -> None:
    worker = home.staff()
    home.running(worker, home.submit(scope="ops/backup"))
    key = home.running(worker, home.submit(scope="ops"))
    home.end(key, ending(7, proof=None))
    home.end(home.running(worker, home.submit(scope="ops")), ending(0))
    home.abandon(home.running(worker, home.submit(scope="other")))

    said = ask("capacity", "--json").json

    assert said["pools"] == [
        {"name": "jobs", "limit": 3, "in_use": 3, "waiting": 0},
        {"name": "agents", "limit": 0, "in_use": 0, "waiting": 0},
    ]
    assert said["scopes"] == [
        {"name": "ops", "limit": 2, "in_use": 2, "waiting": 0},
        {"name": "ops/backup", "limit": 0, "in_use": 1, "waiting": 0},
    ]
    assert [(each["attempt"], each["state"], each["why"]) for each in said["holders"]] == [
        ("w1.1", "running", "under_way"),
        ("w2.1", "failed", "stop_unproven"),
        ("w4.1", "recovery_required", "recovery_required"),
    ]
    assert len(said["holders"]) == sum(pool["in_use"] for pool in said["pools"])
    text = ask("capacity").out
    assert [line.split() for line in text.splitlines()[:5]] == [
        ["limit", "in", "use", "waiting"],
        ["pool", "jobs", "3", "3", "full", "0"],
        ["pool", "agents", "unbounded", "0", "0"],
        ["scope", "ops", "2", "2", "full", "0"],
        ["scope", "ops/backup", "unbounded", "1", "0"],
    ]
    told = [line.split()[0] for line in text.splitlines() if "pool jobs, scope" in line]
    assert told == ["w1.1", "w2.1", "w4.1"]
    assert "stop not tried yet" in text
    assert "waits for a person" in text

    home.confirm(key)

    assert ask("capacity", "--json").json["pools"][0]["in_use"] == 2


@pytest.mark.req("C04", "C05")
def test_waiting_is_counted_where_the_limit_is_and_by_reason(home: CommandHome, ask: Ask) -> None:
    home.staff()
    works = [home.submit(scope="ops/backup") for _ in range(4)]
    hold_back(home, works[0], Reason.CAPACITY_JOB_CONCURRENCY, "jobs")
    hold_back(home, works[1], Reason.CAPACITY_SCOPE, "ops")
    hold_back(home, works[2], Reason.NO_WORKER, None)

    said = ask("capacity", "--json").json

    assert [pool["waiting"] for pool in said["pools"]] == [1, 0]
    assert [scope["waiting"] for scope in said["scopes"]] == [1, 0]
    assert sorted((each["reason"] or "", each["count"]) for each in said["waiting"]) == [
        ("", 1),
        ("capacity_job_concurrency", 1),
        ("capacity_scope", 1),
        ("no_worker", 1),
    ]
    assert said["waiting_capped"] is False
    text = ask("capacity").out
    assert "no pass has looked at it yet" in text
    assert "no worker can take it" in text


def test_full_pool_holds_back_all_behind_the_first_that_a_pass_marked(home: CommandHome, ask: Ask) -> None:
    worker = home.staff()
    for _ in range(3):
        home.running(worker)
    works = [home.submit() for _ in range(5)]
    hold_back(home, works[0], Reason.CAPACITY_JOB_CONCURRENCY, "jobs")

    assert ask("capacity", "--json").json["pools"][0] == {"name": "jobs", "limit": 3, "in_use": 3, "waiting": 5}


def test_scope_that_is_called_as_a_pool_is_no_pool(home: CommandHome, ask: Ask) -> None:
    home.activate(Config(Settings(), (ScopeConfig("jobs", 1),)))
    home.staff()
    works = [home.submit(scope="jobs") for _ in range(3)]
    hold_back(home, works[0], Reason.CAPACITY_JOB_CONCURRENCY, "jobs")
    hold_back(home, works[1], Reason.CAPACITY_SCOPE, "jobs")

    said = ask("capacity", "--json").json

    assert (said["pools"][0]["waiting"], said["scopes"][0]["waiting"]) == (1, 1)


def test_bounds_are_said(home: CommandHome, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = home.staff()
    for _ in range(3):
        home.running(worker)
    home.submit()
    home.submit()
    monkeypatch.setattr(capacity, "COUNTED_MAX", 2)
    monkeypatch.setattr(capacity, "HOLDERS_SHOWN", 2)
    monkeypatch.setattr(capacity, "HOLDERS_MAX", 3)

    said = ask("capacity", "--json").json

    assert (said["waiting_capped"], said["holders_capped"]) == (True, True)
    assert "and 1 more" in ask("capacity").out
    assert "at least" in ask("capacity").out


def test_nothing_held_nothing_waiting(home: CommandHome, ask: Ask) -> None:
    said = ask("capacity", "--json").json

    assert (said["waiting"], said["holders"], said["waiting_capped"], said["holders_capped"]) == ([], [], False, False)
    assert len(ask("capacity").out.splitlines()) == 5
