"""A worker and what its agents are told: it reaches them in order, and its fate is true."""

from __future__ import annotations

import pytest

from shared.ids import AttemptId, work_of
from shared.model.attempt import AttemptState, Snapshot
from shared.model.intent import Delivered, Fate
from shared.model.work import WorkState
from shared.process.channel import Handed
from tests.support.agent_sites import (
    bench,
    inject,
    intent,
    pending,
    say,
    start,
)
from tests.support.sites import Site


@pytest.mark.req("T01", "T02")
def test_inputs_reach_a_running_agent_in_their_order_and_are_settled_when_it_takes_them(site: Site) -> None:
    bench(site)
    name, shim = start(site)
    intents = [inject(site, name, b"%d" % number) for number in range(30)]
    site.settle()

    assert [word.body for word in shim.words] == [b"%d" % number for number in range(30)]
    assert [word.intent for word in shim.words] == [each.id for each in intents]
    assert {intent(site, each.number).fate for each in intents} == {Fate.ACCEPTED}
    assert len(pending(site, name)) == 30

    say(shim, {"type": "consumed", "inputs": [each.input for each in intents]})
    site.elapse(2)

    assert {intent(site, each.number).fate for each in intents} == {Fate.CONSUMED}
    assert pending(site, name) == []


@pytest.mark.req("T02", "T01")
def test_an_input_whose_delivery_is_unknown_is_told_again_under_its_name(site: Site) -> None:
    first = bench(site)
    name, shim = start(site)
    told = inject(site, name)
    first.step()
    first.launches.run()  # it was written, and its holder dies before it says so
    assert len(shim.words) == 1
    assert intent(site, told.number).fate is Fate.DISPATCHED
    bench(site, "worker-2")

    site.kill(first)
    site.elapse(1)

    assert [word.intent for word in shim.words] == [told.id, told.id]
    assert (intent(site, told.number).fate, intent(site, told.number).tries) == (Fate.ACCEPTED, 2)


@pytest.mark.req("T02")
def test_a_program_without_room_is_told_later_and_nothing_goes_ahead_of_that(site: Site) -> None:
    bench(site)
    name, shim = start(site)
    shim.answers = [Handed(Delivered.LATER, "full")]
    first = inject(site, name, b"1")
    site.settle()
    second = inject(site, name, b"2")
    site.settle()
    assert [intent(site, each.number).fate for each in (first, second)] == [Fate.QUEUED, Fate.QUEUED]

    site.elapse(1)

    assert [word.body for word in shim.words] == [b"1", b"2"]


@pytest.mark.req("T02")
@pytest.mark.parametrize(("binding", "fate"), [("talk", Fate.RETURNED), ("drop", Fate.DROPPED)])
def test_what_cannot_be_told_goes_as_the_binding_says(site: Site, binding: str, fate: Fate) -> None:
    bench(site)
    name, shim = start(site, binding)
    shim.answers = [Handed(Delivered.FAILED, "ENXIO")]
    told = inject(site, name)
    site.settle()

    found = intent(site, told.number)
    assert (found.fate, found.why) == (fate, "ENXIO")
    assert pending(site, name) == ([told.input] if fate is Fate.RETURNED else [])


@pytest.mark.req("T02", "O01")
@pytest.mark.parametrize("binding", ["shell", "code"])
def test_a_program_that_cannot_be_told_anything_leaves_the_input_to_the_next_attempt(site: Site, binding: str) -> None:
    bench(site)
    name, shim = start(site, binding)
    told = inject(site, name)
    site.settle()

    assert intent(site, told.number).fate is Fate.NOT_ACCEPTING
    assert shim.words == []
    shim.end(0)
    site.settle()
    second = site.attempt(f"{work_of(name)}.2")
    snapshot: Snapshot | None = site.world.store.read(lambda tx: tx.snapshot(second.id))
    assert snapshot is not None
    assert snapshot.inputs == (told.input,)


@pytest.mark.req("T04")
def test_an_interrupted_agent_is_stopped_and_the_next_attempt_gets_everything(site: Site) -> None:
    bench(site)
    name, shim = start(site)
    told = inject(site, name)
    site.settle()
    assert len(shim.words) == 1

    site.world.store.write(lambda tx: tx.interrupt(work_of(name), by="me", reason="wrong branch"))
    assert site.work(work_of(name)).state is WorkState.READY
    assert site.host.stopped == [], "the fence comes before any signal"
    site.settle()

    assert site.host.stopped == [name]
    assert site.attempt(name).state is AttemptState.INTERRUPTED
    snapshot = site.world.store.read(lambda tx: tx.snapshot(AttemptId(f"{work_of(name)}.2")))
    assert snapshot is not None
    assert told.input in snapshot.inputs
    assert len(snapshot.inputs) == 2
    assert intent(site, told.number).fate is Fate.RETURNED
