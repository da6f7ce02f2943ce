"""Agents on a simulated host: how they are started, speak, and are looked at."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from shared.ids import AttemptId, work_of
from shared.model.instant import US_PER_S
from shared.model.intent import Intent
from shared.model.settings import Binding, Config, Settings
from shared.model.stream import Stream
from tests.support.hosts import Shim
from tests.support.protocol import disagreement
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
