"""A standby is told of the leader's death by its process; the poll behind that is taken away here, so that nothing else can tell it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.harness import COORDINATOR, Harness, Running
from coordinator import bootstrap
from coordinator.leadership import Leadership
from shared.child import ChildOptions
from shared.clock import SystemClock, WaitEnd, Wake
from shared.ids import Incarnation
from shared.model.host import Leader
from shared.model.instant import US_PER_S
from shared.model.settings import Settings
from shared.process.identity import identify, is_stopped
from shared.process.watcher import Watcher
from shared.wake import Ringer
from tests.support.waiting import wait_until

SETTINGS = Settings(lease_us=600 * US_PER_S)
FOREVER_US = 3_600 * US_PER_S


class PatientClock(SystemClock):
    """Whoever can be woken is not woken by time."""

    def wait(self, until_mono_us: int, wake: Wake | None) -> WaitEnd:
        """See `Clock.wait`."""
        return super().wait(until_mono_us if wake is None else self.now().mono_us + FOREVER_US, wake)


class Standby:
    """A coordinator on a thread of this process.

    Attributes:
        looks: How often it looked whether it may lead.
    """

    def __init__(self, home: Path) -> None:
        self.looks = 0
        self._options = ChildOptions(str(home), COORDINATOR, drain_s=0.0)
        self._thread = threading.Thread(target=bootstrap.main, args=(self._options,))

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = Leadership.seek

        def seek(leadership: Leadership) -> bool:
            took = real(leadership)
            self.looks += 1
            return took

        monkeypatch.setattr(Leadership, "seek", seek)
        monkeypatch.setattr(bootstrap, "host_clock", lambda _home: PatientClock())
        self._thread.start()
        wait_until(lambda: self.looks, "it looked whether it may lead")

    def end(self) -> None:
        self._options.stop.ask(0.0, "tested")
        wait_until(lambda: not self._thread.is_alive(), "it has left")


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with Harness(tmp_path / "drill", SETTINGS) as harness:
        yield harness


@pytest.fixture
def leading(harness: Harness) -> Running:
    """A process that leads."""
    running = harness.start(COORDINATOR)
    harness.wait(lambda: leader(harness) is not None, "it leads")
    return running


@pytest.fixture
def standby(harness: Harness, leading: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standby]:
    """It stands by, and sleeps until something wakes it."""
    standby = Standby(harness.home.path)
    standby.start(monkeypatch)
    yield standby
    standby.end()


def leader(harness: Harness) -> Leader | None:
    return harness.read(lambda tx: tx.leader())


def leads(harness: Harness) -> tuple[int, int]:
    """Pid and generation of who leads."""
    row = leader(harness)
    assert row is not None
    return row.pid, row.generation


@pytest.mark.req("L01", "R15")
def test_the_death_of_a_leader_wakes_who_stands_by(harness: Harness, leading: Running, standby: Standby) -> None:
    assert leads(harness) == (leading.pid, 1)
    row = leader(harness)
    assert row is not None
    assert row.process == identify(leading.pid), "by more than its pid, which another process may get"

    harness.kill(leading)

    harness.wait(lambda: leads(harness) == (os.getpid(), 2), "who stood by leads")


@pytest.mark.req("L01", "L02")
def test_a_leader_that_is_frozen_is_not_taken_over_while_its_lease_lasts(
    harness: Harness, leading: Running, standby: Standby
) -> None:
    process = identify(leading.pid)
    os.kill(leading.pid, signal.SIGSTOP)
    wait_until(lambda: is_stopped(process), "it is frozen")
    row = leader(harness)
    assert row is not None
    ring = Ringer(harness.home.run)
    before = standby.looks

    for look in range(1, 4):
        ring([standby_name(harness, row.owner)])
        wait_until(lambda look=look: standby.looks >= before + look, "it looked again")  # type: ignore[misc]

    assert leads(harness) == (leading.pid, 1)
    ring.close()
    harness.kill(leading)
    harness.wait(lambda: leads(harness) == (os.getpid(), 2), "the control: once it is dead, it is taken over")


@pytest.mark.req("L01")
def test_who_cannot_be_watched_is_taken_over_by_looking(
    harness: Harness, leading: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the watch: without it, nothing but a look finds out."""
    monkeypatch.setattr(Watcher, "watch", lambda _self, _key, _identity: False)
    standby = Standby(harness.home.path)
    standby.start(monkeypatch)
    name = standby_name(harness, Incarnation(f"{COORDINATOR}.1"))

    harness.kill(leading)
    assert (leads(harness), standby.looks) == ((leading.pid, 1), 1), "nobody has told it"

    ring = Ringer(harness.home.run)
    ring([name])
    harness.wait(lambda: leads(harness) == (os.getpid(), 2), "it looked, and leads")
    ring.close()
    standby.end()


def standby_name(harness: Harness, leading: str) -> str:
    """The incarnation that stands by."""
    [name] = [path.stem for path in harness.home.run.glob(f"{COORDINATOR}.*.lock") if path.stem != leading]
    return name
