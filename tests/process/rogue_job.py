"""A job that kills, with SIGKILL, each worker that holds it: TIMES of them, found through the command that it was told of.

Called as: rogue_job.py TIMES.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

PAUSE_S = 0.05


def ask(*words: str) -> Any:
    said = subprocess.run(
        [os.environ["TENURE_COMMAND"], *words, "--json"], check=False, capture_output=True, timeout=30
    )
    return json.loads(said.stdout) if said.returncode == 0 else None


def holder() -> tuple[int, int] | None:
    """The worker that has adopted or launched this job: (epoch, pid)."""
    shown, status = ask("attempt", "show", os.environ["TENURE_ATTEMPT"]), ask("status")
    if shown is None or status is None or shown["state"] != "running":
        return None
    pids = [worker["pid"] for worker in status["workers"] if worker["id"] == shown["worker"]]
    return (shown["epoch"], pids[0]) if pids else None


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
