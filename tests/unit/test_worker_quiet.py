"""Launches and orphan scans keep out of each other's way, and neither waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.support.waiting import wait_until
from worker import quiet as module
from worker.quiet import Quiet

BOUND_S = 30


class Actor:
    """A thread that asks to enter, stays inside until it is told to leave, and leaves."""

    def __init__(self, enter: Callable[[], AbstractContextManager[None]]) -> None:
        self.inside = threading.Event()
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._act, args=(enter,))
        self._thread.start()

    def _act(self, enter: Callable[[], AbstractContextManager[None]]) -> None:
        with enter():
            self.inside.set()
            self._leave.wait(BOUND_S)

    def leave(self) -> None:
        """Returns once it is out."""
        self._leave.set()
        self._thread.join(BOUND_S)
        assert not self._thread.is_alive()


class Stage:
    """Actors around one `Quiet`."""

    def __init__(self) -> None:
        self.quiet = Quiet()
        self.actors: list[Actor] = []

    def launch(self) -> Actor:
        return self._start(self.quiet.launching)

    def scan(self) -> Actor:
        return self._start(self.quiet.scanning)

    def waiting_scan(self) -> Actor:
        """A scan that has said that it waits; it is not inside."""
        before = self.quiet._scans
        actor = self.scan()
        wait_until(lambda: self.quiet._scans > before, "the scan waits")
        assert not actor.inside.is_set()
        return actor

    def wait_for_waiters(self, count: int) -> None:
        """Return once that many have looked and found no way in. A change takes all of them out until they looked again."""

        def wait() -> bool:
            with self.quiet._changed:
                return len(self.quiet._changed._waiters) == count  # type: ignore[attr-defined]

        wait_until(wait, f"{count} wait")

    def _start(self, enter: Callable[[], AbstractContextManager[None]]) -> Actor:
        self.actors.append(Actor(enter))
        return self.actors[-1]


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    for actor in stage.actors:
        actor.leave()


def test_launches_share(stage: Stage) -> None:
    first, second = stage.launch(), stage.launch()

    assert first.inside.wait(BOUND_S)
    assert second.inside.wait(BOUND_S)


@pytest.mark.req("R12")
def test_a_scan_waits_for_the_launches_that_run_and_begins_when_the_last_is_over(stage: Stage) -> None:
    first, second = stage.launch(), stage.launch()
    assert first.inside.wait(BOUND_S)
    assert second.inside.wait(BOUND_S)
    scan = stage.waiting_scan()

    first.leave()
    stage.wait_for_waiters(1)
    assert not scan.inside.is_set()
    second.leave()

    assert scan.inside.wait(BOUND_S)


@pytest.mark.req("R12")
def test_a_waiting_scan_lets_no_new_launch_begin_so_that_it_is_not_put_off_for_ever(stage: Stage) -> None:
    running = stage.launch()
    assert running.inside.wait(BOUND_S)
    scan = stage.waiting_scan()
    late = stage.launch()
    stage.wait_for_waiters(2)
    assert not late.inside.is_set()

    running.leave()

    assert scan.inside.wait(BOUND_S), "the scan is first"
    stage.wait_for_waiters(1)
    assert not late.inside.is_set()
    scan.leave()
    assert late.inside.wait(BOUND_S), "control: then the launch follows"


@pytest.mark.req("R12")
def test_several_scans_share_and_launches_wait_for_the_last(stage: Stage) -> None:
    first, second = stage.scan(), stage.scan()
    assert first.inside.wait(BOUND_S)
    assert second.inside.wait(BOUND_S)
    launch = stage.launch()
    stage.wait_for_waiters(1)

    first.leave()
    stage.wait_for_waiters(1)
    assert not launch.inside.is_set()
    second.leave()

    assert launch.inside.wait(BOUND_S)


def test_a_scan_does_not_wait_longer_than_its_bound(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT_S", 0.0)
    stuck = stage.launch()
    assert stuck.inside.wait(BOUND_S)

    scan = stage.scan()

    assert scan.inside.wait(BOUND_S), "less exact, and not never"
    assert not stuck._leave.is_set()


@pytest.mark.parametrize("kind", ["launching", "scanning"])
def test_one_that_fails_leaves_the_way_free(kind: str) -> None:
    quiet = Quiet()

    with pytest.raises(OSError, match="no"), getattr(quiet, kind)():
        raise OSError("no")

    assert (quiet._launching, quiet._scans) == (0, 0)
