"""The executor for Claude Code: the whole of its input is there before it starts, and its streaming JSON is understood.

It reads until the end of its input and then ends by itself, which a channel never lets it; so what comes while it runs waits for
the next attempt. Rule: design §6; docs/agent-protocol.md, "Claude Code".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shared.errors import UnsupportedError
from shared.model.attempt import Snapshot
from shared.model.work import Input
from shared.process.launcher import LaunchSpec
from shared.store.contract import Assignment
from worker.agents.claude_code import understand, user_line
from worker.agents.messages import Language
from worker.executors.agent import OUT_MAX_BYTES
from worker.executors.shell import ShellExecutor


class ClaudeCodeExecutor:
    """`claude -p --output-format stream-json --input-format stream-json --verbose`, in the agents pool."""

    name = "claude-code"
    isolated = True
    takes_input = False
    language: Language = staticmethod(understand)

    def __init__(self, commands: ShellExecutor) -> None:
        """Take what starts a command."""
        self._commands = commands

    def sandbox_digest(self, snapshot: Snapshot) -> str | None:
        """See `Executor.sandbox_digest`."""
        return self._commands.sandbox_digest(snapshot)

    def prepare(self, assignment: Assignment, layer: Mapping[str, str]) -> LaunchSpec:
        """See `Executor.prepare`. Its inputs are one message of the user's.

        Raises:
            UnsupportedError: an input is no text.
        """
        spec = self._commands.prepare(assignment, layer)
        texts = [_text(item) for item in assignment.inputs if item.body]
        out_max = None if spec.output_max is None else max(spec.output_max, OUT_MAX_BYTES)
        return replace(spec, stdin=user_line(texts) if texts else None, out_max=out_max, out_counts=True)


def _text(item: Input) -> str:
    try:
        return item.body.decode("utf-8")
    except UnicodeDecodeError:
        raise UnsupportedError(f"input {item.number} is no text, and Claude Code is told text only") from None
