"""What an executor promises, and the registry that is validated when a worker starts. Rule: design §6, requirement E01."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from shared.errors import UnsupportedError
from shared.model.attempt import Snapshot
from shared.model.settings import pool_of, registration_of
from shared.process.launcher import LaunchSpec
from shared.store.contract import Assignment
from worker.agents.messages import Language


class Executor(Protocol):
    """Prepares launches of one kind.

    Attributes:
        name: As configurations call it.
        isolated: Everything it launches is held at the gate until its pin; only then may a lost launch be relaunched.
        takes_input: Its program can be told something while it runs.
        language: How its program's output is understood, line by line; None: nobody listens to it.
    """

    name: str
    isolated: bool
    takes_input: bool

    @property
    def language(self) -> Language | None: ...

    def sandbox_digest(self, snapshot: Snapshot) -> str | None:
        """Digest of the sandbox plan the launch will be bound to; None when it is bound to none. Pure. Rule: R14."""

    def prepare(self, assignment: Assignment, layer: Mapping[str, str]) -> LaunchSpec:
        """The launch of this assignment. Called on a pool thread, outside any transaction.

        Args:
            layer: Variables that were asked for just now and are stored nowhere (secrets).

        Raises:
            UnsupportedError: this host cannot launch it as asked.
        """


def registry(executors: Iterable[Executor]) -> Mapping[str, Executor]:
    """Executors by registration (name and version): an attempt is recovered by exactly the one it pinned. Rule: E08, E09.

    Raises:
        UnsupportedError: a name is registered twice, or no pool is known for it.
    """
    known: dict[str, Executor] = {}
    for executor in executors:
        registration = registration_of(executor.name)
        if registration in known:
            raise UnsupportedError(f'executor "{executor.name}" is registered twice')
        pool_of(executor.name)
        known[registration] = executor
    return known
