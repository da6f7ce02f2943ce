"""The worker: holds leases, launches, observes, adopts, settles. `step()` is a plain call; nothing in it sleeps.

Order within a step: renew → what ran out of time → accept new claims → completions (READY → pin → GO; ends; stops) → one commit
for all of that → stop orders. Renewal never depends on launches, output or callbacks. Rule: design §3, §6.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Hashable

from shared.ids import AttemptId
from shared.model.attempt import LeaseKey
from shared.model.instant import US_PER_MS, US_PER_S, Instant
from shared.model.settings import DEFAULT
from shared.policy.lease import beat_due_us, is_adoptable, renewal_due_us, store_wait_us
from shared.policy.steps import is_final_work
from shared.store.active import ActiveConfig, in_force
from shared.store.contract import Assignment, ConfigGeneration, ReadTx, Tx
from worker.batch import Change, Undone
from worker.controls import Controls
from worker.declaring import Declarings
from worker.ending import Endings
from worker.executors.contract import sandbox_of
from worker.holding import Holding, Phase, holding_of
from worker.launching import Launches
from worker.pool import Completion
from worker.ports import Ports, lease_in_force
from worker.stopping import Stops
from worker.streams import Streams

log = logging.getLogger(__name__)

POLL_US = US_PER_S
ACCEPT_BATCH = 64
TIMED_PHASES = (Phase.LAUNCHING, Phase.WATCHING)
"""Phases in which running out of time ends an attempt at once; the others pass by themselves and lead to one of these."""


class Worker:
    """One worker incarnation's decisions and writes; everything slow happens on the pools."""

    def __init__(self, ports: Ports, completions: queue.SimpleQueue[Completion]) -> None:
        """Take the ports, and the queue on which pools and watcher report."""
        self._ports = ports
        self._completions = completions
        self._generation: ConfigGeneration | None = None
        self._lease_us = DEFAULT.settings.lease_us
        self._streams = Streams(ports)
        self._endings = Endings(ports, self._streams, self._launch)
        self._launches = Launches(ports, self._endings)
        self._controls = Controls(ports)
        self._stops = Stops(ports)
        self._declarings = Declarings(ports)
        now = ports.clock.now()
        self._renewal_due_us = now.mono_us
        self._beat_due_us = now.mono_us
        self._draining = self._drain_told = False

    @property
    def held(self) -> int:
        """How many leases it holds."""
        return len(self._ports.holdings)

    def step(self) -> int:
        """Do everything that is due; returns the monotonic microsecond of the next step at the latest.

        Commits: at most one renewal or beat, then at most a few batches.
        Raises:
            RefusedError: this worker was declared gone; it must exit (its jobs live on).
            StoreBusyError: nothing was written; step again.
            StoreUnavailableError: the store cannot be used; exit.
        """
        ports = self._ports
        ports.store.check_file()
        now = ports.clock.now()
        renewed = self._renew(now)
        self._time_out(now)
        if renewed:
            self._endings.examine_untold()
        if not self._draining:
            self._take_assignments(now)
        self._streams.step(now)
        self._apply_completions()
        ports.batch.commit()
        ports.store.read(self._look_for_orders)
        if ports.batch:
            ports.batch.commit()
        return self._next_due(ports.clock.now())

    def _look_for_orders(self, tx: ReadTx) -> None:
        self._controls.take(tx)
        if not self._draining:
            self._stops.take(tx)

    def drain(self) -> None:
        """Take nothing new from now on; keep renewing and observing what is held. The store is told once.

        Raises:
            StoreBusyError, IndeterminateError: it is not told yet; call again.
        """
        self._draining = True
        if not self._drain_told:
            self._ports.store.write(lambda tx: tx.drain_worker(self._ports.me))
            self._drain_told = True

    def leave(self) -> None:
        """Release everything still held (recoverable at once, nothing is killed) and deregister, in one transaction."""
        for holding in list(self._ports.holdings.values()):
            self._ports.drop(holding)
        left = self._ports.store.write(lambda tx: tx.retire_worker(self._ports.me, reason="released"))
        log.info("worker.left", extra={"worker": self._ports.me, "released": left})

    def _renew(self, now: Instant) -> bool:
        """Renew or beat when due; True: leases were renewed."""
        is_due = now.mono_us >= self._renewal_due_us and bool(self._ports.holdings)
        ports = self._ports
        if is_due:
            expected = {
                (holding.attempt_id, holding.key.epoch)
                for holding in ports.holdings.values()
                if holding.phase is not Phase.ACCEPTING
            }
            renewed = ports.store.write(lambda tx: tx.renew(ports.me, lease_us=self._lease_us))
            for holding in list(ports.holdings.values()):
                lease = (holding.attempt_id, holding.key.epoch)
                if lease in renewed:
                    holding.lease_until_mono_us = max(holding.lease_until_mono_us, now.mono_us + self._lease_us)
                elif lease in expected:
                    self._lost(holding)
            for attempt_id, epoch in sorted(renewed):  # in an order that a replay meets again
                if ports.current(attempt_id, epoch) is None:
                    self._give_back(LeaseKey(attempt_id, epoch, ports.me))
            self._renewal_due_us = now.mono_us + renewal_due_us(self._lease_us)
        elif now.mono_us >= self._beat_due_us:
            ports.store.write(lambda tx: tx.beat(ports.me))
        else:
            return False
        self._beat_due_us = now.mono_us + beat_due_us(self._lease_us)
        return is_due

    def _lost(self, holding: Holding) -> None:
        """Look away from an attempt whose lease is gone. Its processes are left alone: whoever adopts it needs them, and whoever
        ended it has ordered their stop. Rule: R08.
        """

        def adoptable(tx: ReadTx) -> bool:
            attempt = tx.attempt(holding.attempt_id)
            work = None if attempt is None else tx.work_outline(attempt.work_id)
            return is_adoptable(
                attempt, holding.key.epoch, work_open=work is not None and not is_final_work(work.state)
            )

        left_to = "recovery" if self._ports.store.read(adoptable) else "its stop order"
        log.warning("lease.lost", extra={"attempt": holding.attempt_id, "epoch": holding.key.epoch, "left_to": left_to})
        self._ports.drop(holding)

    def _give_back(self, key: LeaseKey) -> None:
        """Release a lease of this worker that it dropped (a write it gave up on): nobody would ever act on it again."""

        def apply(tx: Tx) -> None:
            tx.release(key, reason="dropped")

        def released() -> None:
            log.warning("lease.given_back", extra={"attempt": key.attempt_id, "epoch": key.epoch})

        self._ports.batch.add(Change(apply, released, lambda _: None, lambda tx: not lease_in_force(tx, key)))

    def _time_out(self, now: Instant) -> None:
        for holding in list(self._ports.holdings.values()):
            if holding.phase in TIMED_PHASES and now.mono_us >= holding.deadline_mono_us:
                self._endings.time_out(holding)
            elif holding.phase is Phase.WATCHING and self._streams.is_idle(holding):
                self._endings.end_idle(holding)
            elif holding.trail is not None and _is_due(holding.trail.slow_mono_us, now):
                self._write_slow_phase(holding)
            elif holding.phase is Phase.PAUSED and now.mono_us >= holding.look_again_mono_us:
                self._endings.examine(holding)

    def _write_slow_phase(self, holding: Holding) -> None:
        """Show a phase that takes long while it runs; a refused write only leaves the trail short. Rule: E15."""
        key, phases, trail = holding.key, holding.phases(), holding.trail

        def apply(tx: Tx) -> None:
            tx.record_phases(key, phases)

        def written() -> None:
            if trail is not None:
                trail.written(phases)

        self._ports.batch.add(Change(apply, written, lambda _: written(), lambda _: True))

    def _take_assignments(self, now: Instant) -> None:
        ports = self._ports
        active, assignments = ports.store.read(
            lambda tx: (self._changed_config(tx), tx.assignments(ports.me, limit=ACCEPT_BATCH))
        )
        if active is not None:
            self._follow(active, now)
        for assignment in assignments:
            old = ports.holdings.get(assignment.key.attempt_id)
            if old is not None and old.key.epoch == assignment.key.epoch:
                continue
            if old is not None:
                ports.drop(old)
            if not ports.holdings:
                self._renewal_due_us = now.mono_us + renewal_due_us(self._lease_us)
            holding = holding_of(assignment, now)
            ports.holdings[holding.attempt_id] = holding
            ports.batch.add(self._accepting(holding, assignment))

    def _changed_config(self, tx: ReadTx) -> ActiveConfig | None:
        """The configuration in force, when it is not the one followed already."""
        generation = tx.config()
        return None if generation == self._generation else in_force(tx, generation)

    def _follow(self, active: ActiveConfig, now: Instant) -> None:
        """Use the lease duration of the configuration in force, as the claims do from its activation on."""
        self._generation = active.generation
        lease_us = active.config.settings.lease_us
        if lease_us < self._lease_us:
            self._renewal_due_us = min(self._renewal_due_us, now.mono_us)
            self._beat_due_us = min(self._beat_due_us, now.mono_us)
        self._lease_us = lease_us
        self._ports.store.bound_waits(store_wait_us(lease_us))

    def _accepting(self, holding: Holding, assignment: Assignment) -> Change:
        key = assignment.key
        snapshot = assignment.snapshot
        isolated = None if assignment.recovery else snapshot.isolated
        digest, fault = None, None
        if not assignment.recovery:
            digest, fault = sandbox_of(self._ports.executors[snapshot.registration], snapshot)

        def apply(tx: Tx) -> None:
            tx.accept(key, invoke_isolated=isolated, sandbox_digest=digest)

        def accepted() -> None:
            if assignment.recovery:
                self._endings.examine(holding)
            elif fault is not None:
                self._launches.refuse(holding, fault)
            else:
                self._launches.start(holding)

        def undone(error: Undone) -> None:
            log.warning("claim.lost", extra={"attempt": key.attempt_id, "epoch": key.epoch, "why": str(error)})
            self._ports.drop(holding)

        def happened(tx: ReadTx) -> bool:
            lease = tx.lease(key.attempt_id)
            return lease is not None and lease.accepted_at_us is not None and lease_in_force(tx, key)

        return Change(apply, accepted, undone, happened)

    def _apply_completions(self) -> None:
        while True:
            try:
                completion = self._completions.get_nowait()
            except queue.Empty:
                return
            self._apply(completion)

    def _apply(self, completion: Completion) -> None:
        match completion.key:
            case ("launch", LeaseKey() as key):
                self._launches.launched(self._current(key), completion)
            case ("examine", LeaseKey() as key):
                self._endings.examined(self._current(key), completion)
            case ("belt", LeaseKey() as key):
                self._declarings.asked(self._current(key), completion)
            case ("read", LeaseKey() as key):
                holding = self._current(key)
                failed = self._streams.heard(holding, completion)
                if failed is not None and holding is not None:
                    self._endings.observation_failed(holding, failed)
            case ("deliver", str() as attempt_id):
                self._controls.delivered(completion, AttemptId(attempt_id))
            case ("stop", int() as order_id):
                self._stops.stopped(completion, order_id)
            case ("unread", int() as order_id):
                self._stops.heard(completion, order_id)
            case LeaseKey() as key:
                self._endings.gone(self._current(key))
            case other:
                raise_unknown(other)

    def _launch(self, holding: Holding) -> None:
        self._launches.start(holding)

    def _current(self, key: LeaseKey) -> Holding | None:
        return self._ports.current(key.attempt_id, key.epoch)

    def _next_due(self, now: Instant) -> int:
        if not self._completions.empty():
            return now.mono_us
        due = min(self._beat_due_us, now.mono_us + POLL_US)
        if self._ports.holdings:
            held = self._ports.holdings.values()
            timed = [holding.deadline_mono_us for holding in held if holding.phase in TIMED_PHASES]
            paused = [holding.look_again_mono_us for holding in held if holding.phase is Phase.PAUSED]
            slow = [holding.trail.slow_mono_us for holding in held if holding.trail is not None]
            due = min([due, *self._streams.next_due(), *self._controls.next_due()])
            due = min([due, self._renewal_due_us, *timed, *paused, *(at for at in slow if at is not None)])
        return max(due, now.mono_us + US_PER_MS)


def _is_due(at_mono_us: int | None, now: Instant) -> bool:
    return at_mono_us is not None and now.mono_us >= at_mono_us


def raise_unknown(key: Hashable) -> None:
    """A completion that nobody asked for is our own bug."""
    raise AssertionError(f"unknown completion {key!r}")
