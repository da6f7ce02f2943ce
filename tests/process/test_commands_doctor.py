"""Each finding of `tenure doctor` about the place a home is in, provoked; beside it the same home without the fault."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from shared.commands import findings_place
from shared.commands.findings_place import EXIT_STATUS_KERNEL, FREE_BYTES_LEAST, PLACE_CHECKS, kernel_version
from shared.commands.findings_store import STORE_CHECKS
from shared.process import cgroup
from shared.process.identity import identify
from shared.store.sqlite.place import place_of
from tests.support.command_homes import Ask, CommandHome
from tests.support.examinations import Found

pytestmark = pytest.mark.usefixtures("quiet")


def test_home_at_work_has_no_finding(home: CommandHome, found: Found, ask: Ask) -> None:
    home.running(home.staff())

    assert found() == {}
    assert ask("doctor").out == f"ok  {', '.join([*PLACE_CHECKS, *STORE_CHECKS])}\n"


def test_nobody_up_is_a_warning_until_work_waits(home: CommandHome, found: Found) -> None:
    assert found() == {"leader.none": "warning", "workers.none": "warning"}

    home.submit()

    assert found() == {"leader.none": "error", "workers.none": "error"}


def test_exposed_home_and_store(home: CommandHome, found: Found) -> None:
    home.staff()
    home.home.chmod(0o750)
    (home.home / "store.db").chmod(0o640)

    assert found() == {"home.exposed": "warning", "store.exposed": "warning"}


def test_disk(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
    kind = place_of(home.home).filesystem
    (home.home / "ballast").unlink()
    monkeypatch.setattr(findings_place, "FREE_BYTES_LEAST", 1 << 80)
    monkeypatch.setattr(findings_place, "VOLATILE_FILESYSTEMS", {kind: "tmpfs"})
    monkeypatch.setattr(findings_place, "NETWORK_FILESYSTEMS", {kind: "NFS"})

    assert found() == {
        "disk.ballast_missing": "error",
        "disk.low": "warning",
        "disk.volatile": "warning",
        "disk.network": "error",
    }
    assert FREE_BYTES_LEAST > 0


def test_full_disk(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
    monkeypatch.setattr(findings_place, "FULL_BYTES", 1 << 80)

    assert found() == {"disk.full": "error"}


def test_disk_with_room_for_few_files(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
    monkeypatch.setattr(findings_place, "FREE_FILES_LEAST", 1 << 62)

    assert found() == {"disk.few_files": "warning"}


def test_sqlite_that_may_lose_a_commit(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
    monkeypatch.setattr(findings_place, "library_version", lambda: (3, 51, 2))

    assert found() == {"sqlite.wal_reset_race": "warning"}


def test_kernel_with_less_evidence(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
    monkeypatch.setattr(findings_place, "FREE_FILES_LEAST", 0)
    monkeypatch.setattr(findings_place, "blindness", lambda: None)
    monkeypatch.setattr(cgroup, "own_directory", lambda: "/tmp")
    monkeypatch.setattr(findings_place, "CGROUP_KILL_KERNEL", (0, 0))
    monkeypatch.setattr(findings_place, "identify", lambda pid: replace(identify(pid), pidfs_ino=None))
    monkeypatch.setattr(findings_place, "EXIT_STATUS_KERNEL", (99, 0))

    assert found() == {"kernel.no_pidfs": "info", "kernel.no_exit_status": "info"}


@pytest.mark.parametrize(
    ("release", "version"),
    [("6.15.0-rc1", (6, 15)), ("6.8.0-45-generic", (6, 8)), ("5.10.0", (5, 10)), ("6.17-x", (6, 17))],
)
def test_kernel_version_is_read_from_its_release(release: str, version: tuple[int, int]) -> None:
    assert kernel_version(release) == version
    assert EXIT_STATUS_KERNEL == (6, 15)


def test_processes_that_are_hidden(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
    monkeypatch.setattr(findings_place, "blindness", lambda: "/proc is mounted with hidepid")

    assert found() == {"kernel.proc_hidden": "warning"}


def test_cgroups_that_cannot_be_had(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
    monkeypatch.setattr(cgroup, "own_directory", lambda: None)
    assert found() == {"kernel.no_cgroup": "info"}

    monkeypatch.setattr(cgroup, "own_directory", lambda: "/proc/1/nowhere")
    assert found() == {"kernel.cgroup_read_only": "info"}

    monkeypatch.setattr(cgroup, "own_directory", lambda: str(home.folder))
    assert found() == {}
    monkeypatch.setattr(findings_place, "CGROUP_KILL_KERNEL", (99, 0))
    assert found() == {"kernel.no_cgroup_kill": "info"}


def test_missing_zone_data(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
    monkeypatch.setattr(findings_place, "ZONE_TRIED", "No/Such")
    assert found() == {"zones.missing": "error"}

    def missing(_name: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.undo()
    assert "zones.missing" not in found()
    monkeypatch.setattr(metadata, "version", missing)
    assert "zones.missing" in found()


def test_check_that_could_not_look_is_unknown(home: CommandHome, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    home.staff()
    monkeypatch.setattr(findings_place, "exposed_mode", blind)

    said = ask("doctor", "--json")

    assert said.code == 1
    assert [(each["code"], each["severity"]) for each in said.json["findings"]] == [("home.unknown", "unknown")]


def test_store_that_cannot_be_opened_leaves_the_rest_unknown(home: CommandHome, ask: Ask) -> None:
    home.close()
    (home.home / "store.db").write_bytes(b"no database at all" * 100)

    said = ask("doctor", "--json")

    assert said.code == 1
    codes = {each["code"]: each["severity"] for each in said.json["findings"]}
    assert codes["store.corrupt"] == "error"
    assert {code for code, severity in codes.items() if severity == "unknown"} == {
        f"{name}.unknown" for name in STORE_CHECKS if name != "store"
    }
