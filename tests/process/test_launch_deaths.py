"""Launches among deaths: of the worker, the zygote, the shim; refusals; a full disk."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared import boundary
from shared.boundary import Boundary, Side
from shared.model.evidence import LockState
from shared.process import launcher, shim
from shared.process.filelock import probe_open
from shared.process.identity import is_alive
from shared.process.launcher import HeldLaunch, LaunchError, ZygoteLauncher
from tests.process.launch_host import Host
from tests.support.processes import Reaper
from tests.support.waiting import wait_until


class TestShutGate:
    """A gate that is shut before GO means that nothing ran and nothing will."""

    def test_closing_the_gate_ends_the_shim_with_nothing_run(self, host: Host, tmp_path: Path) -> None:
        held = host.hold(host.spec(["touch", str(tmp_path / "ran")]))

        held.close()

        wait_until(lambda: host.evidence(held.pin).lock is LockState.FREE, "the shim is gone")
        evidence = host.evidence(held.pin)
        assert (evidence.child, evidence.exit, evidence.unreadable) == (None, None, ())
        assert not (tmp_path / "ran").exists()

    def test_go_after_the_shims_death_says_that_nothing_ran(self, host: Host, tmp_path: Path) -> None:
        held = host.hold(host.spec(["touch", str(tmp_path / "ran")]))
        os.kill(held.pin.shim.pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(held.pin.shim), "the shim is dead")

        with pytest.raises(LaunchError) as caught:
            held.go()

        assert (caught.value.stage, caught.value.nothing_ran) == ("ready", True)
        assert host.evidence(held.pin).child is None
        assert not (tmp_path / "ran").exists()

    def test_a_silent_gate_ends_the_shim(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shim, "GATE_TIMEOUT_S", 0.01)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            assert shim._is_released(theirs.fileno()) is False

    def test_a_request_to_stop_that_came_before_go_ends_the_shim(self, host: Host, tmp_path: Path) -> None:
        host.arm("ready_send:after:STOP")
        held = host.hold(host.spec(["touch", str(tmp_path / "ran")]))
        wait_until(lambda: _state(held.pin.shim.pid) == "T", "the shim is stopped at its gate")
        os.kill(held.pin.shim.pid, signal.SIGTERM)
        held.go()
        os.kill(held.pin.shim.pid, signal.SIGCONT)

        wait_until(lambda: host.evidence(held.pin).lock is LockState.FREE, "the shim is gone")
        assert host.evidence(held.pin).child is None
        assert not (tmp_path / "ran").exists()


class TestRefused:
    """A launch that cannot be made says at which stage, and that nothing ran."""

    def test_a_directory_that_exists_is_reported_as_such(self, host: Host) -> None:
        spec = host.spec(["true"], attempt_id="w9.1", epoch=2)
        host.hold(spec).close()

        with pytest.raises(LaunchError) as caught:
            host.launcher.launch(spec)

        assert (caught.value.stage, caught.value.exists, caught.value.nothing_ran) == ("directory", True, False)

    def test_another_epoch_of_the_same_attempt_is_no_conflict(self, host: Host) -> None:
        host.hold(host.spec(["true"], attempt_id="w9.1", epoch=2)).close()

        host.hold(host.spec(["true"], attempt_id="w9.1", epoch=3)).close()

    def test_a_home_that_was_removed(self, host: Host) -> None:
        shutil.rmtree(host.attempts)

        with pytest.raises(LaunchError, match="ENOENT") as caught:
            host.launcher.launch(host.spec(["true"]))

        assert (caught.value.stage, caught.value.exists, caught.value.nothing_ran) == ("directory", False, True)

    def test_a_nul_byte_makes_no_directory(self, host: Host) -> None:
        with pytest.raises(LaunchError, match="NUL") as caught:
            host.launcher.launch(host.spec(["printf", "a\0b"]))

        assert (caught.value.stage, caught.value.nothing_ran) == ("spawn", True)
        assert list(host.attempts.iterdir()) == []


class TestZygote:
    """A zygote's death hurts no shim and no later launch."""

    def test_jobs_outlive_the_zygote_and_the_next_launch_is_served(self, host: Host) -> None:
        pin = host.start(["sh", "-c", "read line; echo $line"], stdin=b"")
        sleeper = host.start(["sleep", "60"])
        first = host.kill_zygote()

        by_exec = host.run(["echo", "by exec"])
        by_zygote = host.run(["echo", "by zygote"])

        assert host.out(by_exec) == "by exec\n"
        assert host.out(by_zygote) == "by zygote\n"
        assert host.launcher.zygote_pid not in (None, first)
        assert is_alive(sleeper.shim)
        assert host.evidence(sleeper).lock is LockState.HELD
        assert host.await_end(pin).status == 0

    def test_a_zygote_that_never_served_is_not_tried_again(self, host: Host) -> None:
        host.kill_zygote()

        assert [host.out(host.run(["echo", word])) for word in ("one", "two")] == ["one\n", "two\n"]
        assert host.launcher.zygote_pid is None

    def test_a_request_that_was_sent_is_never_repeated(self, host: Host, tmp_path: Path) -> None:
        host.run(["true"])
        zygote = host.launcher.zygote_pid
        assert zygote is not None
        os.kill(zygote, signal.SIGSTOP)

        def kill_zygote(at: Boundary, side: Side) -> None:
            if (at, side) == (Boundary.SHIM_SPAWN, Side.AFTER):
                os.kill(zygote, signal.SIGKILL)

        boundary.install(kill_zygote)
        with pytest.raises(LaunchError) as caught:
            host.launcher.launch(host.spec(["touch", str(tmp_path / "ran")]))

        assert (caught.value.stage, caught.value.nothing_ran) == ("ready", True)
        assert not (tmp_path / "ran").exists()

    def test_a_zygote_that_hangs_is_replaced(self, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        host.run(["true"])
        monkeypatch.setattr(launcher, "READY_TIMEOUT_S", 0.2)
        monkeypatch.setattr(launcher, "CLOSE_TIMEOUT_S", 0.1)
        hung = host.launcher.zygote_pid
        assert hung is not None
        os.kill(hung, signal.SIGSTOP)

        with pytest.raises(LaunchError, match="no answer") as caught:
            host.launcher.launch(host.spec(["touch", str(tmp_path / "ran")]))

        monkeypatch.undo()
        assert (caught.value.stage, caught.value.nothing_ran) == ("ready", True)
        assert host.await_end(host.run(["true"])).status == 0
        assert host.launcher.zygote_pid not in (None, hung)
        assert not (tmp_path / "ran").exists()

    def test_launches_from_many_threads_all_run_once(self, host: Host, tmp_path: Path) -> None:
        witness = tmp_path / "witness"
        specs = [host.spec(["sh", "-c", f"echo {number} >> {witness}"]) for number in range(24)]
        held: list[HeldLaunch] = []

        def launch(mine: list[int]) -> None:
            for index in mine:
                launched = host.hold(specs[index])
                launched.go()
                held.append(launched)

        threads = [threading.Thread(target=launch, args=([*range(start, 24, 6)],)) for start in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

        assert [host.await_end(launched.pin).status for launched in held] == [0] * 24
        assert sorted(map(int, witness.read_text().split())) == list(range(24))


@pytest.mark.req("R05")
def test_jobs_outlive_the_worker_and_its_zygote_follows_it(host: Host, reaper: Reaper) -> None:
    """A worker killed with a held and a released launch: the held one never runs, the other lives on."""
    read, write = os.pipe()
    worker = os.fork()
    if worker == 0:
        try:
            worker_launcher = ZygoteLauncher(host.attempts, host.home)
            released = worker_launcher.launch(host.spec(["sh", "-c", "sleep 0.3; exit 7"], attempt_id="w1.1"))
            held = worker_launcher.launch(host.spec(["true"], attempt_id="w2.1"))
            released.go()
            os.write(write, f"{worker_launcher.zygote_pid} {released.pin.shim.pid} {held.pin.shim.pid}".encode())
            signal.pause()
        finally:
            os._exit(1)
    zygote, released_shim, held_shim = map(int, os.read(read, 100).split())
    os.close(read)
    os.close(write)
    for pid in (zygote, released_shim, held_shim):
        reaper.tell(pid)

    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)

    wait_until(lambda: _is_gone(zygote), "the zygote has ended with its worker")
    ended, never_ran = host.attempts / "w1.1.1", host.attempts / "w2.1.1"
    wait_until((ended / "exit.json").exists, "the job has ended and its end is recorded")
    assert '"status": 7' in (ended / "exit.json").read_text()
    wait_until(lambda: _is_gone(held_shim), "the held shim has seen its gate shut")
    assert not (never_ran / "child.json").exists()


def test_an_exec_that_fails_below_a_dead_shim_is_still_recorded(host: Host) -> None:
    host.arm("child_fork:after:KILL")

    held = host.hold(host.spec(["no-such-command"]))
    held.go()

    record = host.await_end(held.pin)
    assert (record.status, record.ran) == (None, False)
    assert record.error is not None
    assert record.error.startswith("exec: ENOENT:")


def test_a_prober_in_the_way_does_not_break_a_launch(host: Host) -> None:
    host.arm("shim_lock:before:STOP")
    held: list[HeldLaunch] = []
    thread = threading.Thread(target=lambda: held.append(host.hold(host.spec(["true"], attempt_id="w3.1"))))
    thread.start()
    lock = host.attempts / "w3.1.1" / "lock"
    wait_until(lock.exists, "the shim stands before its lock")
    log = host.home / "drill.log"
    noted = wait_until(lambda: log.exists() and log.read_text(), "the shim is named")
    shim_pid = int(str(noted).split()[1])
    wait_until(lambda: _state(shim_pid) == "T", "the shim is stopped")

    fd = os.open(lock, os.O_RDONLY)
    assert probe_open(fd) is LockState.FREE  # and now held, shared
    os.kill(shim_pid, signal.SIGCONT)
    wait_until(lambda: _state(shim_pid) == "S", "the shim waits for its lock")
    os.close(fd)

    thread.join(20)
    held[0].go()
    assert host.await_end(held[0].pin).status == 0


@pytest.mark.req("M05")
class TestFullDisk:
    """A full disk fails a launch before its gate, and loses no end of a job that got past it."""

    @pytest.fixture
    def small(self, tmp_path: Path, reaper: Reaper) -> Iterator[Host]:
        home = tmp_path / "small"
        home.mkdir()
        if os.geteuid() != 0:
            pytest.skip("mounting a small disk needs root")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", home], check=False)
        if mounted.returncode != 0:
            pytest.skip("a small disk cannot be mounted here")
        host = Host(home, reaper)
        try:
            yield host
        finally:
            host.close()
            subprocess.run(["umount", "--lazy", home], check=True)

    def test_a_launch_on_a_full_disk_is_refused_before_its_gate(self, small: Host) -> None:
        _fill(small.home / "fill")

        with pytest.raises(LaunchError, match="ENOSPC") as caught:
            small.launcher.launch(small.spec(["true"]))

        assert caught.value.nothing_ran
        (small.home / "fill").unlink()
        assert small.await_end(small.run(["true"])).status == 0

    def test_the_end_of_a_job_that_filled_the_disk_is_recorded(self, small: Host) -> None:
        pin = small.run(["sh", "-c", f"cat /dev/zero > {small.home}/fill; echo more >> {small.home}/fill || exit 5"])

        assert small.await_end(pin).status == 5

    def test_a_record_without_room_is_tried_again_under_the_lock(self, small: Host) -> None:
        """The job throws away the space that was kept for it."""
        script = f"rm {small.attempts}/*/exit.json.tmp; cat /dev/zero > {small.home}/fill; exit 5"
        pin = small.start(["sh", "-c", script])
        wait_until(lambda: small.evidence(pin).child_alive is False, "the job has ended")

        evidence = small.evidence(pin)
        assert (evidence.lock, evidence.exit) == (LockState.HELD, None)
        (small.home / "fill").unlink()
        assert small.await_end(pin).status == 5


def test_a_shim_whose_directory_was_removed_does_not_linger(host: Host, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "valve")
    pin = host.start(["sh", "-c", f"read line < {tmp_path}/valve"])
    shutil.rmtree(host.folder(pin))

    (tmp_path / "valve").write_text("go\n")

    wait_until(lambda: not is_alive(pin.shim), "the shim is gone")


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            pass


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def _is_gone(pid: int) -> bool:
    try:
        return _state(pid) == "Z"
    except FileNotFoundError:
        return True
