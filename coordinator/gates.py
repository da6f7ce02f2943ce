"""Start gates: who is asked before the first attempt of a Work starts, what they say, and the first of them, a person's approval.

A gate answers for one snapshot, outside transactions and off the step; whoever cannot decide holds nothing and is asked again.
Rule: requirements G01, G02, G05; design §3.
"""

from __future__ import annotations

import hashlib
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from shared.errors import TenureError
from shared.ids import WorkId
from shared.model.attempt import Snapshot
from shared.model.settings import Config
from shared.model.work import Work
from shared.store.values import GateHold

log = logging.getLogger(__name__)

APPROVAL = "approval"
ANSWERS_MAX = 4_096
WHY_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class Admit:
    """Nothing stands against the start."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The Work must not start until the gate settles that. `reason`: one line for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """A gate raised, or has not answered yet.

    Attributes:
        gate: Its name.
        why: One line for people; of an error its kind, and its text only where that is one of ours: others may quote a secret.
    """

    gate: str
    why: str = "it has not answered yet"

    @property
    def told(self) -> str:
        """Both, as the Work says what holds it back."""
        return f"{self.gate}: {self.why}"


@dataclass(frozen=True, slots=True)
class Question:
    """What a gate is asked about.

    Attributes:
        digest: Of the snapshot; the answer counts for exactly this one.
        first_input: Content of the first input that the attempt would consume; None: it would consume none.
    """

    work: Work
    snapshot: Snapshot
    digest: str
    first_input: bytes | None
    config: Config


class Gate(Protocol):
    """What may object to the first start of a Work."""

    @property
    def name(self) -> str:
        """Names the holds it causes; gates are asked in the order of their names."""

    def concerns(self, work: Work, snapshot: Snapshot, config: Config) -> bool:
        """Whether it wants to be asked about this Work; pure and quick."""

    def decide(self, question: Question) -> Admit | Hold:
        """Answer; may block, and may raise: then it has not decided."""


class ApprovalGate:
    """Holds what a person has to approve, by its binding or its kind. Rule: G05."""

    name = APPROVAL

    def concerns(self, work: Work, snapshot: Snapshot, config: Config) -> bool:
        """See `Gate.concerns`."""
        binding = None if snapshot.binding is None else config.binding(snapshot.binding)
        return work.kind in config.settings.approval or (binding is not None and binding.approval)

    def decide(self, question: Question) -> Admit | Hold:
        """See `Gate.decide`."""
        kind = question.work.kind
        what = f"kind {kind}" if kind in question.config.settings.approval else f"binding {question.snapshot.binding}"
        return Hold(f"needs approval of a person ({what})")


Answer = Admit | GateHold | Undecided


class Gates:
    """The registered gates, and what they have answered so far."""

    def __init__(
        self,
        gates: Iterable[Gate] = (),
        *,
        submit: Callable[[Callable[[], None]], None] | None = None,
        answered: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the gates.

        Args:
            submit: Runs a task elsewhere, soon; None: here and now.
            answered: Called where the task ran, once a decision is there: a pass should follow.
        """
        self._gates = sorted(gates, key=lambda gate: gate.name)
        self._submit = submit or (lambda task: task())
        self._answered = answered
        self._done: queue.SimpleQueue[tuple[WorkId, str, Answer]] = queue.SimpleQueue()
        self._asked: dict[WorkId, str] = {}
        self._answers: dict[WorkId, tuple[str, Answer]] = {}
        self._failed: dict[WorkId, Undecided] = {}

    def concerned(self, work: Work, snapshot: Snapshot, config: Config) -> list[Gate]:
        """The gates to ask about a Work's first start, in their order; one that fails to say so is to be asked."""
        return [gate for gate in self._gates if _concerns(gate, work, snapshot, config)]

    def answer(self, gates: Sequence[Gate], question: Question) -> Answer:
        """What the gates say to exactly this snapshot; asks them unless they were. A decision stands until `forget`.

        Undecided: one of them failed, which is said once, so that the next call asks anew; or the answer is still to come.
        """
        known = self._known(question)
        if known is None and self._asked.get(question.work.id) != question.digest:
            self._asked[question.work.id] = question.digest
            self._submit(lambda: self._ask(gates, question))
            known = self._known(question)
        if known is not None:
            return known
        return self._failed.get(question.work.id) or Undecided(gates[0].name)  # asked again, it has failed all the same

    def forget(self, work_id: WorkId) -> None:
        """It has started, or is held: what was answered is used up."""
        self._answers.pop(work_id, None)
        self._failed.pop(work_id, None)

    def _known(self, question: Question) -> Answer | None:
        while not self._done.empty():
            work_id, digest, said = self._done.get()
            if self._asked.get(work_id) == digest:
                del self._asked[work_id]
            self._answers[work_id] = (digest, said)
        while len(self._answers) > ANSWERS_MAX:  # of Works that were cancelled meanwhile, or changed
            del self._answers[next(iter(self._answers))]
        while len(self._failed) > ANSWERS_MAX:
            del self._failed[next(iter(self._failed))]
        if question.work.id not in self._answers:
            return None
        digest, said = self._answers[question.work.id]
        if digest != question.digest:
            return None
        if isinstance(said, Undecided):
            self.forget(question.work.id)
            self._failed[question.work.id] = said
        return said

    def _ask(self, gates: Sequence[Gate], question: Question) -> None:
        said = _ask_all(gates, question)
        self._done.put((question.work.id, question.digest, said))
        if not isinstance(said, Undecided):  # else each answer would bring the next question
            self._answered()


class Asking:
    """Threads that ask gates; they never touch the store. Daemons: a coordinator that ends waits for no gate."""

    def __init__(self, threads: int = 4) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"gates-{number}", daemon=True) for number in range(threads)
        ]
        self._started = False

    def submit(self, task: Callable[[], None]) -> None:
        """Queue a task; never blocks. The first one starts the threads: most homes have nothing to ask."""
        if not self._started:
            self._started = True
            for thread in self._threads:
                thread.start()
        self._tasks.put(task)

    def close(self) -> None:
        """Let the threads end after what is queued; does not wait."""
        for _ in self._threads:
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()


def digest_of(snapshot: Snapshot) -> str:
    """Equal for snapshots that pin the same."""
    return hashlib.sha256(snapshot.to_json().encode()).hexdigest()


def _concerns(gate: Gate, work: Work, snapshot: Snapshot, config: Config) -> bool:
    try:
        return gate.concerns(work, snapshot, config)
    except Exception as error:  # noqa: BLE001 - whatever it raises, it is to be asked
        log.warning("gate.failed", extra={"gate": gate.name, "work": work.id, "why": _told(error)})
        return True


def _ask_all(gates: Sequence[Gate], question: Question) -> Answer:
    """The first objection in their order; a gate that fails ends it, undecided. Rule: G02: fails closed."""
    for gate in gates:
        try:
            said: object = gate.decide(question)
        except BaseException as error:  # noqa: BLE001 - whatever it raises, it has not decided
            return _undecided(gate, question, _told(error))
        match said:
            case Hold(reason=reason):
                return GateHold(gate.name, reason)
            case Admit():
                continue
            case _:
                return _undecided(gate, question, f"its answer is none: a {type(said).__name__}")
    return Admit()


def _undecided(gate: Gate, question: Question, why: str) -> Undecided:
    said = Undecided(gate.name, why)
    log.warning("gate.undecided", extra={"gate": gate.name, "work": question.work.id, "why": why})
    return said


def _told(error: BaseException) -> str:
    """What went wrong in a gate. The text of an error that is none of ours may quote whatever the gate was handed."""
    told = f": {error.code}: {error}" if isinstance(error, TenureError) else ""
    return f"it failed with {type(error).__name__}{told}"[:WHY_CHARS_MAX]
