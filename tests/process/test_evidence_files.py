"""Evidence is read from the pinned directory only, the lock first, and what cannot be read is never taken for absent."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.ids import AttemptId
from shared.model.evidence import Evidence, ExitRecord, Leaf, LockState, Pin, ProcessIdentity
from shared.process.evidence import any_child_record, read_evidence
from shared.process.identity import identify

END = {"status": 0, "ran": True, "error": None, "stop": None, "tree_empty": True}
NOT_RAN = {"status": None, "ran": False, "error": "register: ENOSPC: x", "stop": None, "tree_empty": True}


class Folder:
    """A pinned attempt directory without any process."""

    def __init__(self, attempts: Path) -> None:
        self.attempts = attempts
        self.path = attempts / "w4.1.2"
        self.path.mkdir(parents=True)
        self.lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        self.pin = Pin(
            epoch=2,
            directory="w4.1.2",
            shim=identify(os.getpid()),
            directory_ino=self.path.stat().st_ino,
            lock_ino=os.fstat(self.lock).st_ino,
        )

    def write(self, name: str, record: object) -> None:
        (self.path / name).write_text(json.dumps(record).ljust(4096))

    def read(self, **changes: Any) -> Evidence:
        return read_evidence(self.attempts, dataclasses.replace(self.pin, **changes))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    yield made
    os.close(made.lock)


def me() -> dict[str, Any]:
    return dataclasses.asdict(identify(os.getpid()))


def test_an_empty_pinned_directory(folder: Folder) -> None:
    assert folder.read() == Evidence(
        same_boot=True,
        same_pid_ns=True,
        directory_proven=True,
        lock=LockState.FREE,
        exit=None,
        child=None,
        unreadable=(),
        child_alive=None,
    )


def test_a_held_lock_is_seen_and_left_alone(folder: Folder) -> None:
    fcntl.flock(folder.lock, fcntl.LOCK_EX)

    assert folder.read().lock is LockState.HELD
    assert folder.read().lock is LockState.HELD


def test_records_are_read_whole(folder: Folder) -> None:
    folder.write("exit.json", END)
    folder.write("child.json", {"child": me()})

    evidence = folder.read()

    assert evidence.exit == ExitRecord(status=0, ran=True, error=None, stop=None, tree_empty=True)
    assert evidence.child == identify(os.getpid())
    assert evidence.child_alive is True


@pytest.mark.parametrize("name", ["exit.json", "child.json"])
@pytest.mark.parametrize("content", [b"", b" " * 4096, b'{"status": 0, "ra', b"[]", b"{}", b"\0" * 4096, b"\xff"])
def test_an_empty_or_torn_record_is_unreadable_not_absent(folder: Folder, name: str, content: bytes) -> None:
    (folder.path / name).write_bytes(content)

    evidence = folder.read()

    assert evidence.unreadable == (name,)
    assert (evidence.exit, evidence.child) == (None, None)


@pytest.mark.parametrize(
    "change",
    [{"status": None}, {"ran": False}, {"ran": 1}, {"tree_empty": None}, {"status": "0"}, {"status": True}],
)
def test_an_exit_record_that_contradicts_itself_is_unreadable(folder: Folder, change: dict[str, object]) -> None:
    folder.write("exit.json", {**END, **change})

    assert folder.read().unreadable == ("exit.json",)


def test_another_directory_at_the_path_proves_nothing(folder: Folder) -> None:
    folder.write("exit.json", END)

    evidence = folder.read(directory_ino=folder.pin.directory_ino + 1)

    assert evidence.directory_proven is False
    assert (evidence.lock, evidence.exit) == (LockState.UNPROVEN, None)


def test_a_missing_directory_proves_nothing(folder: Folder) -> None:
    assert folder.read(directory="w4.1.9").directory_proven is False


def test_another_lock_file_proves_nothing(folder: Folder) -> None:
    evidence = folder.read(lock_ino=folder.pin.lock_ino + 1)

    assert (evidence.directory_proven, evidence.lock) == (True, LockState.UNPROVEN)


def test_a_missing_lock_file_proves_nothing(folder: Folder) -> None:
    (folder.path / "lock").unlink()

    assert folder.read().lock is LockState.UNPROVEN


def test_every_process_of_another_boot_is_dead(folder: Folder) -> None:
    folder.write("child.json", {"child": {**me(), "boot_id": "another"}})

    evidence = folder.read(shim=dataclasses.replace(folder.pin.shim, boot_id="another"))

    assert (evidence.same_boot, evidence.child_alive) == (False, False)


def test_a_process_of_another_pid_namespace_cannot_be_told(folder: Folder) -> None:
    folder.write("child.json", {"child": {**me(), "pid_ns": 1}})

    evidence = folder.read(shim=dataclasses.replace(folder.pin.shim, pid_ns=1))

    assert (evidence.same_pid_ns, evidence.child_alive, evidence.child_status) == (False, None, None)


def test_a_dead_childs_status_is_read_while_nobody_has_reaped_it(folder: Folder) -> None:
    child = os.fork()
    if child == 0:
        os._exit(9)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    folder.write("child.json", {"child": dataclasses.asdict(identify(child))})

    before = folder.read()
    os.waitpid(child, 0)
    after = folder.read()

    assert (before.child_alive, before.child_status) == (False, 9)
    assert (after.child_alive, after.child_status) == (False, None)


class TestAnyChildRecord:
    """The belt: whether any launch of the attempt, of whatever epoch, may have exec'ed something."""

    ATTEMPT = AttemptId("w4.1")

    def test_none_without_any(self, folder: Folder) -> None:
        assert any_child_record(folder.attempts, self.ATTEMPT) is False

    def test_one_of_another_epoch_counts(self, folder: Folder) -> None:
        other = folder.attempts / "w4.1.7"
        other.mkdir()
        (other / "child.json").write_text("")

        assert any_child_record(folder.attempts, self.ATTEMPT) is True

    def test_one_of_another_attempt_does_not(self, folder: Folder) -> None:
        for name in ("w4.11.1", "w4.2.1", "w44.1.1"):
            (folder.attempts / name).mkdir()
            (folder.attempts / name / "child.json").write_text("")

        assert any_child_record(folder.attempts, self.ATTEMPT) is False

    @pytest.mark.parametrize(("record", "expected"), [(END, True), (NOT_RAN, False)])
    def test_beside_an_exit_record_what_that_says_counts(
        self, folder: Folder, record: dict[str, object], expected: bool
    ) -> None:
        folder.write("child.json", {"child": me()})
        folder.write("exit.json", record)

        assert any_child_record(folder.attempts, self.ATTEMPT) is expected

    def test_beside_a_torn_exit_record_it_cannot_be_told(self, folder: Folder) -> None:
        folder.write("child.json", {"child": me()})
        (folder.path / "exit.json").write_text("{")

        assert any_child_record(folder.attempts, self.ATTEMPT) is None

    def test_without_the_folder_it_cannot_be_told(self, folder: Folder) -> None:
        assert any_child_record(folder.attempts / "gone", self.ATTEMPT) is None


def test_an_identity_that_lacks_a_field_is_unreadable(folder: Folder) -> None:
    for missing in ("pid", "start_ticks", "boot_id", "pid_ns"):
        record = {key: value for key, value in me().items() if key != missing}
        folder.write("child.json", {"child": record})
        assert folder.read().unreadable == ("child.json",), missing

    folder.write("child.json", {"child": {key: value for key, value in me().items() if key != "pidfs_ino"}})
    expected: ProcessIdentity = dataclasses.replace(identify(os.getpid()), pidfs_ino=None)
    assert folder.read().child == expected


def test_what_a_child_left_for_the_proof_of_its_stop_is_read(folder: Folder) -> None:
    folder.write("child.json", {"child": me(), "cgroup": {"path": "/sys/x", "inode": 9}, "reapers": [[40, 7], [20, 3]]})
    assert (folder.read().leaf, folder.read().reapers) == (Leaf("/sys/x", 9), ((40, 7), (20, 3)))

    folder.write("child.json", {"child": me(), "cgroup": None, "reapers": None})
    assert (folder.read().leaf, folder.read().reapers) == (None, None), "unknown is not: nobody"


@pytest.mark.parametrize(
    "change",
    [
        {"reapers": [40]},
        {"reapers": "x"},
        {"reapers": [["x", 1]]},
        {"cgroup": {"path": "/sys/x"}},
        {"shim": {"pid": 1}},
    ],
    ids=str,
)
def test_a_child_record_that_makes_no_sense_is_unreadable(folder: Folder, change: dict[str, object]) -> None:
    folder.write("child.json", {"child": me(), **change})

    assert folder.read().unreadable == ("child.json",)


def test_an_exit_record_says_what_was_lost_to_want_of_memory_or_to_the_file_system(folder: Folder) -> None:
    folder.write("exit.json", {**END, "oom": True, "output": "uncapped"})

    record = folder.read().exit

    assert record is not None
    assert (record.oom, record.output) == (True, "uncapped")
