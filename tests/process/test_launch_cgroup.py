"""A cgroup for each job where one can be had: entered before the job begins, used to kill, gone when it is over."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from shared.boundary import Boundary
from shared.model.evidence import Leaf
from shared.process import cgroup, leaves, tree
from shared.process.identity import is_alive
from shared.process.launcher import ZygoteLauncher
from shared.process.leaves import Leaves
from tests.process.launch_host import Host
from tests.process.test_stop_proofs import kill_shim, stop_pinned
from tests.support.processes import Reaper
from tests.support.waiting import wait_until


@pytest.fixture
def grouped(host: Host) -> Host:
    if host.launcher.leaves is None:
        pytest.skip("no cgroup v2 that can be written here")
    return host


def leaf_of(host: Host, pin: object) -> Leaf:
    leaf = host.evidence(pin).leaf  # type: ignore[arg-type]
    assert leaf is not None
    return leaf


def test_a_job_runs_in_a_group_of_its_own_and_its_shim_does_not(grouped: Host) -> None:
    pin = grouped.start(["sh", "-c", "cat /proc/self/cgroup; exec sleep 60"])
    leaf = leaf_of(grouped, pin)
    wait_until(lambda: "0::" in grouped.out(pin), "the job has told its group")

    assert grouped.out(pin).rstrip().endswith(Path(leaf.path).name)
    assert os.stat(leaf.path).st_ino == leaf.inode
    child = grouped.evidence(pin).child
    assert child is not None
    assert child.pid in cgroup.members(leaf.path)
    assert pin.shim.pid not in cgroup.members(leaf.path)
    assert cgroup.is_empty(leaf.path, leaf.inode) is False
    assert cgroup.is_empty(leaf.path, leaf.inode + 1) is None, "another group at its place proves nothing"


def test_it_is_gone_when_the_job_is_over(grouped: Host) -> None:
    pin = grouped.run(["sh", "-c", "exit 3"])

    leaf = leaf_of(grouped, pin)
    assert not Path(leaf.path).exists()
    assert cgroup.is_empty(leaf.path, leaf.inode) is True
    assert grouped.await_end(pin).oom is False


def test_groups_that_a_job_made_below_go_with_it(grouped: Host) -> None:
    pin = grouped.run(["sh", "-c", 'mkdir -p "$0/$(sed -n s/^0:://p /proc/self/cgroup)/a/b"', mount_point(grouped)])

    assert grouped.await_end(pin).status == 0
    assert not Path(leaf_of(grouped, pin).path).exists()


def mount_point(host: Host) -> str:
    own = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    assert host.launcher.leaves is not None
    return host.launcher.leaves.removesuffix(own.rstrip("/"))


def test_a_group_left_by_a_killed_shim_goes_with_the_proof_of_its_stop(grouped: Host) -> None:
    pin = grouped.start(["sleep", "60"])
    leaf = leaf_of(grouped, pin)
    kill_shim(grouped, pin)
    assert Path(leaf.path).exists(), "control"

    result = stop_pinned(grouped, pin)

    assert result.proof in {"S2", None}, "what else runs on this host may look like an orphan of it"
    assert Path(leaf.path).exists() is (result.proof is None)


def test_a_worker_that_starts_removes_what_is_empty_and_nothing_else(grouped: Host, tmp_path: Path) -> None:
    pin = grouped.start(["sleep", "60"])
    living = leaf_of(grouped, pin)
    left = Path(living.path).with_name(f"{leaves.PREFIX}left-over")
    left.mkdir()
    probes = [left.with_name(f"{leaves.PROBE}{pid}") for pid in (2**31, 1)]
    for probe in probes:
        probe.mkdir(exist_ok=True)
    (tmp_path / "again").mkdir()

    ZygoteLauncher(tmp_path / "again", tmp_path).close()

    assert (left.exists(), Path(living.path).exists()) == (False, True)
    assert [probe.exists() for probe in probes] == [False, True], "of a worker that is gone, and of one at work"
    probes[1].rmdir()


def test_without_a_group_the_job_runs_all_the_same(host: Host) -> None:
    host.launcher._leaves = Leaves(str(host.home / "nowhere"), "home")

    pin = host.run(["sh", "-c", "echo done"])

    assert (host.out(pin), host.evidence(pin).leaf) == ("done\n", None)


def test_a_launcher_may_do_without(tmp_path: Path, reaper: Reaper) -> None:
    host = Host(tmp_path, reaper, with_leaves=False)
    try:
        assert host.launcher.leaves is None
        assert host.evidence(host.run(["true"])).leaf is None
    finally:
        host.close()


@pytest.mark.parametrize(
    ("own", "mounts", "expected"),
    [
        (
            "0::/a.slice/b.service",
            "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
            "/sys/fs/cgroup/a.slice/b.service",
        ),
        (
            "9:name=systemd:/\n0::/",
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
            "/sys/fs/cgroup/unified",
        ),
        ("0::/docker/1/x", "41 31 0:38 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw", "/sys/fs/cgroup/x"),
        ("0::/other", "41 31 0:38 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw", None),
        ("0::/x", "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw", None),
        ("1:cpu:/", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup rw", None),
    ],
    ids=["unified", "hybrid", "container", "outside", "no_v2", "v1_only"],
)
def test_where_a_process_finds_its_own_group(
    monkeypatch: pytest.MonkeyPatch, own: str, mounts: str, expected: str | None
) -> None:
    files = {"/proc/self/cgroup": own, "/proc/self/mountinfo": mounts}
    monkeypatch.setattr(cgroup, "_lines", lambda path: files[path].splitlines())

    assert cgroup.own_directory() == expected


@pytest.mark.req("R12")
@pytest.mark.parametrize("found_frozen", [False, True])
def test_where_a_group_cannot_be_killed_at_once_it_is_frozen_for_it_and_never_left_so(
    grouped: Host, monkeypatch: pytest.MonkeyPatch, found_frozen: bool
) -> None:
    """As before Linux 5.14; also when who froze it before died over it."""
    pin = grouped.start(["sh", "-c", "trap '' TERM; setsid sleep 60 & while :; do sleep 0.05; done"])
    leaf, child = leaf_of(grouped, pin), grouped.evidence(pin).child
    assert child is not None
    real = cgroup.write
    written: list[str] = []

    def without_kill(path: str, data: bytes) -> None:
        if path.endswith("cgroup.kill"):
            raise FileNotFoundError(path)
        real(path, data)
        written.append(f"{Path(path).name}={data.decode()}")

    monkeypatch.setattr(cgroup, "write", without_kill)
    if found_frozen:
        real(f"{leaf.path}/cgroup.freeze", b"1")

    cgroup.kill(leaf.path, Boundary.STOP_SIGNAL, tree.kill_one)

    wait_until(lambda: not is_alive(child), "it was killed")
    assert written == ["cgroup.freeze=1", "cgroup.freeze=0"]
    assert grouped.await_end(pin).status == -9


@pytest.mark.parametrize(("text", "kills"), [("low 0\noom 2\noom_kill 1\n", 1), ("oom_kill 0\n", 0), (None, None)])
def test_want_of_memory_is_said_only_by_the_group_that_counts_it(
    tmp_path: Path, text: str | None, kills: int | None
) -> None:
    if text is not None:
        (tmp_path / "memory.events").write_text(text)

    assert cgroup.oom_kills(str(tmp_path)) == kills


def test_a_kill_by_hand_is_not_called_want_of_memory(host: Host) -> None:
    pin = host.start(["sleep", "60"])
    child = host.evidence(pin).child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)

    record = host.await_end(pin)

    assert (record.status, record.oom) == (-9, False)
