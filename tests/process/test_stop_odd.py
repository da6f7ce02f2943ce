"""Stops of what does not behave: bombs, stopped shims, zombies, processes stuck in the kernel, hidden ones, reused numbers."""

from __future__ import annotations

import ast
import os

import pytest

from tests.process import arena
from tests.process.arena import CODE, NOBODY_UID, ROOT_UID, Facts, Room
from tests.support.processes import Reaper


def played(reaper: Reaper, room: Room, scene: str, *arguments: str) -> list[Facts]:
    lines = arena.play(reaper, room, f"odd_scenes.{scene}", *arguments)
    skipped = next((line["skipped"] for line in lines if "skipped" in line), None)
    if skipped is not None:
        pytest.skip(skipped)
    return lines


@pytest.mark.req("R12")
@pytest.mark.parametrize("shim", ["alive", "killed"])
@pytest.mark.parametrize(("kind", "lanes"), [("roll", "1"), ("roll", "4"), ("burst", "2")])
@pytest.mark.parametrize("with_leaves", [True, False], ids=["cgroup", "no_cgroup"])
def test_a_fork_bomb_is_ended(reaper: Reaper, with_leaves: bool, kind: str, lanes: str, shim: str) -> None:
    """As an ordinary user, so that the limit that keeps it small holds."""
    (facts,) = played(reaper, Room(NOBODY_UID, with_leaves), "bomb", kind, lanes, shim)

    assert facts["proof"] == ("S1" if shim == "alive" else "S2" if with_leaves else "S5"), facts
    assert facts["left"] == []


@pytest.mark.req("R12")
def test_a_zombie_is_dead(reaper: Reaper) -> None:
    """Case C040: nothing is asked or killed, and nothing of a grace longer than the scene may last is waited for, where only
    the number is left.
    """
    (facts,) = played(reaper, Room(ROOT_UID, False), "zombie_child")

    assert facts["is_there"], "control: by its number it looks alive"
    assert (facts["proof"], facts["terms"], facts["kills"]) == ("S5", 0, 0)


@pytest.mark.req("R12")
def test_a_zombie_leader_with_a_living_thread_is_alive(reaper: Reaper) -> None:
    (facts,) = played(reaper, Room(ROOT_UID, False), "zombie_leader")

    assert facts["alive_before"]
    assert (facts["proof"], facts["alive_after"]) == ("S5", False)
    assert facts["terms"] >= 1


@pytest.mark.req("R12", "X03")
@pytest.mark.parametrize("with_leaves", [True, False], ids=["cgroup", "no_cgroup"])
def test_what_is_stuck_in_the_kernel_is_unproven_until_it_ends(reaper: Reaper, with_leaves: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to freeze a file system")
    during, after = played(reaper, Room(ROOT_UID, with_leaves), "stuck")

    assert during["proof"] is None
    assert str(during["child"]) in during["suspects"]
    assert during["state"] == "D"
    assert during["in"], "where it waits is named"
    assert after["proof"] == "S1"


@pytest.mark.req("R12")
@pytest.mark.parametrize("room", [Room(NOBODY_UID, False), Room(NOBODY_UID, True)], ids=str)
def test_where_processes_are_hidden_nothing_is_proven_by_looking(
    reaper: Reaper, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown,) = played(reaper, room, "hidden")
    assert shown["proof"] in {"S2", "S5"}, "control: the same with everything shown"

    monkeypatch.setattr(arena, "BEFORE", "mount -o remount,hidepid=2 /proc")
    (facts,) = played(reaper, room, "hidden")

    assert facts["proof"] is None
    assert "S5: /proc is mounted with hidepid" in facts["tried"]


@pytest.mark.req("R12")
def test_a_number_that_another_process_has_now_is_left_alone(reaper: Reaper) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to choose the next pid")
    (facts,) = played(reaper, Room(ROOT_UID, False), "reused")

    assert facts["numbers"], "control: they did get the numbers"
    assert facts["living"] == [True, True]
    assert facts["proof"] == "S5"


@pytest.mark.req("R12")
@pytest.mark.parametrize("seconds", ["10800", "-86400"])
def test_a_clock_that_steps_changes_no_verdict(reaper: Reaper, seconds: str) -> None:
    (facts,) = played(reaper, Room(ROOT_UID, False), "moved_clock", seconds)

    assert facts["same"]
    assert (facts["proof"], facts["alive"]) == ("S5", False)


@pytest.mark.req("R12")
def test_nothing_of_ours_reads_a_start_time_that_moves_with_the_clock() -> None:
    readers = [
        f"{path.relative_to(CODE)}:{node.lineno}"
        for room in ("shared", "coordinator", "worker", "chaos")
        for path in sorted((CODE / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr == "create_time")
        or (isinstance(node, ast.Constant) and node.value == "create_time")
    ]

    assert readers == []
