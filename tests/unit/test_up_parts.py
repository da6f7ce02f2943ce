"""The parts of `tenure up` that need no process: its command line, its backoff, the wish to stop, who is there."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from shared import presence
from shared.child import ChildOptions, ParentWatch, Stop
from shared.clock import SystemClock, VirtualClock
from shared.errors import StoreBusyError, UsageError
from shared.store.contract import IdleState, ReadTx, Store
from shared.supervise import Backoff
from shared.up import IdleWatch, Options, parse
from worker.bootstrap import command as run_worker

S = 1_000_000
NOBODY = 2**22 + 1  # above the kernel's largest pid


def test_the_command_line_has_defaults() -> None:
    assert parse([]) == Options(workers=2, until_idle=False, drain_s=10.0, log_json=False, verbose=False)


def test_the_command_line_is_read() -> None:
    given = parse(["--workers", "3", "--until-idle", "--drain", "500ms", "--log-json", "--verbose"])

    assert given == Options(workers=3, until_idle=True, drain_s=0.5, log_json=True, verbose=True)


@pytest.mark.parametrize(
    "argv",
    [
        ["--workers", "-1"],
        ["--workers", "65"],
        ["--workers", "two"],
        ["--workers"],
        ["--workers", "08"],
        ["--drain", "-1"],
        ["--drain", "nan"],
        ["--drain", "inf"],
        ["--drain", "10"],
        ["--drain", "0"],
        ["--drain", "0.5s"],
        ["--drain", "25h"],
        ["--unknown"],
        ["--work", "3"],
        ["extra"],
    ],
)
def test_a_wrong_command_line_is_refused(argv: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse(argv)

    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_backoff_doubles_up_to_five_seconds() -> None:
    backoff = Backoff()

    delays = [backoff.delay_us(0) for _ in range(9)]

    assert [delay / S for delay in delays] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5]


def test_backoff_begins_anew_after_thirty_seconds_of_life() -> None:
    backoff = Backoff(deaths=6)

    assert backoff.delay_us(30 * S - 1) == 5 * S
    assert backoff.delay_us(30 * S) == S // 10
    assert backoff.delay_us(0) == S // 5


def test_backoff_stays_at_its_longest_for_ever() -> None:
    assert Backoff(deaths=1_000_000).delay_us(0) == 5 * S


def test_a_stop_is_not_asked_at_first() -> None:
    stop = Stop()

    assert (stop.asked, stop.drain_s, stop.why) == (False, None, "")


def test_a_stop_only_gets_shorter_and_keeps_its_first_reason() -> None:
    stop = Stop()

    stop.ask(10.0, "SIGTERM")
    stop.ask(20.0, "SIGHUP")
    assert (stop.asked, stop.drain_s) == (True, 10.0)
    stop.ask(0.0, "parent gone")

    assert (stop.drain_s, stop.why) == (0.0, "SIGTERM")


def test_a_stop_wakes_at_each_ask_and_at_once_when_it_came_first() -> None:
    stop = Stop()
    early: list[float | None] = []
    late: list[float | None] = []

    stop.on_ask(lambda: early.append(stop.drain_s))
    stop.ask(10.0, "SIGTERM")
    stop.on_ask(lambda: late.append(stop.drain_s))
    stop.ask(0.0, "SIGTERM")

    assert early == [10.0, 0.0]
    assert late == [10.0, 0.0]


def test_options_cross_into_a_child_with_a_stop_nobody_asked() -> None:
    options = ChildOptions(home="/home", name="worker-1", drain_s=3.0, parent_pid=7)
    options.stop.ask(0.0, "SIGTERM")

    crossed = pickle.loads(pickle.dumps(options))

    assert (crossed.home, crossed.name, crossed.drain_s, crossed.parent_pid) == ("/home", "worker-1", 3.0, 7)
    assert not crossed.stop.asked


def test_only_a_child_can_watch_its_parent() -> None:
    with pytest.raises(RuntimeError):
        ParentWatch(lambda: None)


class BusyStore:
    """Changes once; its first read finds it busy."""

    def __init__(self, state: IdleState) -> None:
        self._answers: list[Exception | IdleState] = [StoreBusyError("busy"), state]
        self._changes = [True]

    def changed(self) -> bool:
        return self._changes.pop() if self._changes else False

    def read(self, fn: Callable[[ReadTx], IdleState]) -> IdleState:
        return fn(cast(ReadTx, self))

    def idle_state(self) -> IdleState:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        (IdleState(0, 0, ()), 0),
        (IdleState(0, 0, ("w1.1",)), 1),
        (IdleState(1, 0, ("w1.1",)), None),
        (IdleState(0, 1, ()), None),
    ],
)
def test_a_busy_store_is_asked_again_though_it_changed_only_once(state: IdleState, verdict: int | None) -> None:
    said: list[str] = []

    def report(_event: str, line: str, /, **_facts: object) -> None:
        said.append(line)

    watch = IdleWatch(cast(Store, BusyStore(state)), report)

    assert watch.verdict() is None
    assert watch.verdict() == verdict
    assert watch.verdict() is None
    assert len(said) == (verdict is not None)


def test_one_up_holds_a_home_until_it_lets_go(tmp_path: Path) -> None:
    held = presence.hold_up(tmp_path, SystemClock())
    assert held is not None

    assert presence.hold_up(tmp_path, VirtualClock()) is None
    assert presence.up_pid(tmp_path) == os.getpid()

    os.close(held)
    again = presence.hold_up(tmp_path, VirtualClock())
    assert again is not None
    os.close(again)


def test_a_probe_does_not_keep_an_up_away(tmp_path: Path) -> None:
    probe = os.open(tmp_path / "up.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(probe, fcntl.LOCK_SH)
    clock = VirtualClock()
    wait = clock.wait

    def let_go(*given: object) -> object:
        os.close(probe)
        clock.wait = wait  # type: ignore[method-assign]
        return wait(*given)  # type: ignore[arg-type]

    clock.wait = let_go  # type: ignore[method-assign,assignment]

    held = presence.hold_up(tmp_path, clock)

    assert held is not None
    os.close(held)


def test_a_child_is_seen_by_its_lock_not_by_its_pid(tmp_path: Path) -> None:
    held = presence.hold_child(tmp_path, "worker-1", SystemClock())
    (tmp_path / "up" / f"worker-2.{os.getpid()}").touch()  # a living pid without a lock
    assert presence.children(tmp_path) == [presence.Presence("worker-1", os.getpid())]

    os.close(held)

    assert presence.children(tmp_path) == []
    assert list((tmp_path / "up").iterdir()) == []


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "README").touch()

    assert presence.children(tmp_path) == []
    assert (tmp_path / "up" / "README").exists()


def test_a_child_whose_file_was_just_removed_makes_another(tmp_path: Path) -> None:
    path = tmp_path / "up" / f"worker-1.{os.getpid()}"
    path.parent.mkdir()
    path.touch()
    probe = os.open(path, os.O_RDONLY)
    fcntl.flock(probe, fcntl.LOCK_SH)
    clock = VirtualClock()
    wait = clock.wait

    def remove(*given: object) -> object:
        path.unlink()
        os.close(probe)
        clock.wait = wait  # type: ignore[method-assign]
        return wait(*given)  # type: ignore[arg-type]

    clock.wait = remove  # type: ignore[method-assign,assignment]

    held = presence.hold_child(tmp_path, "worker-1", clock)

    assert presence.children(tmp_path) == [presence.Presence("worker-1", os.getpid())]
    os.close(held)


def test_a_reaped_child_leaves_no_file(tmp_path: Path) -> None:
    os.close(presence.hold_child(tmp_path, "worker-1", SystemClock()))

    presence.forget_child(tmp_path, "worker-1", os.getpid())
    presence.forget_child(tmp_path, "worker-1", NOBODY)

    assert list((tmp_path / "up").iterdir()) == []


@pytest.mark.parametrize("command", [parse, partial(run_worker, home=None)], ids=["up", "worker"])
def test_a_time_without_a_unit_is_refused_as_everywhere(command: Callable[[list[str]], object]) -> None:
    with pytest.raises(UsageError) as caught:
        command(["--drain", "10"])

    assert str(caught.value) == '--drain: "10" needs a unit, e.g. "10s"'
