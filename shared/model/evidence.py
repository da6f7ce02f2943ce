"""What the kernel and the attempt's directory say about a launched process; facts only, no verdict.

Written by `shared/process/evidence.py`, judged by `shared/policy/recovery.py`. Rule: research "process truth" §2.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process of one boot; never psutil's `create_time()`, which moves with the wall clock.

    Attributes:
        start_ticks: Field 22 of `/proc/PID/stat`, clock ticks since boot.
        pid_ns: Inode of the pid namespace in which `pid` means something.
        pidfs_ino: Inode of the process's pidfd on pidfs (Linux 6.9+), else None; extra evidence only.
    """

    pid: int
    start_ticks: int
    boot_id: str
    pid_ns: int
    pidfs_ino: int | None = None


@dataclass(frozen=True, slots=True)
class Pin:
    """The durable identity of a launch that is held at its gate.

    Attributes:
        epoch: Epoch whose launch this is; evidence is always read in this epoch's directory.
        directory: Name below the home's `attempts/`, e.g. `w41.2.3`.
        shim: The shim that holds the attempt's lock.
        directory_ino, lock_ino: Inodes of the directory and of its `lock` file.
    """

    epoch: int
    directory: str
    shim: ProcessIdentity
    directory_ino: int
    lock_ino: int


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """`exit.json`: the shim's last word, written after ECHILD.

    Attributes:
        status: Exit code 0..255 of the main child, negative for a signal; None when nothing ran.
        ran: False when the child was never exec'ed (died at registration, or exec failed).
        error: `STAGE: ERRNO_NAME: text` with stage `register` or `exec`; None when there was none.
        stop: `request`, `stragglers` or None: why the shim signalled the tree.
        tree_empty: `wait4` said ECHILD below a subreaper: no descendant is left.
        oom: The kernel killed some of it for want of memory, by the count of its own cgroup; never guessed from a signal.
        output: `uncapped` when the file system could not keep the output to its cap.
    """

    status: int | None
    ran: bool
    error: str | None
    stop: str | None
    tree_empty: bool
    oom: bool = False
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """The cgroup of one launch. `inode`: of its directory, for as long as the host runs no other group's."""

    path: str
    inode: int


class LockState(StrEnum):
    """What probing the attempt's `lock` file proved."""

    HELD = "held"
    FREE = "free"
    UNPROVEN = "unproven"  # no such file, another inode than the pin's, or an error: proves nothing


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything readable about one pinned launch, at one moment, lock first.

    Attributes:
        same_boot: The pin's boot is this boot; when False every process of it is dead.
        same_pid_ns: Pids in the pin mean the same processes here.
        directory_proven: The directory exists with the pinned inode; when False an absent file proves nothing.
        exit: The exit record; None when absent. Empty or torn counts as unreadable, not as absent.
        child: Identity the child registered just before exec; None when absent.
        unreadable: Names of files that exist but could not be read or parsed.
        child_alive: True, False, or None when there is no child record or it cannot be known.
        child_status: Exit status of the gone child by other evidence (pidfd, zombie's stat), as in `ExitRecord.status`.
        leaf: The cgroup that the child entered before it became the job; None when it had none.
        reapers: Who may have inherited what the shim left, besides pid 1, as (pid, start ticks); None: unknown.
    """

    same_boot: bool
    same_pid_ns: bool
    directory_proven: bool
    lock: LockState
    exit: ExitRecord | None
    child: ProcessIdentity | None
    unreadable: tuple[str, ...]
    child_alive: bool | None
    child_status: int | None = None
    leaf: Leaf | None = None
    reapers: tuple[tuple[int, int], ...] | None = None
