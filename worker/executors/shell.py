"""The shell executor: runs a command, given as a list of arguments. No shell reads them unless the list names one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shared.errors import UnsupportedError
from shared.ids import attempt_directory
from shared.model.attempt import Snapshot
from shared.model.instant import US_PER_S
from shared.model.settings import SandboxConfig
from shared.process.launcher import LaunchSpec
from shared.process.sandbox import SandboxPlan
from shared.store.contract import Assignment


class ShellExecutor:
    """Commands in the jobs pool; every process is held at the shim's gate until the pin."""

    name = "shell"
    isolated = True
    takes_input = False
    language = None

    def __init__(self, environment: Mapping[str, str], bubblewrap: str | None, attempts: Path | None = None) -> None:
        """Take what every launch starts from.

        Args:
            environment: Base environment of every job (see `worker.environment`); copied.
            bubblewrap: Path of `bwrap`; None where it is not installed.
            attempts: Where the folders of the launches are, each of which its own job sees in its sandbox; None: it does not.
        """
        self._environment = dict(environment)
        self._bubblewrap = bubblewrap
        self._attempts = attempts

    def sandbox_digest(self, snapshot: Snapshot) -> str | None:
        """See `Executor.sandbox_digest`."""
        return None if snapshot.sandbox is None else _plan(snapshot.sandbox).digest

    def prepare(self, assignment: Assignment, layer: Mapping[str, str]) -> LaunchSpec:
        """See `Executor.prepare`. The Work's input becomes standard input; without one it is `/dev/null`."""
        attempt, snapshot = assignment.attempt, assignment.snapshot
        bodies = [item.body for item in assignment.inputs if item.body]
        return LaunchSpec(
            attempt_id=attempt.id,
            epoch=assignment.key.epoch,
            argv=self._argv(assignment),
            env={**self._environment, "TENURE_WORK": attempt.work_id, **dict(snapshot.env), **layer},
            cwd=snapshot.cwd,
            stdin=b"".join(bodies) if bodies else None,
            grace_s=snapshot.grace_us / US_PER_S,
            output_max=snapshot.output_max_bytes or None,
        )

    def _argv(self, assignment: Assignment) -> tuple[str, ...]:
        snapshot = assignment.snapshot
        if snapshot.sandbox is None:
            return snapshot.command
        if self._bubblewrap is None:
            raise UnsupportedError("its binding asks for a sandbox, and bubblewrap is not installed here")
        own = None
        if self._attempts is not None:
            own = str(self._attempts / attempt_directory(assignment.attempt.id, assignment.key.epoch))
        return (*_plan(snapshot.sandbox).words(self._bubblewrap, snapshot.cwd, own), *snapshot.command)


def _plan(config: SandboxConfig) -> SandboxPlan:
    return SandboxPlan(
        read_only=config.read_only,
        writable=config.writable,
        network=config.network,
        private_tmp=config.private_tmp,
    )
