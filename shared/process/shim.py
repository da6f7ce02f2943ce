"""The shim: one process per attempt and epoch that outlives its worker, waits at its gate, and writes the exit record.

It holds the attempt's lock from before READY until it dies, so the lock is the liveness of the launch. Nothing is executed
until the worker has sent GO, which it does only after the pin is committed; end-of-file on the gate, or ten silent seconds,
ends the shim with nothing run. The child registers itself durably (`child.json`) as its last act before exec, holding the
inherited lock until then: a free lock and no `child.json` prove that nothing ever ran. The shim reaps until the kernel says
ECHILD and then writes `exit.json`.

Standard library only; works on the descriptors it was given (gate, directory), never on paths.

Rule: design §7; research "process truth" §2.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
import signal
import time

from shared import boundary
from shared.boundary import Boundary, Side
from shared.process import cgroup, procfs
from shared.process.reaper import SIGNALS, Reaper
from shared.process.record import CHILD_AT, EXIT_AT, RECORD_BYTES, encode, publish, reserve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    ForkInto = Callable[[int], int]

GO = b"G"
HEADER_BYTES = 4
GATE_TIMEOUT_S = 10.0
LOCK_RETRY_S = 1.0  # a prober may hold the lock shared for an instant
OOM_SCORE_MIN = 100
OOM_SCORE_ABOVE = 100
OOM_SCORE_MAX = 1000

ENDED = 0
FAULT = 70
NOT_RELEASED = 75

# What Python set to "ignore" at its start, or inherited so: a job gets the defaults.
_IGNORED = [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]
_SHIM_IGNORES = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)


def live(
    gate: int, directory: int, reapers: list[list[int]] | None, fork_into: ForkInto | None, *, is_subreaper: bool
) -> NoReturn:
    """Be the shim of one launch from its lock to its exit record; never returns.

    Args:
        gate: Our end of the gate; the other end exists in the worker only.
        directory: The attempt's directory.
        reapers: Who may inherit what we leave if we are killed, each as [pid, start ticks]; None: unknown.
        fork_into: See `cgroup.Entry`.
        is_subreaper: Orphans below us come to us, so ECHILD means that no descendant is left.
    """
    code = FAULT
    try:
        code = _live(gate, directory, reapers, fork_into, is_subreaper=is_subreaper)
    except BaseException as fault:  # noqa: BLE001 - whatever it is, the worker should read it, if it is still there
        try:
            os.write(gate, json.dumps({"error": describe_fault(fault)}).encode() + b"\n")
        except OSError:
            pass
    finally:
        os._exit(code)


def _live(
    gate: int, directory: int, reapers: list[list[int]] | None, fork_into: ForkInto | None, *, is_subreaper: bool
) -> int:
    os.setsid()
    for number in _SHIM_IGNORES:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    order = receive_order(gate)
    if order.get("arm"):
        boundary.inherit(order["arm"])
    lock_ino = _take_lock(directory)
    reserve(directory, "exit.json")
    reserve(directory, "child.json")
    stdin = _open_stdin(directory, order["stdin"])
    shim = procfs.describe(os.getpid())
    boundary.reached(Boundary.READY_SEND, Side.BEFORE)
    ready = {"shim": shim, "directory_ino": os.fstat(directory).st_ino, "lock_ino": lock_ino}
    os.write(gate, json.dumps(ready).encode() + b"\n")
    boundary.reached(Boundary.READY_SEND, Side.AFTER)
    if not _is_released(gate):
        return NOT_RELEASED
    boundary.reached(Boundary.GO_RECEIVE, Side.AFTER)
    errors, report = os.pipe()  # close-on-exec: end-of-file says exec'ed or dead, bytes say why not
    entry = cgroup.Entry(order["leaf"], fork_into)
    child = boundary.fork(Boundary.CHILD_FORK, entry.fork)
    if child == 0:
        os.close(errors)
        launch = {"shim": shim, "subreaper": is_subreaper, "reapers": reapers}
        _become_job(order, directory, stdin, report, launch, entry, is_subreaper=is_subreaper)
    os.close(report)
    os.close(stdin)
    os.close(gate)
    _await_exec(errors)
    Reaper(
        child,
        directory,
        errors,
        grace_s=order["grace_s"],
        is_subreaper=is_subreaper,
        leaf=order["leaf"],
        output_max=order["output_max"],
        out_max=order["out_max"],
        out_counts=order["out_counts"],
    ).run()
    return ENDED


def receive_order(gate: int) -> dict[str, Any]:
    """Read what is to be run, sent ahead of GO: attempt, epoch, argv, environment, cwd, stdin, grace, leaf, what is kept of the output.

    Raises:
        EOFError: the worker went before it had sent all of it.
    """
    size = int.from_bytes(_read_exactly(gate, HEADER_BYTES), "big")
    order: dict[str, Any] = json.loads(_read_exactly(gate, size))
    return order


def _read_exactly(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = os.read(fd, size - len(data))
        if not part:
            raise EOFError("the gate was shut before the order was complete")
        data = data + part if data else part
    return data


def _take_lock(directory: int) -> int:
    """Hold `lock` for the rest of this process's life; returns its inode."""
    fd = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=directory)
    deadline = time.monotonic() + LOCK_RETRY_S
    while True:
        try:
            boundary.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, Boundary.SHIM_LOCK)
            return os.fstat(fd).st_ino
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _open_stdin(directory: int, kind: str) -> int:
    """What becomes the job's standard input: `null`, a `file` that was written before, or a `channel`.

    A channel is opened to read and to write, by us before READY, and the job gets that very descriptor: it takes what is written
    whether or not anybody holds the attempt just then, and comes to no end while the job lives.
    """
    if kind == "null":
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    access = os.O_RDWR if kind == "channel" else os.O_RDONLY
    return os.open("stdin", access | os.O_CLOEXEC, dir_fd=directory)


def _is_released(gate: int) -> bool:
    """Wait for GO. Until here SIGTERM just ends us; from here on it is a request to stop the job."""
    poll = select.poll()
    poll.register(gate, select.POLLIN)
    if not poll.poll(GATE_TIMEOUT_S * 1000):
        return False
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        word = os.read(gate, 1)
    except OSError:
        return False
    return word == GO and signal.SIGTERM not in signal.sigpending()


def _await_exec(errors: int) -> None:
    """Wait until the child has exec'ed, failed or died; a request to stop does not wait for it."""
    poll = select.poll()
    poll.register(errors, select.POLLIN)
    while not poll.poll(250):
        if signal.SIGTERM in signal.sigpending():
            return
    boundary.reached(Boundary.CHILD_EXEC, Side.AFTER)


# --- in the child ----------------------------------------------------------------------------------------------------


def _become_job(
    order: dict[str, Any],
    directory: int,
    stdin: int,
    report: int,
    launch: dict[str, Any],
    entry: cgroup.Entry,
    *,
    is_subreaper: bool,
) -> NoReturn:
    stage = "register"
    try:
        os.setsid()
        argv = [word.encode("latin-1") for word in order["argv"]]
        env = {key.encode("latin-1"): value.encode("latin-1") for key, value in order["env"].items()}
        env[b"TENURE_ATTEMPT"] = order["attempt"].encode()
        env[b"TENURE_EPOCH"] = str(order["epoch"]).encode()
        _wire_stdio(directory, stdin)
        _hold_tree_lock(directory)
        _reset_process()
        stage = "exec"  # a working directory that is not there is as lasting as a program that is not
        try:
            os.chdir(order["cwd"].encode("latin-1"))
        except OSError as fault:
            raise OSError(fault.errno, f"working directory: {fault.strerror}", fault.filename) from None
        stage = "register"
        record = {"child": procfs.describe(os.getpid()), "cgroup": entry.complete(), **launch}
        publish(directory, "child.json", record, CHILD_AT)
        stage = "exec"
        boundary.reached(Boundary.CHILD_EXEC, Side.BEFORE)
        os.execvpe(argv[0], argv, env)
    except BaseException as fault:  # noqa: BLE001 - the only way to tell is the pipe
        _report(directory, report, f"{stage}: {describe_fault(fault)}", is_subreaper=is_subreaper)
    finally:
        os._exit(127)


def _wire_stdio(directory: int, stdin: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    os.dup2(stdin, 0)
    os.dup2(os.open("out", flags, 0o600, dir_fd=directory), 1)
    os.dup2(os.open("err", flags, 0o600, dir_fd=directory), 2)


def _hold_tree_lock(directory: int) -> None:
    """Hold `tree.lock` shared and inheritable: whoever still holds it came from this job."""
    fd = os.open("tree.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=directory)
    boundary.flock(fd, fcntl.LOCK_SH, Boundary.TREE_LOCK)
    os.set_inheritable(fd, True)  # noqa: FBT003 - the signature is the standard library's


def _reset_process() -> None:
    """Default signals, nothing blocked, private files, and for the OOM killer well ahead of its shim and worker. Rule: case C056.

    The score is at least +100, whatever the worker's, and always higher than what it was; raising one's own needs no privilege.
    """
    for number in (*_IGNORED, *_SHIM_IGNORES):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass  # the C library keeps a few for itself
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o077)
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        score = max(OOM_SCORE_MIN, min(OOM_SCORE_MAX, int(os.read(fd, 16)) + OOM_SCORE_ABOVE))
        os.write(fd, str(score).encode())
    except (OSError, ValueError):
        pass
    finally:
        os.close(fd)


def _report(directory: int, report: int, error: str, *, is_subreaper: bool) -> None:
    """Record why nothing ran while we hold the lock, as the shim may die before it can; then tell the shim."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    error = error[: RECORD_BYTES // 8]
    record = encode(status=None, ran=False, error=error, stop=None, tree_empty=is_subreaper)
    try:
        publish(directory, "exit.json", record, EXIT_AT)
    except OSError:
        pass  # the shim will try again for as long as it takes
    try:
        os.write(report, error.encode("utf-8", "replace"))
    except OSError:
        pass  # the shim is dead


def describe_fault(fault: BaseException) -> str:
    """`ERRNO_NAME: text: file` of an OSError, else the exception's own words."""
    if not isinstance(fault, OSError) or fault.errno is None:
        return f"{type(fault).__name__}: {fault}"
    name = errno.errorcode.get(fault.errno, str(fault.errno))
    text = f"{name}: {fault.strerror}"
    if fault.filename is None:
        return text
    return f"{text}: {os.fsdecode(fault.filename) if isinstance(fault.filename, bytes) else fault.filename}"
