"""What a program had said and nobody had read when its attempt was ended: charged once, and nothing else of it applies."""

from __future__ import annotations

from decimal import Decimal

import pytest

from shared.errors import LeaseLostError, RefusedError
from shared.ids import AttemptId, work_of
from shared.model.attempt import AttemptState, LeaseKey
from shared.model.stream import Said, Took
from shared.model.work import WorkState
from shared.store.settling import change_after
from tests.contract.store_cases import case
from tests.contract.store_cases.budgets import settle, told, used
from tests.contract.store_cases.reports import (
    BY,
    GIVEN_UP,
    OUTCOME,
    USD,
    confirm,
    interrupted,
    pending,
    report_late,
    standing,
    stretch,
    usd,
)
from tests.support.agent_scenes import accepted, injected
from tests.support.declarations import turn
from tests.support.stores import World


@case(pytest.mark.req("B03"))
def a_late_report_is_charged_once_and_applies_nothing_else(world: World) -> None:
    world.configure(USD)
    key = world.running(world.worker())
    world.store.write(lambda tx: tx.follow(key, 1, stretch(0, 1, usage=usd("1"))))
    interrupted(world, key)
    said = (Said(2, turn(key="out.1.2")), Said(3, OUTCOME))
    late = stretch(1, 4, usage=usd("0.25"), said=said, consumed=(Took(4, (1,)),))

    report_late(world, key.attempt_id, late)

    attempt = world.attempt(key.attempt_id)
    assert (attempt.state, attempt.usage.amount("usd")) == (AttemptState.INTERRUPTED, Decimal("1.25"))
    assert world.store.read(lambda tx: tx.declarations(key.attempt_id)) == []
    assert told(world, "execution.turn") == []
    [event] = told(world, "report.late")
    assert event == {"usage": {"usd": "0.25"}, "consumed": [], "not_applied": {"turn": 1, "outcome": 1}}
    before = world.everything()
    with pytest.raises(RefusedError, match="read up to 40"):
        report_late(world, key.attempt_id, late)
    assert world.everything() == before
    settle(world)
    assert used(world, USD)[""] == Decimal("1.25")


@case(pytest.mark.req("B03", "R09"))
def only_an_ended_attempt_whose_stop_is_open_takes_a_late_report(world: World) -> None:
    key = world.running(world.worker())
    name, late = key.attempt_id, stretch(0, 1, usage=usd("1"))
    with pytest.raises(RefusedError, match="has not ended at epoch 1"):
        report_late(world, name, late)
    interrupted(world, key)
    with pytest.raises(RefusedError, match="has not ended at epoch 2"):
        report_late(world, name, late, epoch=2)
    with pytest.raises(LeaseLostError):
        world.store.write(lambda tx: tx.follow(key, 1, late))
    confirm(world, name)
    before = world.everything()

    with pytest.raises(RefusedError, match="is confirmed"):
        report_late(world, name, late)

    assert world.everything() == before
    other = world.running(world.worker("worker-2"))
    interrupted(world, other)
    report_late(world, other.attempt_id, late)  # the control


@case(pytest.mark.req("T02", "O01"))
def an_input_taken_before_an_end_that_spends_inputs_is_spent_when_that_is_read_late(world: World) -> None:
    key, name, taken, other = _rested_after(world)
    assert world.work(work_of(name)).state is WorkState.READY, "what nobody is known to have taken is the next one's"

    report_late(world, name, stretch(0, 1, consumed=(Took(1, (taken,)),)))
    assert pending(world, name) == [other]
    assert world.work(work_of(name)).state is WorkState.READY
    report_late(world, name, stretch(1, 2, consumed=(Took(2, (other, 4711)),)))

    assert pending(world, name) == [other], "it was never handed over, so nobody can have taken it"
    assert key.attempt_id == name


@case(pytest.mark.req("T02", "E12"))
def standing_work_rests_again_once_nothing_is_left_to_run_for(world: World) -> None:
    key = standing(world)
    intent = accepted(world, key)
    assert intent.input is not None
    _give_up(world, key)
    assert world.work(work_of(key.attempt_id)).state is WorkState.READY

    report_late(world, key.attempt_id, stretch(0, 1, consumed=(Took(1, (intent.input,)),)))

    assert world.work(work_of(key.attempt_id)).state is WorkState.IDLE
    assert pending(world, key.attempt_id) == []


@case(pytest.mark.req("T02", "T04"))
def an_end_that_gives_inputs_back_gives_back_what_is_read_late_as_well(world: World) -> None:
    """At least once: an attempt takes effect as a whole, or its inputs come again."""
    key = standing(world)
    intent = accepted(world, key)
    assert intent.input is not None
    interrupted(world, key)
    given = pending(world, key.attempt_id)

    report_late(world, key.attempt_id, stretch(0, 1, consumed=(Took(1, (intent.input,)),)))

    assert pending(world, key.attempt_id) == given
    assert intent.input in given


def _give_up(world: World, key: LeaseKey) -> None:
    change = world.store.read(lambda tx: change_after(tx, key.attempt_id, GIVEN_UP))
    world.store.write(lambda tx: tx.cancel_attempt(key.attempt_id, change=change, **BY))


def _rested_after(world: World) -> tuple[LeaseKey, AttemptId, int, int]:
    """Standing Work whose attempt was cancelled, which spends its inputs; it was handed one more, and another one waits."""
    key = standing(world)
    taken, other = accepted(world, key), injected(world, key)
    assert taken.input is not None
    assert other.input is not None
    _give_up(world, key)
    return key, key.attempt_id, taken.input, other.input
