"""Simulated histories in which bindings matter: agents that are quiet, works that fail or cost workers, inputs that nobody takes."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

from chaos.history import History
from chaos.simulation.controls import SCENES
from chaos.simulation.jobs import Job
from chaos.simulation.run import Options, simulate
from shared.ids import AttemptId
from shared.model.instant import US_PER_MS

A1, A2 = AttemptId("w1.1"), AttemptId("w1.2")


@cache
def quiet() -> History:
    """Two agents end as idle."""
    return _played("idle_limit", 1)


@cache
def failing() -> History:
    """A binding is quarantined for its failures, and released."""
    return next(
        history for seed in range(50) if "binding.quarantined" in _kinds(history := _played("quarantine", seed))
    )


@cache
def costly() -> History:
    """A binding is quarantined for its workers."""
    return next(history for seed in range(50) if "binding.quarantined" in _kinds(history := _played("blame", seed)))


@cache
def untellable() -> History:
    """An input is dropped, another one waits for the next attempt."""
    wanted = {"intent.dropped", "intent.returned"}
    return next(history for seed in range(50) if wanted <= _kinds(history := _played("pinned_fallback", seed)))


@cache
def working() -> History:
    """A standing Work succeeds twice."""
    return simulate(1, Options(jobs=(replace(Job(20 * US_PER_MS), inputs=2),), plan=(), holds=False)).history


def _played(guard: str, seed: int) -> History:
    scene = SCENES[guard](random.Random(f"{seed}/scene"))
    return simulate(seed, replace(scene, holds=False)).history


def _kinds(history: History) -> set[str]:
    return {event.kind for event in history.events}
