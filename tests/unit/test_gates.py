"""Start gates: who is asked when, in which order, what each answer leads to, and that whoever cannot decide lets nothing start."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from coordinator.gates import Admit, ApprovalGate, Asking, Gate, Gates, Hold, Question, Undecided, digest_of
from shared.errors import UnsupportedError
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Snapshot
from shared.model.budget import Budget, Per
from shared.model.settings import Binding, Config, Settings
from shared.model.work import NewWork, Permit, Reason, Work, WorkKind, WorkState
from shared.store.contract import Tx
from shared.store.values import GateHold
from tests.support.sites import Head, Site
from tests.support.stores import new_work, snapshot_for
from tests.support.waiting import wait_until

S = WorkState
HELD = (S.HELD, Reason.GATE_HELD)
RUNNING = (S.RUNNING, None)


@dataclass
class Scripted:
    """A gate that answers as it is told, and keeps what it was asked. `log`: shared by several, in the order of asking."""

    name: str
    said: Callable[[Question], Any] = lambda _: Admit()
    questions: list[Question] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def concerns(self, work: Work, snapshot: Snapshot, config: Config) -> bool:
        return True

    def decide(self, question: Question) -> Admit | Hold:
        self.questions.append(question)
        self.log.append(self.name)
        return self.said(question)  # type: ignore[no-any-return]


SECRET = "hunter2"


def fail(_: Question) -> Admit:
    raise RuntimeError(f"the gate broke: {SECRET}")


def refuse(_: Question) -> Admit:
    raise UnsupportedError("no rates for this day")


def submit(site: Site, **what: Any) -> WorkId:
    return site.world.store.write(lambda tx: tx.submit(new_work(**what), "jobs"))


def state(site: Site, work_id: WorkId) -> tuple[WorkState, Reason | None]:
    return site.work(work_id).state, site.work(work_id).reason


def led_by(site: Site, *gates: Gate, **options: Any) -> Head:
    head = site.head(Gates(gates, **options))
    head.settle()
    return head


def admit(site: Site, work_id: WorkId, holder: str = "a") -> None:
    site.world.store.write(lambda tx: tx.settle_gate(work_id, holder=holder, verdict="admitted", by="t", reason="t"))


# --- who is asked, and when


@pytest.mark.req("G01")
def test_gates_are_asked_before_the_first_attempt_alone_in_the_order_of_their_names(site: Site) -> None:
    log: list[str] = []
    second, first = Scripted("b", log=log), Scripted("a", log=log)
    led_by(site, second, first)
    site.bench()
    work_id = submit(site, kind=WorkKind.STANDING, input_=b"what it is about")

    site.settle()

    assert log == ["a", "b"]
    asked = first.questions[0]
    assert (asked.work.id, asked.first_input) == (work_id, b"what it is about")
    pinned = site.world.store.read(lambda tx: tx.snapshot(AttemptId(f"{work_id}.1")))
    assert pinned is not None
    assert asked.digest == digest_of(pinned), "it was asked about what was pinned"
    site.host.shim(f"{work_id}.1").end(0)
    site.settle()
    site.world.store.write(lambda tx: tx.add_input(work_id, b"more", by="t"))
    site.settle()
    assert state(site, work_id) == RUNNING
    assert log == ["a", "b"], "later attempts are not asked about"


@pytest.mark.req("G01")
def test_no_gate_is_asked_while_capacity_does_not_allow_the_start(site: Site) -> None:
    gate = Scripted("a")
    site.configure(Config(settings=Settings(job_concurrency=1)))
    led_by(site, gate)
    site.bench()
    first, second = submit(site), submit(site)

    site.settle()
    site.elapse(5)

    assert [question.work.id for question in gate.questions] == [first]
    site.host.shim(f"{first}.1").end(0)
    site.settle()
    assert [question.work.id for question in gate.questions] == [first, second]


@pytest.mark.req("G02", "G03")
def test_a_hold_keeps_the_work_from_starting_and_from_being_asked_again(site: Site) -> None:
    gate, later = Scripted("a", lambda _: Hold("not on a Sunday")), Scripted("b")
    led_by(site, gate, later)
    site.bench()
    work_id = submit(site)

    site.settle()
    site.elapse(120, poll_s=10)

    assert state(site, work_id) == HELD
    held = site.work(work_id).start_hold
    assert held is not None
    assert (held.by, held.reason) == ("a", "not on a Sunday")
    assert (len(gate.questions), later.questions) == (1, []), "the first objection decides"


@pytest.mark.req("G04")
def test_what_a_gate_admitted_starts_without_being_asked_again(site: Site) -> None:
    gate = Scripted("a", lambda _: Hold("ask"))
    led_by(site, gate)
    site.bench()
    work_id = submit(site)
    site.settle()

    admit(site, work_id)
    site.settle()

    assert state(site, work_id) == RUNNING
    assert len(gate.questions) == 1
    assert site.work(work_id).permits == frozenset()


@pytest.mark.req("G04", "B04")
def test_the_pass_outlives_a_budgets_hold(site: Site) -> None:
    site.configure(Config(budgets=(Budget("turns", Decimal(1), Per.ALL),)))
    gate = Scripted("a", lambda question: Hold("ask") if question.work.number == 2 else Admit())
    led_by(site, gate)
    site.bench()
    submit(site)
    work_id = submit(site)
    site.settle()
    assert state(site, work_id) == HELD

    admit(site, work_id)
    site.settle()
    assert state(site, work_id) == (S.HELD, Reason.OVER_BUDGET)
    site.world.store.write(lambda tx: tx.release_work(work_id, by="t", reason="t"))
    site.settle()

    assert state(site, work_id) == RUNNING
    assert [question.work.id for question in gate.questions].count(work_id) == 1


# --- whoever fails to decide


@pytest.mark.req("G02", "C04")
@pytest.mark.parametrize(
    ("said", "why"),
    [
        (fail, "it failed with RuntimeError"),
        (refuse, "it failed with UnsupportedError: unsupported: no rates for this day"),
        (lambda _: None, "its answer is none: a NoneType"),
    ],
    ids=["raises", "raises one of ours", "answers nonsense"],
)
def test_a_gate_that_fails_to_decide_holds_nothing_and_is_asked_again(
    site: Site, said: Callable[..., Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Scripted("a", said)
    head = led_by(site, gate)
    site.bench()
    work_id = submit(site)

    site.settle()
    site.elapse(2)

    assert state(site, work_id) == (S.READY, Reason.GATE_UNDECIDED)
    assert site.work(work_id).reason_limit == f"a: {why}"
    assert SECRET not in caplog.text + str([vars(record) for record in caplog.records])
    asked = len(gate.questions)
    head.coordinator.notice_decision()
    head.settle()
    assert len(gate.questions) == asked + 1
    gate.said = lambda _: Admit()
    head.coordinator.notice_decision()
    site.settle()
    assert state(site, work_id) == RUNNING


@pytest.mark.req("G02", "C02")
def test_what_no_gate_decides_on_takes_no_room_from_what_lies_behind_it(site: Site) -> None:
    site.configure(Config(settings=Settings(job_concurrency=1)))
    led_by(site, Scripted("a", lambda question: fail(question) if question.work.number == 1 else Admit()))
    site.bench()
    stuck, behind = submit(site), submit(site)

    site.settle()

    assert (site.work(stuck).state, site.work(behind).state) == (S.READY, S.RUNNING)


@pytest.mark.req("G03", "C02")
def test_what_a_gate_holds_takes_no_room_from_what_lies_behind_it(site: Site) -> None:
    site.configure(Config(settings=Settings(job_concurrency=1)))
    led_by(site, Scripted("a", lambda question: Hold("no") if question.work.number == 1 else Admit()))
    site.bench()
    held, behind = submit(site), submit(site)

    site.settle()

    assert (state(site, held), state(site, behind)) == (HELD, RUNNING)


# --- off the step


@pytest.mark.req("G01")
def test_an_answer_that_comes_later_counts_for_what_it_was_asked_about_alone(site: Site) -> None:
    tasks: list[Callable[[], None]] = []
    gate = Scripted("a", lambda _: Hold("asked about one input"))
    led_by(site, gate, submit=tasks.append)
    site.bench()
    work_id = submit(site, kind=WorkKind.STANDING, input_=b"one")
    site.settle()
    assert (len(tasks), site.work(work_id).state) == (1, S.READY), "the step does not wait for it"
    site.world.store.write(lambda tx: tx.add_input(work_id, b"two", by="t"))
    gate.said = lambda _: Admit()

    tasks[0]()  # too late: it would pin something else by now
    site.settle()
    assert site.work(work_id).state is S.READY
    tasks[1]()
    site.heads[0].coordinator.notice_decision()
    site.settle()

    assert state(site, work_id) == RUNNING


@pytest.mark.req("G01")
def test_a_question_is_asked_once_while_its_answer_is_to_come(site: Site) -> None:
    tasks: list[Callable[[], None]] = []
    head = led_by(site, Scripted("a"), submit=tasks.append)
    site.bench()
    submit(site)

    for _ in range(3):
        head.coordinator.notice_decision()
        head.settle()

    assert len(tasks) == 1


@pytest.mark.req("G02")
def test_threads_ask_and_wake_for_a_decision_alone() -> None:
    woken = threading.Event()
    asking = Asking(threads=1)
    gate = Scripted("a", fail)
    gates = Gates([gate], submit=asking.submit, answered=woken.set)
    question = _question()
    try:
        assert gates.answer([gate], question) == Undecided("a")
        wait_until(lambda: len(gate.questions) == 1, "the gate was asked")
        gate.said = lambda _: Hold("no")
        wait_until(lambda: _asked_again(gates, gate, question), "it is asked again, having failed")
        wait_until(woken.is_set, "the decision is told")
        assert gates.answer([gate], question) == GateHold("a", "no")
    finally:
        asking.close()


def _asked_again(gates: Gates, gate: Scripted, question: Question) -> bool:
    gates.answer([gate], question)
    return len(gate.questions) == 2


def _question() -> Question:
    work = Work(
        id=WorkId("w1"),
        number=1,
        scope="",
        binding=None,
        command=("true",),
        env=(),
        cwd=None,
        pool="jobs",
        state=S.READY,
        reason=None,
        priority=0,
        revision=1,
        ready_seq=1,
        attempts_used=0,
        admission_failures=0,
        backoff_since=None,
        backoff_us=None,
        submitted_by="t",
        submitted_at_us=0,
        ended_at_us=None,
    )
    snapshot = snapshot_for(work, ())
    return Question(work, snapshot, digest_of(snapshot), None, Config())


# --- a person's approval


@pytest.mark.req("G05")
def test_approval_is_asked_for_by_binding_and_by_kind(site: Site) -> None:
    site.configure(
        Config(
            Settings(approval=(WorkKind.STANDING,)),
            bindings=(Binding("deploy", ("true",), approval=True), Binding("look", ("true",))),
        )
    )
    led_by(site, ApprovalGate())
    site.bench()

    def hand_in(binding: str | None, kind: WorkKind = WorkKind.RUN_ONCE) -> WorkId:
        command = ("true",) if binding is None else None
        work = NewWork("", binding, command, (), "/", b"", "test", kind=kind)
        return site.world.store.write(lambda tx: tx.submit(work, "jobs"))

    by_binding, free, bare, by_kind = (
        hand_in("deploy"),
        hand_in("look"),
        hand_in(None),
        hand_in("look", WorkKind.STANDING),
    )
    site.settle()

    assert [state(site, one) for one in (by_binding, free, bare, by_kind)] == [HELD, RUNNING, RUNNING, HELD]
    told = [site.work(one).start_hold for one in (by_binding, by_kind)]
    assert [hold.reason for hold in told if hold is not None] == [
        "needs approval of a person (binding deploy)",
        "needs approval of a person (kind standing)",
    ]
    admit(site, by_binding, "approval")
    site.settle()
    assert state(site, by_binding) == RUNNING


@pytest.mark.req("G04")
def test_what_was_admitted_and_then_retried_is_not_asked_again(site: Site) -> None:
    site.configure(Config(bindings=(Binding("deploy", ("true",), approval=True),)))
    led_by(site, ApprovalGate())
    site.bench()
    name = site.submit("deploy")
    work_id = WorkId(name.partition(".")[0])
    site.settle()
    admit(site, work_id, "approval")
    site.settle()
    site.host.shim(name).end(1)
    site.settle()

    def retry(tx: Tx) -> None:
        tx.retry_work(work_id, by="t", reason="t")

    site.world.store.write(retry)
    site.settle()

    assert state(site, work_id) == RUNNING
    assert Permit.GATE not in site.work(work_id).permits
