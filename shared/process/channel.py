"""Speaking to a running agent: whole lines into the named pipe that is its standard input.

A line of at most `CHANNEL_BYTES` is written whole or not at all, so lines of several writers never mix, and the death of a writer
leaves no half of one. What is longer goes into a file first. Never blocks on the program. Rule: design §6.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shared import boundary
from shared.boundary import Boundary
from shared.model.intent import Delivered
from shared.process.spec import CHANNEL_BYTES

INTERRUPT = b'{"type":"interrupt"}\n'


@dataclass(frozen=True, slots=True)
class Word:
    """One input for a running program. `intent`: its identity, the same every time it is handed over."""

    intent: str
    input: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Handed:
    """What came of one word. `why`: what the system said; None when it was handed over."""

    result: Delivered
    why: str | None = None


def hand_over(words: list[Word], tell: Callable[[Word], Handed]) -> list[Handed]:
    """Hand words over in their order; once one could not be, none behind it is, and each of these is for later."""
    results: list[Handed] = []
    for word in words:
        if results and results[-1].result is not Delivered.ACCEPTED:
            results.append(Handed(Delivered.LATER, "one before it could not be handed over"))
        else:
            results.append(tell(word))
    return results


def tell(directory: Path, word: Word) -> Handed:
    """Tell the program of a launch one word. Args: its directory."""
    try:
        return say(directory, _line_of(directory, word))
    except OSError as fault:
        return Handed(Delivered.FAILED, _named(fault))


def say(directory: Path, line: bytes) -> Handed:
    """Write one line."""
    try:
        fd = os.open(directory / "stdin", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as fault:
        if fault.errno == errno.ENXIO:
            return Handed(Delivered.LATER, "nobody reads it any more; its end will say what follows")
        return Handed(Delivered.FAILED, _named(fault))
    try:
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return Handed(Delivered.NOT_ACCEPTING, "its standard input is a file")
        boundary.write(fd, line, Boundary.CHANNEL_WRITE)
    except BlockingIOError:
        return Handed(Delivered.LATER, "it has not read what it was told before")
    except OSError as fault:
        return Handed(Delivered.FAILED, _named(fault))
    finally:
        os.close(fd)
    return Handed(Delivered.ACCEPTED)


def input_message(number: int, body: bytes, path: Path, room: int) -> tuple[dict[str, object], bytes | None]:
    """An input as a program is told it, and what the file that it names must hold; None when it needs none.

    Args:
        path: The file, if one is needed: for what is no text, or more than `room` bytes in the message.
    """
    text = _text(body)
    if text is not None and len(json.dumps(text)) <= room:
        return {"number": number, "body": text}, None
    return {"number": number, "file": str(path)}, body


def input_name(number: int) -> str:
    """Name of an input's file in the launch's directory."""
    return f"input-{number}"


def _line_of(directory: Path, word: Word) -> bytes:
    path = directory / input_name(word.input)
    message, content = input_message(word.input, word.body, path, CHANNEL_BYTES - 256)
    if content is not None:
        _write_once(path, content)
    line = input_line(word, message)
    if len(line) > CHANNEL_BYTES:
        raise OSError(errno.ENAMETOOLONG, "the path of its file is too long for a line")
    return line


def input_line(word: Word, message: Mapping[str, object]) -> bytes:
    """The line that tells a program an input."""
    return json.dumps({"type": "input", "id": word.intent, **message}, separators=(",", ":")).encode() + b"\n"


def _write_once(path: Path, content: bytes) -> None:
    """A file with that content; one that is there is left as it is, as a program may be reading it. Its draft is this process's own:
    a worker that was frozen here goes on when another has come.
    """
    if path.exists():
        return
    part = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(content)
    boundary.rename(part, path, Boundary.CHANNEL_RENAME)


def _text(body: bytes) -> str | None:
    """The body as text that every program can be told in JSON; None: it is none."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _named(fault: OSError) -> str:
    return errno.errorcode.get(fault.errno or 0, str(fault.errno))
