"""What `/proc` says about one process, read by ourselves.

psutil enumerates; session, group, start ticks and the states of threads it does not give, and its `create_time()` moves
with the wall clock. Standard library only: the shim and the zygote load this file.

Rule: research "process truth" §3.
"""

from __future__ import annotations

import functools
import os

STATE, PPID, PGRP, SESSION, FLAGS, START_TICKS, EXIT_CODE = 0, 1, 2, 3, 6, 19, 49
KERNEL_THREAD = 0x00200000  # PF_KTHREAD; inside a pid namespace pid 2 is a process like any other
ANCESTORS_MAX = 64


@functools.cache
def boot_id() -> str:
    """The kernel's id of this boot."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


@functools.cache
def pid_namespace() -> int:
    """Inode of the pid namespace in which this process's pids mean something."""
    return os.stat("/proc/self/ns/pid").st_ino


def stat_fields(pid: int) -> list[bytes]:
    """Fields of `/proc/PID/stat` from the state on; the name before them may hold spaces and parentheses.

    Raises:
        ProcessLookupError: there is no such process (also when it went while we read).
        OSError: `/proc` does not show it to us.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            data = file.read()
    except FileNotFoundError:
        raise ProcessLookupError(pid) from None
    fields = data[data.rindex(b")") + 2 :].split() if b")" in data else []
    if len(fields) <= START_TICKS:
        raise ProcessLookupError(pid)
    return fields


def start_ticks(pid: int) -> int:
    """When the process started, in clock ticks since boot."""
    return int(stat_fields(pid)[START_TICKS])


def is_ended(pid: int, fields: list[bytes]) -> bool:
    """True for a zombie whose threads are all gone; a zombie leader with a live thread is a live process."""
    if fields[STATE] not in (b"Z", b"X"):
        return False
    try:
        return len(os.listdir(f"/proc/{pid}/task")) <= 1
    except (FileNotFoundError, ProcessLookupError):
        return True


def is_kernel_thread(fields: list[bytes]) -> bool:
    """True for what the kernel runs for itself."""
    return bool(int(fields[FLAGS]) & KERNEL_THREAD)


def lineage(pid: int) -> list[list[int]]:
    """A process and what is above it, each as [pid, start ticks], without pid 1.

    Raises:
        OSError: one of them cannot be seen, or there are more than 64.
    """
    found: list[list[int]] = []
    while pid > 1:
        fields = stat_fields(pid)
        found.append([pid, int(fields[START_TICKS])])
        if len(found) > ANCESTORS_MAX:
            raise OSError("more ancestors than a record has room for")
        pid = int(fields[PPID])
    return found


def fork_count() -> int:
    """Processes and threads started since boot, in every namespace.

    Raises:
        OSError: the kernel does not tell.
    """
    with open("/proc/stat", "rb") as file:
        for line in file:
            if line.startswith(b"processes "):
                return int(line.split()[1])
    raise OSError("/proc/stat counts no processes")


def blindness() -> str | None:
    """Why `/proc` may not show us every process of our pid namespace; None when it shows all."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return "/proc belongs to another pid namespace"
        if any(option.startswith(b"hidepid=") and option[8:] not in _SHOWN for option in _mount_options()):
            return "/proc is mounted with hidepid"
        stat_fields(1)
        if fork_count() <= 0:
            return "/proc/stat counts no processes"
    except OSError:
        return "/proc does not show every process"
    return None


_SHOWN = (b"0", b"off")


def _mount_options() -> list[bytes]:
    """Options of the file system that is mounted on `/proc`; of several, the one on top."""
    options: list[bytes] = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            own, _, shared = line.partition(b" - ")
            if own.split()[4] == b"/proc":
                options = shared.split()[2].split(b",")
    return options


def pidfs_inode(fd: int) -> int | None:
    """Inode behind a pidfd, unique for the boot (Linux 6.9+); None where pidfds are anonymous inodes."""
    found = os.fstat(fd)
    return None if found.st_dev == _anonymous_device() else found.st_ino


@functools.cache
def _anonymous_device() -> int:
    """Device of the one inode that all descriptors without a file system of their own share."""
    fd = os.eventfd(0)
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def describe(pid: int) -> dict[str, str | int | None]:
    """A process's identity as it is written to evidence files; keys are those of `ProcessIdentity`."""
    inode = None
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        pass  # extra evidence only
    else:
        inode = pidfs_inode(fd)
        os.close(fd)
    return {
        "pid": pid,
        "start_ticks": start_ticks(pid),
        "boot_id": boot_id(),
        "pid_ns": pid_namespace(),
        "pidfs_ino": inode,
    }


def all_pids() -> list[int]:
    """Every process that `/proc` shows, in no order."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid: int) -> list[int]:
    """Children of a process, of all its threads; may miss one that is being born: ask again until nothing is new."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        if not os.path.exists("/proc/self/task") or os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
            return found  # the process or a thread of it has just gone
        return _children_by_scan(pid)
    return found


def _children_by_scan(pid: int) -> list[int]:
    """The same for a kernel built without the `children` file."""
    found = []
    for other in all_pids():
        try:
            if int(stat_fields(other)[PPID]) == pid:
                found.append(other)
        except OSError:
            continue
    return found


def descendants(root: int) -> dict[int, int]:
    """Every process below `root`, each with its parent, nearest first."""
    found: dict[int, int] = {}
    stack = [root]
    while stack:
        parent = stack.pop()
        for child in children(parent):
            if child not in found and child != root:
                found[child] = parent
                stack.append(child)
    return found
