"""What tenure costs while it has nothing to do."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from chaos.harness import Harness
from chaos.measures.setting import SETTINGS, WORKERS
from chaos.measures.spread import Numbers
from shared.process import procfs


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
