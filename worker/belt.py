"""The tool belt: the socket in an attempt's directory by which the running program says things of itself.

Each holder of the lease binds it anew, so that it outlives any worker. One thread serves all of a worker's belts: it reads a
request, checks its token and its form, and hands it to the worker's step as a completion; it never touches the store. The
step's answer goes back the same way.

Rule: design §6; requirement O15.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import os
import queue
import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from shared.errors import DeclarationError
from shared.model.attempt import LeaseKey
from shared.model.declaration import Declaration, declaration_of, parse_json
from shared.model.usage import exact
from worker.pool import Completion

log = logging.getLogger(__name__)

SOCKET = "belt.sock"
REQUEST_BYTES_MAX = 192 * 1024
"""Of one request: a declaration of 64 KiB, its token and its key, with room for how JSON writes them."""
CONNECTIONS_MAX = 32
"""At once, over all belts of a worker; beyond them whoever has said nothing for longest makes room, and tries again."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a program asks, checked.

    Attributes:
        key: The lease under which its belt was bound.
        connection: Whom to answer.
        declaration: None: it asks for its inputs, those behind `inputs_after`.
    """

    key: LeaseKey
    connection: int
    declaration: Declaration | None
    inputs_after: int = 0


class Belt(Protocol):
    """The belts of a worker's attempts."""

    def variables(self, directory: str, token: str, /) -> Mapping[str, str]:
        """What a program needs to reach its belt; {}: there is none."""

    def bind(self, key: LeaseKey, directory: str, token_sha256: str) -> None:
        """Listen for the program of that launch, instead of whoever did before."""

    def close(self, key: LeaseKey) -> None:
        """Listen no more; may be repeated."""

    def answer(self, connection: int, told: Mapping[str, object]) -> None:
        """Answer a request; whoever asked may be gone."""


class NoBelt:
    """Where programs cannot speak: they get no token."""

    def variables(self, _directory: str, _token: str, /) -> Mapping[str, str]:
        """See `Belt.variables`."""
        return {}

    def bind(self, key: LeaseKey, directory: str, token_sha256: str) -> None:
        """See `Belt.bind`."""

    def close(self, key: LeaseKey) -> None:
        """See `Belt.close`."""

    def answer(self, connection: int, told: Mapping[str, object]) -> None:
        """See `Belt.answer`."""


def token_digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


@dataclass(eq=False)
class _Listener:
    key: LeaseKey
    socket: socket.socket
    folder: int
    inode: int
    token_sha256: str
    refused: int = 0


@dataclass(eq=False)
class _Connection:
    number: int
    socket: socket.socket
    listener: _Listener
    received: bytearray = field(default_factory=bytearray)
    sending: bytes = b""
    asked: bool = False


class BeltServer:
    """Implements `Belt`.

    Attributes:
        refused: Requests with a wrong token so far.
    """

    def __init__(self, attempts_dir: Path, received: Callable[[Completion], None]) -> None:
        """Take where the attempts' directories are, and what takes a request to the step; that is called on the thread."""
        self._attempts = attempts_dir
        self._received = received
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._selector = selectors.DefaultSelector()
        self._listeners: dict[LeaseKey, _Listener] = {}
        self._connections: dict[int, _Connection] = {}
        self._numbers = 0
        self.refused = 0
        self._woken, self._waker = socket.socketpair()
        self._woken.settimeout(0)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._serve, name="belt", daemon=True)
        self._thread.start()

    def variables(self, directory: str, token: str) -> Mapping[str, str]:
        """See `Belt.variables`."""
        return {"TENURE_TOKEN": token, "TENURE_BELT": str(self._attempts / directory)}

    def bind(self, key: LeaseKey, directory: str, token_sha256: str) -> None:
        """See `Belt.bind`. Bound when it returns; a directory that cannot be used leaves the program without one, and is told."""
        try:
            listener = self._listen(key, directory, token_sha256)
        except OSError as error:
            facts = {"attempt": key.attempt_id, "epoch": key.epoch, "why": error.strerror}
            log.warning("belt.unavailable", extra=facts)
            return
        self._order(lambda: self._add(listener))

    def close(self, key: LeaseKey) -> None:
        """See `Belt.close`."""
        self._order(lambda: self._drop_listener(key))

    def answer(self, connection: int, told: Mapping[str, object]) -> None:
        """See `Belt.answer`."""
        self._order(lambda: self._send(connection, told))

    def stop(self) -> None:
        """Close everything; blocks until the thread has ended, at most 2 s."""
        self._orders.put(None)
        self._wake()
        self._thread.join(2.0)

    def _order(self, order: Callable[[], None]) -> None:
        self._orders.put(order)
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._waker.send(b"1")

    def _listen(self, key: LeaseKey, directory: str, token_sha256: str) -> _Listener:
        """Bind below the directory's descriptor: a path of the home may be longer than a socket's name."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
        folder = os.open(self._attempts / directory, flags)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(SOCKET, dir_fd=folder)
            os.fchmod(listening.fileno(), 0o600)  # what a bind makes has its socket's mode
            listening.bind(f"/proc/self/fd/{folder}/{SOCKET}")
            listening.listen(CONNECTIONS_MAX)
            inode = os.stat(SOCKET, dir_fd=folder).st_ino
        except OSError:
            listening.close()
            os.close(folder)
            raise
        return _Listener(key, listening, folder, inode, token_sha256)

    # --- on the thread

    def _serve(self) -> None:
        while True:
            for ready, _ in self._selector.select():
                if ready.data is None:
                    with contextlib.suppress(BlockingIOError):
                        self._woken.recv(4096)
                elif isinstance(ready.data, _Listener):
                    self._accept(ready.data)
                elif ready.data.number not in self._connections:
                    continue  # it made room for one that came in this very round
                elif ready.data.sending:
                    self._go_on_sending(ready.data)
                else:
                    self._read(ready.data)
            if not self._obey():
                return

    def _obey(self) -> bool:
        while True:
            try:
                order = self._orders.get_nowait()
            except queue.Empty:
                return True
            if order is None:
                for key in list(self._listeners):
                    self._drop_listener(key)
                self._selector.close()
                self._woken.close()
                self._waker.close()
                return False
            order()

    def _add(self, listener: _Listener) -> None:
        self._drop_listener(listener.key)
        self._listeners[listener.key] = listener
        self._selector.register(listener.socket, selectors.EVENT_READ, listener)

    def _drop_listener(self, key: LeaseKey) -> None:
        listener = self._listeners.pop(key, None)
        if listener is None:
            return
        for connection in [one for one in self._connections.values() if one.listener is listener]:
            self._drop(connection)
        self._selector.unregister(listener.socket)
        listener.socket.close()
        with contextlib.suppress(OSError):  # another holder may have bound it since
            if os.stat(SOCKET, dir_fd=listener.folder).st_ino == listener.inode:
                os.unlink(SOCKET, dir_fd=listener.folder)
        os.close(listener.folder)

    def _accept(self, listener: _Listener) -> None:
        try:
            accepted, _ = listener.socket.accept()
        except OSError:
            return
        accepted.settimeout(0)
        self._numbers += 1
        connection = _Connection(self._numbers, accepted, listener)
        if len(self._connections) >= CONNECTIONS_MAX and not self._make_room():
            accepted.close()  # it tries again
            return
        self._connections[connection.number] = connection
        self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _make_room(self) -> bool:
        """Drop whoever came first of those that nobody works for: it said nothing yet, or does not read its answer. So no program
        keeps another one's words out by holding connections. False: all of them wait for the step.
        """
        idle = next((one for one in self._connections.values() if not one.asked or one.sending), None)
        if idle is not None:
            self._drop(idle)
        return idle is not None

    def _drop(self, connection: _Connection) -> None:
        self._connections.pop(connection.number, None)
        with contextlib.suppress(KeyError):
            self._selector.unregister(connection.socket)
        connection.socket.close()

    def _read(self, connection: _Connection) -> None:
        try:
            found = connection.socket.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            found = b""
        if not found or connection.asked:
            self._drop(connection)
            return
        connection.received += found
        line, ended, _ = bytes(connection.received).partition(b"\n")
        if ended:
            connection.asked = True
            self._ask(connection, line)
        elif len(connection.received) > REQUEST_BYTES_MAX:
            self._refuse(connection, DeclarationError(f"a request is at most {REQUEST_BYTES_MAX} bytes"))

    def _ask(self, connection: _Connection, line: bytes) -> None:
        listener = connection.listener
        try:
            request = request_of(line, listener.key, connection.number, listener.token_sha256)
        except DeclarationError as error:
            self._refuse(connection, error)
            return
        if request is None:
            self._refuse_token(connection)
        else:
            self._received(Completion(("belt", listener.key), request, None))

    def _refuse_token(self, connection: _Connection) -> None:
        """Wrong tokens are counted, and told once for each belt."""
        listener = connection.listener
        self.refused += 1
        listener.refused += 1
        if listener.refused == 1:
            key = listener.key
            log.warning("belt.token_refused", extra={"attempt": key.attempt_id, "epoch": key.epoch})
        self._send(connection.number, WRONG_TOKEN)

    def _refuse(self, connection: _Connection, error: DeclarationError) -> None:
        connection.asked = True
        self._send(connection.number, refusal(error.code, str(error)))

    def _send(self, number: int, told: Mapping[str, object]) -> None:
        connection = self._connections.get(number)
        if connection is None:
            return
        connection.sending = json.dumps(told, separators=(",", ":")).encode() + b"\n"
        self._selector.modify(connection.socket, selectors.EVENT_WRITE, connection)

    def _go_on_sending(self, connection: _Connection) -> None:
        try:
            sent = connection.socket.send(connection.sending)
        except BlockingIOError:
            return
        except OSError:
            sent = len(connection.sending)
        connection.sending = connection.sending[sent:]
        if not connection.sending:
            self._drop(connection)


def refusal(code: str, message: str) -> Mapping[str, object]:
    """An answer that says no."""
    return {"error": {"code": code, "message": message}}


RETRY: Mapping[str, object] = {"retry": True}
"""An answer that says: nothing was done, ask whoever holds the attempt next."""
WRONG_TOKEN = refusal("token_refused", "this is not the token of the program that runs here")


def request_of(line: bytes, key: LeaseKey, connection: int, token_sha256: str) -> Request | None:
    """What a line of a program asks; None: its token is another one.

    Raises:
        DeclarationError: it is no request, or a wrong one.
    """
    asked = parse_json(line, number=exact)
    if not isinstance(asked, dict):
        raise DeclarationError("a request is an object")
    if not _is_token(asked.get("token"), token_sha256):
        return None
    if asked.get("ask") == "inputs":
        after = asked.get("after", 0)
        if not isinstance(after, int) or isinstance(after, bool) or not 0 <= after < 2**63:
            raise DeclarationError("`after` is the number of an input")
        return Request(key, connection, None, after)
    declared = declaration_of(asked.get("key"), asked.get("kind"), asked.get("body"))
    return Request(key, connection, declared)


def _is_token(given: object, token_sha256: str) -> bool:
    """Compared in constant time."""
    return isinstance(given, str) and hmac.compare_digest(token_digest(given), token_sha256)
