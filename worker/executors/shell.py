"""The shell executor: runs a command, given as a list of arguments. No shell reads them unless the list names one."""

from __future__ import annotations

from collections.abc import Mapping

from shared.errors import UnsupportedError
from shared.model.attempt import Snapshot
from shared.model.instant import US_PER_S
from shared.process.launcher import LaunchSpec
from shared.store.contract import Assignment


class ShellExecutor:
    """Commands in the jobs pool; every process is held at the shim's gate until the pin."""

    name = "shell"
    isolated = True

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Take the base environment of every job (see `worker.environment`); copied."""
        self._environment = dict(environment)

    def sandbox_digest(self, snapshot: Snapshot) -> str | None:  # noqa: ARG002 - no sandbox is bound yet
        """See `Executor.sandbox_digest`."""
        return None

    def prepare(self, assignment: Assignment, layer: Mapping[str, str]) -> LaunchSpec:
        """See `Executor.prepare`. The Work's input becomes standard input; without one it is `/dev/null`."""
        attempt, snapshot = assignment.attempt, assignment.snapshot
        bodies = [item.body for item in assignment.inputs if item.body]
        return LaunchSpec(
            attempt_id=attempt.id,
            epoch=assignment.key.epoch,
            argv=self._argv(snapshot),
            env={**self._environment, "TENURE_WORK": attempt.work_id, **dict(snapshot.env), **layer},
            cwd=snapshot.cwd,
            stdin=b"".join(bodies) if bodies else None,
            grace_s=snapshot.grace_us / US_PER_S,
            output_max=snapshot.output_max_bytes or None,
        )

    def _argv(self, snapshot: Snapshot) -> tuple[str, ...]:
        if snapshot.sandbox is not None:
            raise UnsupportedError("this version binds no sandbox")
        return snapshot.command
