"""The named crash boundaries of tenure, and the only wrappers through which an effect happens.

An effect is a fork, a signal, a name given or taken away, an fsync, a file lock or a commit: the instants at which a death leaves the world
in another state. Each wrapper asks for the boundary it crosses and reaches it before and after, so that an effect without
a name cannot be written. Unarmed, `reached` is one comparison.

Armed by environment, for drills only: `TENURE_ARM=BOUNDARY:SIDE:KILL|STOP[:VICTIMS]` together with `TENURE_DRILL=ID`,
where ID is the content of the home's file `drill`. Neither is ever passed to a job.

Standard library only and nothing of ours: the shim and its zygote load this file too, and `typing` alone would cost each
of them as much as all the rest.

Rule: design §8.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Sequence
from enum import StrEnum, auto

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Committing(Protocol):
        """What `commit` needs of a database connection."""

        def execute(self, sql: str, /) -> object: ...


class Boundary(StrEnum):
    """Every place where a drill may kill, stop or stall a process; `before` and `after` are its two sides."""

    # Commits of the store, in the order of a job's life.
    MIGRATE_COMMIT = auto()
    CONFIG_COMMIT = auto()
    REGISTER_COMMIT = auto()
    LEADER_COMMIT = auto()
    SUBMIT_COMMIT = auto()
    COMMAND_COMMIT = auto()  # a person's word on a Work or a binding: retry, hold, release, quarantine
    CLAIM_COMMIT = auto()
    ACCEPT_COMMIT = auto()
    PIN_COMMIT = auto()
    RENEW_COMMIT = auto()
    FINISH_COMMIT = auto()
    RECOVERY_COMMIT = auto()
    ADOPT_COMMIT = auto()
    RELAUNCH_COMMIT = auto()
    CANCEL_COMMIT = auto()
    STOP_COMMIT = auto()
    TIMER_COMMIT = auto()
    DECLARE_COMMIT = auto()  # what a running program says of itself
    PARK_COMMIT = auto()
    EVENT_COMMIT = auto()  # an event that somebody publishes, with the waits it ends
    WAKE_COMMIT = auto()  # the claim of a resume
    PASS_COMMIT = auto()
    INTENT_COMMIT = auto()  # a word to a running attempt, with the input that comes with it
    DISPATCH_COMMIT = auto()
    ACKNOWLEDGE_COMMIT = auto()
    STREAM_COMMIT = auto()  # how far an agent's output was read, and what it said
    # Files of the home.
    QUEUE_LOCK = auto()
    INCARNATION_LOCK = auto()
    LOCK_PROBE = auto()
    STORE_LINK = auto()  # a store that is whole gets its name
    HOME_SYNC = auto()
    BALLAST_FREE = auto()
    BALLAST_RENAME = auto()
    # A launch, as the worker sees it.
    ATTEMPT_MKDIR = auto()
    ATTEMPT_SPEC = auto()
    ATTEMPT_SYNC = auto()
    ZYGOTE_EXEC = auto()
    SHIM_SPAWN = auto()  # the request to the zygote, or the exec of the fallback
    READY_RECEIVE = auto()
    GO_SEND = auto()
    CHANNEL_RENAME = auto()  # an input too long for one line gets its name
    CHANNEL_WRITE = auto()  # one whole line into a running agent's standard input
    # The same launch, as the shim sees it.
    REAPER_PROBE = auto()  # in the zygote, once: two forks that show who inherits orphans
    SHIM_FORK = auto()  # in the zygote
    SHIM_LOCK = auto()
    READY_SEND = auto()
    GO_RECEIVE = auto()
    CHILD_FORK = auto()
    CHILD_EXEC = auto()  # `after`: the shim has seen the exec, or its failure
    CHILD_REAP = auto()
    OUTPUT_SYNC = auto()  # of what counts as its word, before its end is told
    EXIT_RENAME = auto()
    EXIT_SYNC = auto()
    EXIT_DIRECTORY_SYNC = auto()
    # As the child sees it, before it becomes the job.
    TREE_LOCK = auto()
    CHILD_RENAME = auto()
    CHILD_SYNC = auto()
    CHILD_DIRECTORY_SYNC = auto()
    # Signals.
    STOP_SIGNAL = auto()  # the stopper's, to a pinned identity
    TREE_SIGNAL = auto()  # the shim's, to its descendants
    HARM_SIGNAL = auto()  # a harness's or the supervisor's, to its own children


class Side(StrEnum):
    """Which side of the effect was reached."""

    BEFORE = auto()
    AFTER = auto()


class Victims(StrEnum):
    """Who is hit when an armed boundary is reached in a shim; elsewhere it is always the process itself."""

    SELF = auto()
    BOTH = auto()
    WORKER = auto()


HOLD = ".hold"
"""Behind the name of the drill's log: while this file is there, who was stopped stops again when it is let go on."""


class Trap:
    """An armed boundary: the first process to reach it writes one line to the drill's log and is hit there."""

    def __init__(self, order: str, log: str, worker_pid: int) -> None:
        parts = order.split(":")
        if len(parts) not in (3, 4) or parts[2] not in ("KILL", "STOP"):
            raise ValueError(f"not an order BOUNDARY:SIDE:KILL|STOP[:VICTIMS]: {order!r}")
        self.order = order
        self.log = log
        self.worker_pid = worker_pid
        self._boundary = Boundary(parts[0])
        self._side = Side(parts[1])
        self._signal = signal.SIGKILL if parts[2] == "KILL" else signal.SIGSTOP
        self._victims = Victims(parts[3]) if len(parts) == 4 else Victims.SELF
        self._sprung = False

    def __call__(self, boundary: Boundary, side: Side) -> None:
        if boundary is not self._boundary or side is not self._side or self._sprung:
            return
        self._sprung = True
        self._note()
        if self._victims is not Victims.SELF:
            try:
                os.kill(self.worker_pid, self._signal)
            except ProcessLookupError:
                pass  # an earlier shim of this drill got there first
        if self._victims is not Victims.WORKER:
            # Raised, not sent: this very thread is hit before it goes on, while a signal to the process may take another first.
            signal.raise_signal(self._signal)
            while os.path.exists(self.log + HOLD):  # a stopper of ours lets go on what it asks to end
                signal.raise_signal(self._signal)

    def _note(self) -> None:
        with open("/proc/self/stat", "rb") as stat:
            start_ticks = int(stat.read().rpartition(b")")[2].split()[19])
        line = f"{self.order} {os.getpid()} {start_ticks}\n".encode()
        fd = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.write(fd, line)
        os.close(fd)


_hook: Callable[[Boundary, Side], None] | None = None
_heirs: set[str] = set()


def reached(boundary: Boundary, side: Side) -> None:
    """Say that a boundary is reached; nothing happens unless something is armed."""
    if _hook is not None:
        _hook(boundary, side)


def install(hook: Callable[[Boundary, Side], None] | None) -> None:
    """Let `hook` see every boundary of this process from now on; None takes it away."""
    global _hook  # noqa: PLW0603 - one per process, by meaning
    _hook = hook
    _heirs.clear()


def is_drilled(home: str | os.PathLike[str]) -> bool:
    """Whether this process belongs to the drill of that home: TENURE_DRILL is what the home's file `drill` says."""
    drill = os.environ.get("TENURE_DRILL")
    if not drill:
        return False
    try:
        with open(os.path.join(os.path.abspath(home), "drill"), encoding="ascii") as file:
            return file.read().strip() == drill
    except (OSError, UnicodeDecodeError):
        return False


def arm(home: str | os.PathLike[str]) -> bool:
    """Arm this process as its environment orders, if the home belongs to that drill.

    Returns: True when armed. False without an order, or when the home's `drill` file is missing or names another drill.
    Raises:
        ValueError: the order names no boundary, side or signal.
    """
    order = os.environ.get("TENURE_ARM")
    if not order or not is_drilled(home):
        return False
    install(Trap(order, os.path.join(os.path.abspath(home), "drill.log"), os.getpid()))
    return True


def armed(heir: str) -> dict[str, str | int] | None:
    """The order in force, for the first process of its kind that this one starts; None when there is none, and for all later ones.

    Only one is hit: what makes good for it has to come past the same boundary.

    Args:
        heir: `shim` or `zygote`.
    """
    if isinstance(_hook, Trap) and heir not in _heirs:
        _heirs.add(heir)
        return {"order": _hook.order, "log": _hook.log, "worker_pid": _hook.worker_pid}
    return None


def inherit(order: dict[str, str | int]) -> None:
    """Arm this process as the one that launched it was armed (the value of its `armed()`)."""
    install(Trap(str(order["order"]), str(order["log"]), int(order["worker_pid"])))


# --- effects ---------------------------------------------------------------------------------------------------------


def fork(at: Boundary, how: Callable[[], int] = os.fork) -> int:
    """`os.fork`, or another way to do the same; the far side is reached in the parent only."""
    reached(at, Side.BEFORE)
    pid = how()
    if pid != 0:
        reached(at, Side.AFTER)
    return pid


def write(fd: int, line: bytes, at: Boundary) -> int:
    """`os.write` of one line to somebody who reads on; whole or not at all, where it is short enough for that."""
    reached(at, Side.BEFORE)
    written = os.write(fd, line)
    reached(at, Side.AFTER)
    return written


def kill(pid: int, number: int, at: Boundary) -> None:
    """`os.kill`, for a process whose pid cannot be another's (an unreaped child of the caller)."""
    reached(at, Side.BEFORE)
    os.kill(pid, number)
    reached(at, Side.AFTER)


def kill_group(leader_pid: int, number: int, at: Boundary) -> None:
    """`os.killpg`, for the group of an unreaped child of the caller."""
    reached(at, Side.BEFORE)
    os.killpg(leader_pid, number)
    reached(at, Side.AFTER)


def pidfd_kill(fd: int, number: int, at: Boundary) -> None:
    """`signal.pidfd_send_signal`; verify the identity after opening `fd`, not before."""
    reached(at, Side.BEFORE)
    signal.pidfd_send_signal(fd, number)
    reached(at, Side.AFTER)


def rename(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    at: Boundary,
    *,
    src_dir_fd: int | None = None,
    dst_dir_fd: int | None = None,
) -> None:
    """`os.rename`; replaces `target`."""
    reached(at, Side.BEFORE)
    os.rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
    reached(at, Side.AFTER)


def link(source: str | os.PathLike[str], target: str | os.PathLike[str], at: Boundary) -> None:
    """`os.link`; unlike a rename it never takes the place of another file, but fails when `target` exists."""
    reached(at, Side.BEFORE)
    os.link(source, target)
    reached(at, Side.AFTER)


def unlink(path: str | os.PathLike[str], at: Boundary) -> None:
    """`os.unlink`, of a file whose being there means something."""
    reached(at, Side.BEFORE)
    os.unlink(path)
    reached(at, Side.AFTER)


def mkdir(path: str | os.PathLike[str], at: Boundary, *, mode: int = 0o700, dir_fd: int | None = None) -> None:
    """`os.mkdir`; fails when it exists."""
    reached(at, Side.BEFORE)
    os.mkdir(path, mode, dir_fd=dir_fd)
    reached(at, Side.AFTER)


def fsync(fd: int, at: Boundary) -> None:
    """`os.fsync`."""
    reached(at, Side.BEFORE)
    os.fsync(fd)
    reached(at, Side.AFTER)


def flock(fd: int, operation: int, at: Boundary) -> None:
    """`fcntl.flock`; with LOCK_NB a held lock is BlockingIOError, and the far side is not reached."""
    reached(at, Side.BEFORE)
    fcntl.flock(fd, operation)
    reached(at, Side.AFTER)


def commit(connection: Committing, at: Sequence[Boundary]) -> None:
    """Send COMMIT; one commit may carry several transitions and crosses the boundary of each."""
    for boundary in at:
        reached(boundary, Side.BEFORE)
    connection.execute("COMMIT")
    for boundary in at:
        reached(boundary, Side.AFTER)
