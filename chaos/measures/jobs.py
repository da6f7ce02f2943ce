"""How soon and how fast jobs run, with real processes on a home of their own."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path

from chaos.harness import COORDINATOR, Harness
from chaos.measures.setting import SETTINGS, TRUE, start_all, submit_all
from chaos.measures.spread import Numbers, Spread
from chaos.witness import Mark
from shared.model.attempt import AttemptState
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.settings import Settings

POLL_S = 0.0001


def start_latency(folder: Path, *, count: int = 200) -> Numbers:
    """From just before the submit's write until `child.json` is there, on a system that does nothing else."""
    times = []
    with Harness(folder, SETTINGS) as harness:
        start_all(harness)
        for number in range(1, count + 1):
            record = harness.home.attempts / f"w{number}.1.1" / "child.json"
            began = time.perf_counter()
            harness.submit_command(TRUE)
            while not record.exists():
                time.sleep(POLL_S)
            times.append((time.perf_counter() - began) * 1e3)
            harness.wait_quiet()
            time.sleep(0.03)  # for what follows an end: a pass, a record
    return {"start_ms": asdict(Spread.of(times))}


def throughput(folder: Path, *, jobs: int = 1000, runs: int = 5) -> Numbers:
    """`/bin/true` jobs a second, from the commit that submits them all until the last one's end is durable."""
    rates = []
    with Harness(folder, SETTINGS) as harness:
        start_all(harness)
        for _ in range(runs):
            began_us = submit_all(harness, jobs)
            harness.wait_quiet(300)
            rates.append(jobs / ((_last_end_us(harness) - began_us) / US_PER_S))
    return {"jobs": jobs, "runs": runs, "jobs_per_s": asdict(Spread.of(rates))}


def adoption(folder: Path, *, jobs: int = 100, runs: int = 3) -> Numbers:
    """From the start of a new worker's process until it has adopted everything that its killed predecessor held."""
    since_start, since_there = [], []
    for run in range(runs):
        with Harness(folder / str(run), Settings(job_concurrency=0, slots=2 * jobs)) as harness:
            harness.start(COORDINATOR)
            first = harness.start("worker-1")
            valve = folder / str(run) / "valve"
            os.mkfifo(valve)
            hold = os.open(valve, os.O_RDWR)
            for _ in range(jobs):
                harness.submit(wait=valve)
            harness.wait(lambda: _started(harness) == jobs, "every job has started")
            harness.kill(first)
            began_us = time.time_ns() // 1000
            harness.start("worker-1")
            harness.wait(lambda: _adopted(harness) == jobs, "every job was adopted")
            events = harness.history().events
            there_us = max(event.at_us for event in events if event.kind == "worker.registered")
            last_us = max(event.at_us for event in events if event.kind == "attempt.adopted")
            since_start.append((last_us - began_us) / US_PER_MS)
            since_there.append((last_us - there_us) / US_PER_MS)
            os.close(hold)
    return {
        "jobs": jobs,
        "since_process_start_ms": asdict(Spread.of(since_start)),
        "since_worker_registered_ms": asdict(Spread.of(since_there)),
    }


def _last_end_us(harness: Harness) -> int:
    return max(event.at_us for event in harness.history().events if event.kind.startswith("attempt."))


def _started(harness: Harness) -> int:
    return sum(line.mark is Mark.START for line in harness.witness.lines())


def _adopted(harness: Harness) -> int:
    attempts = harness.read(lambda tx: [each for job in harness.jobs for each in tx.attempts(job.work_id)])
    return sum((each.state, each.epoch) == (AttemptState.RUNNING, 2) for each in attempts)
