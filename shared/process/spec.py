"""What is to be launched, and how it reaches the shim: through the gate, and as files of the attempt's directory.

Rule: design §6 (standard input), §7.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shared import boundary
from shared.errors import TenureError
from shared.process.shim import HEADER_BYTES, describe_fault

CHANNEL_BYTES = 4096
"""What may be written into a channel before its program runs: PIPE_BUF, which an empty pipe takes at once, and whole."""

Stage = Literal["directory", "spawn", "ready"]


class LaunchError(TenureError):
    """A launch came to nothing before its job was released.

    Attributes:
        stage: How far it got.
        nothing_ran: Nothing of this launch ran or can still run.
        exists: The attempt's directory was there already: the store has gone back in time (`store_regressed`).
    """

    code = "launch_failed"

    def __init__(self, stage: Stage, message: str, *, nothing_ran: bool = True, exists: bool = False) -> None:
        super().__init__(f"launch failed at {stage}: {message}")
        self.stage = stage
        self.nothing_ran = nothing_ran
        self.exists = exists


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """What to run, complete.

    Attributes:
        env: The whole environment of the job, but for TENURE_ATTEMPT and TENURE_EPOCH, which the shim adds.
        stdin: Content of the job's standard input; None is /dev/null. Of a channel: what is written into it before READY, at most
            `CHANNEL_BYTES`.
        grace_s: Seconds between TERM and KILL, for stops and stragglers.
        output_max: Bytes kept of each output stream, the last ones, rounded up to a block; None: all.
        channel: Standard input is a named pipe in the attempt's directory that never sees its end, so that whoever holds the
            attempt can go on writing into it.
        files: Further files of the attempt's directory, there before the job: (name, content).
        out_max: As `output_max`, for standard output alone; None: as the other.
        out_counts: Standard output is the program's word: it is durable before its end is, so that an end which outlives a power cut is
            known with all that was said before it.
    """

    attempt_id: str
    epoch: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    stdin: bytes | None
    grace_s: float
    output_max: int | None = None
    channel: bool = False
    files: tuple[tuple[str, bytes], ...] = ()
    out_max: int | None = None
    out_counts: bool = False


def encode(spec: LaunchSpec, leaf: str | None) -> bytes:
    """The order as it goes through the gate; bytes travel as latin-1 text, whatever the locale made of them.

    Raises:
        LaunchError: a word holds a NUL byte, which no process can be given.
    """
    order = {
        "attempt": spec.attempt_id,
        "epoch": spec.epoch,
        "argv": [_word(word) for word in spec.argv],
        "env": {_word(key): _word(value) for key, value in spec.env.items()},
        "cwd": _word(spec.cwd),
        "stdin": "channel" if spec.channel else "null" if spec.stdin is None else "file",
        "grace_s": spec.grace_s,
        "leaf": leaf,
        "output_max": spec.output_max,
        "out_max": spec.output_max if spec.out_max is None else spec.out_max,
        "out_counts": spec.out_counts,
        "arm": boundary.armed("shim"),
    }
    data = json.dumps(order).encode()
    return len(data).to_bytes(HEADER_BYTES, "big") + data


def _word(text: str) -> str:
    if "\0" in text:
        raise LaunchError("spawn", "an argument or variable holds a NUL byte")
    return os.fsencode(text).decode("latin-1")


def write_file(directory: int, name: str, data: bytes) -> None:
    """Make a file of an attempt's directory."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def write_first(directory: int, data: bytes) -> None:
    """Put the first words into a channel that its shim holds open; nothing runs yet, so nothing can take part of them.

    Raises:
        LaunchError: they are more than `CHANNEL_BYTES`, or cannot be written.
    """
    try:
        fd = os.open("stdin", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        try:
            if len(data) > CHANNEL_BYTES or os.write(fd, data) != len(data):
                raise LaunchError("ready", f"{len(data)} bytes are too many for the beginning of a channel")
        finally:
            os.close(fd)
    except OSError as fault:
        raise LaunchError("ready", f"its channel cannot be written: {describe_fault(fault)}") from fault
