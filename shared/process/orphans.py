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
from dataclasses import dataclass
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
    registered = _Registered(sources)
    empty, tries = 0, 0
    with sources.quiet():
        while True:
            tries += 1
            table = snapshot.take()
            orphans = tuple(each.pid for each in find_orphans(table, sources) if not registered.includes(each))
            matched = marks.of(table)
            empty += table.exact and not orphans and not matched
            if empty == EMPTY or tries == TRIES:
                return Found(table, matched, orphans, exact=empty == EMPTY)
            time.sleep(PAUSE_S)


def find_orphans(table: Snapshot, sources: Sources) -> list[Process]:
    """Processes that the launch may have left, but for those accounted for; other attempts' own are still among them."""
    heirs = {1} | {pid for pid, ticks in sources.reapers if _starts(table, pid) == ticks}
    return [
        process
        for process in table.table.values()
        if process.ppid in heirs
        and process.start_ticks >= sources.shim.start_ticks
        and not process.ended
        and process.key not in sources.accounted
        and not _is_our_zygote(process, sources.accounted)
    ]


def _starts(table: Snapshot, pid: int) -> int | None:
    process = table.table.get(pid)
    return None if process is None else process.start_ticks


def _is_our_zygote(process: Process, accounted: frozenset[Key]) -> bool:
    """A zygote that a worker among the vouched for started since; only where that worker is pid 1 or a subreaper itself."""
    parents = {pid for pid, _ in accounted}
    return process.ppid in parents and process.session == process.pid and is_named(process.pid, "tenure-zygote")


class _Registered:
    """Shims and registered children of other attempts, by what these left in their directories; looked up once for each process."""

    def __init__(self, sources: Sources) -> None:
        self._attempts_dir = sources.attempts_dir
        self._own = f"{sources.attempt_id}."
        self._answers: dict[Key, bool] = {}

    def includes(self, process: Process) -> bool:
        """Whether another attempt accounts for it."""
        if process.key not in self._answers:
            self._answers[process.key] = any(self._is_in(name, process) for name in os.listdir(self._attempts_dir))
        return self._answers[process.key]

    def _is_in(self, name: str, process: Process) -> bool:
        record = None if name.startswith(self._own) else read_child_record(self._attempts_dir / name)
        both = () if record is None else (record.shim, record.child)
        return any(each is not None and process.is_it(each) and identity.is_it(each) for each in both)
