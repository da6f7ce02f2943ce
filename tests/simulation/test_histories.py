"""Histories from seeds: nothing is found in them, one seed gives one history, and they are histories of the real classes."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys

import pytest

import coordinator.bootstrap
import worker.bootstrap
from chaos.simulation import actors
from chaos.simulation.run import Options, simulate
from chaos.simulation.sweep import Tally, sweep
from tests.support.checkout import ROOT

# Read before the fixtures clear the environment of whoever runs this.
SEED = os.environ.get("TENURE_SEED")
SEEDS = 150
MANY_SEEDS = 2_000


@pytest.mark.req("M03", "R02", "E03", "E07", "L01", "R10")
def test_nothing_is_found_in_histories_of_seeds() -> None:
    first = int(SEED or "1")
    print(f"TENURE_SEED={first}")

    found = {seed: findings for seed in range(first, first + SEEDS) if (findings := simulate(seed).findings)}

    assert found == {}


@pytest.mark.drills
@pytest.mark.timeout(3_600)
@pytest.mark.req("M03")
def test_nothing_is_found_in_thousands_of_histories() -> None:
    first = int(SEED or "10000")
    print(f"TENURE_SEED={first}")
    total = Tally()

    for tally in sweep(range(first, first + MANY_SEEDS), Options(), processes=len(os.sched_getaffinity(0))):
        total.add(tally)

    assert total.failed == {}
    assert total.histories == MANY_SEEDS


@pytest.mark.parametrize("seed", range(10))
def test_one_seed_gives_one_history(seed: int) -> None:
    first, second = simulate(seed), simulate(seed)

    assert first.trace == second.trace
    assert first.history == second.history


def test_seeds_give_different_histories() -> None:
    assert len({simulate(seed).trace for seed in range(10)}) == 10


DIGEST = """
import hashlib
from chaos.simulation.run import simulate
for seed in range(8):
    outcome = simulate(seed)
    print(seed, outcome.steps, hashlib.sha256(repr((outcome.trace, outcome.history.events)).encode()).hexdigest())
"""


def test_a_seed_gives_the_same_history_in_another_process() -> None:
    """Where the order of a set or the hash of a text decided anything, these would differ."""
    told = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2", "3")
    }

    assert len(told) == 1


SAME = {
    "coordinator": {"Coordinator", "Leadership", "Candidate", "Gates", "ApprovalGate", "open_store", "run"},
    "worker": {
        "Worker",
        "Ports",
        "Batch",
        "Registration",
        "ShellExecutor",
        "AgentExecutor",
        "ClaudeCodeExecutor",
        "Completion",
        "open_store",
        "register",
        "registry",
        "run",
    },
}
"""What a bootstrap builds or calls that the simulation builds or calls too."""
REPLACED = {
    "SystemClock",
    "Bell",
    "Ringer",
    "IncarnationLock",
    "Watcher",
    "ZygoteLauncher",
    "TaskPool",
    "LocalHost",
    "BeltServer",  # its requests are read by the same function
    "Asking",
}
"""The ports: each has a simulated form."""
NEITHER = {
    "partial",
    "Home",
    "Path",
    "ExitStack",
    "Incarnation",
    "StoreUnavailableError",
    "Parser",
    "UsageError",
    "ChildOptions",
}
BOOTSTRAPS = {"coordinator": coordinator.bootstrap, "worker": worker.bootstrap}


@pytest.mark.req("M03")
@pytest.mark.parametrize("room", BOOTSTRAPS)
def test_the_simulation_builds_what_the_bootstraps_build(room: str) -> None:
    """By identity: not a copy, not a subclass, and run by the same loops."""
    bootstrap = BOOTSTRAPS[room]
    for name in SAME[room] - {"run", "register", "Registration"}:
        assert vars(actors)[name] is vars(bootstrap)[name], name
    assert vars(actors)[room].bootstrap is bootstrap
    assert f"{room}.bootstrap.run(" in inspect.getsource(actors)


@pytest.mark.parametrize("room", BOOTSTRAPS)
def test_no_class_that_a_bootstrap_builds_is_forgotten(room: str) -> None:
    """Whatever it comes to build one day is either simulated as it is, or named here as a port."""
    tree = ast.parse(inspect.getsource(BOOTSTRAPS[room]))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    classes = {name for name in called if inspect.isclass(vars(BOOTSTRAPS[room]).get(name))}

    assert classes - SAME[room] - REPLACED - NEITHER == set()


def test_a_quiet_history_does_everything_once() -> None:
    outcome = simulate(1, Options(plan=()))

    assert outcome.findings == ()
    assert outcome.struck == ()
    assert {event.kind for event in outcome.history.events if event.attempt_id} >= {"attempt.claimed", "attempt.pinned"}
