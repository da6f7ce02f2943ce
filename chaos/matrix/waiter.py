"""The lightest job that waits: asks by its belt to wait for an event, ends, and ends at once when it is woken.

Run by path, with the standard library alone, as a crowd of it has to be there at once. Arguments: the witness, the type of the event.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

TRIES = 600
PAUSE_S = 0.1


def main(witness: str, event: str) -> None:
    """One launch."""
    mark(witness, "start")
    if "TENURE_WAKE" not in os.environ:
        asked = {
            "token": os.environ["TENURE_TOKEN"],
            "key": "wait",
            "kind": "wait",
            "body": {"event": {"type": event, "correlate": None}, "timer": None, "resume": True},
        }
        declare(json.dumps(asked).encode() + b"\n")
    mark(witness, "end")


def declare(line: bytes) -> None:
    """Say it until somebody answers that it is recorded; ends with 1 when nobody does."""
    for _ in range(TRIES):
        try:
            if b'"recorded"' in ask(line):
                return
        except OSError:
            pass  # its worker is gone, and the next one is not there yet
        time.sleep(PAUSE_S)
    sys.exit(1)


def ask(line: bytes) -> bytes:
    """One question to whoever holds this attempt."""
    folder = os.open(os.environ["TENURE_BELT"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.settimeout(5.0)
            door.connect(f"/proc/self/fd/{folder}/belt.sock")
            door.sendall(line)
            return door.recv(4_096)
    finally:
        os.close(folder)


def mark(witness: str, word: str) -> None:
    """Tell the witness: one line, one write."""
    about = (os.environ[name] for name in ("TENURE_WORK", "TENURE_ATTEMPT", "TENURE_EPOCH"))
    fd = os.open(witness, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    os.write(fd, f"{' '.join((word, *about))} {os.getpid()}\n".encode())
    os.close(fd)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
