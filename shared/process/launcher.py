"""Launching: a directory, a shim behind its gate, READY; the caller pins, then says GO.

A launch never runs anything by itself. Whatever goes wrong before `go()` leaves a gate that is shut, and a shut gate means
that nothing will ever run.

Rule: design §7, points 1 to 3.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from shared import boundary
from shared.boundary import Boundary, Side
from shared.ids import AttemptId, attempt_directory
from shared.model.evidence import Pin, ProcessIdentity
from shared.process.leaves import Leaves
from shared.process.limits import inherited_file_limit
from shared.process.shim import GO, describe_fault
from shared.process.spec import LaunchError, LaunchSpec, encode, write_file, write_first

__all__ = ["HeldLaunch", "LaunchError", "LaunchSpec", "Launcher", "ZygoteLauncher"]

READY_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 2.0

_ROOT = str(Path(__file__).resolve().parents[2])
# The rooms' folder comes last, so that nothing in it can stand in for a module of the standard library.
_BOOT = f"import sys; sys.path.append({_ROOT!r}); from shared.process import zygote; zygote.main(sys.argv[1:])"


@runtime_checkable
class HeldLaunch(Protocol):
    """A shim that holds the attempt's lock and waits at its gate."""

    @property
    def pin(self) -> Pin:
        """The identity to commit before GO."""

    def go(self) -> None:
        """Release the job. The gate is spent; the job no longer needs this process.

        Raises:
            LaunchError: the shim is gone; nothing ran.
        """

    def close(self) -> None:
        """Shut the gate: nothing will ever run, unless `go` came first. May be repeated."""


class Launcher(Protocol):
    """Starts held launches; called from several pool threads at once."""

    def launch(self, spec: LaunchSpec) -> HeldLaunch:
        """Block until the shim is READY, at most 10 s.

        Raises:
            LaunchError: with the stage it got to; its gate is shut.
        """

    def close(self) -> None:
        """End what serves launches. Shims and jobs live on."""


class ZygoteLauncher:
    """The launcher of real processes, through a zygote that is restarted when it dies.

    The shim is exec'ed instead when the request could not be sent, and from then on when a zygote died without ever having
    served a launch. A request that was sent is never repeated: one spawn per epoch.

    Each job gets a cgroup of its own where one can be had (tried at the start); `with_leaves=False` does without.
    """

    def __init__(self, attempts_dir: Path, home: Path, *, with_leaves: bool = True) -> None:
        self._attempts = os.open(attempts_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._home = home
        self._leaves = Leaves.find(self._attempts) if with_leaves else None
        self._lock = threading.Lock()  # guards the two below; the socket itself sends whole messages
        self._zygote: _Zygote | None = None
        self._is_zygote_usable = True
        self._start_zygote()

    def launch(self, spec: LaunchSpec) -> HeldLaunch:
        """See `Launcher`."""
        name = attempt_directory(AttemptId(spec.attempt_id), spec.epoch)
        order = encode(spec, None if self._leaves is None else self._leaves.path(name))
        directory = self._make_directory(name, spec)
        ours, theirs = socket.socketpair()
        try:
            deadline = time.monotonic() + READY_TIMEOUT_S
            ours.settimeout(READY_TIMEOUT_S)
            try:
                zygote = self._spawn(theirs, directory)
            finally:
                theirs.close()
            self._sync_attempts(name)
            ready = self._await_ready(ours, order, deadline, zygote)
            if spec.channel and spec.stdin:
                write_first(directory, spec.stdin)
            pin = Pin(
                epoch=spec.epoch,
                directory=name,
                shim=ProcessIdentity(**ready["shim"]),
                directory_ino=ready["directory_ino"],
                lock_ino=ready["lock_ino"],
            )
        except BaseException:
            ours.close()
            raise
        finally:
            os.close(directory)
        return _Gate(ours, pin)

    def close(self) -> None:
        """See `Launcher`."""
        with self._lock:
            self._is_zygote_usable = False
            zygote, self._zygote = self._zygote, None
            if zygote is not None:
                zygote.close()
            if self._attempts >= 0:
                os.close(self._attempts)
                self._attempts = -1
            if self._leaves is not None:
                self._leaves.sweep()

    @property
    def leaves(self) -> str | None:
        """The folder in which jobs get cgroups of their own, for `doctor`; None where they get none."""
        return None if self._leaves is None else self._leaves.parent

    @property
    def zygote_pid(self) -> int | None:
        """The pid of the running zygote, for `doctor` and drills; None when shims are exec'ed."""
        zygote = self._zygote
        return None if zygote is None else zygote.process.pid

    # --- directory ---------------------------------------------------------------------------------------------------

    def _make_directory(self, name: str, spec: LaunchSpec) -> int:
        """Make the attempt's directory and what the shim finds there; returns it open."""
        try:
            boundary.mkdir(name, Boundary.ATTEMPT_MKDIR, dir_fd=self._attempts)
        except FileExistsError:
            raise LaunchError("directory", f"{name} exists already", nothing_ran=False, exists=True) from None
        except OSError as fault:
            raise LaunchError("directory", f"{name}: {describe_fault(fault)}") from fault
        directory = -1
        try:
            directory = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._attempts)
            boundary.reached(Boundary.ATTEMPT_SPEC, Side.BEFORE)
            # What is to be run, with its secrets, goes through the gate and touches no disk.
            if spec.channel:
                os.mkfifo("stdin", 0o600, dir_fd=directory)
            elif spec.stdin is not None:
                write_file(directory, "stdin", spec.stdin)
            for extra, content in spec.files:
                write_file(directory, extra, content)
            boundary.reached(Boundary.ATTEMPT_SPEC, Side.AFTER)
        except OSError as fault:
            if directory >= 0:
                os.close(directory)
            raise LaunchError("directory", f"{name}: {describe_fault(fault)}") from fault
        return directory

    def _sync_attempts(self, name: str) -> None:
        """Keep the directory from being lost to a power cut once a job ran in it; needed before GO, so the shim need not wait."""
        try:
            boundary.fsync(self._attempts, Boundary.ATTEMPT_SYNC)
        except OSError as fault:
            raise LaunchError("directory", f"{name}: {describe_fault(fault)}") from fault

    # --- spawn -------------------------------------------------------------------------------------------------------

    def _spawn(self, gate: socket.socket, directory: int) -> _Zygote | None:
        """Start a shim; returns the zygote that was asked, None when the shim was exec'ed."""
        boundary.reached(Boundary.SHIM_SPAWN, Side.BEFORE)
        zygote = self._zygote
        if zygote is None or not zygote.ask(gate.fileno(), directory):
            self._replace_zygote(zygote)
            zygote = None
            self._exec_shim(gate.fileno(), directory)
        boundary.reached(Boundary.SHIM_SPAWN, Side.AFTER)
        return zygote

    def _exec_shim(self, gate: int, directory: int) -> None:
        """Exec a zygote for one request; it ends once it has forked the shim."""
        try:
            process = _python("once", gate, directory)
        except OSError as fault:
            raise LaunchError("spawn", describe_fault(fault)) from fault
        try:
            process.wait(READY_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise LaunchError("spawn", f"the shim did not start within {READY_TIMEOUT_S:.0f} s") from None

    def _start_zygote(self) -> None:
        """Start a zygote if there may be one; called with the lock held, or before anybody else can."""
        try:
            self._zygote = _Zygote() if self._is_zygote_usable else None
        except OSError:
            self._zygote = None  # the exec of the shim will say the same, for a launch that then fails visibly

    def _replace_zygote(self, dead: _Zygote | None) -> None:
        with self._lock:
            if self._zygote is not dead:
                return  # another thread was here first
            if dead is not None:
                dead.close()
                self._is_zygote_usable = self._is_zygote_usable and dead.has_served
            self._start_zygote()

    def _await_ready(
        self, gate: socket.socket, order: bytes, deadline: float, zygote: _Zygote | None
    ) -> dict[str, Any]:
        boundary.reached(Boundary.READY_RECEIVE, Side.BEFORE)
        answer = b""
        try:
            gate.sendall(order)
            while not answer.endswith(b"\n"):
                gate.settimeout(max(0.001, deadline - time.monotonic()))
                part = gate.recv(4096)
                if not part:
                    raise LaunchError("ready", "the shim died before it was ready")
                answer += part
        except TimeoutError:
            if zygote is not None:
                self._replace_zygote(zygote)  # it hangs, or its shim does: the gate is shut for both
            raise LaunchError("ready", f"no answer within {READY_TIMEOUT_S:.0f} s") from None
        except OSError as fault:
            raise LaunchError("ready", f"the shim died before it was ready ({describe_fault(fault)})") from None
        ready: dict[str, Any] = json.loads(answer)
        if "error" in ready:
            raise LaunchError("ready", ready["error"])
        if zygote is not None:
            zygote.has_served = True
        boundary.reached(Boundary.READY_RECEIVE, Side.AFTER)
        return ready


class _Gate:
    """The worker's end of a gate."""

    def __init__(self, link: socket.socket, pin: Pin) -> None:
        self._link = link
        self._pin = pin

    @property
    def pin(self) -> Pin:
        return self._pin

    def go(self) -> None:
        boundary.reached(Boundary.GO_SEND, Side.BEFORE)
        try:
            self._link.send(GO, socket.MSG_NOSIGNAL)
        except OSError as fault:
            raise LaunchError("ready", f"the shim was gone before GO ({describe_fault(fault)})") from None
        finally:
            self._link.close()
        boundary.reached(Boundary.GO_SEND, Side.AFTER)

    def close(self) -> None:
        self._link.close()


class _Zygote:
    """One zygote process and our end of its control socket."""

    def __init__(self) -> None:
        self.has_served = False
        boundary.reached(Boundary.ZYGOTE_EXEC, Side.BEFORE)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(READY_TIMEOUT_S)
        with theirs:
            self.process = _python("serve", theirs.fileno())
        boundary.reached(Boundary.ZYGOTE_EXEC, Side.AFTER)

    def ask(self, gate: int, directory: int) -> bool:
        """Send one request, whole or not at all; False when nothing was sent."""
        try:
            socket.send_fds(self._control, [b"fork"], [gate, directory], socket.MSG_NOSIGNAL)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Shut the control socket, which ends the zygote, and reap it."""
        self._control.close()
        try:
            self.process.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _python(mode: str, *descriptors: int) -> subprocess.Popen[bytes]:
    """Start our zygote clean: isolated, own session, nothing inherited but these descriptors."""
    loader_path = os.environ.get("LD_LIBRARY_PATH")  # some builds of Python do not start without it
    arm = boundary.armed("zygote")
    words = [mode, "" if arm is None else json.dumps(arm), *map(str, descriptors), str(inherited_file_limit())]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _BOOT, *words],
        pass_fds=descriptors,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={} if loader_path is None else {"LD_LIBRARY_PATH": loader_path},
    )
