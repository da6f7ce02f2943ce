"""Which evidence proves a stop by observation alone: every combination. Rule: requirement R11; design §7 (S1, S3)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from shared.model.evidence import Evidence, LockState
from shared.policy.proof import S0, S1, S1B, S3, proof_of
from tests.support.evidence import CHILD, KILLED, NOT_RAN, NOTHING_LEFT, RAN, RAN_TREE_UNKNOWN

EVERY = [
    replace(NOTHING_LEFT, same_boot=boot, lock=lock, exit=exit_record, child=child, child_alive=alive, child_status=status)
    for boot, lock, exit_record, child, alive, status in product(
        (True, False), LockState, (None, RAN, RAN_TREE_UNKNOWN, KILLED, NOT_RAN), (None, CHILD), (None, True, False), (None, 0)
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


def test_the_names_of_the_proofs_are_those_of_the_design() -> None:
    assert (S0, S1, S1B, S3) == ("S0", "S1", "S1b", "S3")
