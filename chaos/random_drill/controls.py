"""What is said to Works while they run and between: inputs, interrupts, events, each as planned, by the store or by a command.

Everything that is handed in has a key, so that whoever was not answered can ask what became of it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.harness import Running
from chaos.random_drill.acts import Act, ActKind
from chaos.random_drill.load import PlannedJob
from chaos.random_drill.manners import EVENT, key_of
from chaos.random_drill.operator import BUSY_WORDS, Operator
from chaos.random_drill.roster import SUBMITTER, Admission
from chaos.seen import Accepted
from shared.errors import RefusedError
from shared.ids import WorkId
from shared.model.event import NewEvent
from shared.model.work import WorkState
from shared.store.contract import ReadTx

TOO_LATE = ("has already ended", "nothing of it runs")
"""How a word is refused that comes when its Work is over, or nothing runs."""


@dataclass(frozen=True, slots=True)
class Handed:
    """An input that was accepted, as whoever handed it in was told.

    Attributes:
        intent: The intent that it came with; None: it waits for the next attempt anyway.
    """

    work_id: WorkId
    key: str
    sha256: str
    intent: str | None


@dataclass(slots=True)
class Controls:
    """Attributes:
    handed: In the order in which it was answered.
    done: How often each kind was done; `refused`: came too late.
    is_over: Nothing more is said.
    """

    operator: Operator
    handed: list[Handed] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    is_over: bool = False

    def act(self, job: PlannedJob, act: Act) -> bool:
        """Say it, as planned; False: the Work has no name yet, ask again later."""
        roster = self.operator.roster
        work_id = roster.work_ids.get(job.number)
        if self.is_over or work_id is None:
            return self.is_over or roster.admissions.get(job.number) in (Admission.REFUSED, Admission.UNKNOWN)
        if act.kind is ActKind.INTERRUPT and not self._is_time(work_id):
            return False
        if act.command:
            self._by_command(job, act, work_id)
        else:
            self._by_store(job, act, work_id)
        return True

    def _is_time(self, work_id: WorkId) -> bool:
        """Whether something of it runs; or never will again, or not for long, so that the interrupt comes too late."""
        work = self.operator.harness.read(lambda tx: tx.work_outline(work_id))
        return work is None or work.state not in (WorkState.READY, WorkState.BACKOFF)

    def publish(self, key: str) -> None:
        """Publish the event that the Work with this key may wait for."""
        event = NewEvent(EVENT, key, json.dumps({"for": key}), SUBMITTER)
        self.operator.write(lambda tx: tx.publish(event))

    def accepted(self, tx: ReadTx) -> tuple[Accepted, ...]:
        """What was answered for, with its numbers; a key that the store does not know has 0."""
        found = []
        for one in self.handed:
            known = tx.submission(one.key)
            number = None if known is None else known.input
            found.append(Accepted(one.work_id, number or 0, one.key, one.sha256, one.intent))
        return tuple(found)

    def _by_store(self, job: PlannedJob, act: Act, work_id: WorkId) -> None:
        body, key = job.fed(act), input_key(job, act)
        try:
            match act.kind:
                case ActKind.FEED:
                    for _ in range(1 + act.again):
                        intent = self.operator.write(lambda tx: tx.inject(work_id, body, by=SUBMITTER, key=key))
                        self._accept(work_id, key, body, intent.id)
                case ActKind.SUBMIT:
                    for _ in range(1 + act.again):
                        self.operator.write(lambda tx: tx.add_input(work_id, body, by=SUBMITTER, key=key))
                        self._accept(work_id, key, body, None)
                case ActKind.INTERRUPT:
                    self.operator.write(lambda tx: tx.interrupt(work_id, by=SUBMITTER, reason="drill"))
                case ActKind.HOLD:
                    self.operator.write(lambda tx: tx.hold_work(work_id, by=SUBMITTER, reason="drill"))
                case ActKind.PUBLISH | ActKind.DECOY:
                    self.publish(_about(job, act))
        except RefusedError:
            self.refused[act.kind] += 1
        else:
            self.done[act.kind] += 1

    def _by_command(self, job: PlannedJob, act: Act, work_id: WorkId) -> None:
        body, key = job.fed(act), input_key(job, act)
        given = ["--input", body.decode(), "--key", key]
        match act.kind:
            case ActKind.FEED:
                words = ["work", "inject", work_id, *given]
            case ActKind.SUBMIT:
                words = ["submit", work_id, *given]
            case ActKind.INTERRUPT:
                words = ["work", "interrupt", work_id, "--reason", "drill"]
            case ActKind.HOLD:
                words = ["work", act.kind, work_id, "--reason", "drill"]
            case _:
                words = ["event", "publish", EVENT, "--correlate", _about(job, act)]

        def ended(running: Running, code: int) -> None:
            if code != 0:
                self._was_refused(act, running, code)
                return
            self.done[act.kind] += 1
            if act.kind in (ActKind.FEED, ActKind.SUBMIT):
                said = running.out.read_text().strip()
                self._accept(work_id, key, body, said if act.kind is ActKind.FEED else None)

        for _ in range(1 + act.again):
            self.operator.soon(self._calling(f"{act.kind}-{job.number}-{act.number}", words, ended))

    def _calling(self, name: str, words: list[str], ended: Callable[[Running, int], None]) -> Callable[[], None]:
        return lambda: self.operator.call(name, words, ended)

    def _was_refused(self, act: Act, running: Running, code: int) -> None:
        told = running.log.read_text()
        self.refused[act.kind] += 1
        if not any(words in told for words in (*TOO_LATE, *BUSY_WORDS)):
            self.operator.troubles.append(f"{running.name} ended with {code}: {told.strip()}")

    def _accept(self, work_id: WorkId, key: str, body: bytes, intent: str | None) -> None:
        """Know what was answered. Asked again under the same key, it must be the same answer."""
        handed = Handed(work_id, key, hashlib.sha256(body).hexdigest(), intent)
        before = next((one for one in self.handed if one.key == key), None)
        if before is None:
            self.handed.append(handed)
        elif before != handed:
            self.operator.troubles.append(f"{key} of {work_id} was answered with {before.intent}, then with {intent}")


def input_key(job: PlannedJob, act: Act) -> str:
    """The key under which an input is handed in."""
    return f"drill-{job.number}-{act.kind}-{act.number}"


def _about(job: PlannedJob, act: Act) -> str:
    return key_of(job.number) if act.kind is ActKind.PUBLISH else f"not-{key_of(job.number)}"
