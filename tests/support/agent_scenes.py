"""Scenes of the transitions of running agents; see `tests.support.transitions`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shared.ids import work_of
from shared.model.attempt import LeaseKey
from shared.model.intent import Delivered, Intent
from shared.model.stream import BELT, Place, Refusal, RefusalCode, Stretch, Took
from shared.model.usage import Usage
from shared.store.contract import Claimed, Tx
from tests.support.stores import World

FIRST = Stretch(Place(), Place(10, 1))
"""One line of ten bytes that says nothing."""


def injected(world: World, key: LeaseKey, body: bytes = b"more") -> Intent:
    """An input for the attempt that runs."""
    return world.store.write(lambda tx: tx.inject(work_of(key.attempt_id), body, by="t"))


def dispatched(world: World, key: LeaseKey) -> tuple[Intent, int]:
    """An input that its holder is handing over, with the token for that."""
    intent = injected(world, key)
    token = world.store.write(lambda tx: tx.dispatch(key, intent.number))
    assert token is not None
    return intent, token


def accepted(world: World, key: LeaseKey) -> Intent:
    """An input that was handed over."""
    intent, token = dispatched(world, key)
    assert world.store.write(lambda tx: tx.acknowledge(key, intent.number, token=token, result=Delivered.ACCEPTED))
    return intent


def running_and_dropping(world: World) -> LeaseKey:
    """Under a binding that gives up an input that cannot be handed over."""
    owner = world.worker()
    request = world.request(world.submit(input_=b"first"), owner)
    pinned = replace(request.snapshot, on_inject_error="drop")
    answer = world.as_leader(lambda tx: tx.claim(replace(request, snapshot=pinned)))
    assert isinstance(answer, Claimed)
    key = LeaseKey(answer.attempt_id, 1, owner)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
    world.store.write(lambda tx: tx.pin(key, world.pin(key)))
    return key


def inject(world: World) -> Callable[[Tx], object]:
    work_id = work_of(world.running(world.worker()).attempt_id)
    return lambda tx: tx.inject(work_id, b"more", by="t", key="k7")


def interrupt(world: World) -> Callable[[Tx], object]:
    key = world.running(world.worker())
    accepted(world, key)
    return lambda tx: tx.interrupt(work_of(key.attempt_id), by="t", reason="t")


def follow(world: World) -> Callable[[Tx], object]:
    key = world.running(world.worker())
    intent = accepted(world, key)
    assert intent.input is not None
    refused = (Refusal(1, RefusalCode.NOT_JSON, "it is no JSON"),)
    stretch = Stretch(Place(), Place(10, 1), (Took(1, (intent.input,)),), (), (("later", 1),), refused)
    return lambda tx: tx.follow(key, 1, stretch)


def note_refusal(world: World) -> Callable[[Tx], object]:
    key = world.running(world.worker())
    return lambda tx: tx.note_refusal(key, Refusal(BELT, RefusalCode.TOO_MANY, "no room"))


def report_late(world: World) -> Callable[[Tx], object]:
    key = world.running(world.worker())
    intent = accepted(world, key)
    assert intent.input is not None
    world.store.write(lambda tx: tx.interrupt(work_of(key.attempt_id), by="t", reason="t"))
    stretch = Stretch(Place(), Place(10, 1), (Took(1, (intent.input,)),), usage=Usage.from_plain({"usd": "1"}))
    return lambda tx: tx.report_late(key.attempt_id, expected_epoch=1, pin_epoch=1, stretch=stretch)


def dispatch(world: World) -> Callable[[Tx], object]:
    key = world.running(world.worker())
    number = injected(world, key).number
    return lambda tx: tx.dispatch(key, number)


def acknowledge(world: World) -> Callable[[Tx], object]:
    key = world.running(world.worker())
    intent, token = dispatched(world, key)
    return lambda tx: tx.acknowledge(key, intent.number, token=token, result=Delivered.ACCEPTED)


AGENT_SCENES = {
    "inject": inject,
    "interrupt": interrupt,
    "follow": follow,
    "note_refusal": note_refusal,
    "report_late": report_late,
    "dispatch": dispatch,
    "acknowledge": acknowledge,
}
