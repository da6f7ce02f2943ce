"""The zygote: forks one shim per request, so that a shim costs a fork instead of a start of Python.

Exec'ed clean by the launcher (`-I -S`, own session, empty environment), single-threaded. Each request carries two
descriptors, gate and directory; everything else goes through the gate. End-of-file on the control socket (the worker went)
ends the zygote and no shim. With `once` the same code serves one request and ends: the fallback without a zygote.

Standard library only.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import signal
import socket
import time
import warnings  # noqa: F401 - os.execvpe imports it, in the child, at each launch

from shared import boundary
from shared.boundary import Boundary
from shared.process import clone, procfs, shim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
PROBE_PAUSE_S = 0.0005

_prctl = ctypes.CDLL(None, use_errno=True).prctl


def main(arguments: list[str]) -> NoReturn:
    """Serve as the launcher asked: `serve ARM CONTROL FILES_SOFT` or `once ARM GATE DIRECTORY FILES_SOFT`.

    ARM is a drill's order as JSON (`boundary.armed`), else empty.
    """
    mode, arm, *numbers = arguments
    if arm:
        boundary.inherit(json.loads(arm))
    *descriptors, files_soft = map(int, numbers)
    for fd in descriptors:
        os.set_inheritable(fd, False)  # noqa: FBT003 - the signature is the standard library's
    _prepare(files_soft)
    reapers = _find_reapers()
    fork_into = clone.fork_into if clone.is_supported() else None
    if mode == "once":
        _fork_shim(descriptors, reapers, fork_into, control=None)
        os._exit(0)
    _serve(socket.socket(fileno=descriptors[0]), reapers, fork_into)


def _prepare(files_soft: int) -> None:
    _prctl(PR_SET_NAME, b"tenure-zygote", 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # shims are reaped by the kernel
    os.chdir("/")
    os.umask(0o077)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # The worker raised its own limit for its pidfds; a job gets what the worker was started with.
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_soft, hard))
    procfs.boot_id()
    procfs.pid_namespace()
    gc.collect()
    gc.freeze()
    gc.disable()


def _find_reapers() -> list[list[int]] | None:
    """Who may inherit what a shim of ours leaves behind, besides pid 1: the nearest subreaper above us, and what is above that.

    Tried with an orphan, as the kernel does not say who is a subreaper. Narrower than all ancestors, because a terminal or a
    multiplexer among them would make a suspect of everything that a person starts there later; an ancestor nearer than the
    one found that becomes a subreaper afterwards would be missed, and none of ours ever does. None: unknown.
    """
    answer, told = os.pipe()
    try:
        if boundary.fork(Boundary.REAPER_PROBE) == 0:
            _leave_orphan(told)
        os.close(told)
        return procfs.lineage(int(os.read(answer, 32)))
    except (OSError, ValueError):
        return None
    finally:
        os.close(answer)


def _leave_orphan(told: int) -> NoReturn:
    """Die with a child, which tells who is its parent then."""
    boundary.install(None)  # a drill means the zygote that asks, not those it asks through
    try:
        middle = os.getpid()
        if boundary.fork(Boundary.REAPER_PROBE) == 0:
            while os.getppid() == middle:
                time.sleep(PROBE_PAUSE_S)
            os.write(told, str(os.getppid()).encode())
    finally:
        os._exit(0)


def _serve(control: socket.socket, reapers: list[list[int]] | None, fork_into: shim.ForkInto | None) -> NoReturn:
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, 16, 2)
        if not request:
            os._exit(0)
        for fd in descriptors:
            os.set_inheritable(fd, False)  # noqa: FBT003 - recv_fds of Python 3.11 drops MSG_CMSG_CLOEXEC
        if len(descriptors) == 2:
            try:
                _fork_shim(descriptors, reapers, fork_into, control=control)
            except OSError:
                pass  # the launcher reads end-of-file: nothing ran
        for fd in descriptors:
            os.close(fd)


def _fork_shim(
    descriptors: list[int],
    reapers: list[list[int]] | None,
    fork_into: shim.ForkInto | None,
    *,
    control: socket.socket | None,
) -> None:
    if boundary.fork(Boundary.SHIM_FORK) != 0:
        return
    boundary.install(None)  # a shim is armed by its own order alone
    if control is not None:
        control.close()  # no exec follows that would: a copy here would hide the worker's death from the zygote
    _prctl(PR_SET_NAME, b"tenure-shim", 0, 0, 0)
    is_subreaper = _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    gate, directory = descriptors
    shim.live(gate, directory, reapers, fork_into, is_subreaper=is_subreaper)
