"""What the host itself takes: a durable write, and launches with nothing around them. Every other figure is read beside these."""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from dataclasses import asdict
from pathlib import Path

from chaos.measures.spread import Numbers, Spread
from shared.process.launcher import LaunchSpec, ZygoteLauncher

RECORD_BYTES = 4096
TRUE = ("/bin/true",)


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
