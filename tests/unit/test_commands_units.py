"""The shipped unit files: what keeps a restart of a worker from being the end of its jobs, and what systemd itself says of them."""

from __future__ import annotations

import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest

from shared.cli import COMMANDS
from shared.commands.findings_service import SPARING
from tests.support.checkout import ROOT

UNITS = sorted((ROOT / "scripts" / "units").glob("*/*.service"))
WORKERS = [path for path in UNITS if "worker" in path.name]
HIDING = {
    "PrivateTmp", "PrivateDevices", "PrivateNetwork", "PrivateUsers", "PrivateMounts", "PrivatePIDs", "ProtectProc", "ProcSubset",
    "ProtectSystem", "ProtectHome", "TemporaryFileSystem", "RootDirectory", "RootImage", "DynamicUser", "MemoryMax", "RuntimeMaxSec",
    "ExecStopPost", "ProtectControlGroups",
}  # fmt: skip
"""Settings that would give a restarted worker another world than its jobs have, or end them."""


def unit(path: Path) -> RawConfigParser:
    parser = RawConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # keys of systemd keep their case
    parser.read_string(path.read_text())
    return parser


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def test_both_managers_have_both_roles() -> None:
    assert [named(path) for path in UNITS] == [
        "system/tenure-coordinator.service",
        "system/tenure-worker@.service",
        "user/tenure-coordinator.service",
        "user/tenure-worker@.service",
    ]


@pytest.mark.parametrize("path", UNITS, ids=named)
def test_unit_restarts_what_died_and_spares_what_it_launched(path: Path) -> None:
    service = unit(path)["Service"]

    assert service["KillMode"] in SPARING
    assert service["OOMPolicy"] == "continue"
    assert service["Restart"] == "on-failure"
    assert service["UMask"] == "0077"
    assert unit(path)["Unit"]["StartLimitIntervalSec"] == "0"
    assert service["RestartPreventExitStatus"] == "2"  # a wrong command line stays wrong; a full disk does not
    assert HIDING & set(service) == set()


@pytest.mark.parametrize("path", WORKERS, ids=named)
def test_worker_may_give_its_jobs_cgroups_and_has_time_to_drain(path: Path) -> None:
    service = unit(path)["Service"]

    assert service["Delegate"] == "yes"
    assert int(service["TimeoutStopSec"].removesuffix("s")) > 10
    assert service["ExecStart"].endswith(" worker --name worker-%i")


@pytest.mark.parametrize("path", UNITS, ids=named)
def test_unit_calls_a_command_that_there_is(path: Path) -> None:
    program, command, *_ = unit(path)["Service"]["ExecStart"].split()

    assert program.endswith("/bin/tenure")
    assert command in {name for group in COMMANDS.values() for name in group}
    assert unit(path)["Service"]["Environment"].startswith("TENURE_HOME=")


@pytest.mark.parametrize("path", UNITS, ids=named)
def test_systemd_finds_nothing_to_say(path: Path, tmp_path: Path) -> None:
    said = verify(path, tmp_path)

    assert said == ""


def test_systemd_would_say_something(tmp_path: Path) -> None:
    """The control: a mistyped key."""
    wrong = tmp_path / "wrong" / "system" / "tenure-coordinator.service"
    wrong.parent.mkdir(parents=True)
    wrong.write_text(UNITS[0].read_text().replace("KillMode", "KilMode"))

    assert "KilMode" in verify(wrong, tmp_path)


def verify(path: Path, folder: Path) -> str:
    """What `systemd-analyze verify` says of a unit whose program there is."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("no systemd-analyze here")
    program = unit(path)["Service"]["ExecStart"].split()[0]
    text = path.read_text().replace(f"ExecStart={program}", "ExecStart=/bin/true").replace("User=tenure", "User=root")
    copy = folder / path.name
    copy.write_text(text)
    manager = [] if path.parent.name == "system" else ["--user"]
    argv = [tool, *manager, "verify", str(copy)]
    done = subprocess.run(
        argv, env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(folder)}, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr
