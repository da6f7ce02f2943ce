"""The agent executor: runs any program that speaks JSON lines on its standard input and output.

What it is told first is in its channel before it runs: the launch writes it between READY and the pin, so a launch whose gate
stays shut was told nothing that counts. Rule: design §6; docs/agent-protocol.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from shared.ids import attempt_directory
from shared.model.attempt import Snapshot
from shared.model.instant import US_PER_MS
from shared.process.channel import input_message, input_name
from shared.process.launcher import LaunchSpec
from shared.process.spec import CHANNEL_BYTES
from shared.store.contract import Assignment
from worker.agents.messages import Language, understand
from worker.executors.shell import ShellExecutor

PROTOCOL = 1
OUT_MAX_BYTES = 1024 * 1024 * 1024
"""Least of what is kept of an agent's standard output, whatever its cap: none of it may go before it was read."""
INPUTS_FILE = "inputs.json"
WAKE_FILE = "wake.json"


class AgentExecutor:
    """Programs in the agents pool, fed and understood while they run."""

    name = "agent"
    isolated = True
    takes_input = True
    language: Language = staticmethod(understand)

    def __init__(self, commands: ShellExecutor, attempts: Path) -> None:
        """Take what starts a command, and the folder of the attempts' directories."""
        self._commands = commands
        self._attempts = attempts

    def sandbox_digest(self, snapshot: Snapshot) -> str | None:
        """See `Executor.sandbox_digest`."""
        return self._commands.sandbox_digest(snapshot)

    def prepare(self, assignment: Assignment, layer: Mapping[str, str]) -> LaunchSpec:
        """See `Executor.prepare`. Its inputs, and whatever it is told besides, come in a `start` message."""
        spec = self._commands.prepare(assignment, layer)
        first, files = self._start(assignment)
        out_max = None if spec.output_max is None else max(spec.output_max, OUT_MAX_BYTES)
        return replace(spec, stdin=first, channel=True, files=files, out_max=out_max, out_counts=True)

    def _start(self, assignment: Assignment) -> tuple[bytes, tuple[tuple[str, bytes], ...]]:
        attempt, epoch = assignment.attempt, assignment.key.epoch
        folder = self._attempts / attempt_directory(attempt.id, epoch)
        inputs, files = [], []
        for item in assignment.inputs:
            message, content = input_message(
                item.number, item.body, folder / input_name(item.number), CHANNEL_BYTES // 2
            )
            inputs.append(message)
            if content is not None:
                files.append((input_name(item.number), content))
        start: dict[str, object] = {
            "type": "start",
            "protocol": PROTOCOL,
            "work": attempt.work_id,
            "attempt": attempt.id,
            "epoch": epoch,
            "wake": None if assignment.wake is None else json.loads(assignment.wake.to_json()),
            "time_left_ms": attempt.budget_us // US_PER_MS,
        }
        start["inputs"] = inputs
        for key, name in (("wake", WAKE_FILE), ("inputs", INPUTS_FILE)):
            if len(_line(start)) > CHANNEL_BYTES and start[key] is not None and len(json.dumps(start[key])) > len(name):
                files.append((name, json.dumps(start.pop(key)).encode()))
                start[f"{key}_file"] = str(folder / name)
        return _line(start), tuple(files)


def _line(message: Mapping[str, object]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
