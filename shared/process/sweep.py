"""Signals to what a launch left, when its shim does not or cannot stop it: asked, then frozen and killed, until none is found.

Only processes that bear a mark of the launch are signalled, each through a pidfd that was opened before its line in the table was
read again, so a pid that changed hands in between is left alone. Rule: design §7; research "process truth" §5.
"""

from __future__ import annotations

import functools
import os
import select
import signal
import time
from collections.abc import Iterable

from shared import boundary
from shared.boundary import Boundary
from shared.model.evidence import Leaf
from shared.process import cgroup, procfs, snapshot, tree
from shared.process.marks import UNKILLED, Marks
from shared.process.snapshot import Key, Process

LOOK_FIRST_S = 0.02
LOOK_MOST_S = 0.5
END_BOUND_S = 0.1
CHASE_IDLE = 20
STUCK_S = 0.5  # what was killed this long ago, with nothing new beside it, will not end now


class Sweep:
    """One try at what is left of one launch.

    Attributes:
        asked, killed: Who was asked to end, and who was killed.
    """

    def __init__(self, marks: Marks, leaf: Leaf | None, spared: Iterable[Key]) -> None:
        """Take the marks to go by, and who is never signalled, whatever marks it bears."""
        self._marks = marks
        self._leaf = leaf
        self._spared = frozenset(spared)
        self._open: dict[Key, int] = {}
        self._refused: set[Key] = set()
        self.asked: set[Key] = set()
        self.killed: set[Key] = set()

    def ask(self, grace_s: float) -> None:
        """TERM to everything found, with CONT so that a stopped one hears it; wait for the ends, at most the grace."""
        until = time.monotonic() + grace_s
        look_s = LOOK_FIRST_S
        try:
            while True:
                for process in self._take_hold(self.asked):
                    if self._send(process.key, signal.SIGTERM):
                        self.asked.add(process.key)
                        self._send(process.key, signal.SIGCONT)
                left_s = until - time.monotonic()
                is_over = not self._living(min(look_s, max(0.0, left_s))) and not self.find()
                if is_over or left_s <= 0:
                    return
                look_s = min(LOOK_MOST_S, 2 * look_s)
        finally:
            self._let_go()

    def kill(self, bound_s: float) -> bool:
        """Kill its cgroup at once; stop whatever else is found until nothing new shows up twice, then kill it; again until none
        is found.

        Returns: False when something is left that did not end, or is not ours to signal.
        """
        until = time.monotonic() + bound_s
        fresh_at = time.monotonic()
        try:
            while time.monotonic() < until:
                self._kill_leaf()
                if self._freeze(until):
                    fresh_at = time.monotonic()
                for key in list(self._open):
                    if self._send(key, signal.SIGKILL):
                        self.killed.add(key)
                living = self._living(END_BOUND_S, all_of_them=True)
                if not living:
                    return True
                if not living - self._refused or time.monotonic() - fresh_at > STUCK_S:
                    return False
            return False
        finally:
            self._let_go()

    def find(self, known: Iterable[Key] = ()) -> list[Process]:
        """What bears a mark that is reason enough to kill."""
        table = snapshot.take()
        marked = self._marks.of(table, known={*known, *self._spared})
        return [table.table[pid] for pid, marks in marked.items() if not UNKILLED.issuperset(marks)]

    def _freeze(self, until: float) -> bool:
        """Stop all of it; True when there was something new."""
        has_found = self._chase(until)
        quiet = 0
        while quiet < 2 and time.monotonic() < until:
            fresh = self._take_hold(self._open)
            for process in fresh:
                self._send(process.key, signal.SIGSTOP)
            has_found = has_found or bool(fresh)
            quiet = 0 if fresh else quiet + 1
        return has_found

    def _chase(self, until: float) -> bool:
        """Stop what forks on from process to process, each gone before a whole table is read: look at each new pid at once, until
        some looks in a row show nothing new that is ours. True when one was stopped.
        """
        seen: set[int] = set()
        has_stopped = False
        idle = 0
        while idle < CHASE_IDLE and time.monotonic() < until:
            pids = set(procfs.all_pids())
            fresh, seen = pids - seen, pids
            hits = [pid for pid in fresh if self._stop_at_once(pid)]
            has_stopped = has_stopped or bool(hits)
            idle = 0 if hits else idle + 1
        return has_stopped

    def _stop_at_once(self, pid: int) -> bool:
        """Stop the process if what it carries marks it; opened first, so what is read then is of it, or it is gone."""
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return False
        process = snapshot.read(pid) if self._marks.is_carried(pid) else None
        if (
            process is None
            or process.ended
            or process.key in self._open
            or self._marks.is_spared(process, self._spared)
        ):
            os.close(fd)
            return False
        self._open[process.key] = fd
        self._send(process.key, signal.SIGSTOP)
        return True

    def _kill_leaf(self) -> None:
        if self._leaf is None or cgroup.is_empty(self._leaf.path, self._leaf.inode) is not False:
            return
        inside = [snapshot.read(pid) for pid in self._marks.members()]
        self.killed |= {process.key for process in inside if process is not None}
        at = Boundary.STOP_SIGNAL
        cgroup.kill(self._leaf.path, at, functools.partial(tree.kill_one, at=at))

    def _take_hold(self, known: Iterable[Key]) -> list[Process]:
        """Open what is found anew; of a process that is not as it was found any more, the next look decides."""
        held = []
        for process in self.find(known):
            if process.key in self._open:
                continue
            try:
                fd = os.pidfd_open(process.pid)
            except OSError:
                continue
            now = snapshot.read(process.pid)
            if now is None or (now.key, now.ppid, now.session) != (process.key, process.ppid, process.session):
                os.close(fd)
                continue
            self._open[process.key] = fd
            held.append(process)
        return held

    def _send(self, key: Key, number: int) -> bool:
        try:
            boundary.pidfd_kill(self._open[key], number, Boundary.STOP_SIGNAL)
        except ProcessLookupError:
            return False
        except PermissionError:
            self._refused.add(key)
            return False
        return True

    def _living(self, bound_s: float, *, all_of_them: bool = False) -> set[Key]:
        """Who of those held has not ended, after waiting for the next end, or for all of them."""
        until = time.monotonic() + bound_s
        while True:
            poll = select.poll()
            for fd in self._open.values():
                poll.register(fd, select.POLLIN)
            ended = {fd for fd, _ in poll.poll(0)}
            living = {key: fd for key, fd in self._open.items() if fd not in ended}
            left_s = until - time.monotonic()
            if not living or left_s <= 0:
                return set(living)
            waiting = select.poll()
            for fd in living.values():
                waiting.register(fd, select.POLLIN)
            if not waiting.poll(left_s * 1000) or not all_of_them:
                until = 0

    def _let_go(self) -> None:
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()
