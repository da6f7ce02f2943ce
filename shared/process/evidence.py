"""Reading what a launch left behind: the lock first, then the files, so that a free lock makes the files final.

Rule: research "process truth" §2 and §4; design §7.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.ids import AttemptId
from shared.model.evidence import Evidence, ExitRecord, Leaf, LockState, Pin, ProcessIdentity
from shared.process import identity
from shared.process.filelock import probe_open

RECORD_LIMIT = 64 * 1024  # a record is 4 KiB; more is not one of ours


def read_evidence(attempts_dir: Path, pin: Pin) -> Evidence:
    """Read everything about one pinned launch, in the directory of the pinned epoch. Never raises for what it finds."""
    same_boot = pin.shim.boot_id == identity.boot_id()
    same_pid_ns = pin.shim.pid_ns == identity.pid_namespace()
    directory = open_pinned(attempts_dir, pin)
    if directory is None:
        return Evidence(
            same_boot=same_boot,
            same_pid_ns=same_pid_ns,
            directory_proven=False,
            lock=LockState.UNPROVEN,
            exit=None,
            child=None,
            unreadable=(),
            child_alive=None,
        )
    try:
        lock = _probe_pinned(directory, pin)
        exit_record, is_exit_readable = _read_exit(directory)
        record, is_child_readable = _read_child(directory)
    finally:
        os.close(directory)
    unreadable = (() if is_exit_readable else ("exit.json",)) + (() if is_child_readable else ("child.json",))
    child = None if record is None else record.child
    alive = None if child is None else identity.is_alive(child)
    return Evidence(
        same_boot=same_boot,
        same_pid_ns=same_pid_ns,
        directory_proven=True,
        lock=lock,
        exit=exit_record,
        child=child,
        unreadable=unreadable,
        child_alive=alive,
        child_status=None if child is None or alive is not False else identity.zombie_status(child),
        leaf=None if record is None else record.leaf,
        reapers=None if record is None else record.reapers,
    )


def any_child_record(attempts_dir: Path, attempt_id: AttemptId, since_epoch: int = 1) -> bool | None:
    """Tell whether any launch of an attempt, of that epoch or a later one, may have exec'ed something.

    A `child.json` beside an `exit.json` that says `ran: false` counts as none. Reads the names of the whole folder: a launch may
    have an epoch that no store knows any more, so that no bound of epochs to ask for by name is the right one.

    Returns: None when a directory or file could not be read.
    """
    prefix = f"{attempt_id}."
    try:
        names = [name for name in os.listdir(attempts_dir) if name.startswith(prefix)]
        names = [name for name in names if int(name.removeprefix(prefix)) >= since_epoch]
        return any(_has_run(attempts_dir / name) for name in names)
    except (OSError, ValueError):
        return None


def _has_run(folder: Path) -> bool:
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            os.stat("child.json", dir_fd=directory)
        except FileNotFoundError:
            return False
        exit_record, is_readable = _read_exit(directory)
        if not is_readable:
            raise ValueError(f"{folder.name}/exit.json cannot be read")
        return exit_record is None or exit_record.ran
    finally:
        os.close(directory)


def open_pinned(attempts_dir: Path, pin: Pin) -> int | None:
    """Open the pinned directory, for the caller to close; None when it is missing or is another one."""
    try:
        directory = os.open(attempts_dir / pin.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    if os.fstat(directory).st_ino == pin.directory_ino:
        return directory
    os.close(directory)
    return None


def _probe_pinned(directory: int, pin: Pin) -> LockState:
    try:
        fd = os.open("lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
    except OSError:
        return LockState.UNPROVEN
    try:
        return probe_open(fd) if os.fstat(fd).st_ino == pin.lock_ino else LockState.UNPROVEN
    finally:
        os.close(fd)


def _read_exit(directory: int) -> tuple[ExitRecord | None, bool]:
    """The exit record, None when absent; False when there is one that cannot be read."""
    try:
        record = _read_record(directory, "exit.json")
        return (None if record is None else _exit_from(record)), True
    except (OSError, ValueError):
        return None, False


@dataclass(frozen=True, slots=True)
class ChildRecord:
    """What a child wrote of itself and its launch as its last act before it became the job: `child.json`."""

    child: ProcessIdentity
    shim: ProcessIdentity | None
    leaf: Leaf | None
    reapers: tuple[tuple[int, int], ...] | None


def read_child_record(folder: Path) -> ChildRecord | None:
    """The record in some attempt's directory; None when there is none that can be read."""
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        return _read_child(directory)[0]
    finally:
        os.close(directory)


def _read_child(directory: int) -> tuple[ChildRecord | None, bool]:
    """The registered child, None when absent; False when there is a record that cannot be read."""
    try:
        record = _read_record(directory, "child.json")
        return (None if record is None else _child_from(record)), True
    except (OSError, ValueError, TypeError, KeyError):
        return None, False


def _child_from(record: dict[str, Any]) -> ChildRecord:
    leaf, reapers = record.get("cgroup"), record.get("reapers")
    return ChildRecord(
        child=identity.identity_from(record.get("child")),
        shim=None if record.get("shim") is None else identity.identity_from(record["shim"]),
        leaf=Leaf(str(leaf["path"]), int(leaf["inode"])) if isinstance(leaf, dict) else None,
        reapers=None if reapers is None else tuple((int(pid), int(ticks)) for pid, ticks in reapers),
    )


def _read_record(directory: int, name: str) -> dict[str, Any] | None:
    """A record's content; None when there is none.

    Raises:
        OSError, ValueError: it cannot be read, is empty or torn.
    """
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
    except FileNotFoundError:
        return None
    try:
        record = json.loads(os.read(fd, RECORD_LIMIT))
    finally:
        os.close(fd)
    if not isinstance(record, dict):
        raise ValueError(f"{name} is no object")  # noqa: TRY004 - a torn file, not a caller's mistake
    return record


def _exit_from(record: dict[str, Any]) -> ExitRecord:
    status, ran, tree_empty = record.get("status"), record.get("ran"), record.get("tree_empty")
    if not isinstance(ran, bool) or not isinstance(tree_empty, bool) or (status is None) is ran:
        raise ValueError("exit.json: ran, tree_empty or status is missing or contradicts another")
    if status is not None and type(status) is not int:
        raise ValueError("exit.json: status is no number")
    error, stop = (None if record.get(key) is None else str(record[key]) for key in ("error", "stop"))
    oom, output = bool(record.get("oom")), record.get("output")
    return ExitRecord(
        status=status,
        ran=ran,
        error=error,
        stop=stop,
        tree_empty=tree_empty,
        oom=oom,
        output=None if output is None else str(output),
    )
