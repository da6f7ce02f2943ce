"""Handoffs that go on, and chains that end, as a worker and a coordinator carry them out on a simulated host. Rule: O06, O07, O09."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from shared.errors import IndeterminateError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import AttemptState, LeaseKey
from shared.model.declaration import Declaration, declaration_of
from shared.model.event import HANDOFF_EVENT, TURN_EVENT
from shared.model.settings import Binding, Config, RetryPolicy, Settings
from shared.model.work import NewWork, WorkKind, WorkState
from shared.store.contract import Tx
from tests.support.declarations import turn, wait
from tests.support.hosts import Shim
from tests.support.sites import Site

S = AttemptState
DIGEST = Binding("digest", ("digest",), kind=WorkKind.STANDING, continues=True)
AGAIN = RetryPolicy(delays_us=(1_000_000,), on=("failure",))
CONFIG = Config(
    Settings(causal_depth=3),
    bindings=(
        DIGEST,
        replace(DIGEST, name="stops", continues=False),
        Binding("once", ("once",), retry=AGAIN),
    ),
)


def begin(site: Site, config: Config = CONFIG) -> None:
    site.configure(config)
    site.bench()
    site.head()


def submit(site: Site, binding: str, *keys: str, kind: WorkKind = WorkKind.STANDING) -> WorkId:
    work = NewWork("", binding, None, (), "/", b"begin", "test", kind=kind, correlate=keys)
    name = site.world.store.write(lambda tx: tx.submit(work, "jobs"))
    site.settle()
    return name


def handoff(summary: str) -> Declaration:
    return declaration_of("outcome-1", "outcome", {"kind": "handoff", "summary": summary})


def key_of(site: Site, name: str) -> LeaseKey:
    return LeaseKey(AttemptId(name), site.attempt(name).epoch, site.benches[0].me)


def ends(site: Site, name: str, *declarations: Declaration, status: int = 0) -> None:
    """The program says that, and ends."""
    key = key_of(site, name)
    site.world.store.write(lambda tx: tx.declare(key, declarations))
    site.host.shim(name, key.epoch).end(status)
    site.settle()


def kinds(site: Site, kind: str) -> list[str]:
    return [str(event.attempt_id) for event in site.events() if event.kind == kind]


@pytest.mark.req("O07")
def test_the_next_attempt_runs_at_once_with_what_the_last_one_handed_it(site: Site) -> None:
    begin(site)
    work = submit(site, "digest")

    ends(site, "w1.1", handoff("page 12"))

    assert site.attempt("w1.1").state is S.HANDED_OFF
    assert (site.attempt("w1.2").state, site.attempt("w1.2").depth) == (S.RUNNING, 1)
    stdin = site.host.shim("w1.2").spec.stdin
    assert stdin is not None
    assert json.loads(stdin)["data"] == {"attempt": "w1.1", "summary": "page 12"}
    ends(site, "w1.2")
    assert (site.work(work).state, kinds(site, HANDOFF_EVENT)) == (WorkState.IDLE, ["w1.1"])


@pytest.mark.req("O07")
def test_without_its_binding_s_word_a_handoff_rests(site: Site) -> None:
    begin(site)
    work = submit(site, "stops")

    ends(site, "w1.1", handoff("page 12"))

    assert (site.attempt("w1.1").state, site.work(work).state) == (S.HANDED_OFF, WorkState.IDLE)
    assert kinds(site, HANDOFF_EVENT) == []


@pytest.mark.req("O07")
def test_a_work_that_runs_once_is_completed_by_its_handoff(site: Site) -> None:
    """Whatever its binding is meant for: a work may say itself that it runs once."""
    begin(site)
    work = submit(site, "digest", kind=WorkKind.RUN_ONCE)

    ends(site, "w1.1", handoff("page 12"))

    assert (site.work(work).state, kinds(site, HANDOFF_EVENT)) == (WorkState.COMPLETED, [])


@pytest.mark.req("O07")
@pytest.mark.parametrize("was_kept", [True, False], ids=["kept", "not kept"])
def test_a_lost_answer_of_the_commit_does_not_double_it(site: Site, was_kept: bool) -> None:
    begin(site)
    submit(site, "digest")
    [bench] = site.benches
    written = bench.store.write
    lost: list[str] = []

    def answer_lost(fn: Callable[[Tx], object]) -> object:
        has_ended = site.host.shim("w1.1").exit is not None
        if has_ended and not lost:
            lost.append("one")
            if was_kept:
                written(fn)
            raise IndeterminateError("COMMIT was not answered")
        return written(fn)

    bench.store.write = answer_lost  # type: ignore[method-assign,assignment]
    key = key_of(site, "w1.1")
    site.world.store.write(lambda tx: tx.declare(key, [turn(), handoff("page 12")]))
    site.host.shim("w1.1").end(0)
    for _ in range(3):
        try:
            bench.settle()
        except IndeterminateError:
            continue
    site.elapse(60)  # what was not kept is given up, taken over, and found again

    assert lost == ["one"]
    assert (kinds(site, HANDOFF_EVENT), kinds(site, TURN_EVENT)) == (["w1.1"], ["w1.1"])
    assert [attempt.number for attempt in site.world.store.read(lambda tx: tx.attempts(WorkId("w1")))] == [1, 2]
    assert site.attempt("w1.2").state is S.RUNNING


@pytest.mark.req("O07")
def test_whoever_finds_the_end_goes_on_in_place_of_a_worker_that_died(site: Site) -> None:
    begin(site)
    submit(site, "digest")
    [first] = site.benches
    key = key_of(site, "w1.1")
    site.world.store.write(lambda tx: tx.declare(key, [handoff("page 12")]))
    site.kill(first)
    site.host.shim("w1.1").end(0)
    site.bench("worker-2")

    site.elapse(2)

    assert (site.attempt("w1.1").state, site.attempt("w1.1").epoch) == (S.HANDED_OFF, 2)
    [event] = [event for event in site.events() if event.kind == HANDOFF_EVENT]
    assert (event.attempt_id, event.epoch, site.attempt("w1.2").state) == ("w1.1", 2, S.RUNNING)


@pytest.mark.req("O07")
def test_a_chain_of_handoffs_ends_and_other_works_go_on(site: Site) -> None:
    begin(site)
    endless, other = submit(site, "digest"), submit(site, "digest")

    for number in range(1, 5):
        ends(site, f"w1.{number}", handoff(f"page {number}"))

    assert [site.attempt(f"w1.{number}").depth for number in range(1, 5)] == [0, 1, 2, 3]
    assert (site.work(endless).state, site.attempt("w1.4").state) == (WorkState.IDLE, S.HANDED_OFF)
    assert kinds(site, "causality.refused") == ["w1.4"]
    ends(site, "w2.1", handoff("page 1"))
    assert site.attempt("w2.2").state is S.RUNNING, f"{other} is no part of it"
    site.world.store.write(lambda tx: tx.add_input(endless, b"go on", by="me"))
    site.settle()
    assert (site.attempt("w1.5").state, site.attempt("w1.5").depth) == (S.RUNNING, 0), "nor is what a person asks for"


def _wake_each_other(site: Site, turns: int) -> list[str]:
    """Two Works, each of which ends its turn and waits for the other's; whose turns were told, in order."""
    submit(site, "stops", "a")
    submit(site, "stops", "b")
    waits = {"w1.1": "b", "w2.1": "a"}
    first = [wait(key="w-0", event=TURN_EVENT, correlate=of, timer=None, resume=True) for of in waits.values()]
    ends(site, "w1.1", first[0])
    ends(site, "w2.1", turn(key="t-0"), first[1])
    for step in range(1, turns):
        running = [name for name in waits if site.attempt(name).state is S.RUNNING]
        if not running:
            break
        [name] = running
        spec = wait(key=f"w-{step}", event=TURN_EVENT, correlate=waits[name], timer=None, resume=True)
        ends(site, name, turn(key=f"t-{step}"), spec)
    return kinds(site, TURN_EVENT)


@pytest.mark.req("O06", "O08")
def test_two_works_that_wake_each_other_for_ever_end(site: Site) -> None:
    begin(site)

    told = _wake_each_other(site, turns=30)

    assert told == ["w2.1", "w1.1", "w2.1"]
    assert kinds(site, "causality.refused") == ["w1.1"]
    assert {site.attempt(name).state for name in ("w1.1", "w2.1")} == {S.PARKED}
    assert site.attempt("w1.1").depth == 3


@pytest.mark.req("O06", "O08")
def test_two_works_that_wake_each_other_go_on_within_the_limit(site: Site) -> None:
    begin(site, replace(CONFIG, settings=Settings(causal_depth=100)))

    told = _wake_each_other(site, turns=30)

    assert told == ["w2.1", "w1.1"] * 15
    assert kinds(site, "causality.refused") == []


@pytest.mark.req("O09")
def test_a_retry_goes_on_in_the_chain_of_what_it_tries_again(site: Site) -> None:
    begin(site)
    waiting = submit(site, "once", kind=WorkKind.RUN_ONCE)
    submit(site, "stops")
    ends(site, "w1.1", wait(event=TURN_EVENT, timer=None, resume=True))
    ends(site, "w2.1", turn())
    assert (site.attempt("w1.1").state, site.attempt("w1.1").depth) == (S.RUNNING, 1)

    ends(site, "w1.1", status=7)
    site.elapse(2)

    assert (site.attempt("w1.2").state, site.attempt("w1.2").depth) == (S.RUNNING, 1)
    ends(site, "w1.2")
    assert site.work(waiting).state is WorkState.COMPLETED


def test_a_shim_of_a_later_launch_is_another_one(site: Site) -> None:
    """Of these tests: each epoch has a launch of its own, so an end is that of the one that runs."""
    begin(site)
    submit(site, "stops")
    ends(site, "w1.1", wait(event="tick", timer="1s", resume=True))
    site.elapse(2)

    second: Shim = site.host.shim("w1.1", 2)
    assert (work_of(AttemptId("w1.1")), second.alive, site.host.shim("w1.1").alive) == ("w1", True, False)
