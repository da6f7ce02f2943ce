"""An executor's own code may fail in any way: that attempt fails, its worker and its other jobs go on, and nothing leaks. Rule: O04."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping

import pytest

from shared.errors import DeclarationError, OperationError, UnsupportedError
from shared.ids import AttemptId, work_of
from shared.model.attempt import AttemptState, Exclusion, FailureClass, Snapshot
from shared.model.settings import Binding, Config, Settings
from shared.model.work import WorkState
from shared.process.launcher import LaunchSpec
from shared.store.contract import Assignment
from tests.support.hosts import Shim
from tests.support.sites import Site
from tests.support.transitions import contents
from worker.agents.messages import Heard, Language, understand
from worker.executors.agent import AgentExecutor
from worker.executors.contract import Executor, told_of
from worker.executors.shell import ShellExecutor

SECRET = "hunter2"
UNTOLD = "executor_failed: {} ended with an error that it does not declare"
DECLARED = OperationError("workspace 7\nis gone", code="workspace_gone")
CONFIG = Config(Settings(), bindings=(Binding("talk", ("talk",), executor="agent"), Binding("job", ("job",))))
SHELL = ShellExecutor({"PATH": "/bin"}, None)

Ask = Callable[[], None]


class Breaking:
    """An agent executor whose entries do what a test says before they answer.

    Attributes:
        at: By entry: called first.
    """

    name = "agent"
    isolated = True
    takes_input = True

    def __init__(self, at: Mapping[str, Ask], sound: Executor) -> None:
        self.at = dict(at)
        self._sound = sound

    def _first(self, entry: str) -> None:
        self.at.get(entry, lambda: None)()

    @property
    def language(self) -> Language | None:
        self._first("language")

        def hear(message: Mapping[str, object], key: str) -> Heard:
            self._first("message")
            return understand(message, key)

        return hear

    def sandbox_digest(self, snapshot: Snapshot) -> str | None:
        self._first("sandbox_digest")
        return self._sound.sandbox_digest(snapshot)

    def prepare(self, assignment: Assignment, layer: Mapping[str, str]) -> LaunchSpec:
        self._first("prepare")
        return self._sound.prepare(assignment, layer)


def raises(error: Exception) -> Ask:
    def broken() -> None:
        raise error

    return broken


def undeclared() -> Exception:
    """As a library raises it in the middle of something: with a secret in its text, and in that of its cause."""
    error = RuntimeError(f"cannot log in with {SECRET}")
    error.__cause__ = ValueError(SECRET)
    return error


def executors(site: Site, **at: Ask) -> dict[str, Executor]:
    return {"shell@1": SHELL, "agent@1": Breaking(at, AgentExecutor(SHELL, site.world.home / "attempts"))}


def begin(site: Site, **at: Ask) -> None:
    """A worker with such an executor, and a coordinator."""
    site.configure(CONFIG)
    site.bench(executors=executors(site, **at))
    site.head()


def speak(site: Site, name: AttemptId) -> None:
    """If it runs, its program says something, and a second passes."""
    shim: Shim | None = site.host.shims.get(f"{name}.1")
    if shim is not None:
        shim.out += json.dumps({"type": "turn", "status": "help"}).encode() + b"\n"
    site.elapse(1)


def told_in_log(caplog: pytest.LogCaptureFixture, name: AttemptId) -> list[str]:
    """Why that attempt's executor failed, as the log says."""
    facts = [record.__dict__ for record in caplog.records if record.getMessage() == "executor.failed"]
    return [str(fact["why"]) for fact in facts if fact["attempt"] == name]


ENTRIES = {"sandbox_digest": "sandbox_digest", "prepare": "prepare", "language": "language", "message": "language"}
"""Entries of an executor, and what people are told of each."""


@pytest.mark.req("O04")
@pytest.mark.parametrize("entry", ENTRIES)
def test_an_error_that_is_not_declared_fails_its_attempt_alone_and_tells_nothing_of_itself(
    site: Site, entry: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    begin(site, **{entry: raises(undeclared())})
    other = site.submit("job")
    name = site.submit("talk", input_=b"begin")
    site.settle()
    speak(site, name)

    attempt = site.attempt(name)
    assert (attempt.state, attempt.error) == (AttemptState.FAILED, UNTOLD.format(ENTRIES[entry]))
    assert attempt.exclusion is Exclusion.RELEASED, (
        "its stop is proven: before a launch nothing ran, after it it is stopped"
    )
    assert site.orders() == []
    site.host.shim(other).end(0)
    site.settle()
    assert site.attempt(other).state is AttemptState.SUCCEEDED, "the worker goes on, and so does what it holds"
    assert told_in_log(caplog, name) == [attempt.error]
    everything = json.dumps(contents(site.world), default=repr) + repr([record.__dict__ for record in caplog.records])
    assert SECRET not in everything
    assert SECRET not in caplog.text


@pytest.mark.req("O04")
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_declared_error_is_told_with_its_code_and_its_message(
    site: Site, entry: str, caplog: pytest.LogCaptureFixture
) -> None:
    begin(site, **{entry: raises(DECLARED)})
    name = site.submit("talk", input_=b"begin")
    site.settle()
    speak(site, name)

    attempt = site.attempt(name)
    assert (attempt.state, attempt.error) == (AttemptState.FAILED, "workspace_gone: workspace 7 is gone")
    assert told_in_log(caplog, name) == [attempt.error]


def test_an_executor_that_is_sound_runs_its_attempt(site: Site) -> None:
    """The control: the same site, with nothing broken."""
    begin(site)
    name = site.submit("talk", input_=b"begin")
    site.settle()
    speak(site, name)
    site.host.shim(name).end(0)
    site.settle()

    assert site.attempt(name).state is AttemptState.SUCCEEDED


@pytest.mark.req("O04")
def test_what_the_language_declares_wrong_is_refused_and_its_program_goes_on(site: Site) -> None:
    """The one error that a language may raise for what a program says wrong."""
    begin(site, message=raises(DeclarationError("no such turn")))
    name = site.submit("talk", input_=b"begin")
    site.settle()
    speak(site, name)
    assert site.attempt(name).state is AttemptState.RUNNING

    site.host.shim(name).end(0)
    site.settle()

    assert site.attempt(name).state is AttemptState.SUCCEEDED


@pytest.mark.req("O04", "R13")
def test_nothing_ran_of_what_could_not_be_prepared_and_it_is_tried_again(site: Site) -> None:
    begin(site, prepare=raises(undeclared()))
    name = site.submit("talk", input_=b"begin")
    site.settle()

    attempt = site.attempt(name)
    assert (attempt.failure, attempt.exclusion_proof, site.host.shims) == (FailureClass.ADMISSION, "S0", {})
    assert site.work(work_of(name)).state is WorkState.BACKOFF


@pytest.mark.req("O04", "R13")
def test_a_program_that_cannot_be_understood_is_stopped_and_its_slot_held_until_that_is_proven(site: Site) -> None:
    begin(site, message=raises(undeclared()))
    name = site.submit("talk", input_=b"begin")
    site.settle()
    assert site.attempt(name).state is AttemptState.RUNNING
    [bench] = site.benches
    site.host.shim(name).out += b'{"type": "log"}\n'
    site.clock.advance(1_000_000)
    bench.step()
    bench.launches.run()
    bench.step()

    attempt = site.attempt(name)
    assert (attempt.state, attempt.failure, attempt.exclusion) == (
        AttemptState.FAILED,
        FailureClass.KNOWN,
        Exclusion.HELD,
    )
    assert [order.attempt_id for order in site.orders()] == [name]
    site.settle()
    assert (site.host.stopped, site.attempt(name).exclusion_proof) == ([name], "S1")


@pytest.mark.req("O04")
def test_an_end_whose_last_words_cannot_be_understood_is_a_failure_with_its_status_and_its_proof(site: Site) -> None:
    begin(site, message=raises(undeclared()))
    name = site.submit("talk", input_=b"begin")
    site.settle()
    shim = site.host.shim(name)
    shim.out += b'{"type": "result", "outcome": "completed"}\n'
    shim.end(0)

    site.settle()

    attempt = site.attempt(name)
    assert (attempt.state, attempt.exit_status, attempt.exclusion_proof) == (AttemptState.FAILED, 0, "S1")
    assert attempt.error == UNTOLD.format("language")
    assert site.host.stopped == []


@pytest.mark.req("O04", "R03")
def test_a_relaunch_that_cannot_be_planned_fails_its_attempt_and_is_proven_stopped(site: Site) -> None:
    begin(site)
    [first] = site.benches
    name = site.submit("talk", input_=b"begin")
    site.heads[0].settle()
    first.step()
    assert site.attempt(name).state is AttemptState.LAUNCHING
    site.bench("worker-2", executors=executors(site, sandbox_digest=raises(undeclared())))
    site.kill(first)

    site.settle()

    attempt = site.attempt(name)
    assert (attempt.epoch, attempt.state, attempt.error) == (2, AttemptState.FAILED, UNTOLD.format("sandbox_digest"))
    assert (attempt.exclusion_proof, site.host.runs(name)) == ("S0", 0)


@pytest.mark.req("O04")
def test_what_is_told_is_one_line_that_a_store_keeps_and_a_terminal_shows() -> None:
    wild = OperationError("a\nb\x1b[2Jc\0d\ud800e" + "x" * 1_000, code="wild")

    told = told_of(wild)

    assert told.startswith("wild: a b?[2Jc?d?ex")
    assert len(told) == 300
    assert told_of(UnsupportedError("no sandbox here")) == "no sandbox here", "what this host cannot do has no code"
