"""A sandbox: what its plan means, that the same plan has the same digest, and what a job really sees in it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import UnsupportedError
from shared.process.identity import is_alive
from shared.process.sandbox import SandboxPlan, find_bwrap, why_not
from tests.process.launch_host import Host
from tests.process.test_stop_proofs import kill_shim, stop_pinned
from tests.support.waiting import wait_until

PLAN = SandboxPlan(read_only=("/",), writable=("/srv/data",), network=False, private_tmp=True)
PLAN_OF_ROOT = replace(PLAN, writable=())


@pytest.fixture
def bwrap() -> str:
    found = find_bwrap(os.environ.get("PATH", ""))
    if found is None:
        pytest.skip("bubblewrap is not installed")
    reason = why_not(found)
    if reason is not None:
        pytest.skip(f"bubblewrap does not work here: {reason}")
    return found


@pytest.mark.req("R14")
def test_plans_that_mean_the_same_have_the_same_digest() -> None:
    plan = replace(PLAN, writable=("/b", "/a"))

    assert plan.digest == replace(plan, writable=("/a", "/b", "/a")).digest
    assert len(plan.digest) == 64
    assert plan.canonical == (
        '{"format":2,"network":false,"pid_namespace":true,"private_tmp":true,"read_only":["/"],"writable":["/a","/b"]}'
    )


@pytest.mark.req("R14")
@pytest.mark.parametrize(
    "change",
    [{"read_only": ("/usr",)}, {"writable": ()}, {"network": True}, {"private_tmp": False}, {"pid_namespace": False}],
    ids=lambda change: next(iter(change)),
)
def test_any_difference_shows_in_the_digest(change: dict[str, object]) -> None:
    assert replace(PLAN, **change).digest != PLAN.digest  # type: ignore[arg-type]


def test_the_words_of_a_plan() -> None:
    plan = replace(PLAN, read_only=("/", "/srv/data/keep"), writable=("/srv/data",))

    assert " ".join(plan.words("bwrap", "/srv")) == (
        "bwrap --unshare-ipc --unshare-uts --unshare-net --unshare-pid --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp"
        " --bind /srv/data /srv/data --ro-bind /srv/data/keep /srv/data/keep --chdir /srv --"
    )
    own = plan.words("bwrap", "/srv", "/home/a/w1.1.1")
    assert " ".join(own).endswith(" --ro-bind /home/a/w1.1.1 /home/a/w1.1.1 --chdir /srv --"), "its own folder is seen"
    assert plan.words("bwrap", "/srv", "/srv/data/w1.1.1") == plan.words("bwrap", "/srv"), "what it may change stays so"
    open_plan = replace(PLAN, network=True, private_tmp=False, pid_namespace=False)
    assert not {"--unshare-net", "--unshare-pid", "--tmpfs"} & set(open_plan.words("bwrap", "/"))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (replace(PLAN, writable=("data",)), "a sandbox needs absolute paths without detours, not data"),
        (replace(PLAN, writable=("/srv/../etc",)), "a sandbox needs absolute paths without detours, not /srv/../etc"),
        (replace(PLAN, read_only=("/a",), writable=("/a",)), "/a cannot be both read-only and writable"),
    ],
)
def test_a_plan_that_means_nothing_is_refused(plan: SandboxPlan, message: str) -> None:
    PLAN.words("bwrap", "/")

    with pytest.raises(UnsupportedError, match=message):
        plan.words("bwrap", "/")


def test_what_is_not_installed_is_not_found(tmp_path: Path) -> None:
    assert find_bwrap(str(tmp_path)) is None
    assert why_not(str(tmp_path / "bwrap")) is not None

    (tmp_path / "bwrap").write_text("#!/bin/sh\necho not allowed >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    assert find_bwrap(str(tmp_path)) == str(tmp_path / "bwrap")
    assert why_not(str(tmp_path / "bwrap")) == "not allowed"


@pytest.mark.req("R14")
def test_a_job_changes_only_what_it_may(host: Host, bwrap: str, tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    data.mkdir()
    other.mkdir()
    plan = replace(PLAN, writable=(str(data),), private_tmp=False)
    script = (
        f"echo kept > {data}/file; echo lost > {other}/file || echo refused; ls -d /proc/[0-9]* | wc -l; cd {data}; pwd"
    )

    pin = host.run([*plan.words(bwrap, str(data)), "sh", "-c", script])

    assert host.await_end(pin).status == 0
    refused, processes, folder = host.out(pin).splitlines()
    assert (refused, folder) == ("refused", str(data))
    assert int(processes) < 10
    assert (data / "file").read_text() == "kept\n"
    assert not (other / "file").exists()


def test_it_has_no_network_and_a_tmp_of_its_own(host: Host, bwrap: str, tmp_path: Path) -> None:
    script = 'ls -A /tmp; touch "/tmp/$TENURE_ATTEMPT.mine"; grep -c : /proc/net/dev'

    pin = host.run([*PLAN_OF_ROOT.words(bwrap, "/"), "sh", "-c", script])

    assert host.out(pin).split() == ["1"], "an empty /tmp, and the loopback alone"
    assert not list(Path("/tmp").glob("*.mine"))


@pytest.mark.req("R12", "R14")
@pytest.mark.parametrize("shim", ["alive", "killed"])
def test_what_runs_in_a_sandbox_is_stopped_like_anything_else(host: Host, bwrap: str, shim: str) -> None:
    pin = host.start([*PLAN_OF_ROOT.words(bwrap, "/"), "sh", "-c", "setsid sleep 61 & echo ready; exec sleep 60"])
    wait_until(lambda: host.out(pin) == "ready\n", "it runs inside")
    child = host.evidence(pin).child
    assert child is not None
    if shim == "killed":
        kill_shim(host, pin)
        assert is_alive(child), "a job outlives its shim"
    left = wait_until(lambda: _both_sleepers(host, pin.directory.rpartition(".")[0]), "both are seen from outside")

    result = stop_pinned(host, pin)

    assert [pid for pid in left if Path(f"/proc/{pid}/exe").exists() and _is_running(pid)] == []
    assert result.proof == "S1" or shim == "killed"


def _both_sleepers(host: Host, attempt: str) -> list[int]:
    pids = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/comm") if _read(path) == "sleep\n"]
    found = [pid for pid in pids if _is_of(pid, attempt, host)]
    return found if len(found) == 2 else []


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _is_of(pid: int, attempt: str, host: Host) -> bool:
    words = _read(Path(f"/proc/{pid}/environ")).split("\0")
    return f"TENURE_ATTEMPT={attempt}" in words and f"TENURE_HOME={host.home}" in words


def _is_running(pid: int) -> bool:
    return "State:\tZ" not in _read(Path(f"/proc/{pid}/status"))
