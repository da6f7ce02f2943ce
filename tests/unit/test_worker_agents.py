"""A worker and its agents: what they say is read once and whole, whoever holds them; what they are told reaches them in order."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import IndeterminateError
from shared.ids import AttemptId, work_of
from shared.model.attempt import AttemptState, FailureClass, Snapshot
from shared.model.instant import US_PER_S
from shared.model.intent import Delivered, Fate, Intent
from shared.model.settings import Binding, Config, Settings
from shared.model.stream import Place, RefusalCode, Stream
from shared.model.work import Reason, WorkState
from shared.process.channel import Handed
from shared.store.contract import Store
from tests.support.hosts import Shim
from tests.support.protocol import disagreement, require_told
from tests.support.sites import Bench, Site
from worker.executors.agent import AgentExecutor
from worker.executors.claude_code import ClaudeCodeExecutor
from worker.executors.contract import Executor
from worker.executors.shell import ShellExecutor

ATTEMPTS = Path("/home/attempts")
SHELL = ShellExecutor({"PATH": "/bin"}, None)
EXECUTORS: dict[str, Executor] = {
    "shell@1": SHELL,
    "agent@1": AgentExecutor(SHELL, ATTEMPTS),
    "claude-code@1": ClaudeCodeExecutor(SHELL),
}
TALK = Binding("talk", ("talk",), executor="agent", idle_us=60 * US_PER_S)
CONFIG = Config(
    Settings(),
    bindings=(
        TALK,
        replace(TALK, name="drop", on_inject_error="drop"),
        replace(TALK, name="code", executor="claude-code"),
        Binding("shell", ("job",)),
    ),
)


def bench(site: Site, name: str = "worker-1") -> Bench:
    return site.bench(name, executors=EXECUTORS)


def start(site: Site, binding: str = "talk", *, input_: bytes | None = b"first") -> tuple[AttemptId, Shim]:
    """An agent that runs."""
    if not site.heads:
        site.configure(CONFIG)
        site.head()
    name = site.submit(binding, input_=input_)
    site.settle()
    return name, site.host.shim(name)


def say(shim: Shim, *messages: object) -> None:
    for message in messages:
        assert isinstance(message, bytes) or message == {"type": "later"} or disagreement(message) is None
        shim.out += (message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n"


def stream(site: Site, name: AttemptId) -> Stream:
    found = site.world.store.read(lambda tx: tx.stream(name))
    assert found is not None
    return found


def inject(site: Site, name: AttemptId, body: bytes = b"more") -> Intent:
    return site.world.store.write(lambda tx: tx.inject(work_of(name), body, by="t"))


def intent(site: Site, number: int) -> Intent:
    found = site.world.store.read(lambda tx: tx.intent(number))
    assert found is not None
    return found


def pending(site: Site, name: AttemptId) -> list[int]:
    return site.world.store.read(lambda tx: tx.pending_inputs(work_of(name), limit=99))


def declared(site: Site, name: AttemptId) -> list[str]:
    return [one.declaration.key for one in site.world.store.read(lambda tx: tx.declarations(name))]


def reported(site: Site, name: AttemptId) -> dict[str, str]:
    """What its program reported to have consumed."""
    return site.world.store.read(lambda tx: tx.reported(name)).to_plain()


# --- the launch


def started(site: Site, inputs: tuple[bytes, ...]) -> tuple[dict[str, object], dict[str, bytes]]:
    """The first line that an agent with these inputs is told, and the files that it finds."""
    worker = bench(site)
    site.claim(worker)
    assignment = site.world.store.read(lambda tx: tx.assignments(worker.me, limit=1))[0]
    item = assignment.inputs[0]
    given = tuple(replace(item, number=number, body=body) for number, body in enumerate(inputs, start=1))
    spec = EXECUTORS["agent@1"].prepare(replace(assignment, inputs=given), {"KEY": "layer"})
    assert spec.channel
    assert spec.stdin is not None
    assert len(spec.stdin) <= 4096, "it has to fit into an empty pipe, whole"
    assert spec.stdin.endswith(b"\n")
    require_told(spec.stdin)
    assert spec.env["KEY"] == "layer"
    return json.loads(spec.stdin), dict(spec.files)


@pytest.mark.req("E03")
def test_an_agent_is_told_what_it_is_and_its_inputs(site: Site) -> None:
    told, files = started(site, (b"one", "zwölf\n".encode()))

    assert told == {
        "type": "start",
        "protocol": 1,
        "work": "w1",
        "attempt": "w1.1",
        "epoch": 1,
        "wake": None,
        "time_left_ms": 3_600_000,
        "inputs": [{"number": 1, "body": "one"}, {"number": 2, "body": "zwölf\n"}],
    }
    assert files == {}


def test_an_input_that_is_long_or_no_text_is_in_a_file(site: Site) -> None:
    bodies = (b"x" * 3000, b"\xff", b"a\0b", b"short")

    told, files = started(site, bodies)

    folder = ATTEMPTS / "w1.1.1"
    assert told["inputs"] == [
        *({"number": number, "file": str(folder / f"input-{number}")} for number in (1, 2, 3)),
        {"number": 4, "body": "short"},
    ]
    assert files == {f"input-{number}": bodies[number - 1] for number in (1, 2, 3)}


def test_inputs_too_many_for_a_line_are_listed_in_a_file(site: Site) -> None:
    told, files = started(site, tuple(b"some words" for _ in range(300)))

    assert "inputs" not in told
    assert told["inputs_file"] == str(ATTEMPTS / "w1.1.1" / "inputs.json")
    assert [one["number"] for one in json.loads(files["inputs.json"])] == list(range(1, 301))


@pytest.mark.req("C01")
def test_an_agent_counts_against_the_pool_of_agents(site: Site) -> None:
    bench(site)
    name, _ = start(site)

    assert site.attempt(name).pool == "agents"


# --- what it says


@pytest.mark.req("O15", "O02")
def test_what_an_agent_says_is_recorded_while_it_runs_and_how_far_it_was_read(site: Site) -> None:
    bench(site)
    name, shim = start(site)

    say(
        shim, {"type": "turn", "status": "thinking"}, b"oops", {"type": "later"}, {"type": "usage", "units": {"usd": 1}}
    )
    site.elapse(2)

    found = stream(site, name)
    assert found.place == Place(len(shim.out), 4)
    assert [(one.line, one.code) for one in found.refusals] == [(2, RefusalCode.NOT_JSON)]
    assert found.unknown == {"later": 1}
    assert declared(site, name) == ["out.1.1"]
    assert reported(site, name) == {"usd": "1"}
    assert site.attempt(name).state is AttemptState.RUNNING


@pytest.mark.req("O15")
def test_all_of_it_is_read_before_the_end_is_written(site: Site) -> None:
    bench(site)
    name, shim = start(site)
    for number in range(20_000):
        say(shim, {"type": "log", "n": number})
    say(shim, {"type": "turn", "status": "last"})
    shim.out += b'{"type": "usage", "units": {"usd": 1}}'  # without the end of its line

    shim.end(0)
    site.settle()

    assert stream(site, name).place == Place(len(shim.out), 20_002)
    assert declared(site, name) == ["out.1.20001"]
    assert reported(site, name) == {"usd": "1"}
    assert site.attempt(name).state is AttemptState.SUCCEEDED


@pytest.mark.req("O02", "O15", "T02")
def test_a_line_that_names_an_input_of_nobody_is_refused_and_its_end_is_recorded(site: Site) -> None:
    bench(site)
    name, shim = start(site)
    [own] = site.world.store.read(lambda tx: tx.snapshot(name)).inputs  # type: ignore[union-attr]

    say(shim, {"type": "consumed", "inputs": [own]}, {"type": "consumed", "inputs": [own, 999]})
    say(shim, {"type": "usage", "units": {"usd": 1}}, {"type": "result", "outcome": "completed"})
    shim.end(0)
    site.settle()

    assert [(one.line, one.code) for one in stream(site, name).refusals] == [(2, RefusalCode.NOT_HANDED)]
    assert reported(site, name) == {"usd": "1"}
    assert site.attempt(name).state is AttemptState.SUCCEEDED
    assert pending(site, name) == []


@pytest.mark.req("R02", "O15")
def test_whoever_takes_it_over_reads_on_where_it_was_read_to(site: Site) -> None:
    first = bench(site)
    name, shim = start(site)
    say(shim, {"type": "turn", "status": "one"})
    site.elapse(2)
    shim.out += b'{"type": "turn", "sta'
    site.elapse(2)
    bench(site, "worker-2")

    site.kill(first)
    shim.out += b'tus": "two"}\n'
    site.elapse(2)

    assert site.attempt(name).epoch == 2
    assert declared(site, name) == ["out.1.1", "out.1.2"], "no line lost, none applied twice"
    assert stream(site, name).place == Place(len(shim.out), 2)
    shim.end(0)
    site.settle()
    assert site.attempt(name).state is AttemptState.SUCCEEDED


@pytest.mark.req("O15")
def test_an_end_that_nobody_saw_is_read_by_whoever_finds_it(site: Site) -> None:
    first = bench(site)
    name, shim = start(site)
    bench(site, "worker-2")
    site.kill(first)
    say(shim, {"type": "turn", "status": "last"})
    shim.end(0)

    site.elapse(2)

    assert declared(site, name) == ["out.1.1"]
    assert site.attempt(name).state is AttemptState.SUCCEEDED


@pytest.mark.req("O02", "O11", "O15")
@pytest.mark.parametrize(
    ("result", "state", "work", "reason"),
    [
        ({"outcome": "completed"}, AttemptState.SUCCEEDED, WorkState.COMPLETED, None),
        ({"outcome": "failed"}, AttemptState.FAILED, WorkState.FAILED, Reason.EXHAUSTED),
        ({"outcome": "failed", "permanent": True}, AttemptState.FAILED, WorkState.FAILED, Reason.PERMANENT_FAILURE),
        ({"outcome": "handoff"}, AttemptState.HANDED_OFF, WorkState.COMPLETED, None),
    ],
)
def test_its_result_decides_once_its_end_is_observed(
    site: Site, result: dict[str, object], state: AttemptState, work: WorkState, reason: Reason | None
) -> None:
    bench(site)
    name, shim = start(site)
    say(shim, {"type": "result", "summary": "so it went", "artifacts": ["a.txt"], **result})
    site.elapse(2)
    assert site.attempt(name).state is AttemptState.RUNNING, "a result alone ends nothing"

    shim.end(0)
    site.settle()

    assert site.attempt(name).state is state
    assert (site.work(work_of(name)).state, site.work(work_of(name)).reason) == (work, reason)
    applied = [event.data for event in site.events(name) if event.kind == "outcome.applied"]
    assert [(data["summary"], data["artifacts"]) for data in applied] == [("so it went", ["a.txt"])]


def test_a_job_of_the_shell_is_not_listened_to(site: Site) -> None:
    bench(site)
    name, shim = start(site, "shell")
    say(shim, {"type": "turn", "status": "one"})
    site.elapse(2)
    shim.end(0)
    site.settle()

    assert site.world.store.read(lambda tx: tx.stream(name)) is None
    assert site.attempt(name).state is AttemptState.SUCCEEDED


@pytest.mark.req("O15")
def test_a_stretch_whose_commit_was_not_answered_is_recorded_once(site: Site) -> None:
    worker = bench(site)
    name, shim = start(site)
    store: Store = worker.ports.store
    written = store.write
    lost: list[str] = []

    def answer_lost(fn):  # type: ignore[no-untyped-def]
        result = written(fn)
        if not lost and site.world.store.read(lambda tx: tx.stream(name)) is not None:
            lost.append("one")
            raise IndeterminateError("COMMIT was not answered")
        return result

    worker.ports.batch._store.write = answer_lost  # type: ignore[method-assign]
    say(shim, {"type": "turn", "status": "one"})
    site.elapse(2)
    say(shim, {"type": "turn", "status": "two"})
    site.elapse(2)

    assert lost == ["one"]
    assert declared(site, name) == ["out.1.1", "out.1.2"]


# --- quiet agents


def test_an_agent_that_is_quiet_for_too_long_is_ended_and_one_that_speaks_is_not(site: Site) -> None:
    bench(site)
    quiet, _ = start(site)
    busy, shim = start(site)
    for _ in range(4):
        site.elapse(25)
        say(shim, {"type": "log"})

    ended = site.attempt(quiet)
    assert (ended.state, ended.failure) == (AttemptState.FAILED, FailureClass.TIMED_OUT)
    assert ended.error == "idle: no output for 60 s"
    assert site.work(work_of(quiet)).reason is Reason.TIMED_OUT
    assert site.host.stopped == [quiet], "what is left of it is stopped"
    assert site.attempt(busy).state is AttemptState.RUNNING


def test_without_an_idle_limit_an_agent_may_be_quiet(site: Site) -> None:
    site.configure(Config(Settings(), bindings=(replace(TALK, idle_us=None),)))
    bench(site)
    site.head()
    name = site.submit("talk", input_=b"x")
    site.settle()

    site.elapse(600, poll_s=10)

    assert site.attempt(name).state is AttemptState.RUNNING


# --- what it is told


@pytest.mark.req("T01", "T02")
def test_inputs_reach_a_running_agent_in_their_order_and_are_settled_when_it_takes_them(site: Site) -> None:
    bench(site)
    name, shim = start(site)
    intents = [inject(site, name, b"%d" % number) for number in range(30)]
    site.settle()

    assert [word.body for word in shim.words] == [b"%d" % number for number in range(30)]
    assert [word.intent for word in shim.words] == [each.id for each in intents]
    assert {intent(site, each.number).fate for each in intents} == {Fate.ACCEPTED}
    assert len(pending(site, name)) == 30

    say(shim, {"type": "consumed", "inputs": [each.input for each in intents]})
    site.elapse(2)

    assert {intent(site, each.number).fate for each in intents} == {Fate.CONSUMED}
    assert pending(site, name) == []


@pytest.mark.req("T02", "T01")
def test_an_input_whose_delivery_is_unknown_is_told_again_under_its_name(site: Site) -> None:
    first = bench(site)
    name, shim = start(site)
    told = inject(site, name)
    first.step()
    first.launches.run()  # it was written, and its holder dies before it says so
    assert len(shim.words) == 1
    assert intent(site, told.number).fate is Fate.DISPATCHED
    bench(site, "worker-2")

    site.kill(first)
    site.elapse(1)

    assert [word.intent for word in shim.words] == [told.id, told.id]
    assert (intent(site, told.number).fate, intent(site, told.number).tries) == (Fate.ACCEPTED, 2)


@pytest.mark.req("T02")
def test_a_program_without_room_is_told_later_and_nothing_goes_ahead_of_that(site: Site) -> None:
    bench(site)
    name, shim = start(site)
    shim.answers = [Handed(Delivered.LATER, "full")]
    first = inject(site, name, b"1")
    site.settle()
    second = inject(site, name, b"2")
    site.settle()
    assert [intent(site, each.number).fate for each in (first, second)] == [Fate.QUEUED, Fate.QUEUED]

    site.elapse(1)

    assert [word.body for word in shim.words] == [b"1", b"2"]


@pytest.mark.req("T02")
@pytest.mark.parametrize(("binding", "fate"), [("talk", Fate.RETURNED), ("drop", Fate.DROPPED)])
def test_what_cannot_be_told_goes_as_the_binding_says(site: Site, binding: str, fate: Fate) -> None:
    bench(site)
    name, shim = start(site, binding)
    shim.answers = [Handed(Delivered.FAILED, "ENXIO")]
    told = inject(site, name)
    site.settle()

    found = intent(site, told.number)
    assert (found.fate, found.why) == (fate, "ENXIO")
    assert pending(site, name) == ([told.input] if fate is Fate.RETURNED else [])


@pytest.mark.req("T02", "O01")
@pytest.mark.parametrize("binding", ["shell", "code"])
def test_a_program_that_cannot_be_told_anything_leaves_the_input_to_the_next_attempt(site: Site, binding: str) -> None:
    bench(site)
    name, shim = start(site, binding)
    told = inject(site, name)
    site.settle()

    assert intent(site, told.number).fate is Fate.NOT_ACCEPTING
    assert shim.words == []
    shim.end(0)
    site.settle()
    second = site.attempt(f"{work_of(name)}.2")
    snapshot: Snapshot | None = site.world.store.read(lambda tx: tx.snapshot(second.id))
    assert snapshot is not None
    assert snapshot.inputs == (told.input,)


@pytest.mark.req("T04")
def test_an_interrupted_agent_is_stopped_and_the_next_attempt_gets_everything(site: Site) -> None:
    bench(site)
    name, shim = start(site)
    told = inject(site, name)
    site.settle()
    assert len(shim.words) == 1

    site.world.store.write(lambda tx: tx.interrupt(work_of(name), by="me", reason="wrong branch"))
    assert site.work(work_of(name)).state is WorkState.READY
    assert site.host.stopped == [], "the fence comes before any signal"
    site.settle()

    assert site.host.stopped == [name]
    assert site.attempt(name).state is AttemptState.INTERRUPTED
    snapshot = site.world.store.read(lambda tx: tx.snapshot(AttemptId(f"{work_of(name)}.2")))
    assert snapshot is not None
    assert told.input in snapshot.inputs
    assert len(snapshot.inputs) == 2
    assert intent(site, told.number).fate is Fate.RETURNED
