"""What an executor promises, how its own code is called, and the registry that is validated when a worker starts.

Rule: design §6, requirements E01, O04.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from shared.errors import DeclarationError, OperationError, UnsupportedError
from shared.model.attempt import Snapshot
from shared.model.settings import pool_of, registration_of
from shared.process.launcher import LaunchSpec
from shared.store.contract import Assignment
from worker.agents.messages import Heard, Language

T = TypeVar("T")

Fault = OperationError | UnsupportedError
"""What an executor's own code is known to end with, besides an answer."""
UNDECLARED = "executor_failed"
"""Code of an error that an executor did not declare."""
TOLD_CHARS_MAX = 300


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
            OperationError: it failed, and says how; whatever else it raises is told without a word of it.
        """


def asked(entry: str, ask: Callable[[], T], *passes: type[Exception]) -> T:
    """What an executor's own code answers. Whatever goes wrong in it is the attempt's failure, never its worker's end.

    Args:
        entry: What it was asked for, for people. `passes`: What it may raise besides, for the caller.
    Raises:
        OperationError, UnsupportedError: it said so itself, or failed with an error that it does not declare: that one's text may
            hold anything, so nothing of it is told. Rule: O04.
    """
    try:
        return ask()
    except Exception as error:
        if isinstance(error, (OperationError, UnsupportedError, *passes)):
            raise
        raise OperationError(f"{entry} ended with an error that it does not declare", code=UNDECLARED) from None


def told_of(error: Fault) -> str:
    """One line on a failed operation, that a store can keep and a terminal can show."""
    text = f"{error.code}: {error.message}" if isinstance(error, OperationError) else error.message
    return "".join(sign if sign.isprintable() else "?" for sign in " ".join(text.split()))[:TOLD_CHARS_MAX]


def sandbox_of(executor: Executor, snapshot: Snapshot) -> tuple[str | None, Fault | None]:
    """The digest of the sandbox that a launch is bound to, or why its executor cannot say."""
    try:
        return asked("sandbox_digest", lambda: executor.sandbox_digest(snapshot)), None
    except (OperationError, UnsupportedError) as error:
        return None, error


def is_listened_to(executor: Executor) -> bool:
    """Whether somebody reads what its programs say; one that cannot even say how is found out by the first look."""
    try:
        return executor.language is not None
    except Exception:  # noqa: BLE001 - as in `asked`
        return True


def language_of(executor: Executor) -> Language:
    """How its programs are understood. Raises OperationError, as `asked`; so does what it returns, beside DeclarationError."""
    language = asked("language", lambda: executor.language)
    assert language is not None, "nobody listens to it"

    def understand(message: Mapping[str, object], key: str) -> Heard:
        return asked("language", lambda: language(message, key), DeclarationError)

    return understand


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
