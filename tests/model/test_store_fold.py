"""Lives of a store, as many as it takes to go through every transition and every step of the state tables.

The short run is always the same one; the long one (`--drills`) takes its seed from TENURE_SEED, and prints it. A failure prints the
steps and the line that replays them.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from chaos.fold import MisfitError
from shared.model.attempt import AttemptState
from shared.model.work import WorkState
from shared.policy.steps import ATTEMPT_STEPS, WORK_STEPS, AttemptEvent, WorkEvent
from shared.store.sqlite import wakes
from tests.model.fold import Step, fold
from tests.model.lives import Lives
from tests.model.rough_store import TRANSITIONS
from tests.support.stores import SQLITE, World, ram_folder
from tests.support.transitions import READS

SEED = int(os.environ.get("TENURE_SEED") or random.SystemRandom().randrange(2**32))
ROUNDS_MIN, ROUNDS_MAX = 2, 18
EXAMPLES, STEPS = 40, 50
LONG_EXAMPLES, LONG_STEPS = 300, 120
PHASES = (Phase.generate, Phase.shrink)

A, E, W, V = AttemptState, AttemptEvent, WorkState, WorkEvent

TO_COME: dict[str, set[Step]] = {
    "a parked attempt ends, and not by a cancel": {(A.PARKED, one) for one in (E.FAILED, E.TIMED_OUT, E.INTERRUPTED)},
    "an input turns out to be taken: agents are not among these lives": {(W.READY, V.EXHAUSTED_INPUT)},
}
"""Steps that these lives do not take, by what would have to come first."""
STEPS_OF_TABLES: set[Step] = {*ATTEMPT_STEPS}
STEPS_OF_TABLES |= {*WORK_STEPS}
TAKEN = STEPS_OF_TABLES - set().union(*TO_COME.values())

FAULTS = {
    *("begin: known", "statement: known", "commit: known"),
    *("commit: unknown, was", "commit: unknown, was not", "ballast given up"),
}


@pytest.fixture(autouse=True)
def one_wake_in_each_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few waits as these lives have would all end in one."""
    monkeypatch.setattr(wakes, "WAKES_MAX", 1)


def is_complete() -> bool:
    return Lives.steps.keys() >= TAKEN and Lives.done.keys() >= TRANSITIONS - READS and Lives.met.keys() >= FAULTS


@pytest.mark.timeout(900)
@pytest.mark.req("E03", "E07", "E13", "R02", "R07", "R09", "C03", "V05", "D02", "M05")
def test_lives_take_every_transition_and_every_step_of_the_state_tables() -> None:
    """Round by round, until everything was met; what is not met after all rounds is out of reach, or has become so."""
    for counted in (Lives.steps, Lives.done, Lives.met):
        counted.clear()
    for number in range(ROUNDS_MAX):
        lives = settings(max_examples=EXAMPLES, stateful_step_count=STEPS, database=None, phases=PHASES)
        run_state_machine_as_test(seed(number)(Lives), settings=lives)
        if number >= ROUNDS_MIN - 1 and is_complete():
            break

    print("\n".join(f"{count:6} {state} {event}" for (state, event), count in Lives.steps.most_common()))
    print(f"{number + 1} rounds", Lives.done, Lives.met)
    assert set(Lives.done) == TRANSITIONS - READS, "every transition of the contract was committed"
    assert set(Lives.steps) == TAKEN, "steps of the state tables"
    assert set(Lives.met) == FAULTS


@pytest.mark.drills
@pytest.mark.timeout(3_600)
@pytest.mark.req("E03", "E07", "R02", "R07", "D02", "M05")
def test_long_lives() -> None:
    print(f"replay with: TENURE_SEED={SEED} ./scripts/test --drills tests/model")

    run_state_machine_as_test(
        seed(SEED)(Lives),
        settings=settings(max_examples=LONG_EXAMPLES, stateful_step_count=LONG_STEPS, database=None, phases=PHASES),
    )


def test_the_reference_refuses_a_changefeed_that_skips_a_step() -> None:
    """The control: without the pin's event, the end does not follow from what was before."""
    with ram_folder() as folder:
        world = World(SQLITE, folder)
        world.ended(world.worker())
        events = world.store.read(lambda tx: tx.events(after=0, limit=100))
        world.close()

    assert fold(events).works == {"w1": WorkState.COMPLETED}
    with pytest.raises(MisfitError):
        fold(event for event in events if event.kind != "attempt.pinned")
