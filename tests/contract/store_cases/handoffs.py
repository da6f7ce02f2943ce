"""A handoff lets the next attempt follow where its binding says so: in its own commit, once."""

from __future__ import annotations

import json

import pytest

from shared.errors import LeaseLostError
from shared.ids import AttemptId
from shared.model.attempt import AttemptState
from shared.model.event import HANDOFF_EVENT
from shared.model.work import WorkState
from tests.contract.store_cases import case
from tests.contract.store_cases.chains import depth, end, events, handoff, pending, standing, started
from tests.support.declarations import TURN, wait
from tests.support.stores import SUCCEEDED, World

S, W = AttemptState, WorkState


@case(pytest.mark.req("O07"))
def a_handoff_that_continues_has_its_event_and_its_input_in_the_commit_of_its_outcome(world: World) -> None:
    world.worker()
    work_id = standing(world)
    key = started(world, work_id, continues=True)
    world.store.write(lambda tx: tx.declare(key, [handoff("pages 1 to 9")]))

    end(world, key)

    [event] = events(world, HANDOFF_EVENT)
    assert (event.work_id, event.attempt_id, event.epoch, event.data["depth"]) == (work_id, "w1.1", 1, 1)
    assert (world.attempt(key.attempt_id).state, world.work(work_id).state) == (S.HANDED_OFF, W.READY)
    [number] = pending(world, work_id)
    [given] = world.store.read(lambda tx: tx.inputs([number]))
    assert json.loads(given.body) == {
        "seq": event.seq, "type": HANDOFF_EVENT, "correlate": None,
        "data": {"attempt": "w1.1", "summary": "pages 1 to 9"},
    }  # fmt: skip
    assert started(world, work_id, continues=True).attempt_id == "w1.2"
    assert depth(world, AttemptId("w1.2")) == 1


@case(pytest.mark.req("O07"))
def a_handoff_that_does_not_continue_leaves_its_work_at_rest_until_the_next_input(world: World) -> None:
    world.worker()
    work_id = standing(world)

    end(world, started(world, work_id), handoff())

    assert (world.work(work_id).state, pending(world, work_id), events(world, HANDOFF_EVENT)) == (W.IDLE, [], [])
    world.store.write(lambda tx: tx.add_input(work_id, b"go on", by="me"))
    assert world.work(work_id).state is W.READY, "control"


@case(pytest.mark.req("O07"))
def only_a_handoff_continues(world: World) -> None:
    world.worker()
    done, waits = standing(world), standing(world)

    end(world, started(world, done, continues=True), TURN, ending=SUCCEEDED)
    end(world, started(world, waits, continues=True), wait(resume=False))

    assert (world.work(done).state, world.work(waits).state) == (W.IDLE, W.WAITING)
    assert events(world, HANDOFF_EVENT) == []


@case(pytest.mark.req("O07"))
def a_handoff_continues_once_for_each_attempt_and_epoch(world: World) -> None:
    world.worker()
    work_id = standing(world)
    key = started(world, work_id, continues=True)
    end(world, key, handoff())
    before = world.everything()

    with pytest.raises(LeaseLostError):
        end(world, key)
    with world.outsider() as outsider, pytest.raises(Exception, match="UNIQUE"):
        outsider.execute(
            "INSERT INTO published (seq, type, key, digest) SELECT seq + 1000, type, key, digest FROM published"
        )

    assert world.everything() == before
    assert len(pending(world, work_id)) == 1


@case(pytest.mark.req("O07", "O01"))
def what_had_come_in_meanwhile_goes_to_the_next_attempt_with_the_handoff(world: World) -> None:
    world.worker()
    work_id = standing(world)
    key = started(world, work_id, continues=True)
    own = world.store.write(lambda tx: tx.add_input(work_id, b"more", by="me"))

    end(world, key, handoff())

    assert pending(world, work_id) == [own, own + 1]


@case(pytest.mark.req("O07"))
def a_person_s_hold_keeps_the_next_attempt_back_and_its_input_waits(world: World) -> None:
    world.worker()
    work_id = standing(world)
    key = started(world, work_id, continues=True)
    world.store.write(lambda tx: tx.hold_work(work_id, by="me", reason="look first"))

    end(world, key, handoff())

    assert (world.work(work_id).state, len(pending(world, work_id))) == (W.HELD, 1)
    world.store.write(lambda tx: tx.release_work(work_id, by="me", reason="fine"))
    assert world.work(work_id).state is W.READY, "control"
