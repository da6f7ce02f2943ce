"""A worker and its agents: what they say is read once and whole, whoever holds them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shared.errors import IndeterminateError
from shared.ids import work_of
from shared.model.attempt import AttemptState, FailureClass
from shared.model.settings import Config, Settings
from shared.model.stream import Place, RefusalCode
from shared.model.work import Reason, WorkState
from shared.store.contract import Store
from tests.support.agent_sites import (
    ATTEMPTS,
    EXECUTORS,
    TALK,
    bench,
    declared,
    pending,
    reported,
    say,
    start,
    stream,
)
from tests.support.protocol import require_told
from tests.support.sites import Site

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
