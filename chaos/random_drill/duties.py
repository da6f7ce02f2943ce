"""What waits for a person in a random drill, and that person: gates, budgets, resets far away, failures for good, waits without end.

Each has its plan (`acts.Person`): how long it takes, and what is said.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from chaos.harness import Running
from chaos.random_drill.controls import Controls
from chaos.random_drill.load import PlannedJob
from chaos.random_drill.manners import key_of
from chaos.random_drill.operator import BUSY_WORDS, Operator
from chaos.random_drill.roster import SUBMITTER
from coordinator.gates import APPROVAL
from shared.errors import RefusedError
from shared.ids import WorkId
from shared.model.timer import TimerKind
from shared.model.wait import WaitState
from shared.model.work import Reason, Work, WorkState
from shared.store.contract import ReadTx, Tx

BY_COMMAND = 6
"""Of so many jobs one is settled by commands, the others by the store."""
CHANGED = 1
"""How a command ends that comes when nothing is to be settled any more."""
LOOK_EVERY_S = 0.3
OPEN_MAX = 500
"""Works looked at in one go."""
EVENT_AFTER_S = 1.0
"""So much later than all else an event is published that still did not come."""


TRANSITIONS: Mapping[str, Callable[[Tx, WorkId], object]] = {
    "admit": lambda tx, name: tx.settle_gate(name, holder=APPROVAL, verdict="admitted", by=SUBMITTER, reason="drill"),
    "refuse": lambda tx, name: tx.settle_gate(name, holder=APPROVAL, verdict="refused", by=SUBMITTER, reason="drill"),
    "release": lambda tx, name: tx.release_work(name, by=SUBMITTER, reason="drill"),
    "retry": lambda tx, name: tx.retry_work(name, by=SUBMITTER, reason="drill"),
}
COMMANDS = {
    "admit": ("gate", "admit"),
    "refuse": ("gate", "refuse"),
    "release": ("work", "release"),
    "retry": ("work", "retry"),
}


@dataclass(frozen=True, slots=True)
class Duty:
    """Something that a person is to do.

    Attributes:
        what: `admit`, `refuse`, `release`, `retry` or `publish`; `wait`: nothing, it goes on by itself.
        since: What it is about: the Work's revision, so that the same again is another duty.
    """

    work_id: WorkId
    what: str
    since: int


@dataclass(slots=True)
class Duties:
    """Attributes:
    done: How often each was done.
    is_over: Only what is asked for is still settled; nothing that failed is tried again.
    """

    operator: Operator
    controls: Controls
    done: Counter[str] = field(default_factory=Counter)
    is_over: bool = False
    _seen_at: dict[Duty, float] = field(default_factory=dict)
    _asked: set[Duty] = field(default_factory=set)
    _given_up: set[WorkId] = field(default_factory=set)
    _look_at: float = 0.0

    def look(self) -> None:
        """See what there is to do, now and then, and do what is due."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        for duty, job in self._open().items():
            since = self._seen_at.setdefault(duty, now)
            if now - since >= job.person.after_s + (EVENT_AFTER_S if duty.what == "publish" else 0.0):
                self._do(duty, job)

    @property
    def is_done(self) -> bool:
        """Nobody waits for a person, and nothing waits for an event."""
        return not self._open()

    def _open(self) -> dict[Duty, PlannedJob]:
        return self.operator.harness.read(self._duties)

    def _duties(self, tx: ReadTx) -> dict[Duty, PlannedJob]:
        states = (WorkState.HELD, WorkState.BACKOFF, WorkState.WAITING)
        roster = self.operator.roster
        works = {work.id: work for work in tx.works(states=states, after=0, limit=OPEN_MAX)}
        for number, work_id in roster.work_ids.items():
            if roster.planned[number].is_hopeless and work_id not in self._given_up:
                work = tx.work(work_id)
                assert work is not None, "a work is never deleted here"
                works[work_id] = work
        found = {}
        for work_id, job in roster.found(works.values()).items():
            what = self._what(tx, works[work_id], job)
            if what is not None:
                found[Duty(work_id, what, works[work_id].revision)] = job
        return found

    def _what(self, tx: ReadTx, work: Work, job: PlannedJob) -> str | None:
        """What a person is to do about a Work; None: nothing."""
        match work.state:
            case WorkState.HELD if work.reason is Reason.GATE_HELD:
                return "admit" if job.person.admits else "refuse"
            case WorkState.HELD if work.reason in (Reason.OVER_BUDGET, Reason.HOLD):
                return "release"
            case WorkState.WAITING if work.hold is not None or work.reason is Reason.OVER_BUDGET:
                return "release"
            case WorkState.BACKOFF:
                timer = tx.timer(work.id)
                return "retry" if timer is not None and timer.kind is TimerKind.HINT else None
            case WorkState.WAITING:
                awaited = tx.awaited(work.id)
                is_open = awaited is not None and awaited.state is WaitState.REGISTERED
                return "publish" if is_open and awaited is not None and awaited.event_type is not None else "wait"
            case WorkState.FAILED if work.reason is Reason.PERMANENT_FAILURE:
                is_wanted = job.person.retries and not self.is_over and tx.unexcluded(work.id) is None
                return "retry" if is_wanted and work.id not in self._given_up else None
            case _:
                return None

    def _do(self, duty: Duty, job: PlannedJob) -> None:
        self._seen_at[duty] = time.monotonic()  # whatever comes of it, it is not done again at once
        if duty.what == "wait" or duty in self._asked:
            return
        if duty.what == "publish":
            self.controls.publish(key_of(job.number))
            self.done[duty.what] += 1
        elif job.number % BY_COMMAND == 0:
            words = [*COMMANDS[duty.what], duty.work_id, "--reason", "drill"]
            self._asked.add(duty)
            self.operator.soon(partial(self._call, duty, job, words))
        else:
            with suppress(RefusedError):  # it changed meanwhile
                self.operator.write(lambda tx: TRANSITIONS[duty.what](tx, duty.work_id))
                self._was_done(duty, job)

    def _call(self, duty: Duty, job: PlannedJob, words: list[str]) -> None:
        def ended(running: Running, code: int) -> None:
            self._asked.remove(duty)
            if code == 0:
                self._was_done(duty, job)
            elif code != CHANGED and not any(words in running.log.read_text() for words in BUSY_WORDS):
                self.operator.troubles.append(f"{running.name} ended with {code}: {running.log.read_text().strip()}")

        self.operator.call(f"{duty.what}-{duty.work_id}", words, ended)

    def _was_done(self, duty: Duty, job: PlannedJob) -> None:
        self.done[duty.what] += 1
        if duty.what == "retry" and job.is_hopeless:
            self._given_up.add(duty.work_id)
