"""Scenes of odd states: sources of the scan taken away, bombs, zombies, stuck processes, hidden ones, reused pids, moved clocks."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import psutil

from shared.process import marks, orphans, procfs
from shared.process.identity import identify, is_alive
from shared.process.snapshot import Process, Snapshot
from tests.process.scenes import Facts, Stage, kill_shim, let_escape, told
from tests.support.processes import become_subreaper
from tests.support.waiting import wait_until

BOMB = """
import os, resource, signal, sys, time
resource.setrlimit(resource.RLIMIT_NPROC, (int(sys.argv[3]), int(sys.argv[3])))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def roll():
    while True:
        try:
            if os.fork(): os._exit(0)
        except OSError:
            time.sleep(.001)
            continue
        os.setsid()
def burst():
    while True:
        try:
            if os.fork() == 0: os.setsid()
        except OSError:
            time.sleep(.001)
for _ in range(int(sys.argv[2])):
    if os.fork() == 0: (roll if sys.argv[1] == "roll" else burst)()
print("lit", flush=True)
time.sleep(60)
"""
PROCESSES_MAX = 100


def without_source(stage: Stage, removed: str, kind: str) -> Iterator[Facts]:
    """An escape with the whole scan, then with a source of it taken away."""
    if removed == "reapers":
        become_subreaper()  # so that orphans go to this process instead of pid 1
        stage.host.launcher._replace_zygote(stage.host.launcher._zygote)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for lacks in ("", removed):
        pin, escapee = let_escape(stage, kind)
        kill_shim(pin)
        wait_until(functools.partial(_is_orphan, escapee.pid), "it is an orphan")
        with _lacking(lacks):
            result = stage.stop(pin, until_proven=lacks in {"pid_1", "reapers"})
        is_seen = is_alive(escapee) is False or escapee.pid in {each.pid for each in result.suspects}
        yield {**told(result), "alive": is_alive(escapee), "seen": is_seen}
        stage.kill(escapee.pid)


@contextlib.contextmanager
def _lacking(source: str) -> Iterator[None]:
    whole = orphans.find_orphans

    def but_of_pid_1(table: Snapshot, sources: orphans.Sources) -> list[Process]:
        return [each for each in whole(table, sources) if each.ppid != 1]

    patches: dict[str, contextlib.AbstractContextManager[object]] = {
        "": contextlib.nullcontext(),
        "pid_1": mock.patch.object(orphans, "find_orphans", but_of_pid_1),
        "reapers": mock.patch.object(orphans, "_starts", return_value=None),
        "environment": mock.patch.object(marks.Marks, "_by_environment", return_value=None),
        "tree_lock": mock.patch.object(marks.Marks, "_holds_tree_lock", return_value=False),
    }
    with patches[source]:
        yield


def _is_orphan(pid: int) -> bool:
    return int(procfs.stat_fields(pid)[procfs.PPID]) in {1, os.getpid()}


def bomb(stage: Stage, kind: str, lanes: str, shim: str) -> Iterator[Facts]:
    """A program that forks faster than it is killed, up to a limit."""
    words = [sys.executable, "-I", "-S", "-c", BOMB, kind, lanes, str(PROCESSES_MAX)]
    pin = stage.host.start(words, grace_s=0.05)
    wait_until(lambda: stage.host.out(pin) == "lit\n", "it is lit")
    if kind == "burst":
        wait_until(lambda: len(psutil.pids()) > PROCESSES_MAX // 2, "it has grown")
    if shim == "killed":
        kill_shim(pin)
    began = time.monotonic()
    result = stage.stop(pin, grace_s=0.05)
    took_s = time.monotonic() - began
    if result.proof is None:
        result = stage.stop(pin, grace_s=0.05, until_proven=True)
    left = [pid for pid in psutil.pids() if _is_bomb(pid)]
    yield {**told(result), "took_s": round(took_s, 2), "left": left}


def _is_bomb(pid: int) -> bool:
    try:
        return b"setrlimit" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


LONGER_THAN_ANY_SCENE_S = 600.0
"""Whoever waits for this has failed: the scene is given up before."""


def zombie_child(stage: Stage) -> Iterator[Facts]:
    """The main process has ended, and the process it was left to never asks for its status."""
    become_subreaper()
    stage.host.launcher._replace_zygote(stage.host.launcher._zygote)
    pin = stage.host.start(["sleep", "60"])
    child = stage.host.evidence(pin).child
    assert child is not None
    kill_shim(pin)
    os.kill(child.pid, signal.SIGKILL)
    wait_until(lambda: procfs.stat_fields(child.pid)[procfs.STATE] == b"Z", "it is a zombie")
    result = stage.stop(pin, grace_s=LONGER_THAN_ANY_SCENE_S)
    is_there = psutil.pid_exists(child.pid)
    result = stage.stop(pin, until_proven=True) if result.proof is None else result
    yield {**told(result), "is_there": is_there}


THREADED = """
import _thread, ctypes, time
def live():
    while True: time.sleep(1)
_thread.start_new_thread(live, ())
print("two", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def zombie_leader(stage: Stage) -> Iterator[Facts]:
    """The first thread has ended, another lives: what looks like a zombie is a living process."""
    pin = stage.host.start([sys.executable, "-I", "-S", "-c", THREADED], grace_s=0.2)
    child = stage.host.evidence(pin).child
    assert child is not None
    wait_until(lambda: procfs.stat_fields(child.pid)[procfs.STATE] == b"Z", "its leader is a zombie")
    is_alive_before = is_alive(child)
    kill_shim(pin)
    result = stage.stop(pin, grace_s=0.2)
    result = stage.stop(pin, until_proven=True) if result.proof is None else result
    yield {**told(result), "alive_before": is_alive_before, "alive_after": is_alive(child)}


def stuck(stage: Stage) -> Iterator[Facts]:
    """A write to a frozen file system waits in the kernel and hears no signal."""
    image, mount = stage.folder / "image", stage.folder / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    for command in (["mkfs.ext4", "-q", str(image)], ["mount", "-o", "loop", str(image), str(mount)]):
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            yield {"skipped": f"{command[0]} does not work here"}
            return
    subprocess.run(["fsfreeze", "--freeze", str(mount)], check=True)
    try:
        pin = stage.host.start(["sh", "-c", f"echo x > {mount}/file"], grace_s=0.2)
        child = stage.host.evidence(pin).child
        assert child is not None
        wait_until(lambda: _is_stuck(child.pid), "it is stuck")
        result = stage.stop(pin, grace_s=0.2)
        suspect = next((each for each in result.suspects if each.pid == child.pid), None)
        yield {
            **told(result),
            "child": child.pid,
            "state": suspect and suspect.state,
            "in": suspect and suspect.waits_in,
        }
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", str(mount)], check=True)
    yield told(stage.stop(pin, until_proven=True))
    subprocess.run(["umount", str(mount)], check=True)


def _is_stuck(pid: int) -> bool:
    """The job itself, not yet the shim's child that writes its record."""
    has_become_job = Path(f"/proc/{pid}/comm").read_text(encoding="ascii") == "sh\n"
    return has_become_job and procfs.stat_fields(pid)[procfs.STATE] == b"D"


def hidden(stage: Stage) -> Iterator[Facts]:
    """`/proc` shows each user only its own processes."""
    pin = stage.host.start(["sleep", "60"])
    kill_shim(pin)
    yield told(stage.stop(pin))


def reused(stage: Stage) -> Iterator[Facts]:
    """The shim and the child are gone, and their numbers belong to others now."""
    pin = stage.host.start(["sleep", "60"])
    child = stage.host.evidence(pin).child
    assert child is not None
    kill_shim(pin)
    os.kill(child.pid, signal.SIGKILL)
    bystanders = []
    for pid in sorted([pin.shim.pid, child.pid]):
        wait_until(functools.partial(_is_free, pid), "the number is free")
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1), encoding="ascii")
        bystanders.append(subprocess.Popen(["sleep", "60"], start_new_session=True))
    result = stage.stop(pin, until_proven=True)
    yield {
        **told(result),
        "numbers": [each.pid for each in bystanders] == sorted([pin.shim.pid, child.pid]),
        "living": [each.poll() is None for each in bystanders],
    }
    for each in bystanders:
        each.kill()
        each.wait()


def _is_free(pid: int) -> bool:
    return not os.path.exists(f"/proc/{pid}")


def moved_clock(stage: Stage, seconds: str) -> Iterator[Facts]:
    """The wall clock steps while a job runs whose shim is dead; and with it what psutil takes for the time of the boot."""
    pin, escapee = let_escape(stage, "daemon")
    kill_shim(pin)
    step = float(seconds)
    real, boot = time.time, psutil.boot_time()
    wall = mock.patch("time.time", side_effect=lambda: real() + step)
    with wall, mock.patch("psutil.boot_time", return_value=boot + step):
        before = identify(escapee.pid) == escapee
        result = stage.stop(pin, until_proven=True)
    yield {**told(result), "same": before, "alive": is_alive(escapee)}
