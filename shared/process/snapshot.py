"""The table of all processes at one moment, by our own reader; psutil enumerates.

Rule: research "process truth" §4 ("Complete orphan scan").
"""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from shared.model.evidence import ProcessIdentity
from shared.process import procfs

Key = tuple[int, int]
"""Pid and start ticks: what tells a process from another one with its pid, within one boot."""


@dataclass(frozen=True, slots=True)
class Process:
    """A line of the table. `ended`: a zombie without living threads. `state`: one letter."""

    pid: int
    ppid: int
    group: int
    session: int
    start_ticks: int
    state: str
    ended: bool

    @property
    def key(self) -> Key:
        """Who it is."""
        return self.pid, self.start_ticks

    def is_it(self, identity: ProcessIdentity) -> bool:
        """True when pid and start are those; only as good as ticks, see `identity.is_it`."""
        return self.key == (identity.pid, identity.start_ticks)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every process that could be read, the kernel's own left out.

    Attributes:
        exact: Nothing was forked anywhere meanwhile, and every parent was seen alive after its children: nothing is missing, and
            what hangs below what is true.
    """

    table: dict[int, Process]
    exact: bool

    def is_below(self, process: Process, root: ProcessIdentity) -> bool:
        """True when the identified process is an ancestor."""
        seen = {process.pid}
        parent = self.table.get(process.ppid)
        while parent is not None and parent.pid not in seen:
            if parent.is_it(root):
                return True
            seen.add(parent.pid)
            parent = self.table.get(parent.ppid)
        return False


def take() -> Snapshot:
    """Read the table once.

    Raises:
        OSError: `/proc` does not tell how many processes were started.
    """
    before = procfs.fork_count()
    table = {}
    for pid in psutil.pids():
        process = read(pid)
        if process is not None:
            table[pid] = process
    is_still = procfs.fork_count() == before
    return Snapshot(table, is_still and all(_has_living_parent(process, table) for process in table.values()))


def read(pid: int) -> Process | None:
    """One line of it; None for what is gone, hidden, or the kernel's own."""
    try:
        fields = procfs.stat_fields(pid)
    except OSError:
        return None
    if procfs.is_kernel_thread(fields):
        return None
    return Process(
        pid=pid,
        ppid=int(fields[procfs.PPID]),
        group=int(fields[procfs.PGRP]),
        session=int(fields[procfs.SESSION]),
        start_ticks=int(fields[procfs.START_TICKS]),
        state=fields[procfs.STATE].decode(),
        ended=procfs.is_ended(pid, fields),
    )


def _has_living_parent(process: Process, table: dict[int, Process]) -> bool:
    """False when the parent ended while we read: its children have another by now, which we did not see."""
    if process.ended or process.ppid == 0:  # outside of this pid namespace, where nothing below us can go
        return True
    parent = table.get(process.ppid)
    return parent is not None and not parent.ended
