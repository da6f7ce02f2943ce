"""The person of a history: asks for what people ask for, and answers what only somebody who looks can."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

from chaos.simulation.actors import Stage
from chaos.simulation.harm import WORDS, Harm, Kind
from chaos.simulation.jobs import Job as Behaviour
from chaos.simulation.processes import KILL, Process
from chaos.simulation.wishes import Wishes
from chaos.simulation.words import Words
from chaos.speech import END
from chaos.witness import Mark
from coordinator.gates import APPROVAL
from shared.errors import RefusedError, StoreBusyError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import Attempt
from shared.model.instant import US_PER_S
from shared.model.work import NewWork, Reason
from shared.policy.settle import ending_of_status
from shared.store.contract import PERSON, ReadTx, Store
from shared.store.settling import change_after
from shared.store.values import GateVerdict

SUBMIT_MOST_US = 2 * US_PER_S
WISH_MOST_US = 2 * US_PER_S
ASK_MOST_US = 8 * US_PER_S
HELD = (Reason.OVER_BUDGET, Reason.GATE_HELD)
HELD_MAX = 20
REFUSED = 0.2


class Person:
    """Whoever submits, cancels and settles, in one process after the other.

    Attributes:
        asked: The Works that are wanted, in order, each with its pool.
        to_cancel: Works that are to be cancelled, by number, in order.
        mistaken: Works whose stop is confirmed at a wrong epoch.
        cancelled: Works whose cancel was asked for.
        wishes: What is said of Works between their attempts; `words`: while they run or wait.
        harmed: Works whose evidence was destroyed; `is_forgetful`: the store forgot something, of any of them.
    """

    def __init__(self, stage: Stage, behaviours: Sequence[Behaviour], chance: random.Random) -> None:
        self._stage = stage
        self._behaviours = behaviours
        self._chance = chance
        self.asked: list[tuple[NewWork, str]] = []
        self.to_cancel: list[int] = []
        self.mistaken: set[WorkId] = set()
        self.cancelled: set[WorkId] = set()
        self.harmed: set[WorkId] = set()
        self.is_forgetful = False
        self.wishes = Wishes(stage, behaviours, chance)
        self.words = Words(stage, behaviours, chance, self.wishes.accepted)

    def start(self) -> Process:
        """Begin anew, in a process of its own."""
        process = self._stage.table.new("person", "person")
        process.start(lambda: self._ask(process))
        return process

    def want(self, harm: Harm) -> None:
        """Want a Work cancelled, tried again or held, once it is submitted."""
        match harm.kind:
            case Kind.RETRY:
                self.wishes.retry(harm.work)
            case Kind.HOLD:
                self.wishes.hold(harm.work)
            case _ if harm.kind in WORDS:
                self.words.want(harm)
            case _:
                if harm.kind is Kind.MISTAKE:
                    self.mistaken.add(WorkId(f"w{harm.work}"))
                self.to_cancel.append(harm.work)
                self.to_cancel.sort()

    @property
    def is_done(self) -> bool:
        """Everything was asked for."""
        submitted = self._stage.known(last_work)
        return submitted >= len(self.asked) and not self.to_cancel and self._has_said_all

    @property
    def _has_said_all(self) -> bool:
        return self.wishes.is_done and self.words.is_done

    def _ask(self, process: Process) -> None:
        store = self._stage.open(process)
        while True:
            submitted = self._stage.known(last_work)
            busy = submitted < len(self.asked)
            pause_us = SUBMIT_MOST_US // len(self.asked) if busy else ASK_MOST_US
            if not (busy or self._has_said_all):
                pause_us = WISH_MOST_US
            self._stage.baton.sleep(1 + int(self._chance.random() * pause_us))
            try:
                self._settle_unknown(store)
                self._confirm_unproven(store)
                self._settle_held(store)
                if submitted < len(self.asked):
                    work, pool = self.asked[submitted]
                    store.write(lambda tx, work=work, pool=pool: tx.submit(work, pool))  # type: ignore[misc]
                    submitted += 1
                self.wishes.act(store, submitted=submitted)
                self.words.act(store, submitted=submitted)
                while self.to_cancel and self.to_cancel[0] <= submitted:
                    work_id = WorkId(f"w{self.to_cancel[0]}")
                    self.cancelled.add(work_id)
                    store.write(lambda tx, work_id=work_id: tx.cancel_work(work_id, by="a person", reason="enough"))  # type: ignore[misc]
                    self.to_cancel.pop(0)
                    if work_id in self.mistaken:
                        self._confirm_another(store, work_id)
            except StoreBusyError:
                continue
            except RefusedError:
                del self.to_cancel[:1]  # it has ended

    def _confirm_another(self, store: Store, work_id: WorkId) -> None:
        """Say that a Work is stopped, at the epoch that it was at before somebody took it over: it must be refused."""
        attempts = self._stage.look(lambda tx: tx.attempts(work_id))
        if attempts and attempts[-1].epoch > 1:
            last, word = attempts[-1], "I saw it stop"
            with suppress(RefusedError):
                store.write(
                    lambda tx: tx.confirm_stopped(
                        last.id, expected_epoch=last.epoch - 1, proof=PERSON, by="a person", reason=word
                    )
                )

    def _confirm_unproven(self, store: Store) -> None:
        """Say that something is stopped whose records are gone, so that no search can prove it, once nothing of it lives."""
        for order in self._stage.look(lambda tx: tx.stop_orders()):
            is_harmed = self.is_forgetful or work_of(order.attempt_id) in self.harmed
            if order.tries > 1 and is_harmed and not self._has_living(order.attempt_id):
                store.write(
                    lambda tx, order=order: tx.confirm_stopped(  # type: ignore[misc]
                        order.attempt_id, expected_epoch=order.epoch, proof=PERSON, by="a person", reason="seen"
                    )
                )

    def _settle_held(self, store: Store) -> None:
        """Let go what a budget holds; approve what waits for that or, now and then, refuse it."""
        for work in self._stage.look(lambda tx: tx.held_for(HELD, limit=HELD_MAX)):
            with suppress(RefusedError):  # it has changed meanwhile
                if work.reason is Reason.OVER_BUDGET:
                    store.write(lambda tx, name=work.id: tx.release_work(name, by="a person", reason="go on"))  # type: ignore[misc]
                else:
                    self._answer(store, work.id)

    def _answer(self, store: Store, name: WorkId) -> None:
        verdict: GateVerdict = "refused" if self._chance.random() < REFUSED else "admitted"
        if verdict == "refused":
            self.cancelled.add(name)
        key = f"{name}/{verdict}"
        store.write(
            lambda tx: tx.settle_gate(
                name, holder=APPROVAL, verdict=verdict, by="a person", reason="looked at it", key=key
            )
        )

    def _has_living(self, attempt_id: AttemptId) -> bool:
        """Whether anything of an attempt lives, or may yet begin to."""
        lines = [line for line in self._stage.jobs.lines if line.attempt_id == attempt_id]
        began = {line.pid for line in lines if line.mark in (Mark.START, Mark.CHILD)}
        gone = {line.pid for line in lines if line.mark is Mark.GONE}
        return bool(began - gone) or self._may_still_run(attempt_id)

    def _settle_unknown(self, store: Store) -> None:
        """Say how an attempt ended that was left to a person, as the witness tells it, once nothing of it lives."""
        for attempt in self._stage.look(lambda tx: tx.needs_person(limit=10)):
            if self._has_living(attempt.id):
                continue
            behaviour = self._behaviours[int(attempt.work_id[1:]) - 1]
            status = self._status_seen(attempt, behaviour)
            ending = ending_of_status(-KILL if status is None else status, None)
            store.write(
                lambda tx, attempt=attempt, ending=ending: tx.reconcile(  # type: ignore[misc]
                    attempt.id,
                    expected_epoch=attempt.epoch,
                    ending=ending,
                    change=change_after(tx, attempt.id, ending),
                    by="a person",
                    reason="seen",
                )
            )

    def _status_seen(self, attempt: Attempt, behaviour: Behaviour) -> int | None:
        """The status with which the last launch of an attempt came to its end; None: it did not, or never began."""
        jobs = self._stage.jobs
        lines = [line for line in jobs.lines if line.attempt_id == attempt.id]
        epoch = max((line.epoch for line in lines if line.mark is Mark.START), default=0)
        never_began = attempt.pin is not None and attempt.pin.epoch > epoch
        if never_began or not any(line.mark is Mark.END and line.epoch == epoch for line in lines):
            return None
        launch = attempt.id, epoch
        meant = [one.body for one in jobs.memory.said.values() if one.kind == END and one.launch == launch]
        return int(meant[-1]) if meant else behaviour.status_of(attempt.number)

    def _may_still_run(self, attempt_id: AttemptId) -> bool:
        return any(each.launch.startswith(f"{attempt_id}.") for each in self._stage.table.living())


def last_work(tx: ReadTx) -> int:
    """How many Works there are."""
    return tx.last_work_number()
