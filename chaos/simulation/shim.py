"""Zygote, shim, child and job as simulated processes, which reach the boundaries of the real ones in the real order.

A mirror of `shared/process/{zygote,shim,reaper}.py`, step by step; that the two agree is asserted by tests. Rule: design §7, §9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.simulation.baton import Baton, Signal
from chaos.simulation.files import ChildFacts, Directory, Record
from chaos.simulation.jobs import Jobs
from chaos.simulation.processes import KILL, TERM, Process, Processes
from shared.boundary import Boundary, Side, reached
from shared.model.evidence import ExitRecord
from shared.model.instant import US_PER_MS, US_PER_S
from shared.process.launcher import LaunchSpec
from shared.process.reaper import KILL_INTERVAL_S
from shared.process.record import CHILD_AT, EXIT_AT
from shared.process.shim import ENDED, FAULT, GATE_TIMEOUT_S, LOCK_RETRY_S, NOT_RELEASED

LOCK_PAUSE_US = 5 * US_PER_MS
EXEC_FAILED = 127
NO_SUCH_FILE = "exec: ENOENT: No such file or directory"


class Gate:
    """A pair of connected sockets: the worker's end, and the shim's.

    Attributes:
        order: What the worker sent ahead of GO; `ready`: the shim's answer, or the word of its failure.
        is_open, is_served: The worker's end, and the shim's, are open.
        said_go: GO was sent, and is not lost with the end it was sent from.
    """

    def __init__(self, baton: Baton) -> None:
        self.order: LaunchSpec | None = None
        self.ready: tuple[Process, int] | str | None = None
        self.is_open = True
        self.is_served = True
        self.said_go = False
        self.changed = Signal(baton)

    def close(self) -> None:
        """Shut the worker's end."""
        self.is_open = False
        self.changed.notify()

    def leave(self) -> None:
        """Shut the shim's end."""
        self.is_served = False
        self.changed.notify()


@dataclass(eq=False)
class Launching:
    """What zygote, shim and child of one launch work with."""

    baton: Baton
    table: Processes
    directory: Directory
    gate: Gate
    jobs: Jobs

    def serve(self, zygote: Process, parent: Process) -> None:
        """The zygote's part: fork the shim.

        Args:
            parent: Whose child the shim becomes: the zygote, which may be of one use only.
        """
        reached(Boundary.SHIM_FORK, Side.BEFORE)
        shim = self.table.new(
            f"shim:{self.directory.name}", "shim", parent=parent, worker=zygote.worker, launch=self.directory.name
        )
        shim.is_subreaper = True
        shim.at_end.append(self.gate.leave)
        shim.start(_Shim(self, shim).live)
        reached(Boundary.SHIM_FORK, Side.AFTER)


class _Shim:
    """One shim's life."""

    def __init__(self, launching: Launching, process: Process) -> None:
        self._baton = launching.baton
        self._table = launching.table
        self._directory = launching.directory
        self._gate = launching.gate
        self._jobs = launching.jobs
        self._process = process
        self._child: Process | None = None
        self._error: str | None = None
        self._has_execed = False
        self._status: int | None = None
        self._stop: str | None = None
        self._kill_at_us: int | None = None
        self._grace_us = 0

    def live(self) -> None:
        """From its lock to its exit record."""
        self._process.end(self._live())

    def _live(self) -> int:
        gate, process = self._gate, self._process
        while gate.order is None:
            if not gate.is_open:
                return FAULT
            gate.changed.wait(self._baton.mono_us + 60 * US_PER_S)
        spec = gate.order
        lock_ino = self._take_lock()
        if lock_ino is None:
            gate.ready = "BlockingIOError: lock"
            gate.leave()
            return FAULT
        if self._directory.channel is not None:
            self._directory.channel.readers.append(process)
        reached(Boundary.READY_SEND, Side.BEFORE)
        gate.ready = (process, lock_ino)
        gate.changed.notify()
        reached(Boundary.READY_SEND, Side.AFTER)
        if not self._is_released():
            return NOT_RELEASED
        reached(Boundary.GO_RECEIVE, Side.AFTER)
        self._grace_us = int(spec.grace_s * US_PER_S)
        self._fork_child(spec)
        self._await_exec()
        self._reap_all()
        self._publish(out_counts=spec.out_counts)
        return ENDED

    def _take_lock(self) -> int | None:
        directory = self._directory
        if directory.lock is None:
            directory.lock = _new_lock(self._jobs)
        deadline_us = self._baton.mono_us + int(LOCK_RETRY_S * US_PER_S)
        while True:
            reached(Boundary.SHIM_LOCK, Side.BEFORE)
            if directory.lock.take(self._process):
                reached(Boundary.SHIM_LOCK, Side.AFTER)
                return directory.lock.inode
            if self._baton.mono_us > deadline_us:
                return None
            self._baton.sleep(LOCK_PAUSE_US)

    def _is_released(self) -> bool:
        gate, process = self._gate, self._process
        deadline_us = self._baton.mono_us + int(GATE_TIMEOUT_S * US_PER_S)
        while not gate.said_go and gate.is_open:
            if self._baton.mono_us >= deadline_us:
                return False
            gate.changed.wait(deadline_us)
        process.hears_term = True
        self._baton.hand_over()
        return gate.said_go and not process.term_asked

    def _fork_child(self, spec: LaunchSpec) -> None:
        reached(Boundary.CHILD_FORK, Side.BEFORE)
        name, shim = self._directory.name, self._process
        child = self._table.new(f"child:{name}", "child", parent=shim, worker=shim.worker, launch=name)
        child.hears_term = False
        lock = self._directory.lock
        if lock is not None:
            lock.inherit(child)
        if self._directory.channel is not None:
            self._directory.channel.readers.append(child)
        self._child = child
        child.start(lambda: self._become_job(child, spec))
        reached(Boundary.CHILD_FORK, Side.AFTER)

    def _await_exec(self) -> None:
        child = self._child
        assert child is not None, "forked just before"
        while child.is_alive and not self._has_execed and self._error is None:
            if self._process.term_asked:
                return
            self._process.changed.wait(self._baton.mono_us + 250 * US_PER_MS)
        reached(Boundary.CHILD_EXEC, Side.AFTER)

    # --- the reaper

    def _reap_all(self) -> None:
        while not self._reap():
            if self._status is not None and self._stop is None:
                self._begin_stop("stragglers")
            if self._wait() and self._stop is None:
                self._begin_stop("request")

    def _reap(self) -> bool:
        for process in [each for each in self._process.children if not each.is_alive]:
            self._table.reap(process)
            if process is self._child:
                self._status = process.status
                reached(Boundary.CHILD_REAP, Side.AFTER)
        return not self._process.children

    def _begin_stop(self, why: str) -> None:
        self._stop = why
        self._kill_at_us = self._baton.mono_us + self._grace_us
        for process in self._below():
            reached(Boundary.TREE_SIGNAL, Side.BEFORE)
            process.signal(TERM)
            _go_on(process)
            reached(Boundary.TREE_SIGNAL, Side.AFTER)

    def _wait(self) -> bool:
        """Wait for a signal or the next kill; True: it was TERM."""
        process = self._process
        until_us = self._baton.mono_us + 60 * US_PER_S
        if self._kill_at_us is not None:
            if self._baton.mono_us >= self._kill_at_us:
                for each in self._below():
                    reached(Boundary.TREE_SIGNAL, Side.BEFORE)
                    each.signal(KILL)
                    reached(Boundary.TREE_SIGNAL, Side.AFTER)
                until_us = self._baton.mono_us + int(KILL_INTERVAL_S * US_PER_S)
            else:
                until_us = self._kill_at_us
        if not process.term_asked and all(each.is_alive for each in process.children):
            process.changed.wait(until_us)
        asked, process.term_asked = process.term_asked, False
        return asked

    def _below(self) -> list[Process]:
        return [each for each in self._table.living() if self._process in each.above()]

    def _publish(self, *, out_counts: bool) -> None:
        directory = self._directory
        if self._error is not None and directory.exit is not None:
            return  # by the child, whose exec failed
        ran = self._error is None and directory.child is not None
        record = ExitRecord(
            status=self._status if ran else None, ran=ran, error=self._error, stop=self._stop, tree_empty=True
        )
        if out_counts:
            reached(Boundary.OUTPUT_SYNC, Side.BEFORE)
            directory.output_synced = len(directory.output)
            reached(Boundary.OUTPUT_SYNC, Side.AFTER)
        _publish(directory, "exit", record, EXIT_AT)

    # --- in the child

    def _become_job(self, child: Process, spec: LaunchSpec) -> None:
        directory = self._directory
        job = self._jobs.of(spec)
        if directory.tree_lock is None:
            directory.tree_lock = _new_lock(self._jobs)
        reached(Boundary.TREE_LOCK, Side.BEFORE)
        while not directory.tree_lock.share(child):
            self._baton.sleep(US_PER_MS)
        reached(Boundary.TREE_LOCK, Side.AFTER)
        _publish(directory, "child", ChildFacts(child.identity, self._process.identity), CHILD_AT)
        reached(Boundary.CHILD_EXEC, Side.BEFORE)
        if job.is_missing:
            self._report(child, NO_SUCH_FILE)
            return
        if directory.lock is not None:
            directory.lock.let_go(child)  # close-on-exec
        self._has_execed = True
        child.ignores_term = job.ignores_term
        self._process.changed.notify()
        self._jobs.run(child, spec, job, directory)

    def _report(self, child: Process, error: str) -> None:
        record = ExitRecord(status=None, ran=False, error=error, stop=None, tree_empty=True)
        _publish(self._directory, "exit", record, EXIT_AT)
        self._error = error
        self._process.changed.notify()
        child.end(EXEC_FAILED)


def _go_on(process: Process) -> None:
    """CONT."""
    if process.is_alive and process.stopped_until_us:
        process.resume()


def _new_lock(jobs: Jobs) -> Any:
    from chaos.simulation.files import FileLock

    return FileLock(jobs.disk.inode())


def _publish(directory: Directory, name: str, value: Any, at: tuple[Boundary, Boundary, Boundary]) -> None:
    """See `shared.process.record.publish`: renamed, then synced, then its entry synced."""
    reached(at[0], Side.BEFORE)
    record: Record[Any] = Record(value)
    setattr(directory, name, record)
    reached(at[0], Side.AFTER)
    reached(at[1], Side.BEFORE)
    record.content_synced = True
    reached(at[1], Side.AFTER)
    reached(at[2], Side.BEFORE)
    directory.sync()
    reached(at[2], Side.AFTER)
