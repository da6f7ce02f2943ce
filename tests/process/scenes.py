"""What is played in an arena: a worker's launcher and stopper among real processes, told as facts for a test to judge.

Runs as the script of a process of its own, first as root, then as the room's user. The first line it tells is what it found the
host to be capable of.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from shared.model.evidence import Pin, ProcessIdentity
from shared.model.stop import StopResult
from shared.process import procfs
from shared.process.identity import identify, is_alive
from shared.process.stopper import stop
from tests.process.launch_host import Host, attempt_of
from tests.support.waiting import wait_until

Facts = dict[str, object]
ESCAPEE = str(Path(__file__).with_name("escapee.py"))
GRACE_S = 0.2
TRIES = 40


class Stage:
    """One room: a host, the user that works there, and who cleans up behind it.

    Attributes:
        group: Its cgroup, in its own hands; None without.
    """

    def __init__(self, folder: Path, uid: int, group: str | None, *, with_leaves: bool, janitor: int) -> None:
        self.folder = folder / "room"
        self.uid = uid
        self.group = group
        self._janitor = janitor
        self.setpriv = str(folder / "setpriv") if uid else "/usr/bin/setpriv"
        self.host = Host(self.folder, self, with_leaves=with_leaves)

    def tell(self, pid: int) -> None:
        """Everything here ends with the room."""

    def capabilities(self) -> Facts:
        return {
            "kernel": os.uname().release,
            "uid": os.getuid(),
            "leaves": self.host.launcher.leaves is not None,
            "other_users": os.access(self.setpriv, os.X_OK),
            "pid_namespaces": _works(["unshare", *([] if self.uid == 0 else ["--user"]), "--fork", "--pid", "true"]),
        }

    def stop(self, pin: Pin, *, grace_s: float = GRACE_S, until_proven: bool = False) -> StopResult:
        """One try; with `until_proven` as many as a worker would make, since a busy host may leave no exact snapshot."""
        tries_left = TRIES if until_proven else 1
        while True:
            result = stop(self.host.attempts, attempt_of(pin), pin, True, grace_s, ordered=True)
            tries_left -= 1
            if result.proof is not None or tries_left == 0:
                return result

    def kill(self, pid: int) -> None:
        """Kill as root whatever is left, and see it gone."""
        os.write(self._janitor, f"{pid}\n".encode())
        wait_until(lambda: not os.path.exists(f"/proc/{pid}/task") or _is_ended(pid), f"{pid} is gone")


def _is_ended(pid: int) -> bool:
    try:
        return procfs.is_ended(pid, procfs.stat_fields(pid))
    except ProcessLookupError:
        return True


def _works(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


# --- scenes ----------------------------------------------------------------------------------------------------------


def escapes(stage: Stage, *kinds: str) -> Iterator[Facts]:
    """Each way of escape, with the shim alive and with the shim killed: stopped, then looked at."""
    servant = _servant(stage.folder)
    for kind in kinds:
        for is_shim_alive in (True, False):
            yield {"kind": kind, "shim_alive": is_shim_alive, **_escape(stage, kind, is_shim_alive=is_shim_alive)}
    os.kill(servant, signal.SIGKILL)


def _escape(stage: Stage, kind: str, *, is_shim_alive: bool) -> Facts:
    pin, escapee = let_escape(stage, kind)
    if not is_shim_alive:
        kill_shim(pin)
    began = time.monotonic()
    result = stage.stop(pin)
    took_s = time.monotonic() - began
    is_left = is_alive(escapee) is not False
    if not is_left:
        result = stage.stop(pin, until_proven=True) if result.proof is None else result
    facts = {**told(result), "alive": is_left, "listed": _is_listed(result, escapee), "took_s": round(took_s, 2)}
    if is_left:
        stage.kill(escapee.pid)
        facts["after"] = stage.stop(pin, until_proven=True).proof
    return facts


def let_escape(stage: Stage, kind: str) -> tuple[Pin, ProcessIdentity]:
    """Start a job that escapes; the launch, and the process that is to be found."""
    pid_file = stage.folder / f"{kind}-{time.monotonic_ns()}"
    words = [sys.executable, "-I", "-S", ESCAPEE, kind, str(pid_file), f"{stage.group}/elsewhere", stage.setpriv]
    pin = stage.host.start(words, grace_s=GRACE_S)
    pid = int(
        wait_until(lambda: pid_file.exists() and pid_file.read_text(), f"{kind} is on its way: {stage.host.err(pin)}")
    )
    if kind == "pid_namespace":
        pid = wait_until(lambda: next(iter(procfs.children(pid)), 0), "something runs inside")
    if kind != "plain":
        wait_until(lambda: _command(pid) == "sleep", f"{kind} has become sleep")
    return pin, identify(pid)


def kill_shim(pin: Pin) -> None:
    os.kill(pin.shim.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pin.shim), "the shim is dead")


def told(result: StopResult) -> Facts:
    return {
        "proof": result.proof,
        "suspects": {suspect.pid: list(suspect.matched) for suspect in result.suspects},
        "tried": list(result.tried),
        "terms": result.terms,
        "kills": result.kills,
        "exact": result.exact,
    }


def _is_listed(result: StopResult, process: ProcessIdentity) -> bool:
    return (process.pid, process.start_ticks) in {(each.pid, each.started_ticks) for each in result.suspects}


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _servant(folder: Path) -> int:
    """A daemon that was there before, and does what it is asked to; returns its pid."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "servant"))
    listener.listen()
    pid = os.fork()
    if pid != 0:
        listener.close()
        return pid
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        client, _ = listener.accept()
        pid_file = client.recv(4096).decode()
        asked = os.fork()
        if asked == 0:
            os.execve("/bin/sleep", ["sleep", "60"], {})
        Path(f"{pid_file}.tmp").write_text(str(asked), encoding="ascii")
        os.rename(f"{pid_file}.tmp", pid_file)
        client.send(b"k")
        client.close()


# --- the way in ------------------------------------------------------------------------------------------------------


def main(words: list[str]) -> None:
    """`SCENE FOLDER UID GROUP leaves|none …`, as root; the same with JANITOR before the scene, as the user."""
    if words[0].isdigit():
        _play(int(words[0]), *words[1:])
        return
    _, folder, uid, group, *_ = words
    room = Path(folder) / "room"
    room.mkdir(mode=0o700)
    os.chown(room, int(uid), int(uid))
    shutil.copy("/usr/bin/setpriv", f"{folder}/setpriv")
    if int(uid):
        os.chmod(f"{folder}/setpriv", 0o4755)
    if group:
        Path(group, "cgroup.procs").write_bytes(str(os.getpid()).encode())
    orders, janitor = os.pipe()
    if os.fork() == 0:
        os.close(janitor)
        _clean_up(orders)
    os.set_inheritable(janitor, True)
    if int(uid):
        os.setgroups([])
        os.setresgid(int(uid), int(uid), int(uid))
        os.setresuid(int(uid), int(uid), int(uid))
    start = sys.orig_argv[: sys.orig_argv.index("-c") + 4]
    os.execv(sys.executable, [*start, str(janitor), *words])


def _clean_up(orders: int) -> None:
    with os.fdopen(orders) as lines:
        for line in lines:
            try:
                os.kill(int(line), signal.SIGKILL)
            except ProcessLookupError:
                pass
    os._exit(0)


def _play(janitor: int, scene: str, folder: str, uid: str, group: str, leaves: str, *arguments: str) -> None:
    os.set_inheritable(janitor, False)
    stage = Stage(Path(folder), int(uid), group or None, with_leaves=leaves == "leaves", janitor=janitor)
    print(json.dumps(stage.capabilities()), flush=True)
    module, _, name = scene.rpartition(".")
    play: Callable[..., Iterator[Facts]] = getattr(importlib.import_module(f"tests.process.{module}"), name)
    try:
        for facts in play(stage, *arguments):
            print(json.dumps(facts), flush=True)
    finally:
        stage.host.close()
