"""The simulated tool belt: sockets in the directories of launches, who listens there, and how a program asks.

What a request is, whose token it needs and what is answered is the real code's (`worker.belt`); here are only the sockets beneath
it, and the client's patience, a mirror of `shared/commands/tool.py`. Rule: design §6; requirement O15.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from chaos.simulation.baton import Baton, Signal
from chaos.simulation.files import Disk
from chaos.simulation.processes import Process
from shared.commands.tool import PATIENCE_US, PAUSE_US, TRY_S
from shared.errors import DeclarationError
from shared.model.attempt import LeaseKey
from shared.model.instant import US_PER_S
from worker.belt import WRONG_TOKEN, refusal, request_of
from worker.pool import Completion

Answer = Mapping[str, object]


@dataclass(eq=False)
class Connection:
    """One question, and its answer; `is_open` False: the other end is gone."""

    answered: Signal
    answer: Answer | None = None
    is_open: bool = True

    def settle(self, answer: Answer | None) -> None:
        """Answer, or, with None, go away."""
        self.answer, self.is_open = answer, False
        self.answered.notify()


@dataclass(eq=False)
class Socket:
    """A bound socket: who listens, for whom. A connection lives as long as its listener."""

    server: SimulatedBelt
    key: LeaseKey
    token_sha256: str
    is_open: bool = True
    connections: dict[int, Connection] = field(default_factory=dict)

    def close(self) -> None:
        """Listen no more."""
        self.is_open = False
        for connection in list(self.connections.values()):
            connection.settle(None)
        self.connections.clear()


class SimulatedBelt:
    """See `worker.belt.Belt`: the belts of one worker process."""

    def __init__(self, baton: Baton, disk: Disk, process: Process, received: Callable[[Completion], None]) -> None:
        self._baton = baton
        self._disk = disk
        self._process = process
        self._received = received
        self._sockets: dict[LeaseKey, Socket] = {}
        self._numbers = 0
        process.at_end.append(self._end)

    def variables(self, directory: str, token: str, /) -> Mapping[str, str]:
        """See `Belt.variables`."""
        return {"TENURE_TOKEN": token, "TENURE_BELT": directory}

    def bind(self, key: LeaseKey, directory: str, token_sha256: str) -> None:
        """See `Belt.bind`: whoever listened there before is asked no more."""
        self._baton.hand_over()
        found = self._disk.directories.get(directory)
        if found is None:
            return
        self.close(key)
        found.belt = self._sockets[key] = Socket(self, key, token_sha256)

    def close(self, key: LeaseKey) -> None:
        """See `Belt.close`."""
        found = self._sockets.pop(key, None)
        if found is not None:
            found.close()

    def answer(self, connection: int, told: Answer) -> None:
        """See `Belt.answer`."""
        for one in self._sockets.values():
            found = one.connections.pop(connection, None)
            if found is not None:
                found.settle(told)

    def ask(self, at: Socket, line: bytes) -> Connection:
        """A program's question; this worker's thread reads it once that runs."""
        self._numbers += 1
        number, connection = self._numbers, Connection(Signal(self._baton))
        at.connections[number] = connection
        self._process.start(lambda: self._hear(at, number, line), "/belt")
        return connection

    def _hear(self, at: Socket, number: int, line: bytes) -> None:
        try:
            request = request_of(line, at.key, number, at.token_sha256)
        except DeclarationError as error:
            self.answer(number, refusal(error.code, str(error)))
            return
        if request is None:
            self.answer(number, WRONG_TOKEN)
        else:
            self._received(Completion(("belt", at.key), request, None))

    def _end(self) -> None:
        for one in self._sockets.values():
            one.close()


class NobodyAnsweredError(Exception):
    """For a minute."""


def ask(baton: Baton, disk: Disk, variables: Mapping[str, str], asked: Mapping[str, object]) -> Answer:
    """Ask until there is an answer, as `tenure tool` does; also one that refuses.

    Raises:
        NobodyAnsweredError: nobody did for a minute.
    """
    line = json.dumps({"token": variables["TENURE_TOKEN"], **asked}).encode()
    until_us = baton.mono_us + PATIENCE_US
    while True:
        answer = _try(baton, disk, variables["TENURE_BELT"], line)
        if answer is not None and "retry" not in answer:
            return answer
        if baton.mono_us >= until_us:
            raise NobodyAnsweredError
        baton.sleep(min(PAUSE_US, max(1, until_us - baton.mono_us)))


def _try(baton: Baton, disk: Disk, directory: str, line: bytes) -> Answer | None:
    baton.hand_over()
    found = disk.directories.get(directory)
    if found is None or found.belt is None or not found.belt.is_open:
        return None
    connection = found.belt.server.ask(found.belt, line)
    until_us = baton.mono_us + int(TRY_S * US_PER_S)
    while connection.is_open and baton.mono_us < until_us:
        connection.answered.wait(until_us)
    return connection.answer
