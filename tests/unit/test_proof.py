"""Which evidence proves a stop, in every combination of facts. Rule: requirement R11; design §7 (S1 to S5)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from shared.model.evidence import Evidence, Leaf, LockState
from shared.model.stop import Search
from shared.policy import proof
from shared.policy.proof import S0, S1, S1B, S2, S3, S5, proof_of
from tests.support.evidence import CHILD, KILLED, NOT_RAN, NOTHING_LEFT, RAN, RAN_TREE_UNKNOWN

EVERY = [
    replace(NOTHING_LEFT, same_boot=boot, lock=lock, exit=exit_record, child=child, child_alive=alive, child_status=status)
    for boot, lock, exit_record, child, alive, status in product(
        (True, False), LockState, (None, RAN, RAN_TREE_UNKNOWN, KILLED, NOT_RAN), (None, CHILD), (None, True, False), (None, 0)
    )
]  # fmt: skip
LEAF = Leaf("/sys/fs/cgroup/tenure/w1.1.1", 7)
GONE = replace(NOTHING_LEFT, child=CHILD, child_alive=False, leaf=LEAF, reapers=())
"""The shim was killed, and its child has ended."""
EMPTY = Search(
    blind=None, matched=0, orphans=0, exact=True, leaf_empty=True, tree_lock=LockState.FREE, shim_alive=False
)
SEARCHES = [
    replace(EMPTY, blind=blind, matched=matched, orphans=orphans, exact=exact, leaf_empty=leaf, tree_lock=lock, shim_alive=shim)
    for blind, matched, orphans, exact, leaf, lock, shim in product(
        (None, "hidden"), (0, 1), (0, 1), (True, False), (True, False, None), LockState, (True, False, None)
    )
]  # fmt: skip


@pytest.mark.req("R11")
@pytest.mark.parametrize("evidence", EVERY, ids=[str(number) for number in range(len(EVERY))])
def test_only_another_boot_or_an_empty_tree_under_a_free_lock_proves_a_stop(evidence: Evidence) -> None:
    tree_empty = evidence.exit is not None and evidence.exit.tree_empty
    expected = "S3" if not evidence.same_boot else "S1" if tree_empty and evidence.lock is LockState.FREE else None

    assert proof_of(evidence) == expected


@pytest.mark.req("R11")
def test_an_exit_status_alone_proves_nothing() -> None:
    ended = replace(NOTHING_LEFT, exit=RAN, child=CHILD, child_alive=False)
    assert proof_of(ended) == S1, "control: the record says that the tree is empty"

    assert proof_of(replace(ended, exit=RAN_TREE_UNKNOWN)) is None
    assert proof_of(replace(ended, exit=None, child_status=7)) is None


@pytest.mark.parametrize("lock", [LockState.HELD, LockState.UNPROVEN])
def test_an_empty_tree_under_a_lock_that_is_not_free_proves_nothing(lock: LockState) -> None:
    assert proof_of(replace(NOTHING_LEFT, exit=RAN)) == S1, "control: free"

    assert proof_of(replace(NOTHING_LEFT, exit=RAN, lock=lock)) is None


@pytest.mark.req("R11", "R12")
def test_a_search_proves_a_stop_only_when_nothing_at_all_was_left() -> None:
    """S2 needs its cgroup empty, S5 two exact snapshots; both, that nothing is hidden, alive, marked or unaccounted for."""
    for search in SEARCHES:
        is_clean = (search.blind, search.matched, search.orphans, search.tree_lock, search.shim_alive) == (
            None,
            0,
            0,
            LockState.FREE,
            False,
        )
        assert (proof.why_not_s2(GONE, search) is None) == (is_clean and search.leaf_empty is True), search
        assert (proof.why_not_s5(GONE, search) is None) == (
            is_clean and search.exact and search.leaf_empty is not False
        ), search


@pytest.mark.req("R11")
@pytest.mark.parametrize("alive", [True, None])
def test_a_child_that_lives_or_cannot_be_seen_is_never_searched_away(alive: bool | None) -> None:
    evidence = replace(GONE, child_alive=alive)

    assert proof.why_not_s2(evidence, EMPTY) is not None
    assert proof.why_not_s5(evidence, EMPTY) is not None
    assert proof.why_not_s5(GONE, EMPTY) is None, "control"


@pytest.mark.req("R11")
def test_without_knowing_who_inherited_orphans_nothing_is_searched_away() -> None:
    assert proof.why_not_s5(replace(GONE, reapers=None), EMPTY) == "it is not known who inherited what its shim left"
    assert proof.why_not_s2(replace(GONE, reapers=None), EMPTY) == "it is not known who inherited what its shim left"


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (GONE, None),
        (replace(GONE, directory_proven=False), "the pinned directory is missing or is another one"),
        (replace(GONE, same_pid_ns=False), "its processes are of another pid namespace"),
        (replace(GONE, child=None), "no child registered"),
        (replace(GONE, child=None, unreadable=("child.json",)), "the record of its child cannot be read"),
        (replace(GONE, lock=LockState.HELD), "its lock is held"),
        (replace(GONE, lock=LockState.UNPROVEN), "its lock could not be probed"),
    ],
)
def test_what_is_not_worth_a_search(evidence: Evidence, why: str | None) -> None:
    assert proof.why_not_searched(evidence) == why


@pytest.mark.req("R11")
@pytest.mark.parametrize(
    ("evidence", "ordered", "why"),
    [
        (NOTHING_LEFT, True, None),
        (NOTHING_LEFT, False, "no stop order"),
        (replace(NOTHING_LEFT, directory_proven=False), True, "the pinned directory is missing or is another one"),
        (replace(NOTHING_LEFT, child=CHILD), True, "a child registered itself"),
        (replace(NOTHING_LEFT, unreadable=("child.json",)), True, "a child registered itself"),
        (replace(NOTHING_LEFT, lock=LockState.HELD), True, "its lock is held"),
    ],
)
def test_a_held_shim_is_proven_stopped_only_under_an_order(evidence: Evidence, ordered: bool, why: str | None) -> None:
    assert proof.why_not_s1b(evidence, ordered=ordered) == why


def test_the_names_of_the_proofs_are_those_of_the_design() -> None:
    assert (S0, S1, S1B, S2, S3, S5) == ("S0", "S1", "S1b", "S2", "S3", "S5")
