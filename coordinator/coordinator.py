"""The coordinator: decides what starts and who takes over what. `step()` is a plain call; nothing in it sleeps.

Pass order, also at start-up, before the first timed wait: a jump of the wall clock is recorded → leases of dead workers and other boots → claims not accepted in time →
recovery claims → events that have not woken all yet → due timers → charges → resumes → what lies
outside the queue → start pass → record. Rule: design §3, §5; requirements K04, K05, R15.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from coordinator.aside import Aside
from coordinator.charges import Charges
from coordinator.clock_watch import ClockWatch
from coordinator.gates import Gates
from coordinator.leadership import DeathWatcher, Leadership
from coordinator.marks import Marks
from coordinator.notes import Notes
from coordinator.recovery import Recovery
from coordinator.resumes import Place as WokenPlace
from coordinator.resumes import Resumes
from coordinator.starts import Place, Starts
from coordinator.tally import Tally
from coordinator.timers import Timers
from coordinator.wakes import Wakes
from shared.clock import Clock
from shared.errors import LeadershipLostError, TenureError
from shared.ids import Incarnation
from shared.model.evidence import LockState
from shared.model.host import PassRecord, Worker
from shared.model.instant import US_PER_MS, US_PER_S, Instant
from shared.policy.capacity import POOL_AGENTS, POOL_JOBS
from shared.store.active import NONE, ActiveConfig, in_force
from shared.store.contract import ReadTx, Store

log = logging.getLogger(__name__)

POLL_US = US_PER_S
REPASS_US = 60 * US_PER_S
"""A pass is made at least this often, even when nothing seems to have changed."""


class Coordinator:
    """One coordinator incarnation: leads or stands by."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        leadership: Leadership,
        probe: Callable[[str, int, int], LockState],
        watcher: DeathWatcher,
        gates: Gates | None = None,
    ) -> None:
        """Take the doors.

        Args:
            gates: Asked before the first attempt of a Work; None: nobody is.
            probe: Probes an incarnation's lock file by (incarnation, device, inode).
        """
        self._store = store
        self._clock = clock
        self._leadership = leadership
        self._probe = probe
        self._watcher = watcher
        self._gates = gates or Gates()
        self._watched: set[Incarnation] = set()
        self._notes = Notes(store, clock, leadership)
        self._clock_watch = ClockWatch(store, leadership, self._notes)
        self._marks = Marks(store, self._notes)
        self._aside = Aside(store, leadership, self._marks)
        self._config = NONE
        self._due_us = self._passed_us = clock.now().mono_us
        self._first = self._other_boots = True
        self._is_asked = False
        self._noticed = False
        self._workers: list[Worker] = []
        self._places: dict[str, Place] = {}
        self._woken_places: dict[str, WokenPlace] = {}

    @property
    def leads(self) -> bool:
        """True while it believes that it leads; every transaction checks that anew."""
        return self._leadership.generation is not None

    def notice_death(self) -> None:
        """A watched process ended, a worker's or the leader's: the next step looks. Safe from any thread; wake the step yourself."""
        self._noticed = True

    def notice_decision(self) -> None:
        """A gate decided: as `notice_death`."""
        self._noticed = True

    def step(self) -> int:
        """Do what is due; returns the monotonic microsecond of the next step at the latest.

        Raises:
            StoreBusyError: nothing was written; step again. StoreUnavailableError: exit.
        """
        self._store.check_file()
        if not self.leads:
            if not self._leadership.seek():
                return self._clock.now().mono_us + POLL_US
            self._first = self._other_boots = True
            self._clock_watch.forget()
            self._marks.forget()
            self._aside.forget()
        try:
            return self._lead()
        except LeadershipLostError as error:
            self._leadership.lost(error)
            return self._clock.now().mono_us + POLL_US

    def leave(self) -> None:
        """End gracefully: write what is unwritten, give leadership back."""
        if self.leads:
            try:
                self._notes.flush()
            except LeadershipLostError as error:
                self._leadership.lost(error)
        self._leadership.resign()

    def _lead(self) -> int:
        now = self._clock.now()
        noticed, self._noticed = self._noticed, False
        # Kept until a pass came to its end: one that found the store busy is made again.
        self._is_asked = self._store.changed() or noticed or self._is_asked or self._finds_death()
        jumped_us = self._clock_watch.jump(now)
        if self._first or self._is_asked or jumped_us is not None or now.mono_us >= self._due_us:
            self._is_asked = self._pass(now, jumped_us)
            self._first, self._passed_us = False, now.mono_us
            if self._is_asked:
                return self._clock.now().mono_us
        self._notes.flush_if_due()
        now = self._clock.now()
        self._leadership.renew_if_due(now)
        self._store.checkpoint()
        return self._next_due(now)

    def _next_due(self, now: Instant) -> int:
        due = self._store.read(lambda tx: tx.next_due_mono_us())
        repass_us = self._passed_us + REPASS_US
        self._due_us = repass_us if due is None else min(due, repass_us)
        dues = [self._due_us, self._leadership.renewal_due_us, now.mono_us + POLL_US]
        if self._notes.due_us is not None:
            dues.append(self._notes.due_us)
        return max(min(dues), now.mono_us + US_PER_MS)

    def _pass(self, started: Instant, jumped_us: int | None) -> bool:
        """One pass, and its record, also when it fails. True when a bound cut it short: the next step must follow at once."""
        tally, generation = Tally(), self._leadership.generation or 0
        try:
            self._do_pass(started, jumped_us, tally)
        except Exception as error:
            failed = error.code if isinstance(error, TenureError) else type(error).__name__
            self._add_record(started, jumped_us, tally, generation, failed)
            if not isinstance(error, LeadershipLostError) and getattr(error, "pause_ms", None) is None:
                with suppress(TenureError):  # this process ends of it; a record that cannot be written is lost with it
                    self._notes.flush()
            raise
        self._add_record(started, jumped_us, tally, generation, None)
        return tally.cut_short

    def _do_pass(self, started: Instant, jumped_us: int | None, tally: Tally) -> None:
        """The parts of a pass, in their order."""
        if jumped_us is not None:
            self._clock_watch.record(started, jumped_us)
        self._clock_watch.passed(started)
        config, workers = self._store.read(self._read_world)
        held = self._probe_workers(workers)
        recovery = Recovery(self._store, self._leadership, self._marks, config.config.settings.lease_us)
        done = recovery.run(workers, held, other_boots=self._other_boots)
        self._other_boots = done.other_boots
        tally.count_recovery(revoked=done.revoked, recovered=done.taken, dispatched=done.handed, more=done.more)
        if done.buried:
            workers = self._store.read(lambda tx: tx.workers())
        self._workers = workers
        tally.cut_short = Wakes(self._store, self._leadership).run() or tally.cut_short
        tally.cut_short = Timers(self._store, self._leadership).run().more or tally.cut_short
        tally.cut_short = Charges(self._store, self._leadership).run(config) or tally.cut_short
        Resumes(self._store, self._leadership, self._notes, config, self._woken_places, tally).run(workers, held)
        tally.cut_short = self._aside.run(config) or tally.cut_short
        starts = Starts(
            self._store, self._leadership, self._notes, self._marks, config, self._places, tally, self._gates
        )
        starts.run(workers, held)
        self._marks.review()

    def _add_record(
        self, started: Instant, jumped_us: int | None, tally: Tally, generation: int, error: str | None
    ) -> None:
        trigger = "deadline"
        if self._first:
            trigger = "startup"
        elif jumped_us is not None:
            trigger = "clock"
        elif self._is_asked:
            trigger = "wake"
        waiting = tally.waiting
        record = PassRecord(
            generation=generation,
            trigger=trigger,
            due_at_us=started.wall_us + min(0, self._due_us - started.mono_us),
            started_at_us=started.wall_us,
            duration_us=self._clock.now().mono_us - started.mono_us,
            planned=None,
            claimed=tally.claimed,
            dispatched=tally.dispatched,
            recovered=tally.recovered,
            revoked=tally.revoked,
            waiting_jobs=None if waiting is None else waiting.get(POOL_JOBS, 0),
            waiting_agents=None if waiting is None else waiting.get(POOL_AGENTS, 0),
            cut_short=tally.cut_short,
            clock_jump_us=jumped_us,
            error=error,
        )
        self._notes.add_pass(record)

    def _read_world(self, tx: ReadTx) -> tuple[ActiveConfig, list[Worker]]:
        """The configuration, understood anew only when its row is another one, and the workers."""
        generation, workers = tx.config(), tx.workers()
        if generation != self._config.generation:
            self._config = in_force(tx, generation)
        self._marks.note(tx.skipped)
        self._marks.note_fault(self._config.fault)
        return self._config, workers

    def _probe_workers(self, workers: list[Worker]) -> dict[Incarnation, LockState]:
        """Probe each worker's lock, and have its process watched so that its death wakes this one."""
        names = {worker.id for worker in workers}
        for gone in sorted(self._watched - names):
            self._watcher.unwatch(gone)
        self._watched &= names
        for worker in workers:
            if worker.id not in self._watched and self._watcher.watch(worker.id, worker.identity):
                self._watched.add(worker.id)
        return {worker.id: self._probe_worker(worker) for worker in workers}

    def _finds_death(self) -> bool:
        """Whether a worker's lock has become free: the watch on its process is a wake, and a wake may be lost."""
        return any(self._probe_worker(worker) is LockState.FREE for worker in self._workers)

    def _probe_worker(self, worker: Worker) -> LockState:
        return self._probe(worker.id, worker.lock_device, worker.lock_inode)
