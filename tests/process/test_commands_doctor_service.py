"""Each finding of `tenure doctor` about the units of workers, provoked; beside it the same unit without the fault."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.ids import Incarnation
from shared.process import service
from shared.process.identity import identify
from shared.process.service import Unit, unit_in
from shared.store.contract import Registration
from tests.support.command_homes import Ask, CommandHome
from tests.support.examinations import Found

pytestmark = pytest.mark.usefixtures("quiet")


GROUPS = "1:name=systemd:/system.slice/tenure-worker@1.service\n0::/system.slice/tenure-worker@1.service\n"


GOOD = {"KillMode": "process", "Delegate": "yes", "OOMPolicy": "continue"}


SYSTEM = Unit("tenure-worker@1.service", None)


@pytest.mark.parametrize(
    ("groups", "unit"),
    [
        (GROUPS, Unit("tenure-worker@1.service", None)),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/tw.service\n", Unit("tw.service", 1000)),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", Unit("session-3.scope", None)),
        ("0::/system.slice/docker-1.scope/tenure.service/tenure-x\n", Unit("tenure.service", None)),
        ("9:name=systemd:/\n0::/\n", None),
        ("0::/user.slice/user-0.slice/user@0.service/init.scope\n", Unit("init.scope", 0)),
    ],
)
def test_unit_is_read_from_the_control_group(groups: str, unit: Unit | None) -> None:
    assert unit_in(groups) == unit


def present_worker(home: CommandHome) -> Incarnation:
    """A worker whose process there is: this one."""
    worker = home.store.write(lambda tx: tx.next_incarnation("worker-1"))
    who = identify(os.getpid())
    registration = Registration(worker, "worker-1", who, None, 1, 1, 4, ("shell@1",))
    home.store.write(lambda tx: tx.register_worker(registration))
    return worker


@pytest.fixture
def unit(home: CommandHome, monkeypatch: pytest.MonkeyPatch) -> Callable[[Unit | None, dict[str, str]], None]:
    """The worker runs in that unit, whose settings are these."""
    home.take_lead()
    present_worker(home)

    def run_in(unit: Unit | None, settings: dict[str, str]) -> None:
        monkeypatch.setattr(service, "unit_of", lambda _pid: unit)
        monkeypatch.setattr(service, "settings_of", lambda _unit: settings)

    return run_in


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {}),
        ({"KillMode": "none"}, {}),
        ({"KillMode": "control-group"}, {"service.kill_mode": "error"}),
        ({"KillMode": "mixed"}, {"service.kill_mode": "error"}),
        ({"Delegate": "no"}, {"service.delegate": "warning"}),
        ({"OOMPolicy": "stop"}, {"service.oom_policy": "warning"}),
    ],
)
def test_unit_that_does_not_spare_its_jobs(
    found: Found, ask: Ask, unit: Any, change: dict[str, str], expected: dict[str, str]
) -> None:
    unit(SYSTEM, GOOD | change)

    assert found() == expected
    if expected:
        assert "systemctl edit tenure-worker@1.service" in ask("doctor").out


def test_worker_in_no_unit_has_no_finding(found: Found, unit: Any) -> None:
    unit(None, {})

    assert found() == {}


def test_user_who_does_not_linger(found: Found, unit: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(service, "LINGER_DIR", tmp_path / "linger")
    unit(Unit("tenure-worker@1.service", 0), GOOD)
    assert found() == {"service.no_linger": "error"}

    (tmp_path / "linger").mkdir()
    (tmp_path / "linger" / pwd.getpwuid(0).pw_name).touch()
    assert found() == {}


def fake(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, script: str) -> None:
    """A program of that name comes first on the path."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")


def test_settings_are_those_that_systemctl_tells(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: CommandHome, found: Found
) -> None:
    home.take_lead()
    present_worker(home)
    monkeypatch.setattr(service, "unit_of", lambda _pid: SYSTEM)
    fake(monkeypatch, tmp_path, "systemctl", "echo KillMode=control-group; echo Delegate=yes; echo OOMPolicy=continue")
    assert found() == {"service.kill_mode": "error"}

    fake(monkeypatch, tmp_path, "systemctl", 'echo "cannot ask the bus" >&2; exit 1')
    assert found() == {"service.unknown": "unknown"}


def test_login_that_ends_with_its_jobs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: Found, unit: Any
) -> None:
    unit(Unit("session-3.scope", None), {})
    fake(monkeypatch, tmp_path, "loginctl", "echo KillUserProcesses=yes")
    assert found() == {"service.ends_at_logout": "warning"}

    fake(monkeypatch, tmp_path, "loginctl", "echo KillUserProcesses=no")
    assert found() == {}
