"""What the daily steps cost on a small store, and on one as full as years make it: counted, and timed beside it."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict
from pathlib import Path

from chaos.crowd.costs import cost_of
from chaos.crowd.crowd import Crowd, populated
from chaos.crowd.population import GREAT, SMALL, Population
from chaos.crowd.steps import STEPS, Step
from chaos.measures.spread import Numbers
from shared.clock import VirtualClock


def flat(folder: Path, *, great: Population = GREAT, samples: int = 5) -> Numbers:
    """Both stores, and each step on both; the clock of those who take part stands still, so that nobody is late however long it takes."""
    crowds = {
        "small": populated(folder / "small", VirtualClock(), SMALL),
        "great": populated(folder / "great", VirtualClock(), great),
    }
    found = {
        name: {which: _measured(crowd, step, samples) for which, crowd in crowds.items()}
        for name, step in STEPS.items()
    }
    for crowd in crowds.values():
        crowd.site.close()
    return {"small": asdict(SMALL), "great": asdict(great), "steps": found}


def _measured(crowd: Crowd, step: Step, samples: int) -> Numbers:
    """Timed some times, and counted once, in this order: nothing is prepared for the first time when it counts."""
    times = []
    for _ in range(samples):
        act = step(crowd)
        began = time.perf_counter()
        act()
        times.append((time.perf_counter() - began) * 1e3)
    counted = cost_of(crowd.site, step(crowd))
    return {**asdict(counted), "ms": round(statistics.median(times), 3)}
