"""`tenure tool`: what a program that runs under tenure says of itself, by the socket in its attempt's directory.

It is called inside jobs, often and in a hurry, so it imports next to nothing. A worker may die at any moment and another take the
attempt over: whatever is not answered is asked again, under the same key, for a minute. Rule: design §6, §12; requirement O15.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
from collections.abc import Iterator, Mapping

from shared.clock import SystemClock
from shared.commands.arguments import Parser
from shared.errors import RefusedError, StoreUnavailableError, UsageError

SOCKET = "belt.sock"
PATIENCE_US = 60_000_000
TRY_S = 5.0
PAUSE_US = 200_000
ANSWER = "answer.given"
"""The event that answers a question whose asker named none; it is about the attempt."""
ANSWER_BYTES_MAX = 16 * 1024 * 1024

_EPILOG = """\
Works inside a job only. What is said is recorded at once and counts when the job's end is seen:
  tenure tool turn done --comment "all tests pass"
  tenure tool wait --event review.given --correlate pr-7 --timer 2h --resume     then end with exit status 0
  tenure tool wait --ask "deploy 4.2?" --timer 1h --resume      the answer, or that there was none, is in TENURE_WAKE
  tenure tool outcome failed --summary "quota used up" --retry-at 2030-01-31T08:00:00Z
Exit codes: 0 recorded, 1 refused, 2 the command line is wrong, 3 nobody answered for a minute."""


def main(argv: list[str], *, home: str | None) -> int:
    """Say one thing, or read the inputs.

    Raises:
        UsageError: the command line is wrong, or this is no job of tenure. RefusedError: it was refused, by its code.
        StoreUnavailableError: nobody answered.
    """
    del home  # a job has one home: the one it runs in
    given = _parse(argv)
    belt = _Door(os.environ)
    if given.what == "input":
        if given.took:
            belt.declare(given.key, "consumed", {"inputs": given.took})
            return 0
        for line in belt.inputs():
            print(json.dumps(line, ensure_ascii=False), flush=True)
        return 0
    belt.declare(given.key, given.what, _BODIES[given.what](given))
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = Parser("tenure tool", "Say something of the job that this is called in, or read its inputs.", _EPILOG)
    kinds = parser.add_subparsers(dest="what", metavar="turn|wait|outcome|usage|input", required=True)
    turn = _kind(kinds, "turn", "the end of a turn, for whoever waits for one")
    turn.add_argument("status", help="a lower-case letter, then a-z 0-9 - _")
    turn.add_argument("--comment", default="", metavar="TEXT")
    wait = _kind(kinds, "wait", "what this job waits for once it has ended with exit status 0")
    wait.add_argument("--event", metavar="TYPE", help="an event of this type")
    wait.add_argument("--correlate", metavar="K", help="only with this key")
    wait.add_argument("--timer", metavar="TIME", help='no longer than "90s", "5m", or until "2030-01-31T08:00:00Z"')
    wait.add_argument("--ask", metavar="TEXT", help="ask a person, who is shown that and how to answer")
    wait.add_argument("--resume", action="store_true", help="the same attempt goes on, with TENURE_WAKE set")
    outcome = _kind(kinds, "outcome", "how it ended, whatever its exit status says")
    outcome.add_argument("kind", choices=("completed", "failed", "handoff"))
    outcome.add_argument("--summary", default="", metavar="TEXT")
    outcome.add_argument("--artifact", action="append", default=[], metavar="REF", help="may be repeated")
    outcome.add_argument("--permanent", action="store_true", help="trying again cannot help")
    outcome.add_argument("--retry-at", metavar="TIME", help="when what it ran into is reset")
    outcome.add_argument("--retry-unknown", action="store_true", help="it is reset some time, and nobody knows when")
    usage = _kind(kinds, "usage", "what it used, in any units: tokens=1200 usd=0.25")
    usage.add_argument("units", nargs="+", metavar="UNIT=AMOUNT")
    read = _kind(kinds, "input", "print its inputs and those that wait, a JSON object on each line")
    read.add_argument("--took", type=int, nargs="+", metavar="N", help="say that these were taken, instead of printing")
    for kind in (turn, wait, outcome, usage, read):
        kind.add_argument("--key", metavar="K", help="said again under the same key, it counts once")
    return parser.parse(argv)


def _kind(kinds: argparse._SubParsersAction[Parser], name: str, what: str) -> Parser:
    return kinds.add_parser(name, help=what, description=what)


def _turn(given: argparse.Namespace) -> dict[str, object]:
    return {"status": given.status, "comment": given.comment}


def _wait(given: argparse.Namespace) -> dict[str, object]:
    if given.correlate is not None and given.event is None:
        raise UsageError("--correlate belongs to an --event")
    event = None if given.event is None else {"type": given.event, "correlate": given.correlate}
    if given.ask and event is None:
        event = {"type": ANSWER, "correlate": os.environ.get("TENURE_ATTEMPT")}
    ask = {"ask": given.ask} if given.ask else {}
    return {"event": event, "timer": given.timer, "resume": given.resume, **ask}


def _outcome(given: argparse.Namespace) -> dict[str, object]:
    retry: dict[str, object] | None = None
    if given.retry_at is not None:
        retry = {"reset_at": given.retry_at}
    elif given.retry_unknown:
        retry = {"unknown": True}
    return {
        "kind": given.kind,
        "summary": given.summary,
        "artifacts": given.artifact,
        "permanent": given.permanent,
        "retry": retry,
    }


def _usage(given: argparse.Namespace) -> dict[str, object]:
    units = [unit.partition("=") for unit in given.units]
    if any(not name or not amount for name, _, amount in units):
        raise UsageError("usage is told as UNIT=AMOUNT", hint="tenure tool usage tokens=1200")
    amounts = {name: amount for name, _, amount in units}
    if len(amounts) < len(units):
        raise UsageError("a unit is told twice; amounts that are told one after the other add up")
    return {"units": amounts}


_BODIES = {"turn": _turn, "wait": _wait, "outcome": _outcome, "usage": _usage}


class _Door:
    """The way to whoever holds this job's attempt."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._folder, self._token = environ.get("TENURE_BELT"), environ.get("TENURE_TOKEN")
        if not self._folder or not self._token:
            raise UsageError(
                "this is no job of tenure, or one that cannot speak", hint="`tenure tool` is called by a job itself"
            )
        self._clock = SystemClock()

    def declare(self, key: str | None, kind: str, body: Mapping[str, object]) -> None:
        """Say it until it is recorded. Raises RefusedError."""
        self._ask({"key": key or os.urandom(12).hex(), "kind": kind, "body": body})

    def inputs(self) -> Iterator[Mapping[str, object]]:
        """The attempt's inputs and those that wait, in order."""
        after, more = 0, True
        while more:
            page = self._ask({"ask": "inputs", "after": after})
            for one in page["inputs"]:  # type: ignore[attr-defined]
                after = one["number"]
                yield one
            more = bool(page["more"])

    def _ask(self, asked: Mapping[str, object]) -> Mapping[str, object]:
        try:
            line = json.dumps({**asked, "token": self._token}, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError as error:
            raise UsageError("an argument is no UTF-8, which cannot be recorded") from error
        until_us = self._clock.now().mono_us + PATIENCE_US
        while True:
            answer = self._try(line)
            if answer is not None and "error" in answer:
                told = answer["error"]
                raise RefusedError(told["message"], code=told["code"])  # type: ignore[index]
            if answer is not None and "retry" not in answer:
                return answer
            now_us = self._clock.now().mono_us
            if now_us >= until_us:
                break
            self._clock.wait(min(now_us + PAUSE_US, until_us), None)
        raise StoreUnavailableError(
            "no_belt", "nobody answers for this job: its worker is gone, and none took it over for a minute"
        )

    def _try(self, line: bytes) -> Mapping[str, object] | None:
        """One question; None: nobody answered, ask again."""
        try:
            folder = os.open(str(self._folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
                door.settimeout(TRY_S)
                door.connect(f"/proc/self/fd/{folder}/{SOCKET}")
                door.sendall(line)
                return _answer(door)
        except (OSError, ValueError):
            return None
        finally:
            os.close(folder)


def _answer(door: socket.socket) -> Mapping[str, object] | None:
    received = bytearray()
    while not received.endswith(b"\n") and len(received) <= ANSWER_BYTES_MAX:
        found = door.recv(65_536)
        if not found:
            return None
        received += found
    answer = json.loads(received)
    return answer if isinstance(answer, dict) else None
