"""Who a process is, whether it lives, whether a lock is held, and being told of an end."""

from __future__ import annotations

import dataclasses
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Hashable, Iterator
from pathlib import Path

import pytest

from shared.errors import RefusedError
from shared.model.evidence import LockState, ProcessIdentity
from shared.process import filelock
from shared.process.filelock import IncarnationLock, holders, probe
from shared.process.identity import identify, is_alive, machine_id, time_namespace, zombie_status
from shared.process.output import Piece, read_from
from shared.process.watcher import Watcher
from tests.support.processes import Reaper
from tests.support.waiting import wait_until

RENAMED = "import ctypes, sys; ctypes.CDLL(None).prctl(15, sys.argv[1].encode()); print(flush=True); sys.stdin.read()"
LEADER_GONE = """
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
print(flush=True)
ctypes.CDLL(None).syscall(60, 0)  # exit of this thread alone
"""


class TestIdentity:
    @pytest.mark.parametrize("name", ["plain", ") S 1 (", "a b) R 7", "))))", "new\nline"])
    def test_any_process_name_is_read_past(self, reaper: Reaper, name: str) -> None:
        process = reaper.start([sys.executable, "-c", RENAMED, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()

        identity = identify(process.pid)

        assert Path(f"/proc/{process.pid}/comm").read_text() == f"{name}\n"
        assert is_alive(identity) is True
        ticks = os.sysconf("SC_CLK_TCK")
        assert identity.start_ticks == pytest.approx(identify(os.getpid()).start_ticks, abs=3600 * ticks)

    def test_no_process_has_no_identity(self) -> None:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

        with pytest.raises(ProcessLookupError):
            identify(child)

    def test_each_part_of_an_identity_counts(self) -> None:
        mine = identify(os.getpid())

        assert is_alive(mine) is True
        assert is_alive(dataclasses.replace(mine, start_ticks=mine.start_ticks + 1)) is False
        assert is_alive(dataclasses.replace(mine, boot_id="another")) is False
        assert is_alive(dataclasses.replace(mine, pid_ns=mine.pid_ns + 1)) is None
        if mine.pidfs_ino is not None:
            assert is_alive(dataclasses.replace(mine, pidfs_ino=mine.pidfs_ino + 1)) is False
        assert is_alive(dataclasses.replace(mine, pidfs_ino=None)) is True

    def test_a_zombie_is_dead_and_its_status_readable(self) -> None:
        child = os.fork()
        if child == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        identity = identify(child)

        assert is_alive(identity) is False
        assert zombie_status(identity) == -9
        assert zombie_status(dataclasses.replace(identity, start_ticks=1)) is None
        os.waitpid(child, 0)
        assert zombie_status(identity) is None

    def test_a_zombie_leader_with_a_live_thread_is_alive(self, reaper: Reaper) -> None:
        process = reaper.start([sys.executable, "-c", LEADER_GONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        identity = identify(process.pid)
        wait_until(lambda: _state(process.pid) == b"Z", "the leader is a zombie")

        assert is_alive(identity) is True
        assert zombie_status(identity) is None

    def test_the_hosts_marks_are_readable(self) -> None:
        assert time_namespace() >= 0
        assert machine_id() is None or machine_id()


class TestLocks:
    def test_a_lock_proves_life_until_it_is_released(self, tmp_path: Path) -> None:
        lock = IncarnationLock.take(tmp_path / "a.lock")

        assert probe(tmp_path / "a.lock", lock.device, lock.inode) is LockState.HELD
        lock.release()
        assert probe(tmp_path / "a.lock", lock.device, lock.inode) is LockState.FREE
        lock.release()

    def test_a_lock_is_free_at_once_when_its_holder_is_killed(self, tmp_path: Path) -> None:
        holder = os.fork()
        if holder == 0:
            IncarnationLock.take(tmp_path / "a.lock")
            signal.pause()
        path = tmp_path / "a.lock"
        wait_until(path.exists, "the file is there")
        found = path.stat()
        wait_until(lambda: probe(path, found.st_dev, found.st_ino) is LockState.HELD, "the lock is held")

        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)

        assert probe(path, found.st_dev, found.st_ino) is LockState.FREE

    def test_a_held_lock_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(filelock, "TAKE_BOUND_S", 0.02)
        with IncarnationLock.take(tmp_path / "a.lock"), pytest.raises(RefusedError) as caught:
            IncarnationLock.take(tmp_path / "a.lock")

        assert caught.value.code == "lock_held"
        IncarnationLock.take(tmp_path / "a.lock").release()

    def test_whoever_holds_a_lock_of_a_name_is_found_and_nobody_else(self, tmp_path: Path) -> None:
        left = IncarnationLock.take(tmp_path / "coordinator.1.lock")
        left.release()
        (tmp_path / "coordinator.2.lock").touch()  # taken by whoever could not write its pid: nothing is said of it

        with IncarnationLock.take(tmp_path / "coordinator.3.lock"), IncarnationLock.take(tmp_path / "worker-1.1.lock"):
            assert holders(tmp_path, "coordinator") == [os.getpid()]
        assert holders(tmp_path, "coordinator") == []

    def test_another_file_or_none_proves_nothing(self, tmp_path: Path) -> None:
        with IncarnationLock.take(tmp_path / "a.lock") as lock:
            assert probe(tmp_path / "a.lock", lock.device, lock.inode + 1) is LockState.UNPROVEN
            assert probe(tmp_path / "a.lock", lock.device + 1, lock.inode) is LockState.UNPROVEN
            assert probe(tmp_path / "gone", lock.device, lock.inode) is LockState.UNPROVEN


class TestWatcher:
    @pytest.fixture
    def ends(self) -> queue.Queue[Hashable]:
        return queue.Queue()

    @pytest.fixture
    def watcher(self, ends: queue.Queue[Hashable]) -> Iterator[Watcher]:
        watcher = Watcher(ends.put)
        yield watcher
        watcher.close()

    def test_an_end_is_told_once_with_its_status(self, watcher: Watcher, ends: queue.Queue[Hashable]) -> None:
        pid, release = _waiting_child(7)
        assert watcher.watch("a", identify(pid))
        assert watcher.exit_status("a") is None

        os.close(release)

        assert ends.get(timeout=20) == "a"
        assert watcher.exit_status("a") == 7  # by its zombie
        os.waitpid(pid, 0)
        assert watcher.exit_status("a") in (7, None)  # by the pidfd, where the kernel keeps it (6.15)
        assert ends.empty()
        watcher.unwatch("a")
        assert watcher.exit_status("a") is None

    def test_one_that_is_gone_or_another_is_not_watched(self, watcher: Watcher, ends: queue.Queue[Hashable]) -> None:
        pid, release = _waiting_child(0)
        identity = identify(pid)
        assert not watcher.watch("another", dataclasses.replace(identity, start_ticks=1))
        assert watcher.watch("same", identity)
        os.close(release)
        assert ends.get(timeout=20) == "same"
        os.waitpid(pid, 0)

        assert not watcher.watch("late", identity)
        assert ends.empty()

    def test_an_unwatched_process_is_not_told(self, watcher: Watcher, ends: queue.Queue[Hashable]) -> None:
        first, release_first = _waiting_child(0)
        second, release_second = _waiting_child(0)
        watcher.watch("first", identify(first))
        watcher.watch("second", identify(second))

        watcher.unwatch("first")
        watcher.unwatch("never watched")
        os.close(release_first)
        os.waitpid(first, 0)
        os.close(release_second)

        assert ends.get(timeout=20) == "second"
        os.waitpid(second, 0)
        assert ends.empty()

    def test_a_key_watches_the_last_process_it_was_given(self, watcher: Watcher, ends: queue.Queue[Hashable]) -> None:
        first, release_first = _waiting_child(1)
        second, release_second = _waiting_child(2)
        watcher.watch("key", identify(first))
        watcher.watch("key", identify(second))
        os.close(release_first)
        os.waitpid(first, 0)
        os.close(release_second)

        assert ends.get(timeout=20) == "key"
        assert watcher.exit_status("key") == 2
        os.waitpid(second, 0)

    def test_a_process_that_is_not_our_child_is_told_too(
        self, watcher: Watcher, ends: queue.Queue[Hashable], reaper: Reaper
    ) -> None:
        process = reaper.start(["sh", "-c", "sleep 60 & echo $!; wait $!; echo $?"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        grandchild: ProcessIdentity = identify(int(process.stdout.readline()))
        assert watcher.watch("grandchild", grandchild)

        os.kill(grandchild.pid, signal.SIGTERM)

        assert ends.get(timeout=20) == "grandchild"
        assert process.stdout.readline() == b"143\n"
        assert watcher.exit_status("grandchild") in (-15, None)


def test_output_is_read_on_by_offset(tmp_path: Path) -> None:
    path = tmp_path / "out"
    assert read_from(path, 0, 10) == Piece(0, b"")
    path.write_bytes(b"0123456789")

    assert read_from(path, 0, 4) == Piece(0, b"0123")
    assert read_from(path, 4, 100) == Piece(4, b"456789")
    assert read_from(path, 10, 4) == Piece(10, b"")


def _waiting_child(code: int) -> tuple[int, int]:
    """A child that exits with `code` once the returned descriptor is closed."""
    read, write = os.pipe()
    pid = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", f"read line; exit {code}"],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, read, 0)],  # and no other: the writing ends are close-on-exec
    )
    os.close(read)
    return pid, write


def _state(pid: int) -> bytes:
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1]
