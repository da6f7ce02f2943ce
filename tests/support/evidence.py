"""Evidence of launches, as values: who the processes are, how a shim may have ended, what is read when nothing is left."""

from __future__ import annotations

from shared.model.evidence import Evidence, ExitRecord, LockState, Pin, ProcessIdentity

SHIM = ProcessIdentity(pid=700, start_ticks=9_000, boot_id="boot-1", pid_ns=4_026_531_836)
CHILD = ProcessIdentity(pid=701, start_ticks=9_001, boot_id="boot-1", pid_ns=4_026_531_836)
PIN = Pin(epoch=1, directory="w1.1.1", shim=SHIM, directory_ino=11, lock_ino=12)

RAN = ExitRecord(status=7, ran=True, error=None, stop=None, tree_empty=True)
RAN_TREE_UNKNOWN = ExitRecord(status=0, ran=True, error=None, stop="stragglers", tree_empty=False)
KILLED = ExitRecord(status=-9, ran=True, error=None, stop="request", tree_empty=True)
NOT_RAN = ExitRecord(status=None, ran=False, error=None, stop=None, tree_empty=True)
NO_SUCH_COMMAND = ExitRecord(status=None, ran=False, error="exec: ENOENT: nope", stop=None, tree_empty=True)
NOT_REGISTERED = ExitRecord(status=None, ran=False, error="register: ENOSPC: child.json", stop=None, tree_empty=True)
NOTHING_LEFT = Evidence(
    same_boot=True,
    same_pid_ns=True,
    directory_proven=True,
    lock=LockState.FREE,
    exit=None,
    child=None,
    unreadable=(),
    child_alive=None,
)
"""The pinned directory is there, its shim is gone, and it left no record."""
