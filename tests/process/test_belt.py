"""The tool belt's socket: tokens, forms, bounds, deep homes, and one holder after the other."""

from __future__ import annotations

import json
import logging
import os
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from shared.ids import AttemptId, Incarnation
from shared.model.attempt import LeaseKey
from shared.model.declaration import Declaration, declaration_of, usage_declared
from shared.model.usage import Usage
from tests.support.waiting import wait_until
from worker.belt import CONNECTIONS_MAX, REQUEST_BYTES_MAX, SOCKET, BeltServer, Request, token_digest
from worker.pool import Completion

KEY = LeaseKey(AttemptId("w1.1"), 1, Incarnation("worker-1.1"))
NEXT = LeaseKey(AttemptId("w1.1"), 2, Incarnation("worker-2.1"))
TOKEN = "a" * 64
TURN = {"token": TOKEN, "key": "t-1", "kind": "turn", "body": {"status": "done"}}


def declaration(key: str) -> Declaration:
    """The turn under that key."""
    return declaration_of(key, "turn", {"status": "done"})


class Home:
    """Attempts' directories, with a server on them."""

    def __init__(self, folder: Path) -> None:
        self.attempts = folder
        (folder / "w1.1.1").mkdir(parents=True)
        self.asked: queue.SimpleQueue[Completion] = queue.SimpleQueue()
        self.server = BeltServer(folder, self.asked.put)
        self.others: list[BeltServer] = []

    def bind(self, key: LeaseKey = KEY) -> None:
        self.server.bind(key, "w1.1.1", token_digest(TOKEN))

    def dial(self) -> socket.socket:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        door.settimeout(20)
        folder = os.open(self.attempts / "w1.1.1", os.O_RDONLY)

        def is_taken() -> bool:
            try:
                door.connect(f"/proc/self/fd/{folder}/{SOCKET}")
            except BlockingIOError:  # so many others wait to be accepted
                return False
            return True

        wait_until(is_taken, "somebody listens")
        os.close(folder)
        return door

    def answer(self, line: bytes) -> dict[str, Any]:
        """What a program is told that sends this."""
        with self.dial() as door:
            door.sendall(line)
            return dict(json.loads(door.makefile("rb").readline()))

    def request(self) -> Request:
        """What the step is asked next."""
        asked = self.asked.get(timeout=20).result
        assert isinstance(asked, Request)
        return asked

    def ask(self, asked: object) -> dict[str, Any]:
        return self.answer(json.dumps(asked).encode() + b"\n")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "attempts")
    made.bind()
    yield made
    for server in (made.server, *made.others):
        server.stop()


@pytest.mark.req("O15")
def test_a_request_goes_to_the_step_and_its_answer_back(home: Home) -> None:
    with home.dial() as door:
        door.sendall(json.dumps(TURN).encode() + b"\n")
        completion = home.asked.get(timeout=20)
        assert completion.key == ("belt", KEY)
        assert isinstance(completion.result, Request)
        assert completion.result.declaration is not None
        home.server.answer(completion.result.connection, {"recorded": "t-1"})
        assert json.loads(door.makefile("rb").readline()) == {"recorded": "t-1"}


@pytest.mark.req("B02")
def test_an_amount_comes_to_the_step_as_it_was_said(home: Home) -> None:
    line = (
        b'{"token":"%s","key":"u","kind":"usage","body":{"units":{"usd":123456789012.123456789012}}}' % TOKEN.encode()
    )

    with home.dial() as door:
        door.sendall(line + b"\n")
        declared = home.request().declaration

    assert declared is not None
    assert usage_declared(declared) == Usage.from_plain({"usd": "123456789012.123456789012"})


@pytest.mark.req("O15")
@pytest.mark.parametrize("token", ["", "b" * 64, None, 7, TOKEN[:-1]])
def test_a_wrong_token_is_refused_counted_and_told_once(
    home: Home, token: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert home.ask({**TURN, "token": token})["error"]["code"] == "token_refused"

    assert home.server.refused == 3
    assert [record.message for record in caplog.records] == ["belt.token_refused"]
    assert home.asked.empty()


@pytest.mark.req("O15")
@pytest.mark.parametrize(
    "line",
    [
        b"{\n",
        b"[]\n",
        b"\xff\n",
        json.dumps({**TURN, "kind": "shout"}).encode() + b"\n",
        json.dumps({**TURN, "body": {"status": "done", "comment": "a\0b"}}).encode() + b"\n",
        json.dumps({**TURN, "body": {"status": "done", "comment": "\ud800"}}).encode() + b"\n",
        json.dumps({"token": TOKEN, "ask": "inputs", "after": -1}).encode() + b"\n",
        b"x" * (REQUEST_BYTES_MAX + 1),
    ],
)
def test_what_is_no_request_is_refused_by_its_type(home: Home, line: bytes) -> None:
    assert home.answer(line)["error"]["code"] == "declaration_invalid"
    assert home.asked.empty()


@pytest.mark.req("O15")
def test_the_next_holder_binds_it_anew_and_the_old_one_takes_nothing_away(home: Home) -> None:
    other = BeltServer(home.attempts, home.asked.put)
    home.others.append(other)
    other.bind(NEXT, "w1.1.1", token_digest(TOKEN))

    home.server.close(KEY)
    home.server.bind(LeaseKey(AttemptId("w2.1"), 1, KEY.owner), "w1.1.1x", "")  # refused; comes behind the close
    with home.dial() as door:
        door.sendall(json.dumps(TURN).encode() + b"\n")
        assert home.asked.get(timeout=20).key == ("belt", NEXT)
    other.close(NEXT)
    wait_until(lambda: not (home.attempts / "w1.1.1" / SOCKET).exists(), "the last holder took its socket away")


@pytest.mark.req("O15")
def test_the_socket_is_its_user_s_alone_however_deep_the_home(tmp_path: Path) -> None:
    deep = Home(tmp_path / ("d" * 100) / ("e" * 100))
    try:
        deep.bind()
        assert (deep.attempts / "w1.1.1" / SOCKET).stat().st_mode & 0o777 == 0o600
        assert deep.ask({**TURN, "token": "x"})["error"]["code"] == "token_refused"
    finally:
        deep.server.stop()


def test_who_leaves_in_the_middle_harms_nobody(home: Home) -> None:
    for _ in range(20):
        with home.dial() as door:
            door.sendall(b'{"tok')

    assert home.ask({**TURN, "token": "x"})["error"]["code"] == "token_refused"


@pytest.mark.req("O15")
def test_who_connects_and_says_nothing_keeps_nobody_out(home: Home) -> None:
    with home.dial() as first, ExitStack() as silent:
        first.sendall(json.dumps(TURN).encode() + b"\n")
        asked = home.request()
        for _ in range(2 * CONNECTIONS_MAX):
            silent.enter_context(home.dial())

        with home.dial() as door:
            door.sendall(json.dumps({**TURN, "key": "t-2"}).encode() + b"\n")
            assert home.request().declaration == declaration("t-2")
        home.server.answer(asked.connection, {"recorded": "t-1"})

        assert json.loads(first.makefile("rb").readline()) == {"recorded": "t-1"}, "who waits for the step stays"


@pytest.mark.req("O15")
def test_who_comes_while_all_wait_for_the_step_tries_again(home: Home) -> None:
    with ExitStack() as waiting:
        for number in range(CONNECTIONS_MAX):
            door = waiting.enter_context(home.dial())
            door.sendall(json.dumps({**TURN, "key": f"t-{number}"}).encode() + b"\n")
            home.asked.get(timeout=20)

        with home.dial() as late:
            assert late.recv(1) == b"", "closed without a word"


def test_who_speaks_in_the_very_moment_in_which_it_makes_room_harms_nobody(home: Home) -> None:
    """The thread is kept busy, so that it then sees both at once: somebody comes, and the one that makes room says something."""
    busy, go_on = threading.Event(), threading.Event()

    def take(completion: Completion) -> None:
        busy.set()
        assert go_on.wait(20)
        home.asked.put(completion)

    home.others.append(server := BeltServer(home.attempts, take))
    server.bind(KEY, "w1.1.1", token_digest(TOKEN))
    with ExitStack() as doors:
        silent = [doors.enter_context(home.dial()) for _ in range(CONNECTIONS_MAX - 1)]
        first = doors.enter_context(home.dial())
        first.sendall(json.dumps(TURN).encode() + b"\n")
        assert busy.wait(20)

        late = doors.enter_context(home.dial())
        silent[0].sendall(b"{")
        go_on.set()
        late.sendall(json.dumps({**TURN, "key": "t-2"}).encode() + b"\n")

        assert home.request().declaration == declaration("t-1")
        assert home.request().declaration == declaration("t-2"), "the thread lives"
