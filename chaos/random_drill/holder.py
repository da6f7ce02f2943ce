"""Holds a lock of a store for a while, as any other program could: `python -m chaos.random_drill.holder WHICH PATH SECONDS`."""

from __future__ import annotations

import fcntl
import os
import sys
import time

from chaos.random_drill.plan import Held
from shared.store.sqlite.driver import sqlite3

WAIT_S = 30.0


def hold(which: Held, path: str, seconds: float) -> None:
    """Take the lock, wait, give it back."""
    if which is Held.QUEUE:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(fd, fcntl.LOCK_EX)
        time.sleep(seconds)
        return
    connection = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        connection.execute("ROLLBACK")
    finally:
        connection.close()


if __name__ == "__main__":
    hold(Held(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
