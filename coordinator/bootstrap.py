"""Builds the coordinator process: the only place of this room that names concrete parts."""

from __future__ import annotations

import logging
import os
from collections.abc import Hashable, Iterable
from pathlib import Path

from coordinator.coordinator import Coordinator
from coordinator.gates import ApprovalGate, Asking, Gates
from coordinator.leadership import Candidate, Leadership
from shared import boundary
from shared.child import ChildOptions, Stop, hear_no_more, leave_in_time, listen
from shared.clock import Clock, Wake, host_clock
from shared.commands.arguments import Parser
from shared.errors import StoreUnavailableError, TenureError
from shared.home import Home, check_home, find_home
from shared.ids import Incarnation
from shared.logs import set_up_terminal
from shared.model.evidence import LockState
from shared.model.instant import US_PER_MS
from shared.policy.lease import leader_lease_us, store_wait_us
from shared.process.filelock import IncarnationLock, probe
from shared.process.identity import identify
from shared.process.watcher import Watcher
from shared.store.active import active_config
from shared.store.contract import Store
from shared.store.regress import check_regressed, names_in
from shared.store.sqlite.store import open_store
from shared.wake import COORDINATOR, Bell, Ringer

log = logging.getLogger(__name__)


def main(options: ChildOptions) -> None:
    """Coordinate until asked to stop. Blocks; returns after a graceful end.

    Raises:
        StoreUnavailableError: the store cannot be used.
    """
    home = Home(Path(options.home))
    boundary.arm(home.path)
    clock = host_clock(home.path)
    ringer = Ringer(home.run)
    store = open_store(home.path, clock, ring=ringer, check=True)
    refuse_older(store, names_in(home.attempts))
    name = store.write(lambda tx: tx.next_incarnation(COORDINATOR))
    lock = IncarnationLock.take(home.run / f"{name}.lock")
    bell = Bell(home.run, name)

    def died(_key: Hashable) -> None:
        coordinator.notice_death()
        bell.ring()

    def gate_decided() -> None:
        coordinator.notice_decision()
        bell.ring()

    watcher = Watcher(died)

    def probe_lock(owner: str, device: int, inode: int) -> LockState:
        return probe(home.run / f"{owner}.lock", device, inode)

    candidate = Candidate(Incarnation(name), identify(os.getpid()), lock.device, lock.inode)
    lease_us = leader_lease_us(store.read(active_config).config.settings.lease_us)
    store.bound_waits(store_wait_us(lease_us))
    leadership = Leadership(
        store, clock, candidate, probe_lock, watcher, lambda: bell.also_as(COORDINATOR), lease_us=lease_us
    )
    asking = Asking()
    gates = Gates([ApprovalGate()], submit=asking.submit, answered=gate_decided)
    coordinator = Coordinator(store, clock, leadership, probe_lock, watcher, gates)
    options.stop.on_ask(bell.ring)
    log.info("coordinator.started", extra={"coordinator": name, "pid": os.getpid()})
    try:
        run(coordinator, clock, bell, options.stop)
        log.info("coordinator.left", extra={"coordinator": name})
    finally:
        watcher.close()
        asking.close()
        bell.close()
        store.close()
        ringer.close()
        lock.release()


def refuse_older(store: Store, names: Iterable[str]) -> None:
    """Go no further with a store that is older than the directories of that name.

    Raises:
        StoreUnavailableError: `store_regressed`.
    """
    older = check_regressed(store, names)
    if older:
        raise StoreUnavailableError(
            "store_regressed", f"the store is older than its home: {older[0]}", hint="see `tenure doctor`"
        )


def run(coordinator: Coordinator, clock: Clock, bell: Wake, stop: Stop) -> None:
    """Step until asked to stop, then leave."""
    put_off = False
    while not stop.asked:
        try:
            due = coordinator.step()
            put_off = False
        except TenureError as error:
            if error.pause_ms is None:
                raise
            level = logging.DEBUG if put_off else logging.WARNING  # said once, until a step succeeds
            log.log(level, "step.put_off", extra={"code": error.code, "why": str(error)})
            put_off = True
            due = clock.now().mono_us + error.pause_ms * US_PER_MS
        clock.wait(due, bell)
    leave_in_time(coordinator.leave, clock)


def command(argv: list[str], *, home: str | None) -> int:
    """`tenure coordinator`: one coordinator alone, logging to standard error; for a service manager."""
    parser = Parser("tenure coordinator", "Run one coordinator, in the foreground.")
    parser.add_argument("--log-json", action="store_true", help="log JSON lines")
    arguments = parser.parse(argv)
    path = find_home(home, os.environ, Path.cwd())
    check_home(path)
    set_up_terminal(logging.INFO, json=arguments.log_json)
    options = ChildOptions(home=str(path), name=COORDINATOR)
    listen(options)
    try:
        main(options)
    finally:
        hear_no_more()
    return 0
