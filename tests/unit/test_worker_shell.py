"""The shell executor: the words of a launch, with and without a sandbox."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.errors import UnsupportedError
from shared.model.settings import SandboxConfig
from shared.store.contract import Assignment
from tests.support.sites import Site
from worker.executors.shell import ShellExecutor

BWRAP = "/usr/bin/bwrap"
NARROW = SandboxConfig(writable=("/srv/data",))


@pytest.fixture
def assignment(site: Site) -> Assignment:
    """A claim that was not accepted yet."""
    bench = site.bench()
    site.claim(bench)
    return site.world.store.read(lambda tx: tx.assignments(bench.me, limit=1))[0]


def sandboxed(assignment: Assignment, sandbox: SandboxConfig) -> Assignment:
    return replace(assignment, snapshot=replace(assignment.snapshot, sandbox=sandbox))


def test_without_a_sandbox_the_command_is_launched_as_it_is(assignment: Assignment) -> None:
    spec = ShellExecutor({"PATH": "/bin"}, None).prepare(assignment, {})

    assert spec.argv == assignment.snapshot.command


@pytest.mark.req("R14")
def test_a_sandbox_goes_before_the_command_and_its_plan_has_a_digest(assignment: Assignment) -> None:
    shell, bound = ShellExecutor({"PATH": "/bin"}, BWRAP), sandboxed(assignment, NARROW)

    spec = shell.prepare(bound, {})

    assert spec.argv[0] == BWRAP
    assert spec.argv[-len(bound.snapshot.command) :] == bound.snapshot.command
    assert "--unshare-net" in spec.argv
    assert ("--bind", "/srv/data") in tuple(zip(spec.argv, spec.argv[1:], strict=False))
    other = sandboxed(assignment, replace(NARROW, network=True))
    assert shell.sandbox_digest(bound.snapshot) != shell.sandbox_digest(other.snapshot)
    assert shell.sandbox_digest(assignment.snapshot) is None, "control: no sandbox, no digest"


@pytest.mark.req("R14")
def test_a_host_without_bubblewrap_launches_nothing_unbound(assignment: Assignment) -> None:
    with pytest.raises(UnsupportedError, match="bubblewrap is not installed"):
        ShellExecutor({}, None).prepare(sandboxed(assignment, NARROW), {})


@pytest.mark.req("E10")
def test_the_layer_wins_over_the_binding_s_variables(assignment: Assignment) -> None:
    snapshot = replace(assignment.snapshot, env=(("A", "binding"), ("B", "binding")))

    spec = ShellExecutor({"A": "worker", "PATH": "/bin"}, None).prepare(
        replace(assignment, snapshot=snapshot), {"B": "layer"}
    )

    assert (spec.env["A"], spec.env["B"], spec.env["PATH"]) == ("binding", "layer", "/bin")
