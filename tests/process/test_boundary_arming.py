"""Boundaries: each wrapper reaches its own before and after; arming needs a drill, and hits exactly there."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared import boundary
from shared.boundary import Boundary, Side, Trap
from tests.process.launch_host import Host
from tests.support.waiting import wait_until

BEFORE, AFTER = Side.BEFORE, Side.AFTER


@pytest.fixture
def reached() -> Iterator[list[tuple[Boundary, Side]]]:
    seen: list[tuple[Boundary, Side]] = []
    boundary.install(lambda at, side: seen.append((at, side)))
    yield seen
    boundary.install(None)


class Connection:
    """What a commit is sent to, which notes how far the boundaries had come by then."""

    def __init__(self, seen: list[tuple[Boundary, Side]]) -> None:
        self.seen = seen
        self.at_commit: list[tuple[Boundary, Side]] = []

    def execute(self, sql: str, /) -> object:
        assert sql == "COMMIT"
        self.at_commit = list(self.seen)
        return None


def test_every_effect_lies_between_the_two_sides_of_its_boundary(
    reached: list[tuple[Boundary, Side]], tmp_path: Path
) -> None:
    at = Boundary.STORE_LINK
    boundary.mkdir(tmp_path / "a", at)
    boundary.rename(tmp_path / "a", tmp_path / "b", at)
    (tmp_path / "file").touch()
    boundary.link(tmp_path / "file", tmp_path / "other", at)
    boundary.unlink(tmp_path / "file", at)
    fd = os.open(tmp_path / "b", os.O_RDONLY)
    boundary.fsync(fd, at)
    boundary.flock(fd, fcntl.LOCK_EX, at)
    os.close(fd)
    child = boundary.fork(at)
    if child == 0:
        os._exit(0 if reached[-1] == (at, BEFORE) else 1)  # the far side belongs to the parent
    assert os.waitpid(child, 0)[1] == 0
    sleeper = subprocess.Popen(["sleep", "60"], start_new_session=True)
    boundary.kill(sleeper.pid, signal.SIGCONT, at)
    boundary.kill_group(sleeper.pid, signal.SIGCONT, at)
    pidfd = os.pidfd_open(sleeper.pid)
    boundary.pidfd_kill(pidfd, signal.SIGKILL, at)
    os.close(pidfd)
    assert sleeper.wait() == -9

    assert (tmp_path / "b").is_dir()
    assert reached == [(at, BEFORE), (at, AFTER)] * 10


def test_an_effect_that_failed_does_not_reach_the_far_side(
    reached: list[tuple[Boundary, Side]], tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        boundary.rename(tmp_path / "none", tmp_path / "b", Boundary.STORE_LINK)

    assert reached == [(Boundary.STORE_LINK, BEFORE)]


def test_one_commit_crosses_the_boundary_of_each_of_its_transitions(reached: list[tuple[Boundary, Side]]) -> None:
    connection = Connection(reached)

    boundary.commit(connection, [Boundary.CLAIM_COMMIT, Boundary.PASS_COMMIT])

    assert connection.at_commit == [(Boundary.CLAIM_COMMIT, BEFORE), (Boundary.PASS_COMMIT, BEFORE)]
    assert reached[2:] == [(Boundary.CLAIM_COMMIT, AFTER), (Boundary.PASS_COMMIT, AFTER)]


def test_the_file_loads_by_path_and_needs_only_the_standard_library() -> None:
    """The zygote pays for each of its imports in every shim's memory."""
    code = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('boundary', {boundary.__file__!r})\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
        "print(sorted({'typing', 'dataclasses', 'shared', 'psutil'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_the_zygote_loads_little() -> None:
    code = (
        f"import sys; sys.path.append({str(Path(boundary.__file__).parents[1])!r})\n"
        "import shared.process.zygote\n"
        "print(sorted({'typing', 'dataclasses', 'inspect', 'psutil', 'subprocess', 'logging'} & set(sys.modules)))\n"
        "print(sorted(name for name in sys.modules if name.startswith('shared')))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)

    unwanted, ours = done.stdout.splitlines()
    assert unwanted == "[]"
    assert ours == str(
        sorted(
            ["shared", "shared.boundary", "shared.process"]
            + [
                f"shared.process.{name}"
                for name in ("cgroup", "clone", "procfs", "reaper", "record", "ring", "shim", "tree", "zygote")
            ]
        )
    )


class TestArming:
    @pytest.fixture(autouse=True)
    def _disarm(self) -> Iterator[None]:
        yield
        boundary.install(None)

    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        (tmp_path / "drill").write_text("d1\n")
        return tmp_path

    def order(self, monkeypatch: pytest.MonkeyPatch, order: str | None, drill: str | None) -> None:
        for name, value in (("TENURE_ARM", order), ("TENURE_DRILL", drill)):
            if value is not None:
                monkeypatch.setenv(name, value)

    def test_an_order_with_the_drill_of_the_home_arms(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.order(monkeypatch, "claim_commit:after:KILL", "d1")

        assert boundary.arm(home) is True
        order = {"order": "claim_commit:after:KILL", "log": str(home / "drill.log"), "worker_pid": os.getpid()}
        assert boundary.armed("shim") == order
        assert boundary.armed("zygote") == order

    def test_only_the_first_of_a_kind_inherits_it(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is launched to make good for it must get past the same boundary."""
        self.order(monkeypatch, "exit_rename:before:KILL", "d1")
        boundary.arm(home)

        assert boundary.armed("shim") is not None
        assert boundary.armed("shim") is None
        boundary.arm(home)
        assert boundary.armed("shim") is not None, "a new order is another one"

    @pytest.mark.parametrize(
        ("order", "drill", "content"),
        [
            (None, "d1", "d1"),
            ("claim_commit:after:KILL", None, "d1"),
            ("claim_commit:after:KILL", "d2", "d1"),
            ("claim_commit:after:KILL", "d1", None),
            ("claim_commit:after:KILL", "", ""),
        ],
    )
    def test_anything_less_does_not(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, order: str | None, drill: str | None, content: str | None
    ) -> None:
        self.order(monkeypatch, order, drill)
        (home / "drill").unlink() if content is None else (home / "drill").write_text(content)

        assert boundary.arm(home) is False
        assert boundary.armed("shim") is None

    @pytest.mark.parametrize(
        "order",
        ["claim_commit", "nonsense:after:KILL", "claim_commit:beside:KILL", "claim_commit:after:TERM", "a:b:KILL:c:d"],
    )
    def test_an_order_that_means_nothing_is_an_error(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, order: str
    ) -> None:
        self.order(monkeypatch, order, "d1")

        with pytest.raises(ValueError, match=r"not an order|is not a valid"):
            boundary.arm(home)

    @pytest.mark.parametrize(("word", "number"), [("KILL", signal.SIGKILL), ("STOP", signal.SIGSTOP)])
    def test_the_process_that_reaches_it_is_hit_there_and_says_so(
        self, home: Path, word: str, number: signal.Signals
    ) -> None:
        child = os.fork()
        if child == 0:
            boundary.install(Trap(f"claim_commit:after:{word}", str(home / "drill.log"), os.getpid()))
            boundary.reached(Boundary.CLAIM_COMMIT, BEFORE)
            boundary.reached(Boundary.PASS_COMMIT, AFTER)
            (home / "got here").touch()
            boundary.reached(Boundary.CLAIM_COMMIT, AFTER)
            os._exit(0)
        _, status = os.waitpid(child, os.WUNTRACED)
        if word == "STOP":
            assert os.WIFSTOPPED(status)
            assert os.WSTOPSIG(status) == number
            os.kill(child, signal.SIGCONT)
            assert os.waitpid(child, 0)[1] == 0, "a stop is over when it is continued"
        else:
            assert os.WIFSIGNALED(status)
            assert os.WTERMSIG(status) == number
        assert (home / "got here").exists()
        assert (home / "drill.log").read_text().split()[:2] == [f"claim_commit:after:{word}", str(child)]

    def test_who_was_stopped_stands_still_until_the_drill_lets_it_go(self, home: Path) -> None:
        """A stopper lets go on whatever it asks to end; that must not end a freeze."""
        hold = home / f"drill.log{boundary.HOLD}"
        hold.touch()
        child = os.fork()
        if child == 0:
            boundary.install(Trap("claim_commit:after:STOP", str(home / "drill.log"), os.getpid()))
            boundary.reached(Boundary.CLAIM_COMMIT, AFTER)
            os._exit(0)
        for _ in range(3):
            assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
            os.kill(child, signal.SIGCONT)
        assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])

        hold.unlink()
        os.kill(child, signal.SIGCONT)

        assert os.waitpid(child, 0)[1] == 0

    def test_an_order_reaches_the_shim_and_never_the_job(self, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        (host.home / "drill").write_text("d1")
        self.order(monkeypatch, "exit_rename:before:STOP", "d1")
        assert boundary.arm(host.home)

        pin = host.start(["sh", "-c", "env; cat /proc/$PPID/environ"])
        log = host.home / "drill.log"
        wait_until(
            lambda: Path(f"/proc/{pin.shim.pid}/stat").read_text().split()[2] == "T", "the shim is stopped there"
        )
        os.kill(pin.shim.pid, signal.SIGCONT)
        host.await_end(pin)

        assert log.read_text().split()[:2] == ["exit_rename:before:STOP", str(pin.shim.pid)]
        assert "TENURE_ARM" not in host.out(pin)
        assert "TENURE_DRILL" not in host.out(pin)
