"""What is seen of a history from outside while it goes on: who is held now and then, and how much had been committed when."""

from __future__ import annotations

from dataclasses import replace

from chaos.recording import look
from chaos.seen import Look, Tick
from chaos.simulation.actors import Stage
from chaos.speech import Written
from shared.ids import work_of
from shared.model.attempt import AttemptState
from shared.model.instant import US_PER_MS
from shared.store.contract import ReadTx

LOOK_US = 500 * US_PER_MS
ABLE = ("coordinator", "worker", "person")


class Lookout:
    """Looks, and keeps what it saw.

    Attributes:
        looks: In order; `ticks`: at each turn of the store's queue.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.looks: list[Look] = []
        self.ticks: list[Tick] = []
        self._is_disturbed = True
        self._was_able = False
        self._next_us = 0

    def disturb(self) -> None:
        """Something was done to somebody since the last look."""
        self._is_disturbed = True

    def reboot(self) -> None:
        """The monotonic clock begins anew."""
        self.disturb()
        self._next_us = 0

    def tick(self) -> None:
        """Keep how much is committed now."""
        self.ticks.append(Tick(self._stage.last_seq(), self._stage.baton.elapsed_us))

    def look_if_due(self) -> None:
        """Now and then, keep who is held, and whether somebody was able to change it since."""
        baton = self._stage.baton
        if baton.mono_us < self._next_us:
            return
        self._next_us = baton.mono_us + LOOK_US
        able = self._is_able()
        undisturbed = able and self._was_able and not self._is_disturbed
        seen = self._stage.look(lambda tx: look(tx, at_us=baton.elapsed_us, able=undisturbed))
        self.looks.append(replace(seen, quiet=self._stage.look(self._quiet)))
        self._was_able = able
        self._is_disturbed = False

    def _quiet(self, tx: ReadTx) -> frozenset[Written]:
        """When the programs that run, and may not be quiet for ever, wrote last; of what has ended as far as the store knows, nothing."""
        jobs, found = self._stage.jobs, []
        for process in self._stage.table.living():
            last = jobs.memory.last_written(process.launch) if process.role == "child" else None
            if last is None or not jobs.drawn[int(work_of(last.attempt_id)[1:])].idle_us:
                continue
            attempt = tx.attempt(last.attempt_id)
            if attempt is not None and attempt.state is AttemptState.RUNNING and attempt.launch_epoch == last.epoch:
                found.append(last)
        return frozenset(found)

    def _is_able(self) -> bool:
        stage = self._stage
        living = [process for process in stage.table.living() if process.role in ABLE]
        if any(process.stopped_until_us for process in living):
            return False
        if not any(process.is_alive and leader.leads for process, leader in stage.coordinators):
            return False
        present = {process.identity for process in living if process.role == "worker"}
        workers = stage.look(lambda tx: tx.workers())
        return any(worker.identity in present and worker.state == "live" for worker in workers)
