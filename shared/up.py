"""`tenure up`: a coordinator and workers on this host, in this terminal, until Ctrl-C.

A small parent. It knows its children as strings, activates a changed configuration before it starts them, and from then on
holds no store connection, except for `--until-idle`. What it has to say is a line for people, or with `--log-json` an event.

Rule: design §6 (the parent), §12 (`up`, exit codes).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shared import logs, presence, supervise
from shared.child import DRAIN_MAX_US, DRAIN_S, ChildOptions
from shared.clock import Clock, SystemClock
from shared.commands.arguments import Parser, whole_number
from shared.commands.durations import duration_us
from shared.config.durations import format_duration
from shared.errors import RefusedError, StoreBusyError, StoreUnavailableError, TenureError
from shared.home import Home, check_home, find_home
from shared.model.instant import US_PER_MS, US_PER_S
from shared.supervise import Plan, SignalPipe, Supervisor

if TYPE_CHECKING:
    from shared.store.contract import IdleState, Store

WORKERS = 2
WORKERS_MAX = 64
LEFTOVERS_BOUND_US = 10 * US_PER_S
LEFTOVERS_PAUSE_US = 100 * US_PER_MS
NAMED_MAX = 20
IDLE_LOOK_US = 200 * US_PER_MS  # how often `--until-idle` looks whether the store has changed

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """The command line of `tenure up`, checked.

    Attributes:
        drain_s: What the running jobs get at the first Ctrl-C, in seconds.
    """

    workers: int = WORKERS
    until_idle: bool = False
    drain_s: float = DRAIN_S
    log_json: bool = False
    verbose: bool = False


def main(argv: list[str], *, home: str | None) -> int:
    """Run until a signal, or until idle; the exit code of design §12.

    Raises:
        UsageError, ConfigError: the command line or the configuration is wrong; nothing was started.
        StoreUnavailableError: the home or its store cannot be used.
        RefusedError: another `tenure up` has this home.
    """
    options = parse(argv)
    place = check_home(find_home(home, os.environ, Path.cwd()))
    clock = SystemClock()
    plans = [Plan("coordinator", "coordinator.bootstrap:main")]
    plans += [Plan(f"worker-{number}", "worker.bootstrap:main") for number in range(1, options.workers + 1)]
    return serve(
        place,
        plans,
        options,
        clock=clock,
        activate=lambda: _activate_changed_config(place, clock),
        open_store=lambda: _open_store(place, clock),
    )


def parse(argv: Sequence[str]) -> Options:
    """The command line.

    Raises:
        UsageError: it is wrong.
        SystemExit: `--help` was asked for and answered.
    """
    parser = Parser("tenure up", "Run a coordinator and workers on this host; Ctrl-C drains.")
    parser.add_argument("--workers", default=str(WORKERS), metavar="N", help=f"worker processes ({WORKERS})")
    parser.add_argument(
        "--until-idle",
        action="store_true",
        help="exit 0 once nothing is live or waiting; 1, naming them, once all that is left waits for a person",
    )
    parser.add_argument(
        "--drain",
        default=format_duration(round(DRAIN_S * US_PER_S)),
        metavar="TIME",
        help="time for running jobs at the end: 500ms, 30s, 5m, 0s (%(default)s)",
    )
    parser.add_argument("--log-json", action="store_true", help="one JSON object a line instead of text")
    parser.add_argument("--verbose", action="store_true", help="log what is of use to developers too")
    given = parser.parse(argv)
    workers = whole_number(given.workers, "--workers", least=0, most=WORKERS_MAX)
    drain_us = duration_us(given.drain, "--drain", most_us=DRAIN_MAX_US)
    return Options(workers, given.until_idle, drain_us / US_PER_S, given.log_json, given.verbose)


def serve(
    place: Home,
    plans: Sequence[Plan],
    options: Options,
    *,
    clock: Clock,
    activate: Callable[[], str | None],
    open_store: Callable[[], Store],
    leftovers_bound_us: int = LEFTOVERS_BOUND_US,
) -> int:
    """Keep the planned children running on this home until asked to end them; returns the exit code.

    Args:
        activate: Called once, alone on this home, before any child is started; says in a line what it changed, if anything.
        open_store: For `--until-idle`, and to name the leader when this `up` is refused.
        leftovers_bound_us: How long the children of an `up` that was killed are waited for.

    Raises: what `activate` raises, and RefusedError when another `tenure up` has this home.
    """
    level = logging.DEBUG if options.verbose else logging.INFO
    terminal = logs.set_up_terminal(level, json=options.log_json)
    voice = _Voice(terminal, json=options.log_json)
    with ExitStack() as stack:
        try:
            lock = presence.hold_up(place.run, clock)
        except OSError as error:
            raise StoreUnavailableError("io_error", f"{place.run} cannot be used: {error.strerror}") from error
        if lock is None:
            raise RefusedError(
                _who_runs(place, open_store, clock), hint="Ctrl-C there ends it; `tenure status` shows it"
            )
        stack.callback(os.close, lock)
        signals = stack.enter_context(SignalPipe())
        changed = activate()
        if _wait_for_leftovers(place, clock, signals, voice, leftovers_bound_us):
            return 0
        os.chdir(place.path)  # spawning needs a working directory, and the one we were started in may be removed
        supervise.prepare()
        supervisor = Supervisor(
            plans,
            options_for=lambda name: ChildOptions(
                home=str(place.path), name=name, drain_s=options.drain_s, parent_pid=os.getpid(), log_level=level
            ),
            terminal=terminal,
            clock=clock,
            report=voice,
            on_end=lambda name, pid: presence.forget_child(place.run, name, pid),
            drain_s=options.drain_s,
        )
        stack.callback(supervisor.end_now)
        supervisor.advance()
        _greet(voice, place, supervisor, options, changed)
        idle = None
        if options.until_idle:
            idle = IdleWatch(stack.enter_context(closing(open_store())), voice)
        return _loop(supervisor, signals, clock, voice, idle)


class IdleWatch:
    """Asks the store whether there is anything left to do; reads it only after a commit of somebody else's."""

    def __init__(self, store: Store, voice: supervise.Report) -> None:
        self._store = store
        self._voice = voice
        self._unread = False

    def verdict(self) -> int | None:
        """The exit code once nothing is live or waiting (0), or all that is left waits for a person (1, named); else None."""
        try:
            self._unread |= self._store.changed()
            if not self._unread:
                return None
            state: IdleState = self._store.read(lambda tx: tx.idle_state())
        except StoreBusyError:
            return None
        self._unread = False
        if state.live or state.waiting:
            return None
        if not state.needs_person:
            self._voice("up.idle", "nothing is live or waiting: ending")
            return 0
        names = ", ".join(state.needs_person[:NAMED_MAX]) + (" …" if len(state.needs_person) > NAMED_MAX else "")
        self._voice("up.needs_person", f"waiting for a person: {names}", names=list(state.needs_person))
        return 1


def _loop(
    supervisor: Supervisor, signals: SignalPipe, clock: Clock, voice: supervise.Report, idle: IdleWatch | None
) -> int:
    verdict: int | None = None
    while True:
        due_us = supervisor.advance()
        if supervisor.ended:
            return verdict or supervisor.code
        if idle is not None and verdict is None and not supervisor.ending:
            verdict = idle.verdict()
            if verdict is not None:
                supervisor.end()
                continue
            look_us = clock.now().mono_us + IDLE_LOOK_US
            due_us = look_us if due_us is None else min(due_us, look_us)
        asked = signals.wait(None if due_us is None else max(0, due_us - clock.now().mono_us) / US_PER_S)
        for _ in range(asked):
            line = "ending at once" if supervisor.ending else "ending: running jobs get their drain; again ends at once"
            voice("up.ending", line)
            supervisor.end()


def _wait_for_leftovers(place: Home, clock: Clock, signals: SignalPipe, voice: supervise.Report, bound_us: int) -> bool:
    """Give the children of an `up` that was killed the time to end; True when asked to end meanwhile.

    Those that outstay it (stopped, say) are started beside: leases and epochs keep them harmless.
    """
    until_us = clock.now().mono_us + bound_us
    told: set[presence.Presence] = set()
    while left := presence.children(place.run):
        for each in left:
            if each not in told:
                line = f"{each.name} (pid {each.pid}) of an earlier tenure up is still ending, waiting for it"
                voice("up.leftover", line, child=each.name, pid=each.pid)
        told.update(left)
        if clock.now().mono_us >= until_us:
            names = ", ".join(f"{each.name} (pid {each.pid})" for each in left)
            voice("up.leftover_stays", f"starting beside {names}: its leases are fenced, it does no harm")
            break
        if signals.wait(LEFTOVERS_PAUSE_US / US_PER_S):
            return True
    return False


def _greet(voice: supervise.Report, place: Home, supervisor: Supervisor, options: Options, changed: str | None) -> None:
    pids = supervisor.pids()
    rows = [("home", str(place.path)), ("pid", str(os.getpid()))]
    rows += [("config", changed)] if changed else []
    rows += [(name, f"pid {pid}") for name, pid in pids.items()]
    rows += [("stop", f"Ctrl-C: running jobs get {options.drain_s:g} s; again: at once. What still runs lives on.")]
    lines = ["tenure up", *(f"  {name:<12} {text}" for name, text in rows)]
    voice("up.started", "\n".join(lines), home=str(place.path), pid=os.getpid(), children=pids, config=changed)


def _who_runs(place: Home, open_store: Callable[[], Store], clock: Clock) -> str:
    pid = presence.up_pid(place.run)
    line = f"{place.path} has its tenure up already{f' (pid {pid})' if pid else ''}"
    try:
        with closing(open_store()) as store:
            leader = store.read(lambda tx: tx.leader())
    except TenureError:  # the refusal stands, also when the store cannot say more
        return line
    now = clock.now()
    if leader is None or leader.boot_id != now.boot_id or leader.expires_mono_us <= now.mono_us:
        return f"{line}; nobody leads just now"
    return f"{line}; {leader.owner} (pid {leader.pid}) leads"


def _activate_changed_config(place: Home, clock: Clock) -> str | None:
    """Make the file last applied the active configuration if it says something new; returns that in words.

    A file that has vanished changes nothing: the store holds the whole active configuration, and a host that restarts should not
    stay down for a file in `/tmp`.
    """
    from shared.config.loader import load  # with pydantic, for this one moment of a parent's long life

    with closing(_open_store(place, clock)) as store:
        active = store.read(lambda tx: tx.config())
        source = place.config_path if active is None else Path(active.source_path)
        if active is not None and not source.exists():
            return f"{source} is gone; generation {active.number} stays active"
        config = load(source)
        body, digest = config.to_json(), config.digest
        if active is not None and active.digest == digest and active.is_readable:
            return None
        generation = store.write(lambda tx: tx.activate_config(body, digest, str(source)))
    return f"{source} has changed: generation {generation} is active"


def _open_store(place: Home, clock: Clock) -> Store:
    from shared.store.sqlite.store import open_store  # lazily: the parent holds no store while it only waits

    return open_store(place.path, clock)


class _Voice:
    """What `up` itself has to say: lines for people, or events with `--log-json`."""

    def __init__(self, terminal: logs.TerminalHandler, *, json: bool) -> None:
        self._terminal = terminal
        self._json = json

    def __call__(self, event: str, line: str, /, **facts: object) -> None:
        if self._json:
            log.info(event, extra=facts)
            return
        for part in line.split("\n"):
            self._terminal.say(part)
