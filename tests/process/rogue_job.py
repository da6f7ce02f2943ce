"""A job that kills, with SIGKILL, each worker that holds it: TIMES of them, as soon as the store names it.

It reads the store by itself: a command would take so long on a busy host that no death came soon. Called as: rogue_job.py TIMES.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from contextlib import closing

PAUSE_S = 0.02
HOLDER = """SELECT a.epoch, w.pid FROM attempt AS a JOIN lease AS l ON l.attempt_id = a.id JOIN worker AS w ON w.id = l.owner
  WHERE a.id = ? AND a.state = 'running' AND l.revoked_at_us IS NULL"""


def holder() -> tuple[int, int] | None:
    """The worker that launched this job or has adopted it: (epoch, pid)."""
    place = f"file:{os.environ['TENURE_HOME']}/store.db?mode=ro"
    try:
        with closing(sqlite3.connect(place, uri=True)) as store:
            found: tuple[int, int] | None = store.execute(HOLDER, (os.environ["TENURE_ATTEMPT"],)).fetchone()
    except sqlite3.OperationalError:
        return None  # busy just then
    return found


def main() -> None:
    killed: set[int] = set()
    while len(killed) < int(sys.argv[1]):
        found = holder()
        if found is None or found[0] in killed:
            time.sleep(PAUSE_S)
            continue
        os.kill(found[1], signal.SIGKILL)
        killed.add(found[0])


if __name__ == "__main__":
    main()
