"""What `tenure up` starts in the tests instead of a coordinator and workers: children known as strings, as the real ones are.

Run as a script it is `tenure up` itself with such children: see `UpRun.start`.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from shared import cli, supervise, up  # noqa: E402
from shared.child import ChildOptions  # noqa: E402
from shared.clock import SystemClock  # noqa: E402
from shared.errors import ConfigError, StoreUnavailableError, TenureError  # noqa: E402
from shared.home import Home  # noqa: E402
from shared.store.contract import IdleState, Store  # noqa: E402

RECORDS = 12_000  # of `counting`: more than may wait in a queue

log = logging.getLogger("tests.child")


def steady(options: ChildOptions) -> None:
    """Ends as soon as it is asked."""
    wait = _asks(options)
    log.info("child.ready", extra={"pid": os.getpid()})
    wait()
    log.info("child.ends", extra={"why": options.stop.why, "drain_s": options.stop.drain_s})


def draining(options: ChildOptions) -> None:
    """Uses all of its drain: ends only when that becomes 0."""
    wait = _asks(options)
    log.info("child.ready")
    while options.stop.drain_s != 0.0:
        wait()
        log.info("child.asked", extra={"drain_s": options.stop.drain_s})


def stubborn(options: ChildOptions) -> None:
    """Never ends by itself."""
    log.info("child.ready")
    while True:
        signal.pause()


def refusing(options: ChildOptions) -> None:
    """Cannot use the home."""
    raise StoreUnavailableError("corrupt", "the store is damaged")


def failing(options: ChildOptions) -> None:
    """Has a bug."""
    raise ZeroDivisionError("a bug")


def flooding(options: ChildOptions) -> None:
    """Logs without end, records larger than a pipe among them."""
    log.info("child.ready")
    number = 0
    while not options.stop.asked:
        number += 1
        log.info("flood.large %s" if number % 2 else "flood.small %s", "x" * (200_000 if number % 2 else 10))


def torn(options: ChildOptions) -> None:
    """Is killed in the middle of a record: the length of a whole one is on the pipe, and a part of it."""
    from logging.handlers import QueueHandler

    handler = next(each for each in logging.getLogger().handlers if isinstance(each, QueueHandler))
    queue = cast(Any, handler.queue)
    os.write(queue._writer.fileno(), struct.pack("!i", 1000) + b"a part")
    os.kill(os.getpid(), signal.SIGKILL)


def chatty(options: ChildOptions) -> None:
    """Logs one numbered record each time `have_said` is called."""
    path = said_fifo(options.home, options.name)
    os.mkfifo(path)
    fifo = os.open(path, os.O_RDWR)
    options.stop.on_ask(lambda: os.write(fifo, b"2"))
    log.info("child.ready")
    number = 0
    while os.read(fifo, 1) == b"1":
        number += 1
        log.info("chat.said", extra={"number": number})


def have_said(home: Path, name: str) -> None:
    """Let a `chatty` child log its next record."""
    fifo = os.open(said_fifo(home, name), os.O_WRONLY | os.O_NONBLOCK)
    os.write(fifo, b"1")
    os.close(fifo)


def said_fifo(home: str | Path, name: str) -> Path:
    return Path(home) / f"{name}.fifo"


def counting(options: ChildOptions) -> None:
    """Logs numbered records, with a value of a class that only this process has, and ends."""

    class Own:
        def __str__(self) -> str:
            return "own"

    for number in range(RECORDS):
        log.info("count", extra={"number": number, "own": Own()})


def launching(options: ChildOptions) -> None:
    """Execs a program and logs which signals that ignores."""
    wait = _asks(options)
    done = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("SigIgn"))
    log.info("launch.ignores", extra={"mask": line.split()[1]})
    wait()


def _asks(options: ChildOptions) -> Callable[[], None]:
    """A wait that ends at each ask."""
    told, tell = os.pipe()
    options.stop.on_ask(lambda: os.write(tell, b"1"))

    def wait() -> None:
        select.select([told], [], [])
        os.read(told, 1)

    return wait


class FileStore:
    """As much of a store as `up` uses: its idle state is a file of the home."""

    def __init__(self, home: Path) -> None:
        self._file = home / "idle.json"

    def changed(self) -> bool:
        return self._file.exists()

    def read(self, fn: Callable[[Any], Any]) -> Any:
        return fn(self)

    def idle_state(self) -> IdleState:
        state = json.loads(self._file.read_text())
        return IdleState(state["live"], state["waiting"], tuple(state["needs_person"]))

    def leader(self) -> None:
        return None

    def close(self) -> None:
        return


def drive(given: dict[str, Any]) -> int:
    """`tenure up` on `home`, with `plans` (name → function here) and `options` of its command line."""
    home = Home(Path(given["home"]))
    options = up.parse(given.get("options", []))
    plans = [supervise.Plan(name, f"{CHILDREN}:{target}") for name, target in given["plans"].items()]

    def activate() -> str | None:
        if given.get("invalid"):
            raise ConfigError("lease has no unit", source="tenure.toml", line=3)
        return None

    try:
        return up.serve(
            home,
            plans,
            options,
            clock=SystemClock(),
            activate=activate,
            open_store=lambda: cast(Store, FileStore(home.path)),
            leftovers_bound_us=given["leftovers_bound_us"],
        )
    except TenureError as error:
        cli.report(error, as_json=False)
        return error.exit_code


CHILDREN = "tests.support.up_children"

if __name__ == "__main__":
    raise SystemExit(drive(json.loads(sys.argv[1])))
