"""Whatever a job does to get away, a stop finds and ends it, or says that it is not proven and names it.

The right verdict is a function of what the host can do (printed); never is something that lives declared stopped.
"""

from __future__ import annotations

import pytest

from tests.process import arena
from tests.process.arena import NOBODY_UID, ROOT_UID, Facts, Room
from tests.support.processes import Reaper

KINDS = (
    "plain",
    "background",
    "setsid",
    "daemon",
    "daemon_env",
    "daemon_files",
    "daemon_env_files",
    "daemon_uid",
    "daemon_uid_env_files",
    "pid_namespace",
    "other_cgroup",
)
OTHER_USERS = {"daemon_uid", "daemon_uid_env_files"}
UNMARKED = {"daemon_env_files", "daemon_uid_env_files", "other_cgroup"}
ROOMS = [Room(uid, with_leaves) for uid in (ROOT_UID, NOBODY_UID) for with_leaves in (True, False)]
Told = dict[Room, dict[tuple[str, bool], Facts]]


CELLS = [
    (room, kind, shim_alive)
    for room in ROOMS
    for kind in KINDS
    for shim_alive in (True, False)
    if room.with_leaves or kind != "other_cgroup"
]


@pytest.fixture(scope="module")
def told() -> Told:
    """What was told of each room; all its cells are played at once, on the first question."""
    return {}


def escape(told: Told, reaper: Reaper, room: Room, kind: str, *, shim_alive: bool) -> Facts:
    arena.skip_unless_possible(room)
    if kind in OTHER_USERS and not arena.has_other_users():
        pytest.skip("needs root for a job to become another user")
    if room not in told:
        told[room] = {}  # also when it goes wrong: once is enough
        kinds = [each for each in KINDS if (room, each, True) in CELLS]
        kinds = [each for each in kinds if each not in OTHER_USERS or arena.has_other_users()]
        lines = arena.play(reaper, room, "scenes.escapes", *kinds)
        told[room] = {(line["kind"], line["shim_alive"]): line for line in lines}
    if (kind, shim_alive) not in told[room]:
        pytest.fail("the scene broke off before; see the first failure of this room")
    return told[room][kind, shim_alive]


def expected(room: Room, kind: str, *, shim_alive: bool) -> str | None:
    """The proof that a stop must end with; None: it must name the process."""
    is_out_of_reach = kind in OTHER_USERS and room.uid != ROOT_UID
    in_leaf = room.with_leaves and kind != "other_cgroup"
    if shim_alive:
        return None if is_out_of_reach and not in_leaf else "S1"
    if in_leaf:
        return "S2"
    return None if is_out_of_reach or kind in UNMARKED else "S5"


@pytest.mark.req("R11", "R12", "X03")
@pytest.mark.parametrize(
    ("room", "kind", "shim_alive"),
    CELLS,
    ids=[f"{kind}-{'alive' if alive else 'killed'}-{room}".replace(" ", "_") for room, kind, alive in CELLS],
)
def test_found_and_ended_or_unproven_and_named(
    told: Told, reaper: Reaper, room: Room, kind: str, shim_alive: bool
) -> None:
    facts = escape(told, reaper, room, kind, shim_alive=shim_alive)

    proof = expected(room, kind, shim_alive=shim_alive)
    assert facts["proof"] == proof, facts
    assert facts["alive"] is (proof is None), facts
    if proof is None:
        assert facts["listed"], facts
        assert facts["after"] is not None, "once somebody has ended it, the stop is proven"


@pytest.mark.parametrize("room", [Room(ROOT_UID, False), Room(NOBODY_UID, False)], ids=str)
def test_what_another_daemon_was_asked_to_do_is_no_part_of_the_job(reaper: Reaper, room: Room) -> None:
    """As by `at`, `docker` or `systemd-run`: it is no descendant, and no stop claims to reach it. Stated in the docs."""
    for facts in arena.play(reaper, room, "scenes.escapes", "by_another"):
        assert facts["proof"] == ("S1" if facts["shim_alive"] else "S5")
        assert facts["alive"]


@pytest.mark.req("R12")
@pytest.mark.parametrize(
    ("removed", "kind", "reported"),
    [
        ("pid_1", "daemon_env_files", None),
        ("reapers", "daemon_env_files", None),
        ("environment", "daemon_files", ["orphan"]),
        ("tree_lock", "daemon_env", ["orphan"]),
    ],
)
def test_without_one_of_its_sources_the_scan_overlooks_an_escapee(
    reaper: Reaper, removed: str, kind: str, reported: list[str] | None
) -> None:
    """The control: each source is what finds some escapee. Without its mark it is not ended; without the complete rule it is
    not even seen, and the stop is declared proven while it lives.
    """
    whole, lacking = arena.play(reaper, Room(ROOT_UID, False), "odd_scenes.without_source", removed, kind)

    assert whole["seen"], "control of the control"
    assert lacking["alive"]
    assert lacking["proof"] == (None if reported else "S5")
    assert list(lacking["suspects"].values()) == ([reported] if reported else [])
