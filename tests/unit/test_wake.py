"""Doorbells: a ring wakes, many rings wake once, a lost ring harms nobody."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shared.wake import COORDINATOR, Bell, Ringer


@pytest.fixture
def owned() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def bell(tmp_path: Path, owned: ExitStack) -> Callable[[str], Bell]:
    def make(name: str) -> Bell:
        made = Bell(tmp_path, name)
        owned.callback(made.close)
        return made

    return make


@pytest.fixture
def ring(tmp_path: Path, owned: ExitStack) -> Ringer:
    made = Ringer(tmp_path)
    owned.callback(made.close)
    return made


def is_rung(bell: Bell) -> bool:
    return bool(select.select([bell], [], [], 0)[0])


@pytest.mark.req("K03")
def test_a_ring_reaches_the_bell_of_that_name_and_no_other(bell: Callable[[str], Bell], ring: Ringer) -> None:
    mine, other = bell("worker-1.1"), bell("worker-2.1")
    assert not is_rung(mine)

    ring(["worker-1.1"])

    assert (is_rung(mine), is_rung(other), ring.lost) == (True, False, 0)


def test_draining_forgets_every_ring_so_far(bell: Callable[[str], Bell], ring: Ringer) -> None:
    mine = bell("worker-1.1")
    ring(["worker-1.1"] * 5)
    mine.ring()

    mine.drain()

    assert not is_rung(mine)
    ring(["worker-1.1"])
    assert is_rung(mine), "control: it still listens"


def test_draining_a_bell_that_nobody_rang_returns_at_once(bell: Callable[[str], Bell]) -> None:
    bell("worker-1.1").drain()


@pytest.mark.req("K03")
def test_a_ring_that_reaches_nobody_is_counted_and_harms_nobody(bell: Callable[[str], Bell], ring: Ringer) -> None:
    mine = bell("worker-1.1")

    ring(["worker-9.9", "worker-1.1"])

    assert ring.lost == 1
    assert is_rung(mine)


def test_rings_beyond_what_a_socket_holds_never_block(bell: Callable[[str], Bell], ring: Ringer) -> None:
    mine = bell("worker-1.1")

    for _ in range(5_000):
        ring(["worker-1.1"])
        mine.ring()

    assert ring.lost > 0
    assert is_rung(mine)
    mine.drain()
    assert not is_rung(mine)


def test_a_bell_may_be_rung_from_any_thread(bell: Callable[[str], Bell]) -> None:
    mine = bell("worker-1.1")
    threads = [threading.Thread(target=mine.ring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert is_rung(mine)


@pytest.mark.req("K03", "L01")
def test_the_leader_answers_to_the_coordinator_s_name_and_the_next_one_takes_it_over(
    bell: Callable[[str], Bell], ring: Ringer
) -> None:
    first, second = bell("coordinator.1"), bell("coordinator.2")
    ring([COORDINATOR])
    assert ring.lost == 1, "control: nobody leads"

    first.also_as(COORDINATOR)
    ring([COORDINATOR])
    assert (is_rung(first), is_rung(second)) == (True, False)
    first.drain()

    second.also_as(COORDINATOR)
    ring([COORDINATOR])
    assert (is_rung(first), is_rung(second)) == (False, True)


def test_a_ring_for_a_leader_that_left_is_lost(tmp_path: Path, ring: Ringer) -> None:
    leader = Bell(tmp_path, "coordinator.1")
    leader.also_as(COORDINATOR)

    leader.close()

    ring([COORDINATOR])
    assert ring.lost == 1


def test_a_bell_takes_the_place_of_one_whose_process_died(
    tmp_path: Path, bell: Callable[[str], Bell], ring: Ringer
) -> None:
    dead = Bell(tmp_path, "worker-1.1")  # as after a kill: the file stays

    mine = bell("worker-1.1")
    ring(["worker-1.1"])
    assert is_rung(mine)

    dead.close()  # late, it must not remove the file of the new one
    mine.drain()
    ring(["worker-1.1"])
    assert (is_rung(mine), ring.lost) == (True, 0)


def test_closing_removes_the_file(tmp_path: Path) -> None:
    Bell(tmp_path, "worker-1.1").close()

    assert list(tmp_path.iterdir()) == []


def test_ringing_a_closed_bell_is_harmless(tmp_path: Path) -> None:
    gone = Bell(tmp_path, "worker-1.1")
    gone.close()

    gone.ring()


def test_a_home_may_be_as_deep_as_it_likes(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    mine, ring = Bell(deep, "worker-1.1"), Ringer(deep)
    try:
        mine.also_as(COORDINATOR)
        ring([COORDINATOR])
        assert (is_rung(mine), ring.lost) == (True, 0)
    finally:
        ring.close()
        mine.close()


def test_bells_and_ringers_give_every_descriptor_back(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")

    for _ in range(3):
        mine, ring = Bell(tmp_path, "worker-1.1"), Ringer(tmp_path)
        ring(["worker-1.1"])
        ring.close()
        mine.close()

    assert len(os.listdir("/proc/self/fd")) == len(before)
