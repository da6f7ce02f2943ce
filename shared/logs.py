"""The one logging set-up: an event name, then facts as fields; text for people, JSON lines on request, the same fields in both.

    log.info("attempt.claimed", extra={"work": "w41", "attempt": "w41.2", "epoch": 3})
    12:04:10.123Z info  attempt.claimed work=w41 attempt=w41.2 epoch=3

A process that runs alone calls `set_up_terminal`. Under `tenure up` the children call `set_up_child` and the parent keeps one
`ChildLog` for each of them: **one queue per child**, because a child killed while it writes to a shared queue keeps that queue's
lock for ever. A child never waits for its log: what the parent does not take is dropped and counted.

Rule: design §6, last paragraph; style, "Logging".
"""

from __future__ import annotations

import json as json_text
import logging
import math
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from logging.handlers import QueueHandler
from typing import TYPE_CHECKING, Any, TextIO

from multiprocessing_logging import MultiProcessingHandler

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

VALUE_CHARS_MAX = 2000  # of one field; what is longer is cut and says how much is missing
RECORDS_WAITING_MAX = 10_000  # per child, before records are dropped
RECEIVER_BOUND_S = 1.0  # how long the parent waits for the last records of a child that has ended

# What must never be shown, whoever asks for it by mistake. Rule: E10 and style, "Logging".
WITHHELD = frozenset(
    {"env", "environ", "environment", "secret", "secrets", "token", "password", "output", "stdout", "stderr"}
)

_LEVELS = {"DEBUG": "debug", "INFO": "info ", "WARNING": "warn ", "ERROR": "error", "CRITICAL": "fatal"}
_COLOURS = {"DEBUG": "\x1b[2m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31m"}
_COLOUR_OFF = "\x1b[0m"
_PROCESS_COLUMN = len("coordinator")
_ALONE = "MainProcess"  # what multiprocessing calls a process that nobody named
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def set_up_terminal(level: int, *, json: bool = False, stream: TextIO | None = None) -> TerminalHandler:
    """Send every record of this process to a stream, and nowhere else.

    Args:
        level: The lowest level shown, such as `logging.INFO`.
        json: One JSON object a line instead of text.
        stream: None is standard error. Colours are used only on a terminal, and not when NO_COLOR is set.

    Returns: The handler, for the `ChildLog`s of a parent.
    """
    target = sys.stderr if stream is None else stream
    handler = TerminalHandler(target)
    colour = not os.environ.get("NO_COLOR") and target.isatty()
    handler.setFormatter(JsonFormatter() if json else TextFormatter(colour=colour))
    _take_over_root(handler, level)
    return handler


def set_up_child(queue: Queue[Any], *, level: int, flush_bound_s: float = 1.0) -> Callable[[], None]:
    """Send every record of this spawned child to its parent's `ChildLog`, never waiting for it.

    Returns: What to call last: it waits at most `flush_bound_s` for the parent to take what is left.
    """
    close_read_end(queue)
    ignore_lost_parent(queue)
    # Before anything is sent, so that no way out of this process waits for the queue; `finish` waits instead, within its bound.
    queue.cancel_join_thread()
    handler = _ChildHandler(queue)
    _take_over_root(handler, level)

    def finish() -> None:
        _take_over_root(logging.NullHandler(), level)  # what is logged from here on has nowhere to go
        queue.close()
        join_feeder(queue, flush_bound_s)

    return finish


class ChildLog(MultiProcessingHandler):  # type: ignore[misc]  # the library ships no types
    """The parent's end of one child's log: a thread that hands each record to the terminal until the child is gone.

    Make it before the child, pass `queue` to it, and call `started` once it runs (or failed to start).
    `multiprocessing.set_start_method("spawn")` comes first: the queue's locks belong to one start method.
    """

    def __init__(self, name: str, terminal: logging.Handler) -> None:
        super().__init__(name, sub_handler=terminal)

    def started(self) -> None:
        """Leave the child as the only writer, so that its death, also in the middle of a record, ends the receiver."""
        close_write_end(self.queue)

    def close(self) -> None:
        """Wait for the last records of a child that has ended, at most `RECEIVER_BOUND_S`; the terminal stays open."""
        self._receive_thread.join(RECEIVER_BOUND_S)
        logging.Handler.close(self)

    def _receive(self) -> None:
        """Block for each record. The library's own loop wakes five times a second, which costs 1–2 % of a core."""
        while True:
            try:
                record = self.queue.get()
            except (EOFError, OSError):  # the end, or the end in the middle of a record
                break
            self.sub_handler.handle(record)
        close_read_end(self.queue)


# The four places that reach inside multiprocessing.Queue, one each, each with its test.


def close_write_end(queue: Queue[Any]) -> None:
    """Close this process's copy of the end that is written to (in the parent: else the child's death is no end of file)."""
    queue._writer.close()  # type: ignore[attr-defined]  # noqa: SLF001


def close_read_end(queue: Queue[Any]) -> None:
    """Close this process's copy of the end that is read (in the child: else it blocks for ever once the parent is killed)."""
    queue._reader.close()  # type: ignore[attr-defined]  # noqa: SLF001


def ignore_lost_parent(queue: Queue[Any]) -> None:
    """Let the feeder thread end in silence when nobody reads any more, instead of a traceback for every record."""
    queue._ignore_epipe = True  # type: ignore[attr-defined]  # noqa: SLF001


def join_feeder(queue: Queue[Any], bound_s: float) -> None:
    """Wait until the closed queue has written everything, at most `bound_s`."""
    feeder = queue._thread  # type: ignore[attr-defined]  # noqa: SLF001
    if feeder is not None:  # None: nothing was ever put
        feeder.join(bound_s)


class TerminalHandler(logging.StreamHandler[TextIO]):
    """Writes lines; a stream that is gone (the terminal was closed, the reader of a pipe left) is no reason to complain."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the library's name
        if not isinstance(sys.exc_info()[1], (OSError, ValueError)):
            super().handleError(record)

    def say(self, line: str) -> None:
        """Write one line as it is, between records and never inside one."""
        self.acquire()
        try:
            self.stream.write(escape(line) + self.terminator)
            self.flush()
        except (OSError, ValueError):
            pass  # as in `handleError`
        finally:
            self.release()


class TextFormatter(logging.Formatter):
    """Time, level, process (under `tenure up`), event, fields: one line, a traceback indented below it."""

    def __init__(self, *, colour: bool = False) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        level = _LEVELS.get(record.levelname, f"{record.levelname.lower():<5}")
        if self._colour and record.levelname in _COLOURS:
            level = f"{_COLOURS[record.levelname]}{level}{_COLOUR_OFF}"
        parts = [_moment(record)[11:], level]
        if process := _process(record):
            parts.append(f"{escape(process):<{_PROCESS_COLUMN}}")
        parts.append(escape(record.getMessage()))
        parts += [f"{escape(name)}={_shown(value)}" for name, value in fields(record).items()]
        lines = [" ".join(parts)]
        lines += ["    " + escape(line) for line in _traceback(record).splitlines()]
        return "\n".join(lines)


class JsonFormatter(logging.Formatter):
    """One object a line: `time`, `level`, `event`, `process` (under `tenure up`), then the fields, then `traceback`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        if process := _process(record):
            line["process"] = process
        for name, value in fields(record).items():
            line[f"{name}_" if name in line else name] = value
        if traceback := _traceback(record):
            line["traceback"] = traceback
        return json_text.dumps(line)


class _ChildHandler(QueueHandler):
    """Standard queue handler that sends plain values only and drops, counted, what nobody takes."""

    def __init__(self, queue: Queue[Any]) -> None:
        super().__init__(queue)
        self._dropped = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Reduce the record to what the formatters show, so that the parent needs none of the child's classes."""
        plain = {
            "name": record.name,
            "levelno": record.levelno,
            "levelname": record.levelname,
            "msg": record.getMessage(),
            "created": record.created,
            "processName": record.processName,
            "exc_text": _traceback(record) or None,
        }
        return logging.makeLogRecord(plain | fields(record))

    def enqueue(self, record: logging.LogRecord) -> None:
        waiting: Queue[Any] = self.queue  # type: ignore[assignment]  # typed as the smallest protocol in the stubs
        if waiting.qsize() >= RECORDS_WAITING_MAX:
            self._dropped += 1
            return
        if self._dropped:
            told = {"msg": "log.dropped", "levelno": logging.WARNING, "levelname": "WARNING", "records": self._dropped}
            waiting.put_nowait(logging.makeLogRecord(record.__dict__ | told))
            self._dropped = 0
        waiting.put_nowait(record)


def fields(record: logging.LogRecord) -> dict[str, object]:
    """The record's own facts (`extra`), in the order given, as plain values (text, numbers, lists, tables of these)."""
    return {
        name: "[withheld]" if name.lower() in WITHHELD else _plain(value)
        for name, value in record.__dict__.items()
        if name not in _STANDARD
    }


def escape(text: str) -> str:
    r"""Replace what could move the cursor, break the line or fail to encode by its backslash form (`\n`, `\x1b`)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _shown(value: object) -> str:
    """One field's value as text: bare when that is unmistakable, else in double quotes."""
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json_text.dumps(value, ensure_ascii=False)
    if text and text.isprintable() and not set(text) & set(' "=\\'):
        return text
    return '"' + escape(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): "[withheld]" if str(key).lower() in WITHHELD else _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    missing = len(text) - VALUE_CHARS_MAX
    return f"{text[:VALUE_CHARS_MAX]}… ({missing} more)" if missing > 0 else text


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _process(record: logging.LogRecord) -> str:
    return "" if record.processName in {None, _ALONE} else str(record.processName)


def _traceback(record: logging.LogRecord) -> str:
    if record.exc_text:
        return record.exc_text
    return logging.Formatter().formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""


def _take_over_root(handler: logging.Handler, level: int) -> None:
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
