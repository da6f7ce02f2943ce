"""One cgroup v2 leaf per attempt, where it can be had: what kills a whole tree at once, and says whether anything is left in it.

Only core files are used and no controller is enabled, so a leaf costs three system calls and needs no more than a writable
directory. The child is born in it, or moves itself in before it becomes the job; the shim stays outside. A process may leave
its leaf (whoever could move it in can move it out, and `systemd-run --scope` or a container engine do), so an empty leaf alone
is no proof.

Standard library only: the shim loads this file. Rule: research "process truth" §4.
"""

from __future__ import annotations

import os
import time

from shared import boundary
from shared.boundary import Boundary, Side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FREEZE_BOUND_S = 0.5
REMOVE_TRIES = 5
PAUSE_S = 0.001
ENTER_TRIES = 3


def own_directory() -> str | None:
    """The directory of this process's cgroup in the v2 hierarchy, unified or beside v1; None when there is none to be seen."""
    try:
        path = next(line[3:] for line in _lines("/proc/self/cgroup") if line.startswith("0::"))
        mounts = [line.partition(" - ") for line in _lines("/proc/self/mountinfo")]
    except (OSError, StopIteration):
        return None
    for own, _, shared in mounts:
        root, mount_point = own.split()[3:5]
        if shared.split()[0] != "cgroup2" or "\\" in mount_point:
            continue
        inside = "" if root == "/" else root
        if path == root or path.startswith(inside + "/"):
            return mount_point + path[len(inside) :].rstrip("/")
    return None


class Entry:
    """How the child of one launch comes into its leaf: born there, else by moving itself; if neither can be, it is outside.

    Args:
        leaf: None where launches have none.
        fork_into: A fork whose child begins in the cgroup that is open as its argument; None where there is no such thing.
    """

    def __init__(self, leaf: str | None, fork_into: Callable[[int], int] | None) -> None:
        self._leaf = leaf
        self._fork_into = fork_into
        self._born: dict[str, str | int] | None = None

    def fork(self) -> int:
        """`os.fork`, into the leaf if that can be done. The leaf is made here, so that hardly any sweep finds it empty."""
        if self._leaf is None or self._fork_into is None:
            return os.fork()
        try:
            group = _make(self._leaf)
        except OSError:
            return os.fork()  # the child tries once more, and is outside
        try:
            self._born = {"path": self._leaf, "inode": os.fstat(group).st_ino}
            return self._fork_into(group)
        except OSError:
            self._born = None  # swept away already, or refused; where nothing at all can be forked, the fork says so
            return os.fork()
        finally:
            os.close(group)

    def complete(self) -> dict[str, str | int] | None:
        """In the child: be in the leaf from here on; what `child.json` says of it. None: we are outside."""
        if self._leaf is None or self._born is not None:
            return self._born
        return enter(self._leaf)


def _make(leaf: str) -> int:
    """Make the leaf, unless it is there; returns it open, good for nothing but being pointed at."""
    try:
        os.mkdir(leaf, 0o755)
    except FileExistsError:
        pass
    return os.open(leaf, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def enter(leaf: str) -> dict[str, str | int] | None:
    """Make the leaf and move this process into it; what `child.json` says of it. None when it cannot be had: then we are outside."""
    for _ in range(ENTER_TRIES):  # a worker that starts sweeps empty leaves, and may have taken this one
        try:
            os.mkdir(leaf, 0o755)
        except FileExistsError:
            pass
        except OSError:
            return None
        try:
            write(f"{leaf}/cgroup.procs", b"0")
            return {"path": leaf, "inode": os.stat(leaf).st_ino}
        except FileNotFoundError:
            continue
        except OSError:
            break
    remove(leaf)
    return None


def write(path: str, data: bytes) -> None:
    """Write a control file in one call: a buffered file would swallow the refusal."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def is_empty(leaf: str, inode: int) -> bool | None:
    """True when no process is in the leaf or below it; a leaf that was removed is empty, as no other can be.

    Returns: None when it cannot be seen from here.
    """
    try:
        if os.stat(leaf).st_ino != inode:
            return None
        return "populated 0" in _lines(f"{leaf}/cgroup.events")
    except FileNotFoundError:
        is_seen = os.path.exists(f"{os.path.dirname(leaf)}/cgroup.procs") and not os.path.exists(leaf)
        return True if is_seen else None
    except OSError:
        return None


def members(leaf: str) -> list[int]:
    """Every process in the leaf and below it; what goes meanwhile is left out."""
    found: list[int] = []
    for folder, _, _ in os.walk(leaf):
        try:
            found += [int(line) for line in _lines(f"{folder}/cgroup.procs")]
        except OSError:
            continue  # a group the job made, and has just removed
    return found


def kill(leaf: str, at: Boundary, signal_one: Callable[[int], None]) -> None:
    """Kill everything in the leaf at once (Linux 5.14), or freeze it, kill one by one with `signal_one`, and thaw it."""
    boundary.reached(at, Side.BEFORE)
    try:
        write(f"{leaf}/cgroup.kill", b"1")
    except OSError:
        _kill_frozen(leaf, signal_one)
    boundary.reached(at, Side.AFTER)


def _kill_frozen(leaf: str, signal_one: Callable[[int], None]) -> None:
    """Hold everything still while it is killed; thawed in the end, also where an earlier holder died and left it frozen."""
    try:
        write(f"{leaf}/cgroup.freeze", b"1")
        until = time.monotonic() + FREEZE_BOUND_S
        while "frozen 1" not in _lines(f"{leaf}/cgroup.events") and time.monotonic() < until:
            time.sleep(PAUSE_S)
        for pid in members(leaf):
            signal_one(pid)
    except OSError:
        pass  # the leaf is gone, or not ours: whoever asked looks again
    finally:
        try:
            write(f"{leaf}/cgroup.freeze", b"0")
        except OSError:
            pass


def oom_kills(leaf: str) -> int | None:
    """How many processes of the leaf the kernel killed for want of memory; None when the leaf does not count them."""
    try:
        return sum(int(line.split()[1]) for line in _lines(f"{leaf}/memory.events") if line.startswith("oom_kill "))
    except (OSError, ValueError):
        return None


def remove(leaf: str) -> bool:
    """Remove an empty leaf with the groups a job made below it; False when something is in it."""
    for _ in range(REMOVE_TRIES):
        try:
            os.rmdir(leaf)
        except FileNotFoundError:
            pass
        except OSError:
            _remove_below(leaf)
        if not os.path.exists(leaf):
            return True
        time.sleep(PAUSE_S)
    return False


def _remove_below(leaf: str) -> None:
    for folder, _, _ in os.walk(leaf, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            continue  # something is in it, or it has just gone


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().splitlines()
