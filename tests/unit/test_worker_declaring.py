"""What a program that declares something is answered: recorded, refused, or to ask again; never no where the store said nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from shared.model.attempt import LeaseKey
from shared.model.declaration import Declaration, declaration_of
from tests.support.declarations import TURN
from tests.support.sites import Bench, Site
from worker.belt import RETRY, NoBelt, Request
from worker.declaring import Declarings
from worker.pool import Completion

USED = declaration_of("u-1", "usage", {"units": {"tokens": 1}})
OTHER = declaration_of(TURN.key, "turn", {"status": "other"})


class Answers(NoBelt):
    """A belt that keeps what it answers."""

    def __init__(self) -> None:
        self.told: list[Mapping[str, object]] = []

    def answer(self, _connection: int, told: Mapping[str, object], /) -> None:
        self.told.append(told)


def answer(bench: Bench, key: LeaseKey, declaration: Declaration) -> Mapping[str, object]:
    """What a program is answered that declares this."""
    belt = Answers()
    declarings = Declarings(replace(bench.ports, belt=belt))
    holding = bench.ports.current(key.attempt_id, key.epoch)
    declarings.asked(holding, Completion(("belt", key), Request(key, 1, declaration), None))
    bench.ports.batch.commit()
    (told,) = belt.told
    return told


def recorded(site: Site, key: LeaseKey) -> list[Declaration]:
    return [one.declaration for one in site.world.store.read(lambda tx: tx.declarations(key.attempt_id))]


@pytest.mark.req("O15")
def test_what_is_declared_is_recorded_and_answered_the_same_again(site: Site) -> None:
    bench = site.bench()
    key, _ = site.running(bench)

    assert [answer(bench, key, TURN) for _ in range(2)] == [{"recorded": TURN.key}] * 2
    assert recorded(site, key) == [TURN]


@pytest.mark.req("O15", "M05")
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_commit_that_is_not_answered_is_no_refusal(site: Site, is_kept: bool) -> None:
    """A disk that failed once: a program that was told no would give up, though the same again is recorded."""
    bench = site.bench()
    key, _ = site.running(bench)
    bench.store.unanswered = ("declare", is_kept)

    first = answer(bench, key, TURN)

    assert first == ({"recorded": TURN.key} if is_kept else RETRY)
    assert answer(bench, key, TURN) == {"recorded": TURN.key}
    assert recorded(site, key) == [TURN]


@pytest.mark.req("O01", "O15")
def test_an_input_of_nobody_is_refused_alone_and_the_rest_of_the_batch_is_written(site: Site) -> None:
    bench = site.bench()
    key, _ = site.running(bench)
    belt = Answers()
    declarings = Declarings(replace(bench.ports, belt=belt))
    holding = bench.ports.current(key.attempt_id, key.epoch)
    stranger = declaration_of("c-1", "consumed", {"inputs": [999]})
    for number, one in enumerate((TURN, stranger, USED), start=1):
        declarings.asked(holding, Completion(("belt", key), Request(key, number, one), None))

    bench.ports.batch.commit()

    assert recorded(site, key) == [TURN, USED]
    assert len(belt.told) == 3
    [told] = [each["error"] for each in belt.told if "error" in each]
    assert told == {"code": "not_handed", "message": f"input 999 is not {key.attempt_id}'s, and not waiting for w1"}
    assert site.world.store.read(lambda tx: tx.stream(key.attempt_id)) is None, "its program was told so"


@pytest.mark.req("O15")
def test_what_the_store_says_no_to_is_refused(site: Site) -> None:
    """The control: asking for that again cannot help."""
    bench = site.bench()
    key, _ = site.running(bench)
    answer(bench, key, TURN)

    told = answer(bench, key, OTHER)["error"]

    assert isinstance(told, dict)
    assert told["code"] == "declaration_invalid"
    assert recorded(site, key) == [TURN]
