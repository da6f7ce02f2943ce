"""The complete orphan scan: what a killed shim may have left, whatever it did to hide. Proof S5.

With the shim dead, every surviving descendant hangs below a process that started no earlier than the shim, and whose parent is
pid 1 or another process that the kernel can have given orphans to: recorded at the launch, in `child.json`. Parents and start
ticks are all it takes, which every user may read and no job can hide. A snapshot is exact when nothing was forked meanwhile.
What is accounted for otherwise is left out: this process, what the caller vouches for, and the shims and children of other
attempts that registered themselves. An innocent daemon that was started since may be flagged; then a person decides.

Rule: design §7 (S5); research "process truth" §4.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from shared.ids import AttemptId
from shared.model.evidence import ProcessIdentity
from shared.process import identity, snapshot
from shared.process.evidence import read_child_record
from shared.process.marks import Marks, is_named
from shared.process.snapshot import Key, Process, Snapshot

TRIES = 20
EMPTY = 2
PAUSE_S = 0.01
ORPHAN = "orphan"

Reapers = tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """What the scan goes by.

    Attributes:
        shim: The dead shim; nothing of its launch is older.
        reapers: Who may have inherited what it left, besides pid 1.
        accounted: What is accounted for: this process, registered workers and coordinators, their zygotes, services.
        quiet: While it is entered, the caller starts nothing.
    """

    attempts_dir: Path
    attempt_id: AttemptId
    shim: ProcessIdentity
    reapers: Reapers
    accounted: frozenset[Key]
    quiet: Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Found:
    """What a scan found, by pid with its marks; `exact`: nothing, in two exact snapshots."""

    table: Snapshot
    matched: dict[int, tuple[str, ...]]
    orphans: tuple[int, ...]
    exact: bool


def scan(sources: Sources, marks: Marks) -> Found:
    """Look until two exact snapshots are empty, at most 20 times; else what the last one showed.

    Blocks: some milliseconds per hundred processes and try.

    Raises:
        OSError: `/proc` does not show enough to tell.
    """
    empty = 0
    with sources.quiet():
        found = _look(sources, marks)
        for _ in range(TRIES - 1):
            empty += found.exact
            if empty == EMPTY:
                break
            time.sleep(PAUSE_S)
            found = _look(sources, marks)
        else:
            empty += found.exact
    return replace(found, exact=empty == EMPTY)


def _look(sources: Sources, marks: Marks) -> Found:
    """One look; exact when it showed nothing in a true snapshot."""
    table = snapshot.take()
    flagged = tuple(process.pid for process in find_orphans(table, sources))
    matched = marks.of(table)
    return Found(table, matched, flagged, exact=table.exact and not flagged and not matched)


def find_orphans(table: Snapshot, sources: Sources) -> list[Process]:
    """Processes that the launch may have left, those accounted for left out."""
    heirs = {1} | {pid for pid, ticks in sources.reapers if _starts(table, pid) == ticks}
    flagged = [
        process
        for process in table.table.values()
        if process.ppid in heirs
        and process.start_ticks >= sources.shim.start_ticks
        and not process.ended
        and process.key not in sources.accounted
        and not _is_our_zygote(process, sources.accounted)
    ]
    registered = _registered(sources, {process.pid for process in flagged}) if flagged else set()
    return [process for process in flagged if process.key not in registered]


def _starts(table: Snapshot, pid: int) -> int | None:
    process = table.table.get(pid)
    return None if process is None else process.start_ticks


def _is_our_zygote(process: Process, accounted: frozenset[Key]) -> bool:
    """A zygote that a worker among the vouched for started since; only where that worker is pid 1 or a subreaper itself."""
    parents = {pid for pid, _ in accounted}
    return process.ppid in parents and process.session == process.pid and is_named(process.pid, "tenure-zygote")


def _registered(sources: Sources, pids: set[int]) -> set[Key]:
    """Those of `pids` that are the shim, or the registered child, of another attempt."""
    found = set()
    for name in os.listdir(sources.attempts_dir):
        if name.startswith(f"{sources.attempt_id}."):
            continue
        record = read_child_record(sources.attempts_dir / name)
        if record is None:
            continue
        for each in (record.shim, record.child):
            if each is not None and each.pid in pids and identity.is_alive(each):
                found.add((each.pid, each.start_ticks))
    return found
