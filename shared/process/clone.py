"""A fork whose child begins its life in a cgroup: `clone3` with CLONE_INTO_CGROUP (Linux 5.7).

A process that moves itself waits for every other one to notice, 10 to 15 ms on an idle host, where being born at the place
costs nothing. Only for a process of one thread: the C library is not told of this fork, whose handlers matter to threads alone.

Standard library only: the zygote loads this file, and hands the fork to its shims.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal

CLONE3 = 435  # on every architecture below
NUMBERED_ALIKE = frozenset({"x86_64", "aarch64", "riscv64", "ppc64le", "s390x"})
CLONE_INTO_CGROUP = 0x2_0000_0000
NO_GROUP = 0x7FFF_FFFF  # a descriptor that nobody has


class _Arguments(ctypes.Structure):
    """`struct clone_args` as of Linux 5.7."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "flags",
            "pidfd",
            "child_tid",
            "parent_tid",
            "exit_signal",
            "stack",
            "stack_size",
            "tls",
            "set_tid",
            "set_tid_size",
            "cgroup",
        )
    ]


# PyDLL, as the interpreter's lock must not be let go of between its own two halves of a fork.
_syscall = ctypes.PyDLL(None, use_errno=True).syscall
_syscall.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_size_t]
_syscall.restype = ctypes.c_long
_before = ctypes.pythonapi.PyOS_BeforeFork
_after_in_parent = ctypes.pythonapi.PyOS_AfterFork_Parent
_after_in_child = ctypes.pythonapi.PyOS_AfterFork_Child
for _function in (_before, _after_in_parent, _after_in_child):
    _function.argtypes = []
    _function.restype = None


def is_supported() -> bool:
    """Whether `fork_into` can work here, tried with a group that does not exist; nothing is forked.

    A kernel that knows the call gets as far as missing the group. An older one, and a sandbox that forbids the call, say
    something else.
    """
    if os.uname().machine not in NUMBERED_ALIKE:
        return False
    pid, error = _clone(_arguments(NO_GROUP))
    return pid < 0 and error == errno.EBADF


def fork_into(group: int) -> int:
    """`os.fork`, with the child in the cgroup whose directory is open as `group`; the parent stays where it is.

    Raises:
        OSError: there is no child. ENOENT, ENODEV: the group was removed; EACCES: it is not ours to move into.
    """
    arguments = _arguments(group)
    _before()
    pid, error = _clone(arguments)
    if pid == 0:
        _after_in_child()
        return 0
    _after_in_parent()
    if pid < 0:
        raise OSError(error, os.strerror(error))
    return pid


def _arguments(group: int) -> _Arguments:
    """No flag but the one: memory, files and signals are copied as by a fork, and the parent hears of the end by SIGCHLD."""
    return _Arguments(flags=CLONE_INTO_CGROUP, exit_signal=signal.SIGCHLD, cgroup=group)


def _clone(arguments: _Arguments) -> tuple[int, int]:
    """The result, twice if all goes well, and the error number, which means something when the result is negative."""
    pid = int(_syscall(CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments)))
    return pid, ctypes.get_errno()
