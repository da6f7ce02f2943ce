"""Runs the measures of `chaos/measures` in one go and prints, or keeps, what they say.

Every figure belongs to the calibration of the same run (the disk, the launches alone): compare ratios, not hosts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from chaos import measures
from chaos.crowd.population import GREAT
from shared.store.sqlite.driver import sqlite3

ROOT = Path(__file__).resolve().parents[1]
SAMPLES_FOR_P99 = 100
KEPT = ROOT / "docs" / "bench.json"
QUICK: dict[str, dict[str, Any]] = {
    "disk": {"count": 50},
    "shims": {"count": 100},
    "start_latency": {"count": 20},
    "throughput": {"jobs": 200, "runs": 2},
    "adoption": {"jobs": 20, "runs": 1},
    "idle": {"seconds": 3.0},
    "counts": {"jobs": 20},
    "flat": {
        "great": replace(GREAT, ready=2_000, held=500, backoff=500, alike=640, apart=500, events=5_000, aside=500),
        "samples": 1,
    },
}


def main() -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure tenure on this host.")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    parser.add_argument("--save", action="store_true", help=f"keep it in {KEPT.relative_to(ROOT)}")
    parser.add_argument("--quick", action="store_true", help="few samples: to see that it works")
    parser.add_argument("--only", choices=list(QUICK), action="append", help="one measure; may be repeated")
    parser.add_argument("--folder", type=Path, help="where the homes are made: the disk that is measured")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tenure-bench-", dir=arguments.folder))
    found: dict[str, Any] = {"host": host(folder)}
    try:
        for name in arguments.only or QUICK:
            print(f"measuring {name} …", file=sys.stderr)
            place = folder / name
            if name in {"disk", "shims"}:
                place.mkdir()
            found[name] = getattr(measures, name)(place, **(QUICK[name] if arguments.quick else {}))
        found["host"]["load_after"] = round(os.getloadavg()[0], 2)
    finally:
        shutil.rmtree(folder)
    if "shims" in found and "throughput" in found:
        rate = found["throughput"]["jobs_per_s"]["p50"] / found["shims"]["per_s"]
        found["throughput"]["of_shim_rate"] = round(rate, 2)
    print(json.dumps(found, indent=2) if arguments.json else "\n".join(lines(found)))
    if arguments.save:
        KEPT.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    return 0


def host(folder: Path) -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "tenure": version("tenure"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "kernel": platform.release(),
        "cores": len(os.sched_getaffinity(0)),
        "filesystem": filesystem(folder),
        "load_before": round(os.getloadavg()[0], 2),
        "settings": asdict(measures.SETTINGS),
    }


def filesystem(folder: Path) -> str:
    """Type of the filesystem that holds `folder`."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text("utf-8").splitlines()]
    holding = [(point, kind) for _, point, kind, *_ in mounts if folder.resolve().is_relative_to(point)]
    return max(holding, key=lambda mount: len(mount[0]), default=("", "unknown"))[1]


def lines(found: dict[str, Any]) -> list[str]:
    """One line for each figure."""
    facts = found["host"]
    versions = (
        f"tenure {facts['tenure']} · Python {facts['python']} · SQLite {facts['sqlite']} · Linux {facts['kernel']} · "
        f"{facts['cores']} cores · {facts['filesystem']} · load {facts['load_before']} → {facts['load_after']}"
    )
    told = [versions]
    if "disk" in found:
        told.append(row("disk: append and sync 4 KiB", found["disk"]["sync_ms"], "ms"))
    if "shims" in found:
        shims = found["shims"]
        told.append(f"{'launches alone':<40} {shims['per_s']} a second, {shims['in_flight']} in flight")
        told.append(row("  until READY", shims["ready_ms"], "ms"))
        told.append(row("  until its end is recorded", shims["done_ms"], "ms"))
    if "start_latency" in found:
        told.append(row("start, from submit to exec, idle system", found["start_latency"]["start_ms"], "ms"))
    if "throughput" in found:
        rates = found["throughput"]
        told.append(
            row(f"durable jobs a second ({rates['jobs']} of /bin/true)", rates["jobs_per_s"], "", name="median")
        )
        if "of_shim_rate" in rates:
            told.append(f"{'  of the rate of launches alone':<40} {rates['of_shim_rate']:.0%}")
    if "adoption" in found:
        adopted = found["adoption"]
        told.append(row(f"adoption of {adopted['jobs']}, from process start", adopted["since_process_start_ms"], "ms"))
        told.append(row("  from the worker being there", adopted["since_worker_registered_ms"], "ms"))
    if "idle" in found:
        idle = found["idle"]
        told.append(
            f"{'idle, all processes of `up`':<40} {idle['cpu_percent']} % of a core, {idle['wakes_per_s']} wake-ups a second"
        )
    if "counts" in found:
        counts = found["counts"]
        for name, label in (("one_job", "a job alone"), ("per_job_of_batch", f"a job among {counts['batch']}")):
            told.append(f"{label:<40} {counts[name]['commits']} commits, {counts[name]['statements']} statements")
    if "flat" in found:
        told += flat_lines(found["flat"])
    return told


def flat_lines(flat: dict[str, Any]) -> list[str]:
    """What each step costs on the small store, and on the great one."""
    great = flat["great"]
    told = [
        f"on a store of {flat['small']['ready']} ready Works → one of {great['ready']}, with {great['events']} events"
    ]
    for name, of in flat["steps"].items():
        pairs = {what: (of["small"][what], of["great"][what]) for what in ("statements", "steps", "ms")}
        words = ", ".join(f"{small:g} → {large:g} {what}" for what, (small, large) in pairs.items())
        told.append(f"  {name.replace('_', ' '):<38} {words}")
    return told


def row(label: str, spread: dict[str, Any], unit: str, *, name: str = "p50") -> str:
    """A spread in words."""
    p99 = f", p99 {spread['p99']:g}" if spread["count"] >= SAMPLES_FOR_P99 else ""
    text = f"{name} {spread['p50']:g}{p99}, {spread['least']:g}–{spread['most']:g} {unit}".strip()
    return f"{label:<40} {text}, {spread['count']} samples"


if __name__ == "__main__":
    raise SystemExit(main())
