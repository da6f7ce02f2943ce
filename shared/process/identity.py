"""Who a process is, in a way that survives pid reuse and clock steps.

Rule: research "process truth" §3 (pid, start ticks, boot id, pid namespace; the pidfs inode where there is one).
"""

from __future__ import annotations

import os
from pathlib import Path

from shared.model.evidence import ProcessIdentity
from shared.process import procfs

boot_id = procfs.boot_id
pid_namespace = procfs.pid_namespace


def time_namespace() -> int:
    """Inode of the time namespace that this process's monotonic clock belongs to; 0 where the kernel has none."""
    try:
        return os.stat("/proc/self/ns/time").st_ino
    except FileNotFoundError:
        return 0


def machine_id() -> str | None:
    """The host's machine id; None when it has none. Differs between a home and its copy on another host."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text and text != "uninitialized":
            return text
    return None


def identify(pid: int) -> ProcessIdentity:
    """The identity of a running process.

    Raises:
        ProcessLookupError: there is none with this pid.
    """
    return identity_from(procfs.describe(pid))


def identity_from(record: object) -> ProcessIdentity:
    """An identity as evidence files hold it.

    Raises:
        ValueError: a field is missing or of another type.
    """
    facts = record if isinstance(record, dict) else {}
    pid, ticks, boot, namespace = (facts.get(key) for key in ("pid", "start_ticks", "boot_id", "pid_ns"))
    inode = facts.get("pidfs_ino")
    if type(pid) is int and type(ticks) is int and isinstance(boot, str) and type(namespace) is int:
        return ProcessIdentity(pid, ticks, boot, namespace, inode if type(inode) is int else None)
    raise ValueError("a process identity needs pid, start_ticks, boot_id and pid_ns")


def is_alive(identity: ProcessIdentity) -> bool | None:
    """True while any thread of the process runs; a zombie with none left is dead, and so is every process of another boot.

    Returns: None when it cannot be seen from here: another pid namespace, or `/proc` hides it.
    """
    if identity.boot_id != procfs.boot_id():
        return False
    if identity.pid_ns != procfs.pid_namespace():
        return None
    try:
        fd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    except OSError:
        return _is_alive_by_stat(identity)
    try:
        inode = procfs.pidfs_inode(fd)
    finally:
        os.close(fd)
    if inode is not None and identity.pidfs_ino is not None and inode != identity.pidfs_ino:
        return False
    return _is_alive_by_stat(identity)


def is_stopped(identity: ProcessIdentity) -> bool:
    """True while the process lives and does not run because a signal or a debugger stopped it; False when it cannot be seen."""
    if not is_it(identity):
        return False
    try:
        return procfs.stat_fields(identity.pid)[0] in (b"T", b"t")
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_it(identity: ProcessIdentity) -> bool:
    """True while its pid names that very process, ended or not: by the pidfs inode where there is one, else by start ticks,
    of which two processes can have the same when a number is used again within one tick.
    """
    if identity.boot_id != procfs.boot_id() or identity.pid_ns != procfs.pid_namespace():
        return False
    try:
        fd = os.pidfd_open(identity.pid)
    except OSError:
        return False
    try:
        inode = procfs.pidfs_inode(fd)
        is_same = inode is None or identity.pidfs_ino is None or inode == identity.pidfs_ino
        return is_same and procfs.start_ticks(identity.pid) == identity.start_ticks
    except OSError:
        return False
    finally:
        os.close(fd)


def _is_alive_by_stat(identity: ProcessIdentity) -> bool | None:
    try:
        fields = procfs.stat_fields(identity.pid)
    except ProcessLookupError:
        # Gone, unless `/proc` is mounted so that it hides what is not ours (hidepid): then absence proves nothing.
        return False if os.path.exists("/proc/1/stat") else None
    except OSError:
        return None
    if int(fields[procfs.START_TICKS]) != identity.start_ticks:
        return False
    return not procfs.is_ended(identity.pid, fields)


def zombie_status(identity: ProcessIdentity) -> int | None:
    """Exit status of an ended process that nobody has reaped yet, negative for a signal; None when it cannot be read."""
    if identity.boot_id != procfs.boot_id() or identity.pid_ns != procfs.pid_namespace():
        return None
    try:
        # To whom the kernel does not let look, it shows status 0. The same permission guards this link, and says so.
        os.readlink(f"/proc/{identity.pid}/ns/user")
        fields = procfs.stat_fields(identity.pid)
    except OSError:
        return None
    is_it = int(fields[procfs.START_TICKS]) == identity.start_ticks and procfs.is_ended(identity.pid, fields)
    return os.waitstatus_to_exitcode(int(fields[procfs.EXIT_CODE])) if is_it else None
