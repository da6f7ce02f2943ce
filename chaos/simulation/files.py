"""The attempts' directories on a simulated disk: locks, records, and what a power cut leaves of what was not synced."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from chaos.simulation.baton import Signal
from chaos.simulation.processes import Process
from shared.model.evidence import ExitRecord, Pin, ProcessIdentity

if TYPE_CHECKING:
    from chaos.simulation.belt import Socket

R = TypeVar("R")
CHANNEL_LINES_MAX = 4
"""What has room in a channel; few, so that one is full now and then."""


class FileLock:
    """One lock file: whoever holds it exclusively shares that one hold (a child with its shim), else any number share it."""

    def __init__(self, inode: int) -> None:
        self.inode = inode
        self._exclusive: list[Process] = []
        self._shared: list[Process] = []

    @property
    def is_held(self) -> bool:
        """Held exclusively: a probe that asks for a share is refused."""
        return bool(self._exclusive)

    @property
    def is_used(self) -> bool:
        """Held in any way."""
        return bool(self._exclusive or self._shared)

    def take(self, process: Process) -> bool:
        """Take it exclusively, for life."""
        if self.is_used:
            return False
        self.inherit(process)
        return True

    def inherit(self, process: Process) -> None:
        """Share the exclusive hold of whoever has it."""
        self._exclusive.append(process)
        process.at_end.append(lambda: self.let_go(process))

    def share(self, process: Process) -> bool:
        """Take a share, for life."""
        if self._exclusive:
            return False
        self._shared.append(process)
        process.at_end.append(lambda: self.let_go(process))
        return True

    def let_go(self, process: Process) -> None:
        """End the hold of that process, if it has one."""
        for holders in (self._exclusive, self._shared):
            if process in holders:
                holders.remove(process)


@dataclass(slots=True)
class Record(Generic[R]):
    """A published file: visible at once, durable piece by piece. `is_torn`: a power cut left it unreadable."""

    value: R
    content_synced: bool = False
    entry_synced: bool = False
    is_torn: bool = False


@dataclass(frozen=True, slots=True)
class ChildFacts:
    """What `child.json` says."""

    child: ProcessIdentity
    shim: ProcessIdentity


@dataclass(eq=False)
class Channel:
    """A named pipe that is a program's standard input.

    Attributes:
        lines: Written and not read yet; each was written whole.
        readers: Whoever has it open, alive or not.
        is_broken: It cannot be opened for writing.
    """

    written: Signal
    lines: list[bytes] = field(default_factory=list)
    readers: list[Process] = field(default_factory=list)
    is_broken: bool = False

    @property
    def is_read(self) -> bool:
        """Somebody has it open to read."""
        return any(process.is_alive for process in self.readers)

    @property
    def is_full(self) -> bool:
        """Another line has no room."""
        return len(self.lines) >= CHANNEL_LINES_MAX

    def write(self, line: bytes) -> None:
        """Write a line."""
        self.lines.append(line)
        self.written.notify()


@dataclass(eq=False)
class Directory:
    """One attempt's directory of one epoch.

    Attributes:
        is_durable: Its entry among the attempts was synced.
        output: What its program wrote to its standard output; `output_synced`: up to there it was synced.
        channel: None: its standard input is none.
        belt: The socket that was bound there last.
    """

    name: str
    inode: int
    is_durable: bool = False
    locks_durable: bool = False
    lock: FileLock | None = None
    tree_lock: FileLock | None = None
    child: Record[ChildFacts] | None = None
    exit: Record[ExitRecord] | None = None
    output: bytearray = field(default_factory=bytearray)
    output_synced: int = 0
    channel: Channel | None = None
    belt: Socket | None = None

    def sync(self) -> None:
        """Sync the directory: every entry that it has now."""
        self.locks_durable = True
        for record in (self.child, self.exit):
            if record is not None:
                record.entry_synced = True

    def lose_power(self, chance: random.Random) -> None:
        """What was not synced is there, torn or gone, as chance has it."""
        if not self.locks_durable:
            self.lock = self.lock if chance.random() < 0.5 else None
            self.tree_lock = self.tree_lock if chance.random() < 0.5 else None
        if len(self.output) > self.output_synced and chance.random() < 0.5:
            del self.output[chance.randint(self.output_synced, len(self.output)) :]
        self.child = _after_power_cut(self.child, chance)
        self.exit = _after_power_cut(self.exit, chance)


@dataclass(eq=False)
class Disk:
    """All directories, by name, in order of their making. `full_until_us`: until then, in the history's own time,
    there is no room for another one.
    """

    directories: dict[str, Directory] = field(default_factory=dict)
    inodes: int = 1_000
    full_until_us: int = 0

    def inode(self) -> int:
        """A number that no other file has."""
        self.inodes += 1
        return self.inodes

    def make(self, name: str) -> Directory | None:
        """Make a directory; None when it exists."""
        if name in self.directories:
            return None
        self.directories[name] = Directory(name, self.inode())
        return self.directories[name]

    def pinned(self, pin: Pin) -> Directory | None:
        """The directory a pin names, when it is that very one."""
        directory = self.directories.get(pin.directory)
        return directory if directory is not None and directory.inode == pin.directory_ino else None

    def tear(self, name: str) -> None:
        """Whatever records a directory has can be read no more."""
        directory = self.directories.get(name)
        for record in () if directory is None else (directory.child, directory.exit):
            if record is not None:
                record.is_torn = True

    def names(self) -> list[str]:
        """What the folder of all attempts holds."""
        return list(self.directories)

    def sync(self) -> None:
        """Sync the folder of all attempts."""
        for directory in self.directories.values():
            directory.is_durable = True

    def lose_power(self, chance: random.Random) -> None:
        """A power cut."""
        for directory in list(self.directories.values()):
            if not directory.is_durable and chance.random() < 0.5:
                del self.directories[directory.name]
            else:
                directory.lose_power(chance)


def _after_power_cut(record: Record[R] | None, chance: random.Random) -> Record[R] | None:
    if record is None or (record.content_synced and record.entry_synced):
        return record
    if not record.entry_synced and chance.random() < 0.5:
        return None
    if not record.content_synced and chance.random() < 0.5:
        record.is_torn = True
    return record
