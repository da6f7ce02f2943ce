"""The simulated launch crosses the boundaries of the real one, on the same sides, in the same order."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.simulation.jobs import Job
from chaos.simulation.programs import AGENT, Act, Deed, Part
from chaos.simulation.run import Options, simulate
from shared import boundary
from shared.boundary import Boundary, Side
from shared.process import shim
from shared.process.launcher import LaunchSpec, ZygoteLauncher
from shared.process.shim import GO
from shared.process.spec import encode

Crossing = tuple[str, str]
WORKERS = frozenset(
    {
        *(Boundary.ZYGOTE_EXEC, Boundary.ATTEMPT_MKDIR, Boundary.ATTEMPT_SPEC, Boundary.SHIM_SPAWN),
        *(Boundary.ATTEMPT_SYNC, Boundary.READY_RECEIVE, Boundary.GO_SEND),
    }
)


AGENTS = Job(1, voice=AGENT, parts=(Part((Deed(Act.TURN, word="done"),)),))


def spec(program: str, *, out_counts: bool = False) -> LaunchSpec:
    return LaunchSpec("w1.1", 1, (program,), {"PATH": "/usr/bin:/bin"}, "/", None, 1.0, out_counts=out_counts)


@pytest.fixture
def unhooked() -> Iterator[None]:
    yield
    boundary.install(None)


def simulated(role: str, job: Job) -> list[Crossing]:
    """What the processes of a role crossed in a history without harm of one job."""
    outcome = simulate(3, Options(jobs=(job,), plan=(), workers=1))
    assert outcome.findings == ()
    return [(step.boundary, step.side) for step in outcome.trace if step.actor.startswith(role)]


def test_the_worker_crosses_what_the_real_launcher_crosses(tmp_path: Path, unhooked: None) -> None:
    crossed: list[Crossing] = []
    (tmp_path / "attempts").mkdir()
    boundary.install(lambda at, side: crossed.append((at, side)))

    launcher = ZygoteLauncher(tmp_path / "attempts", tmp_path, with_leaves=False)
    launcher.launch(spec("true")).go()
    boundary.install(None)
    launcher.close()

    assert crossed == [each for each in simulated("worker-1", Job(1)) if each[0] in WORKERS]


def note(log: int, at: Boundary, side: Side) -> None:
    os.write(log, f"{os.getpid()} {at} {side}\n".encode())


def shim_and_child(folder: Path, launch: LaunchSpec) -> tuple[list[Crossing], list[Crossing]]:
    """What a real shim and its child cross: the shim's code in a process of its own that writes down what it comes to."""
    ours, theirs = socket.socketpair()
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    pid = os.fork()
    if pid == 0:
        ours.close()
        boundary.install(lambda at, side: note(log, at, side))
        shim.live(theirs.fileno(), directory, None, None, is_subreaper=True)
    theirs.close()
    ours.sendall(encode(launch, None))
    assert b"shim" in ours.recv(4096)
    ours.send(GO)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    ours.close()
    for fd in (directory, log):
        os.close(fd)
    lines = [line.split() for line in (folder / "log").read_text().splitlines()]
    by_shim = [(at, side) for who, at, side in lines if int(who) == pid]
    return by_shim, [(at, side) for who, at, side in lines if int(who) != pid]


@pytest.mark.parametrize(
    ("launch", "job"),
    [
        (spec("true"), Job(1)),
        (spec("true", out_counts=True), AGENTS),
        (spec("no-such-program"), Job(0, is_missing=True)),
    ],
    ids=["job", "agent", "missing"],
)
def test_shim_and_child_cross_what_the_real_ones_cross(tmp_path: Path, launch: LaunchSpec, job: Job) -> None:
    by_shim, by_child = shim_and_child(tmp_path, launch)

    assert (Boundary.CHILD_EXEC, Side.BEFORE) in by_child
    assert simulated("shim", job) == by_shim
    assert simulated("child", job) == by_child
