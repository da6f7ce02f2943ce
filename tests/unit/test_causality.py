"""How deep a chain of causes is, and where it stops. Rule: O06, O07."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.model.attempt import Snapshot
from shared.model.causality import DEPTH_MAX, ROOT, TooDeep
from shared.model.outcome import Outcome, OutcomeKind
from shared.policy.causality import asks_to_continue, depth_of_segment, derive

PINNED = Snapshot(
    1, "digest", "", "jobs", "shell", True, ("true",), (), "/", 9, 9, (), "never", (1,), continues=True, depth_max=3
)
HANDOFF = Outcome(OutcomeKind.HANDOFF)


def test_a_segment_is_as_deep_as_the_deepest_of_what_set_it_off() -> None:
    assert depth_of_segment([]) == ROOT
    assert depth_of_segment([0, 0]) == ROOT
    assert depth_of_segment([0, 4, 2]) == 4
    assert depth_of_segment([1], woken_by=3) == 3
    assert depth_of_segment([5], woken_by=0) == 5, "a root wakes what its inputs had set off deep in a chain"


@pytest.mark.req("O06", "O07")
def test_what_is_derived_is_one_link_deeper_up_to_the_limit() -> None:
    assert [derive(depth, PINNED) for depth in range(5)] == [1, 2, 3, TooDeep(4, 3), TooDeep(5, 3)]
    assert derive(0, replace(PINNED, depth_max=1)) == 1
    assert Snapshot.from_json(replace(PINNED, depth_max=DEPTH_MAX).to_json()).depth_max == DEPTH_MAX


@pytest.mark.req("O07")
@pytest.mark.parametrize("kind", [None, *OutcomeKind])
def test_only_a_handoff_that_its_binding_lets_go_on_goes_on(kind: OutcomeKind | None) -> None:
    is_handoff = kind is OutcomeKind.HANDOFF

    assert asks_to_continue(Outcome(kind), PINNED) is is_handoff
    assert not asks_to_continue(Outcome(kind), replace(PINNED, continues=False))
    assert not asks_to_continue(None, PINNED), "whoever saw no end goes on with nothing"


@pytest.mark.req("O07")
def test_it_is_off_unless_it_is_asked_for() -> None:
    """Also of what was pinned before there was such a thing."""
    before = replace(PINNED, continues=False, depth_max=DEPTH_MAX).to_json()
    old = Snapshot.from_json(before.replace(',"continues":false', "").replace(f',"depth_max":{DEPTH_MAX}', ""))

    assert "continues" not in before.replace(',"continues":false', "")
    assert (old.continues, old.depth_max, asks_to_continue(HANDOFF, old)) == (False, DEPTH_MAX, False)
