"""Whoever uses tenure while it is harmed: hands jobs in, follows some, cancels some, and settles what is left to a person.

By the commands, as a person would, or through the store where that is planned. What a command says is held against what
became of the job.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from chaos.harness import Harness, Running
from chaos.notes import Word, read_notes
from chaos.random_drill.disk import FULL_WORDS
from chaos.random_drill.load import PlannedJob, Via
from chaos.random_drill.roster import Admission, Roster, new_work
from chaos.witness import Mark
from shared.errors import RefusedError, StoreBusyError, StoreUnavailableError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import Attempt, AttemptState, Ending, FailureClass
from shared.model.cancel import Cancellation
from shared.model.host import StopOrder
from shared.model.intent import Intent, IntentKind
from shared.model.work import Work, WorkState
from shared.store.contract import ReadTx, Tx
from shared.store.settling import change_after

R = TypeVar("R")

BUSY_WORDS = ("was not free within", "holds the store's write lock", FULL_WORDS)
SETTLE_EVERY_S = 0.3
FULL_PAUSE_S = 0.05
TRIES_BEFORE_A_WORD = 3
STORE_UNUSABLE = 3
CANCELS_AT_ONCE = 100
GIVEN_UP = (WorkState.READY, WorkState.BACKOFF, WorkState.WAITING, WorkState.HELD)
CALLS_MAX = 6
"""Commands at once; what is over that waits."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command that handed in a job or followed it came to."""

    job: PlannedJob
    code: int
    out: bytes
    err: str


@dataclass(slots=True)
class Operator:
    """Attributes:
    notes: The file in which programs note what they were told and said.
    meanwhile: Called while the store is busy; whoever holds it may be frozen, and is let go on by this.
    answers: Of `tenure run`.
    troubles: Commands that said what they may not say.
    settled: Attempts that were left to a person, and settled.
    confirmed: Attempts whose stop nothing proved, as others use this host, and commands do; stopped on the operator's word.
    """

    harness: Harness
    roster: Roster
    notes: Path
    meanwhile: Callable[[], None]
    answers: list[Answer] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    settled: set[AttemptId] = field(default_factory=set)
    confirmed: set[AttemptId] = field(default_factory=set)
    _calls: list[tuple[Running, Callable[[Running, int], None]]] = field(default_factory=list)
    _waiting: list[Callable[[], None]] = field(default_factory=list)
    _settle_at: float = 0.0

    def hand_in(self, jobs: tuple[PlannedJob, ...]) -> None:
        """Hand all of them in, each as it is planned; those for the store in one commit."""
        for job in jobs:
            self.roster.expect(job)
        direct = [job for job in jobs if job.via is Via.STORE]
        if direct:
            works = [new_work(job, self.command(job)) for job in direct]
            pools = [job.pool for job in direct]
            names = self.write(lambda tx: [tx.submit(work, pool) for work, pool in zip(works, pools, strict=True)])
            for job, name in zip(direct, names, strict=True):
                self.roster.taken(job, name)
        for job in jobs:
            if job.via is not Via.STORE:
                self.soon(partial(self._hand_in_by_command, job))

    def command(self, job: PlannedJob) -> tuple[str, ...] | None:
        """What a job runs; None: what its binding says."""
        if job.recipe.is_configured:
            return None
        manner, witness = job.recipe.manner, self.harness.witness
        if manner is not None:
            return manner.command(witness.path, self.notes, number=job.number, listens_s=round(job.seconds, 3))
        return self.harness.witness.command(wait=round(job.seconds, 3), status=job.status, body=job.body)

    def cancel(self, job: PlannedJob) -> bool:
        """Cancel it, as planned; False: it has no name yet, ask again later."""
        work_id = self.roster.work_ids.get(job.number)
        if work_id is None or job.cancel is None:
            return job.cancel is None or self.roster.admissions.get(job.number) is Admission.REFUSED
        attempt = self._live_attempt(work_id) if job.cancel.attempt else None
        if job.cancel.command:
            what = attempt.id if attempt is not None else work_id
            words = ["work", "cancel", what, "--reason", "drill", "--wait", "0s"]
            self.soon(lambda: self.call(f"cancel-{what}", words, self._cancelled))
        elif attempt is None:
            self._cancel_in_store(lambda tx: tx.cancel_work(work_id, by="drill", reason="drill"))
        else:
            self._cancel_in_store(lambda tx: _cancel_attempt(tx, attempt))
        return True

    def cancel_waiting(self) -> None:
        """Cancel every Work that waits to be started, for an event, or for a person."""

        def cancel(tx: Tx) -> int:
            waiting = tx.works(states=GIVEN_UP, after=0, limit=CANCELS_AT_ONCE)
            for work in waiting:
                tx.cancel_work(work.id, by="drill", reason="interrupted")
            return len(waiting)

        self._waiting.clear()
        while self.write(cancel):
            self.meanwhile()

    def look(self) -> None:
        """Take the answers of commands that have ended, begin some that wait, settle what waits for a person."""
        for call in list(self._calls):
            running, ended = call
            code = running.process.poll()
            if code is not None:
                self._calls.remove(call)
                ended(running, code)
        while self._waiting and len(self._calls) < CALLS_MAX:
            self._waiting.pop(0)()
        if time.monotonic() >= self._settle_at:
            self._settle_at = time.monotonic() + SETTLE_EVERY_S
            for attempt in self.harness.read(lambda tx: tx.needs_person(limit=16)):
                self._settle(attempt)
            for order in self.harness.read(lambda tx: tx.stop_orders(limit=32)):
                self._confirm(order)

    @property
    def is_done(self) -> bool:
        """No command is under way, and nothing waits for a person."""
        return not self._calls and not self._waiting and not self.harness.read(lambda tx: tx.needs_person(limit=1))

    def note_words(self) -> None:
        """See which works were cancelled or interrupted, by what the store keeps of that, whoever was told."""

        def read(tx: ReadTx) -> tuple[list[Cancellation], list[Intent]]:
            names = list(self.roster.work_ids.values())
            cancels = [found for name in names for found in tx.cancellations(name)]
            return cancels, [found for name in names for found in tx.intents(name)]

        cancels, intents = self.harness.read(read)
        self.roster.cancelled |= {found.work_id for found in cancels}
        self.roster.interrupted |= {found.work_id for found in intents if found.kind is IntentKind.INTERRUPT}

    def _hand_in_by_command(self, job: PlannedJob) -> None:
        words = [
            "--priority",
            str(job.priority),
            *(word for key, value in job.env for word in ("--env", f"{key}={value}")),
        ]
        words += ["--scope", job.scope] if job.scope else []
        words += ["--input", job.input.decode()] if job.input is not None else []
        words += [word for key in job.correlations for word in ("--correlate", key)]
        own = self.command(job)
        command = [] if own is None else ["--", *own]
        if job.via is Via.SUBMIT:
            call = ["submit", job.recipe.binding, *words, *command]
            self.call(f"submit-{job.number}", call, lambda running, code: self._submitted(job, running, code))
        else:
            call = ["run", "--binding", job.recipe.binding, *words, *command]
            self.call(f"run-{job.number}", call, lambda running, code: self._followed(job, running, code))

    def _submitted(self, job: PlannedJob, running: Running, code: int) -> None:
        said, told = running.out.read_text().strip(), running.log.read_text()
        if code == 0:
            self.roster.taken(job, WorkId(said))
        elif any(words in told for words in BUSY_WORDS):
            self.roster.admissions[job.number] = Admission.REFUSED
        else:
            self.roster.admissions[job.number] = Admission.UNKNOWN
            self.troubles.append(f"`tenure submit` of job {job.number} ended with {code}: {told.strip()}")

    def _followed(self, job: PlannedJob, running: Running, code: int) -> None:
        told = running.log.read_text(errors="replace")
        if code == STORE_UNUSABLE and FULL_WORDS in told:
            self.roster.admissions[job.number] = Admission.REFUSED
            return
        self.roster.admissions[job.number] = Admission.TAKEN
        self.answers.append(Answer(job, code, running.out.read_bytes(), told))

    def _cancelled(self, running: Running, code: int) -> None:
        told = running.log.read_text()
        if code != 0 and "has already ended" not in told and not any(words in told for words in BUSY_WORDS):
            self.troubles.append(f"`tenure work cancel` ended with {code}: {told.strip()}")

    def _cancel_in_store(self, fn: Callable[[Tx], object]) -> None:
        try:
            self.write(fn)
        except RefusedError:
            pass  # it had ended before

    def _live_attempt(self, work_id: WorkId) -> Attempt | None:
        attempts = self.harness.read(lambda tx: tx.attempts(work_id))
        return attempts[-1] if attempts and attempts[-1].ended_at_us is None else None

    def _settle(self, attempt: Attempt) -> None:
        """Say what a person would who looks at the witness: how it ended if it did, else that it shall end."""
        if self._is_called_for(attempt.id):
            return
        job = self.roster.found([self.harness.read(lambda tx: _known(tx, work_of(attempt.id)))]).get(attempt.work_id)
        if job is None:
            return
        reason = ["--reason", "the witness says so"]
        status = self._status(job, attempt)
        if status is not None:
            how = ["--finished", str(status)] if status >= 0 else ["--signal", str(-status)]
            words = ["attempt", "reconcile", attempt.id, *how, *reason]
        else:
            words = ["work", "cancel", attempt.id, *reason, "--wait", "0s"]
        self.call(f"settle-{attempt.id}", words, lambda running, code: self._was_settled(attempt, running, code))

    def _status(self, job: PlannedJob, attempt: Attempt) -> int | None:
        """How the last program of an attempt ended, by its own word; None: it did not say that it did."""
        lines = [line for line in self.harness.witness.lines() if line.attempt_id == attempt.id]
        last = max((line.epoch for line in lines), default=0)
        if not any(line.mark is Mark.END and line.epoch == last for line in lines):
            return None
        if job.recipe.manner is None:
            return job.status_of(attempt.number)
        noted = [one for one in read_notes(self.notes) if one.launch == (attempt.id, last) and one.word is Word.ENDS]
        return noted[-1].exit_status if noted else None

    def _confirm(self, order: StopOrder) -> None:
        """Give one's word that it is stopped, when all that keeps the proof away is no job's: others use the host, and so do commands."""
        if order.tries < TRIES_BEFORE_A_WORD or order.finding is None or self._is_called_for(order.attempt_id):
            return
        suspects = {int(suspect["pid"]) for suspect in json.loads(order.finding)["suspects"]}
        if suspects and not suspects & self.harness.unowned():
            words = ["attempt", "confirm-stopped", order.attempt_id, "--epoch", str(order.epoch)]
            words += ["--reason", "its suspects are no job of the drill's"]
            self.call(f"confirm-{order.attempt_id}", words, partial(self._was_confirmed, order))

    def _was_confirmed(self, order: StopOrder, running: Running, code: int) -> None:
        if code == 0:
            self.confirmed.add(order.attempt_id)
            return
        told = running.log.read_text()
        if not any(words in told for words in ("is free already", *BUSY_WORDS)):
            self.troubles.append(f"confirming {order.attempt_id} ended with {code}: {told.strip()}")

    def _is_called_for(self, attempt_id: AttemptId) -> bool:
        return any(running.name.endswith(f"-{attempt_id}") for running, _ in self._calls)

    def _was_settled(self, attempt: Attempt, running: Running, code: int) -> None:
        if code == 0:
            self.settled.add(attempt.id)
            return
        told = running.log.read_text()
        expected = ("has not ended", "does not wait for a person", "has already ended", *BUSY_WORDS)
        if not any(words in told for words in expected):
            self.troubles.append(f"settling {attempt.id} ended with {code}: {told.strip()}")

    def soon(self, begin: Callable[[], None]) -> None:
        """Begin it once fewer commands are under way."""
        self._waiting.append(begin)

    def call(self, name: str, words: list[str], ended: Callable[[Running, int], None]) -> None:
        """Call `tenure`; `ended` is told how that ended."""
        self._calls.append((self.harness.call(name, words), ended))

    def write(self, fn: Callable[[Tx], R]) -> R:
        """Write, however long the store is busy or its disk full: nothing was written while it was."""
        while True:
            try:
                return self.harness.store.write(fn)
            except StoreBusyError:
                self.meanwhile()
            except StoreUnavailableError as error:
                if error.code != "disk_full":
                    raise
                self.meanwhile()
                time.sleep(FULL_PAUSE_S)


def _cancel_attempt(tx: Tx, attempt: Attempt) -> None:
    ending = Ending(AttemptState.CANCELLED, None, FailureClass.CANCELLED, None, None, "drill")
    change = change_after(tx, attempt.id, ending)
    tx.cancel_attempt(attempt.id, by="drill", reason="drill", change=change)


def _known(tx: ReadTx, work_id: WorkId) -> Work:
    work = tx.work(work_id)
    assert work is not None, "a work is never deleted here"
    return work
