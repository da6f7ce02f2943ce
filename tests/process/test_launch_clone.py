"""A child is born in its cgroup where the kernel can do that, and moves itself in where not; nobody can tell from the evidence."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.process import cgroup, clone, launcher
from tests.process.launch_host import Host
from tests.support.processes import Reaper
from tests.support.waiting import wait_until

ROOT = Path(clone.__file__).parents[2]
CLONED, UNKNOWN, FORBIDDEN = "cloned", "ENOSYS", "EPERM"

# Refuses clone3 to the zygote and all its shims, as an old kernel or a container's seccomp filter does.
REFUSAL = """
import ctypes, struct
code = ctypes.create_string_buffer(struct.pack(
    "=" + "HBBI" * 4,
    0x20, 0, 0, 0,                     # load the number of the call
    0x15, 0, 1, {number},              # is it this one?
    0x06, 0, 0, 0x00050000 | {error},  # then say so
    0x06, 0, 0, 0x7FFF0000,            # else go on
))
program = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(code)))
prctl = ctypes.CDLL(None).prctl
prctl.argtypes = [ctypes.c_int] + [ctypes.c_void_p] * 4
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, ctypes.addressof(program), 0, 0) == 0
"""

LIKE_A_FORK = """
import ctypes, os, sys, threading
sys.path.append({root!r})
from shared.process import clone
seen = []
os.register_at_fork(before=lambda: seen.append("before"), after_in_parent=lambda: seen.append("parent"),
                    after_in_child=lambda: seen.append("child"))
parent, group = os.getpid(), os.open({leaf!r}, os.O_PATH | os.O_DIRECTORY)
child = clone.fork_into(group)
if child == 0:
    import decimal  # the lock of imports is free again
    thread = threading.Thread(target=seen.append, args=["thread"])
    thread.start()
    thread.join()
    right = seen == ["before", "child", "thread"] and os.getppid() == parent and os.getpid() != parent
    os._exit(7 if right else 1)
print(seen, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.close(group)
"""


@pytest.fixture
def host_by(tmp_path: Path, reaper: Reaper, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Host]]:
    """Hosts whose zygote has clone3, or is refused it with that error."""
    if not clone.is_supported():
        pytest.skip("no clone3 into a cgroup on this host")
    hosts: list[Host] = []
    boot = launcher._BOOT

    def make(way: str) -> Host:
        refusal = REFUSAL.format(number=clone.CLONE3, error=getattr(errno, way, 0))
        monkeypatch.setattr(launcher, "_BOOT", boot if way == CLONED else f"{refusal}\n{boot}")
        home = tmp_path / way
        home.mkdir()
        hosts.append(Host(home, reaper))
        if hosts[-1].launcher.leaves is None:
            pytest.skip("no cgroup v2 that can be written here")
        return hosts[-1]

    yield make
    for host in hosts:
        host.close()


@pytest.fixture
def leaf() -> Iterator[str]:
    """An empty group of our own."""
    if not clone.is_supported():
        pytest.skip("no clone3 into a cgroup on this host")
    parent = cgroup.own_directory()
    path = f"{parent}/tenure.test-{os.getpid()}"
    try:
        os.mkdir(path)
    except OSError:
        pytest.skip("no cgroup v2 that can be written here")
    yield path
    cgroup.remove(path)


def group_of(pid: int) -> str:
    """The name of the cgroup v2 that a process is in."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return next(line for line in lines if line.startswith("0::")).rpartition("/")[2]


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def told_by_child(entry: cgroup.Entry) -> tuple[dict[str, Any] | None, str]:
    """Fork by an entry; what the child says of its leaf, and the name of the group it is in then."""
    answer, told = os.pipe()
    child = entry.fork()
    if child == 0:
        try:
            os.write(told, json.dumps([entry.complete(), group_of(os.getpid())]).encode())
        finally:
            os._exit(0)
    os.close(told)
    with os.fdopen(answer) as file:
        said, group = json.load(file)
    assert os.waitpid(child, 0)[1] == 0
    return said, group


@pytest.mark.req("R12")
@pytest.mark.parametrize("way", [CLONED, UNKNOWN, FORBIDDEN])
def test_a_job_is_in_its_group_from_its_first_instruction_whichever_way(
    host_by: Callable[[str], Host], way: str
) -> None:
    host = host_by(way)
    pin = host.start(["sh", "-c", "cat /proc/self/cgroup; kill -STOP $$; exit 7"])
    record, evidence = host.child_record(pin), host.evidence(pin)
    assert evidence.child is not None
    assert evidence.leaf is not None
    pid = evidence.child.pid
    wait_until(lambda: state_of(pid) == "T", "the job has told its group")

    assert Path(evidence.leaf.path).name == group_of(pid)
    assert host.out(pin).rstrip().endswith(f"/{group_of(pid)}")
    assert set(record) == {"child", "cgroup", "shim", "subreaper", "reapers"}
    assert record["cgroup"] == {"path": evidence.leaf.path, "inode": os.stat(evidence.leaf.path).st_ino}
    assert cgroup.members(evidence.leaf.path) == [pid]
    assert group_of(pin.shim.pid) != group_of(pid), "the shim stays outside"

    os.kill(pid, signal.SIGCONT)
    end = host.await_end(pin)
    assert (end.status, end.tree_empty, end.error) == (7, True, None)
    assert not Path(evidence.leaf.path).exists()


@pytest.mark.parametrize(
    ("way", "at", "is_inside"),
    [
        (CLONED, "tree_lock", True),
        (UNKNOWN, "tree_lock", False),
        (UNKNOWN, "child_rename", True),
        (FORBIDDEN, "tree_lock", False),
        (FORBIDDEN, "child_rename", True),
    ],
)
def test_where_the_child_is_before_it_becomes_the_job(
    host_by: Callable[[str], Host], way: str, at: str, is_inside: bool
) -> None:
    """At its very first boundary already if it was born inside; in any case before anybody can read that it is."""
    host = host_by(way)
    log = host.arm(f"{at}:before:STOP")
    held = host.hold(host.spec(["true"]))
    held.go()
    wait_until(log.exists, "the child came to its boundary")
    wait_until(lambda: log.read_text().endswith("\n"), "it has said so")
    child = int(log.read_text().split()[1])
    host.tell(child)
    wait_until(lambda: state_of(child) == "T", "it stands there")

    assert group_of(child).endswith(held.pin.directory) is is_inside
    assert not (host.folder(held.pin) / "child.json").exists()

    os.kill(child, signal.SIGCONT)
    assert host.await_end(held.pin).status == 0


@pytest.mark.parametrize("way", [CLONED, UNKNOWN])
def test_what_cannot_be_executed_leaves_no_group(host_by: Callable[[str], Host], way: str) -> None:
    host = host_by(way)

    pin = host.run(["/nowhere/at/all"])

    end = host.await_end(pin)
    assert (end.status, end.ran) == (None, False)
    assert end.error is not None
    assert end.error.startswith("exec: ENOENT")
    leaves = host.launcher.leaves
    assert leaves is not None
    wait_until(
        lambda: not any(name.endswith(f"-{pin.directory}") for name in os.listdir(leaves)),
        "its group is gone, which its shim removes once the end is recorded",
    )


def test_a_clone_is_a_fork_to_the_interpreter(leaf: str) -> None:
    code = LIKE_A_FORK.format(root=str(ROOT), leaf=leaf)
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("['before', 'parent'] 7\n", "")


def test_a_group_that_was_swept_away_at_the_last_moment_is_made_again_by_the_child(leaf: str) -> None:
    before = os.stat(leaf).st_ino
    refusals: list[OSError] = []

    def too_late(group: int) -> int:
        os.rmdir(leaf)
        try:
            return clone.fork_into(group)
        except OSError as fault:
            refusals.append(fault)
            raise

    said, group = told_by_child(cgroup.Entry(leaf, too_late))

    assert [fault.errno in {errno.ENOENT, errno.ENODEV} for fault in refusals] == [True]
    assert said == {"path": leaf, "inode": os.stat(leaf).st_ino}
    assert (said["inode"] != before, group) == (True, Path(leaf).name)


def test_a_child_that_was_born_inside_does_not_move_again(leaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "enter", lambda leaf: None)

    said, group = told_by_child(cgroup.Entry(leaf, clone.fork_into))

    assert (said, group) == ({"path": leaf, "inode": os.stat(leaf).st_ino}, Path(leaf).name)


def test_where_no_group_can_be_made_the_child_is_outside_and_says_so(tmp_path: Path) -> None:
    said, group = told_by_child(cgroup.Entry(str(tmp_path / "no" / "where"), clone.fork_into))

    assert (said, group) == (None, group_of(os.getpid()))


def test_a_fork_that_cannot_be_had_leaves_no_child(leaf: str) -> None:
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        clone.fork_into(clone.NO_GROUP)

    assert caught.value.errno == errno.EBADF
    assert cgroup.members(leaf) == []


def test_the_call_is_not_tried_where_its_number_may_be_another_s(monkeypatch: pytest.MonkeyPatch) -> None:
    machines = iter(["x86_64", "alpha"])
    calls: list[object] = []

    def clone_by_number(arguments: object) -> tuple[int, int]:
        calls.append(arguments)
        return -1, errno.EBADF

    monkeypatch.setattr(clone, "_clone", clone_by_number)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "host", "6.18", "#1", next(machines))))

    assert (clone.is_supported(), len(calls)) == (True, 1), "control"
    assert (clone.is_supported(), len(calls)) == (False, 1)


@pytest.mark.parametrize("refusal", ["ENOSYS", "EPERM", "EINVAL", "E2BIG"])
def test_any_other_answer_than_the_missing_group_means_no(monkeypatch: pytest.MonkeyPatch, refusal: str) -> None:
    """An old kernel, a filter, and kernels whose clone3 knows no groups."""
    monkeypatch.setattr(clone, "_clone", lambda arguments: (-1, getattr(errno, refusal)))

    assert clone.is_supported() is False
