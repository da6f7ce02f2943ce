"""The setting in which jobs are measured: a coordinator, two workers, 32 jobs at once."""

from __future__ import annotations

import time

from chaos.harness import COORDINATOR, Harness
from shared.model.settings import Settings

TRUE = ("/bin/true",)
WORKERS = ("worker-1", "worker-2")
SETTINGS = Settings(job_concurrency=32)


def start_all(harness: Harness) -> None:
    for name in (COORDINATOR, *WORKERS):
        harness.start(name)
    harness.wait(lambda: len(harness.read(lambda tx: tx.workers())) == len(WORKERS), "both workers are there")


def submit_all(harness: Harness, jobs: int) -> int:
    """Submit in one commit; the wall time of it, in microseconds."""
    harness.submit_commands([TRUE] * jobs)
    return time.time_ns() // 1000
