"""Builds a worker process: the only place of this room that names concrete parts."""

from __future__ import annotations

import logging
import os
import queue
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from shared import boundary
from shared.child import DRAIN_MAX_US, DRAIN_S, ChildOptions, Stop, hear_no_more, leave_in_time, listen
from shared.clock import Clock, Wake, host_clock
from shared.commands.arguments import Parser
from shared.commands.durations import duration_us
from shared.config.durations import format_duration
from shared.errors import TenureError, UsageError
from shared.home import Home, check_home, find_home
from shared.ids import AttemptId, Incarnation, is_worker_name
from shared.logs import set_up_terminal
from shared.model.attempt import Snapshot
from shared.model.evidence import Evidence, LockState, Pin, ProcessIdentity
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.stop import StopResult
from shared.presence import running_up
from shared.process.channel import INTERRUPT, Handed, Word, hand_over, say, tell
from shared.process.evidence import any_child_record, read_evidence
from shared.process.filelock import IncarnationLock, holders, probe
from shared.process.identity import identify, machine_id
from shared.process.launcher import ZygoteLauncher
from shared.process.limits import raise_file_limit
from shared.process.output import OUT, Piece, read_from
from shared.process.sandbox import find_bwrap
from shared.process.stopper import stop
from shared.process.watcher import Watcher
from shared.secrets import read_secrets
from shared.store.active import active_config
from shared.store.contract import Registration, Store
from shared.store.sqlite.store import open_store
from shared.wake import COORDINATOR, Bell, Ringer
from worker.batch import Batch
from worker.belt import BeltServer
from worker.environment import job_environment
from worker.executors.agent import AgentExecutor
from worker.executors.claude_code import ClaudeCodeExecutor
from worker.executors.contract import registry
from worker.executors.shell import ShellExecutor
from worker.pool import Completion, TaskPool
from worker.ports import Ports, StopTarget
from worker.quiet import Quiet
from worker.worker import POLL_US, Worker

log = logging.getLogger(__name__)

LAUNCH_THREADS = 8
STOP_THREADS = 4


class LocalHost:
    """This host's launches, below one home; see `worker.ports.HostView`."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def read_evidence(self, pin: Pin) -> Evidence:
        """Everything readable about a pinned launch."""
        return read_evidence(self._home.attempts, pin)

    def child_record_seen(self, attempt_id: AttemptId, since_epoch: int) -> bool | None:
        """Whether any launch of the attempt got as far as registering a child."""
        return any_child_record(self._home.attempts, attempt_id, since_epoch)

    def stop(self, target: StopTarget, quiet: Quiet) -> StopResult:
        """Stop what is left of the attempt and look for the proof."""
        if target.is_interrupted and target.pin is not None:
            say(
                self._home.attempts / target.pin.directory, INTERRUPT
            )  # a courtesy: the signal follows whatever comes of it
        return stop(
            self._home.attempts,
            target.attempt_id,
            target.pin,
            target.isolated,
            target.grace_s,
            ordered=True,
            since_epoch=target.since_epoch,
            accounted=partial(self._ours, target),
            quiet=quiet.scanning,
        )

    def read_output(self, pin: Pin, offset: int, limit: int) -> Piece:
        """See `HostView.read_output`."""
        return read_from(self._home.attempts / pin.directory / OUT, offset, limit)

    def hand_over(self, pin: Pin, words: list[Word]) -> list[Handed]:
        """See `HostView.hand_over`."""
        return hand_over(words, partial(tell, self._home.attempts / pin.directory))

    def _ours(self, target: StopTarget) -> Iterator[ProcessIdentity]:
        """Processes of tenure itself. A bare pid counts only while its holder's own lock proves that it lives."""
        yield from target.workers
        leader = target.leader
        if leader is not None:
            lock = probe(self._home.run / f"{leader.owner}.lock", leader.lock_device, leader.lock_inode)
            if lock is LockState.HELD:
                yield from _identified(leader.pid)
        for pid in holders(self._home.run, COORDINATOR):  # a standby stands in no table
            yield from _identified(pid)
        yield from _identified(running_up(self._home.run))


def _identified(pid: int | None) -> tuple[ProcessIdentity, ...]:
    """The process that has this pid now, if there is one."""
    if pid is None:
        return ()
    try:
        return (identify(pid),)
    except ProcessLookupError:
        return ()


def main(options: ChildOptions) -> None:
    """Work until asked to stop. Blocks; returns after the drain.

    Raises:
        StoreUnavailableError: the store cannot be used. RefusedError: this worker was declared gone.
    """
    home = Home(Path(options.home))
    boundary.arm(home.path)
    raise_file_limit()
    clock = host_clock(home.path)
    with ExitStack() as closing:
        ringer = Ringer(home.run)
        closing.callback(ringer.close)
        store = open_store(home.path, clock, ring=ringer)
        me = Incarnation(store.write(lambda tx: tx.next_incarnation(options.name)))
        lock = IncarnationLock.take(home.run / f"{me}.lock")
        closing.callback(lock.release)
        closing.callback(store.close)
        bell = Bell(home.run, me)
        closing.callback(bell.close)
        completions: queue.SimpleQueue[Completion] = queue.SimpleQueue()

        def completed(completion: Completion) -> None:
            completions.put(completion)
            bell.ring()

        ports = _ports(home, me, store, clock, completed, closing)
        worker = Worker(ports, completions)
        register(store, ports, options.name, identify(os.getpid()), (lock.device, lock.inode))
        options.stop.on_ask(bell.ring)
        log.info("worker.started", extra={"worker": me, "pid": os.getpid()})
        run(worker, clock, bell, options.stop)


def _ports(
    home: Home,
    me: Incarnation,
    store: Store,
    clock: Clock,
    completed: Callable[[Completion], None],
    closing: ExitStack,
) -> Ports:
    """This host's parts, each closed with `closing`."""

    def gone(key: Hashable) -> None:
        completed(Completion(key, None, None))

    watcher = Watcher(gone)
    closing.callback(watcher.close)
    launcher = ZygoteLauncher(home.attempts, home.path)
    closing.callback(launcher.close)
    launches = TaskPool(LAUNCH_THREADS, "launch", completed)
    closing.callback(launches.close)
    stops = TaskPool(STOP_THREADS, "stop", completed)
    closing.callback(stops.close)
    belt = BeltServer(home.attempts, completed)
    closing.callback(belt.stop)
    environment = job_environment(os.environ, prefix=Path(sys.prefix), home=home.path)
    shell = ShellExecutor(environment, find_bwrap(environment["PATH"]), home.attempts)
    return Ports(
        me=me,
        store=store,
        clock=clock,
        launcher=launcher,
        host=LocalHost(home),
        watcher=watcher,
        launches=launches,
        stops=stops,
        executors=registry([shell, AgentExecutor(shell, home.attempts), ClaudeCodeExecutor(shell)]),
        environment_layer=partial(_environment_layer, environ=dict(os.environ)),
        batch=Batch(store),
        belt=belt,
    )


def register(store: Store, ports: Ports, name: str, identity: ProcessIdentity, lock: tuple[int, int]) -> None:
    """Take part from now on.

    Args:
        lock: Device and inode of the incarnation's lock file. It is held already, so that this worker's death can be proven from
            its first claim on.
    """
    device, inode = lock
    registration = Registration(
        id=ports.me,
        name=name,
        identity=identity,
        machine_id=machine_id(),
        lock_device=device,
        lock_inode=inode,
        slots=store.read(active_config).config.settings.slots,
        executors=tuple(ports.executors),
    )
    store.write(lambda tx: tx.register_worker(registration))


def run(worker: Worker, clock: Clock, bell: Wake, stop: Stop) -> None:
    """Step until asked to stop and drained, or the time for that is over; then release the rest."""
    asked_us: int | None = None
    put_off = False
    while True:
        now_us = clock.now().mono_us
        due_us = now_us + POLL_US
        if stop.drain_s is not None:
            asked_us = now_us if asked_us is None else asked_us
            due_us = asked_us + int(stop.drain_s * US_PER_S)
            if worker.held == 0 or now_us >= due_us:
                break
        try:
            if asked_us is not None:
                worker.drain()
            due_us = min(due_us, worker.step())
            put_off = False
        except TenureError as error:
            if error.pause_ms is None:
                raise
            level = logging.DEBUG if put_off else logging.WARNING  # said once, until a step succeeds
            log.log(level, "step.put_off", extra={"code": error.code, "why": str(error)})
            put_off = True
            due_us = min(due_us, now_us + error.pause_ms * US_PER_MS)
        if asked_us is None or worker.held:
            clock.wait(due_us, bell)
    leave_in_time(worker.leave, clock)


def _environment_layer(snapshot: Snapshot, *, environ: Mapping[str, str]) -> Mapping[str, str]:
    return read_secrets(snapshot.secrets, environ)


def command(argv: list[str], *, home: str | None) -> int:
    """`tenure worker`: one worker alone, logging to standard error; for a service manager."""
    parser = Parser("tenure worker", "Run one worker, in the foreground.")
    parser.add_argument("--name", default="worker-1", help="its name; each worker of a home needs its own")
    parser.add_argument(
        "--drain",
        default=format_duration(round(DRAIN_S * US_PER_S)),
        metavar="TIME",
        help="time for running jobs at the end: 500ms, 30s, 5m, 0s (%(default)s)",
    )
    parser.add_argument("--log-json", action="store_true", help="log JSON lines")
    arguments = parser.parse(argv)
    drain_s = duration_us(arguments.drain, "--drain", most_us=DRAIN_MAX_US) / US_PER_S
    if not is_worker_name(arguments.name):
        raise UsageError(f'"{arguments.name}" is no name for a worker', hint="lower-case letters, digits and dashes")
    path = find_home(home, os.environ, Path.cwd())
    check_home(path)
    set_up_terminal(logging.INFO, json=arguments.log_json)
    options = ChildOptions(home=str(path), name=arguments.name, drain_s=drain_s)
    listen(options)
    try:
        main(options)
    finally:
        hear_no_more()
    return 0
