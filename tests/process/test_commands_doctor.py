"""Each finding of `tenure doctor`, provoked; beside it the same home without the fault. `store check` and `store backup`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared import cli
from shared.commands import findings_place
from shared.commands.findings_place import EXIT_STATUS_KERNEL, FREE_BYTES_LEAST, PLACE_CHECKS, kernel_version
from shared.commands.findings_store import STORE_CHECKS
from shared.ids import WorkId
from shared.model.host import PassRecord
from shared.model.instant import US_PER_S
from shared.model.stop import StopResult
from shared.model.work import Reason
from shared.policy.capacity import Wait
from shared.process.filelock import IncarnationLock
from shared.process.identity import identify
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.place import place_of
from tests.support.command_homes import AHEAD_US, CommandHome, Said, command_home, ending

MINUTE_US = 60 * US_PER_S


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CommandHome]:
    with command_home(tmp_path) as home:
        yield home


@pytest.fixture
def ask(home: CommandHome, capsys: pytest.CaptureFixture[str]) -> Any:
    def ask(*words: str) -> Said:
        code = cli.main(["--home", str(home.home), *words])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return ask


@pytest.fixture
def found(ask: Any) -> Callable[[], dict[str, str]]:
    """Codes of what doctor finds, with their severity."""

    def found() -> dict[str, str]:
        said = ask("doctor", "--json")
        told = {each["code"]: each["severity"] for each in said.json["findings"]}
        assert said.code == (1 if {"error", "unknown"} & set(told.values()) else 0)
        assert said.json["ok"] == (said.code == 0)
        assert all(each["next_step"] for each in said.json["findings"])
        return told

    return found


Found = Callable[[], dict[str, str]]


@pytest.fixture(autouse=True)
def _host_without_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is true of the host that runs the tests is not what they are about."""
    monkeypatch.setattr(findings_place, "library_version", lambda: (3, 51, 3))
    monkeypatch.setattr(findings_place, "EXIT_STATUS_KERNEL", (0, 0))
    monkeypatch.setattr(findings_place, "VOLATILE_FILESYSTEMS", {})
    monkeypatch.setattr(findings_place, "FREE_BYTES_LEAST", 0)
    monkeypatch.setattr(findings_place, "identify", lambda pid: replace(identify(pid), pidfs_ino=1))


def test_home_at_work_has_no_finding(home: CommandHome, found: Found, ask: Any) -> None:
    home.running(home.staff())

    assert found() == {}
    assert (
        ask("doctor").out == f"ok  {', '.join([*PLACE_CHECKS, *STORE_CHECKS])}\n"
    )


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


def test_sqlite_that_may_lose_a_commit(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
    monkeypatch.setattr(findings_place, "library_version", lambda: (3, 51, 2))

    assert found() == {"sqlite.wal_reset_race": "warning"}


def test_kernel_with_less_evidence(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
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


def test_standby_is_named(home: CommandHome, found: Found, ask: Any) -> None:
    home.staff()
    with IncarnationLock.take(home.home / "run" / "coordinator.9.lock"):
        assert found() == {"leader.standby": "info"}
        assert "coordinator.9 stands by" in ask("doctor").out

    assert found() == {}


def test_silent_worker(home: CommandHome, found: Found, ask: Any) -> None:
    home.take_lead()
    home.clock.advance(-AHEAD_US - 25 * US_PER_S)
    home.worker()
    home.clock.advance(AHEAD_US + 25 * US_PER_S)

    assert found() == {"workers.silent": "warning"}
    assert "next: kill -CONT 100" in ask("doctor").out


@pytest.mark.parametrize(
    ("age_us", "error", "expected"),
    [
        (5 * MINUTE_US, None, {"passes.stale": "warning"}),
        (MINUTE_US, None, {}),
        (0, "a row is damaged", {"passes.failing": "error"}),
    ],
)
def test_passes(home: CommandHome, found: Found, age_us: int, error: str | None, expected: dict[str, str]) -> None:
    home.staff()
    at_us = home.clock.now().wall_us - AHEAD_US - age_us
    record = PassRecord(1, "deadline", at_us, at_us, 1000, 0, 0, 0, 0, 0, error)
    home.as_leader(lambda tx: tx.record_pass(record))

    assert found() == expected


def test_unknown_outcome(home: CommandHome, found: Found, ask: Any) -> None:
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


def test_check_that_could_not_look_is_unknown(home: CommandHome, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    home.staff()
    monkeypatch.setattr(findings_place, "exposed_mode", blind)

    said = ask("doctor", "--json")

    assert said.code == 1
    assert [(each["code"], each["severity"]) for each in said.json["findings"]] == [("home.unknown", "unknown")]


def test_store_that_cannot_be_opened_leaves_the_rest_unknown(home: CommandHome, ask: Any) -> None:
    home.close()
    (home.home / "store.db").write_bytes(b"no database at all" * 100)

    said = ask("doctor", "--json")

    assert said.code == 1
    codes = {each["code"]: each["severity"] for each in said.json["findings"]}
    assert codes["store.corrupt"] == "error"
    assert {code for code, severity in codes.items() if severity == "unknown"} == {
        f"{name}.unknown" for name in STORE_CHECKS if name != "store"
    }


# --- store check, store backup


def test_sound_store_has_no_problem(home: CommandHome, ask: Any) -> None:
    home.ended(home.staff())

    assert ask("store", "check") == Said(0, f"{home.home}/store.db: no problem found\n", "")
    assert ask("store", "check", "--json").json == {"home": str(home.home), "ok": True, "problems": []}


def test_broken_rule_is_a_problem(home: CommandHome, ask: Any, found: Found) -> None:
    home.staff()
    home.submit()
    with closing(sqlite3.connect(home.home / "store.db")) as outsider:
        outsider.execute("UPDATE work SET state = 'running', revision = revision + 1")
        outsider.commit()

    said = ask("store", "check")

    assert said.code == 1
    assert said.out.splitlines()[:2] == ["1 problem", "  w1: a running or waiting Work has an unfinished attempt"]
    assert found() == {"store.damaged": "error"}


def test_damaged_store_is_3_and_keeps_its_file(home: CommandHome, ask: Any, found: Found) -> None:
    for _ in range(200):
        home.submit()
    home.close()
    path = home.home / "store.db"
    data = bytearray(path.read_bytes())
    data[8 * 4096 : 12 * 4096] = os.urandom(4 * 4096)
    path.write_bytes(data)

    said = ask("store", "check")

    assert said.code == 3
    assert "integrity: " in said.out
    assert path.read_bytes() == bytes(data)
    assert {"store.damaged", "store.corrupt"} & set(found())


def test_backup_is_whole_private_and_never_written_over(home: CommandHome, ask: Any) -> None:
    home.ended(home.staff())
    target = home.folder / "copy.db"

    said = ask("store", "backup", str(target))

    assert said == Said(0, f"{target}  {target.stat().st_size} bytes, checked\n", "")
    assert target.stat().st_mode & 0o777 == 0o600
    before = target.read_bytes()
    again = ask("store", "backup", str(target))
    assert (again.code, again.out) == (1, "")
    assert "exists already" in again.err
    assert target.read_bytes() == before


def test_backup_without_a_name_is_dated(home: CommandHome, ask: Any) -> None:
    paths = [Path(ask("store", "backup", "--json").json["path"]) for _ in range(2)]

    assert len(set(paths)) == 2
    assert all(path.parent == home.home / "backups" and path.is_file() for path in paths)
