"""What tenure costs on this host: each measure makes its own home, runs real processes on it, and returns plain numbers.

Times depend on the host and its other work; they are printed and kept, never asserted. Rule: design §13.
"""

from __future__ import annotations

import os
import queue
import select
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self
from unittest import mock

from chaos.harness import COORDINATOR, Harness
from chaos.witness import Mark
from coordinator import bootstrap as coordinator_bootstrap
from shared import boundary
from shared.boundary import Boundary, Side
from shared.child import ChildOptions
from shared.model.attempt import AttemptState
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.settings import Settings
from shared.process import procfs
from shared.process.launcher import LaunchSpec, ZygoteLauncher
from shared.store.contract import Store
from shared.store.sqlite.store import SqliteStore, open_store
from worker import bootstrap as worker_bootstrap

TRUE = ("/bin/true",)
WORKERS = ("worker-1", "worker-2")
RECORD_BYTES = 4096
POLL_S = 0.0001
NOTES_S = 1.5  # after which what a pass leaves to be written later is written
UNCOUNTED = frozenset({Boundary.QUEUE_LOCK, Boundary.LOCK_PROBE})
SETTINGS = Settings(job_concurrency=32)


@dataclass(frozen=True, slots=True)
class Spread:
    """Middle and edges of a series, in the unit of its field's name."""

    p50: float
    p99: float
    least: float
    most: float
    count: int

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """The spread of a series of at least one."""
        ordered = sorted(values)
        last = len(ordered) - 1
        p50, p99 = round(statistics.median(ordered), 3), round(ordered[round(0.99 * last)], 3)
        return Spread(p50, p99, round(ordered[0], 3), round(ordered[-1], 3), len(ordered))


Numbers = dict[str, object]


def disk(folder: Path, *, count: int = 300) -> Numbers:
    """Append 4 KiB and fdatasync, again and again: what one durable write costs in this folder."""
    times = []
    with (folder / "calibration").open("wb", buffering=0) as file:
        block = b"\0" * RECORD_BYTES
        for _ in range(count):
            began = time.perf_counter()
            file.write(block)
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1e3)
    return {"sync_ms": asdict(Spread.of(times)), "syncs_per_s": round(count / (sum(times) / 1e3), 1)}


def shims(folder: Path, *, count: int = 600, in_flight: int = 16) -> Numbers:
    """Launches of `/bin/true` through the zygote and nothing else: no store, no coordinator, no lease."""
    attempts = folder / "attempts"
    attempts.mkdir()
    launcher = ZygoteLauncher(attempts, folder)
    numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(1, count + 1):
        numbers.put(number)
    ready: list[float] = []
    done: list[float] = []

    def work() -> None:
        while True:
            try:
                number = numbers.get_nowait()
            except queue.Empty:
                return
            began = time.perf_counter()
            held = launcher.launch(LaunchSpec(f"w{number}.1", 1, TRUE, {}, "/", None, 10.0))
            ready.append((time.perf_counter() - began) * 1e3)
            shim = os.pidfd_open(held.pin.shim.pid)
            held.go()
            poll = select.poll()
            poll.register(shim, select.POLLIN)
            poll.poll()
            os.close(shim)
            done.append((time.perf_counter() - began) * 1e3)

    threads = [threading.Thread(target=work) for _ in range(in_flight)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    launcher.close()
    return {
        "per_s": round(count / took, 1),
        "in_flight": in_flight,
        "ready_ms": asdict(Spread.of(ready)),
        "done_ms": asdict(Spread.of(done)),
    }


def start_latency(folder: Path, *, count: int = 200) -> Numbers:
    """From just before the submit's write until `child.json` is there, on a system that does nothing else."""
    times = []
    with Harness(folder, SETTINGS) as harness:
        _start_all(harness)
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
        _start_all(harness)
        for _ in range(runs):
            began_us = _submit_all(harness, jobs)
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


def idle(folder: Path, *, seconds: float = 12.0) -> Numbers:
    """Processor time and wake-ups of all processes of a `tenure up` with two workers that has nothing to do."""
    with Harness(folder, SETTINGS) as harness:
        (folder / "tenure.toml").write_text(f"[settings]\njob_concurrency = {SETTINGS.job_concurrency}\n", "ascii")
        words = [sys.executable, "-P", "-m", "shared.cli", "--home", str(harness.home.path), "up"]
        with (folder / "up.log").open("wb") as log:
            parent = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        harness.wait(lambda: len(harness.read(lambda tx: tx.workers())) == len(WORKERS), "both workers are there")
        time.sleep(3)
        before = _usage(parent.pid)
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        after = _usage(parent.pid)
        processes = {pid: name for pid, (name, _, _) in after.items()}
        parent.kill()
        parent.wait()
    cpu_ns = sum(after[pid][1] - before.get(pid, ("", 0, 0))[1] for pid in after)
    wakes = sum(after[pid][2] - before.get(pid, ("", 0, 0))[2] for pid in after)
    return {
        "seconds": round(took, 1),
        "cpu_percent": round(cpu_ns / 1e9 / took * 100, 3),
        "wakes_per_s": round(wakes / took, 2),
        "processes": len(processes),
        "wakes_per_s_by_process": {
            f"{name}:{pid}": round((after[pid][2] - before.get(pid, ("", 0, 0))[2]) / took, 2)
            for pid, name in processes.items()
        },
    }


def counts(folder: Path, *, jobs: int = 100) -> Numbers:
    """Commits, statements and boundaries crossed per job, alone and in a batch; coordinator and worker run on threads here."""
    with Harness(folder, SETTINGS) as harness, _InView(harness) as view:
        harness.wait(lambda: len(harness.read(lambda tx: tx.workers())) == 1, "the worker is there")
        time.sleep(NOTES_S)
        before = view.counted()
        harness.submit_command(TRUE)
        harness.wait_quiet()
        time.sleep(NOTES_S)
        between = view.counted()
        _submit_all(harness, jobs)
        harness.wait_quiet()
        time.sleep(NOTES_S)
        after = view.counted()
    one, batch = between - before, after - between
    return {
        "one_job": dict(sorted(one.items())),
        "per_job_of_batch": {name: round(count / jobs, 2) for name, count in sorted(batch.items())},
        "batch": jobs,
    }


class _InView:
    """A coordinator and a worker on threads of this process: their stores count, and every boundary they cross is seen."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._stores: list[SqliteStore] = []
        self._crossed: Counter[str] = Counter()
        self._options = [ChildOptions(str(harness.home.path), name, drain_s=0.0) for name in (COORDINATOR, WORKERS[0])]

    def counted(self) -> Counter[str]:
        """Everything counted so far; the harness's own submit is among the boundaries, not among commits and statements."""
        commits = sum(store.commits for store in self._stores)
        statements = sum(store.statements for store in self._stores)
        return Counter({"commits": commits, "statements": statements}) + self._crossed

    def __enter__(self) -> Self:
        def opened(*args: object, **options: object) -> Store:
            store = open_store(*args, **options)  # type: ignore[arg-type]
            self._stores.append(store)
            return store

        def crossed(at: Boundary, side: Side) -> None:
            if side is Side.AFTER and at not in UNCOUNTED:
                self._crossed[at] += 1

        modules = (coordinator_bootstrap, worker_bootstrap)
        self._patches = [mock.patch.object(module, "open_store", opened) for module in modules]
        for patch in self._patches:
            patch.start()
        boundary.install(crossed)
        self._threads = [
            threading.Thread(target=module.main, args=(options,))
            for module, options in zip(modules, self._options, strict=True)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for options in reversed(self._options):
            options.stop.ask(0.0, "measured")
        for thread in self._threads:
            thread.join()
        boundary.install(None)
        for patch in self._patches:
            patch.stop()


def _start_all(harness: Harness) -> None:
    for name in (COORDINATOR, *WORKERS):
        harness.start(name)
    harness.wait(lambda: len(harness.read(lambda tx: tx.workers())) == len(WORKERS), "both workers are there")


def _submit_all(harness: Harness, jobs: int) -> int:
    """Submit in one commit; the wall time of it, in microseconds."""
    harness.submit_commands([TRUE] * jobs)
    return time.time_ns() // 1000


def _last_end_us(harness: Harness) -> int:
    return max(event.at_us for event in harness.history().events if event.kind.startswith("attempt."))


def _started(harness: Harness) -> int:
    return sum(line.mark is Mark.START for line in harness.witness.lines())


def _adopted(harness: Harness) -> int:
    attempts = harness.read(lambda tx: [each for job in harness.jobs for each in tx.attempts(job.work_id)])
    return sum((each.state, each.epoch) == (AttemptState.RUNNING, 2) for each in attempts)


def _usage(root: int) -> dict[int, tuple[str, int, int]]:
    """Name, nanoseconds of processor time and voluntary switches of a process and everything below it."""
    found = {}
    for pid in (root, *procfs.descendants(root)):
        try:
            name = Path(f"/proc/{pid}/comm").read_text("utf-8").strip()
            threads = list(Path(f"/proc/{pid}/task").iterdir())
            cpu_ns = sum(int((thread / "schedstat").read_text("ascii").split()[0]) for thread in threads)
            switches = sum(_voluntary(thread / "status") for thread in threads)
        except OSError:
            continue
        found[pid] = (name, cpu_ns, switches)
    return found


def _voluntary(status: Path) -> int:
    for line in status.read_text("utf-8").splitlines():
        if line.startswith("voluntary_ctxt_switches:"):
            return int(line.split()[1])
    return 0
