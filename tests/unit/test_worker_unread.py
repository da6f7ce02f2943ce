"""What an agent said and nobody had read when its attempt was ended: read with the stop, charged once, applied never."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from shared.ids import AttemptId, attempt_id, work_of
from shared.model.attempt import AttemptState, Ending, Exclusion, FailureClass
from shared.model.evidence import ExitRecord
from shared.model.instant import US_PER_S
from shared.model.settings import Config, Settings
from shared.model.stop import StopResult
from shared.model.stream import RefusalCode
from shared.model.work import NewWork, WorkKind, WorkState
from shared.process.output import Piece
from shared.store.settling import change_after
from tests.support.agent_sites import TALK, bench, declared, intent, reported, say, start, stream
from tests.support.hosts import Shim
from tests.support.sites import Bench, Site
from worker.agents.reading import READ_BYTES
from worker.unread import UNPROVEN_BYTES_MAX

UNPROVEN = StopResult(None, (), ("S1: no exit record",), None)
USD = {"type": "usage", "units": {"usd": 1}}
LAST_WORDS = (
    USD,
    {"type": "turn", "status": "done"},
    {"type": "result", "outcome": "completed"},
    {"type": "usage", "units": {"usd": 0.5}},
)


def interrupt(site: Site, name: AttemptId) -> None:
    site.world.store.write(lambda tx: tx.interrupt(work_of(name), by="me", reason="enough"))


def late(site: Site, name: AttemptId) -> list[dict[str, object]]:
    return [dict(event.data) for event in site.events(name) if event.kind == "report.late"]


def alone(site: Site, *, timeout_us: int | None = None) -> tuple[Bench, AttemptId, Shim]:
    """An agent that has said one thing, which was read; no coordinator starts another attempt."""
    worker = bench(site)
    name, shim = start(site)
    say(shim, USD)
    site.elapse(2)
    assert reported(site, name) == {"usd": "1"}
    assert timeout_us is None or site.attempt(name).budget_us <= timeout_us
    return worker, name, shim


@pytest.mark.req("B03", "T04")
def test_what_an_interrupted_agent_had_said_is_charged_before_its_stop_is_confirmed(site: Site) -> None:
    _, name, shim = alone(site)
    say(shim, *LAST_WORDS)

    interrupt(site, name)
    assert site.attempt(name).usage.to_plain() == {"usd": "1"}, "what was read before is charged with the end"
    site.settle()

    attempt = site.attempt(name)
    assert (attempt.state, attempt.exclusion) == (AttemptState.INTERRUPTED, Exclusion.RELEASED)
    assert attempt.usage.to_plain() == {"usd": "2.5"}
    assert declared(site, name) == []
    assert late(site, name) == [{"usage": {"usd": "1.5"}, "consumed": [], "not_applied": {"turn": 1, "outcome": 1}}]
    kinds = [event.kind for event in site.events(name)]
    assert kinds.index("report.late") < kinds.index("attempt.stop_confirmed")
    assert site.work(work_of(name)).state is WorkState.RUNNING, "the next attempt runs"


@pytest.mark.req("B03", "O05")
@pytest.mark.parametrize("who", ["its holder", "the leader"])
def test_what_an_agent_said_before_it_ran_out_of_time_is_charged(site: Site, who: str) -> None:
    site.configure(Config(Settings(), bindings=(replace(TALK, timeout_us=100 * US_PER_S, idle_us=None),)))
    site.head()
    worker = bench(site)
    name, shim = start(site)
    say(shim, USD)
    site.elapse(2)
    if who == "the leader":
        site.kill(worker)
        site.clock.advance(200 * US_PER_S)
    say(shim, *LAST_WORDS)
    if who == "its holder":
        site.clock.advance(200 * US_PER_S)
    for head in site.heads:
        head.settle()
    if who == "the leader":
        bench(site, "worker-2")
    site.elapse(3)

    attempt = site.attempt(name)
    assert (attempt.state, attempt.exclusion) == (AttemptState.TIMED_OUT, Exclusion.RELEASED)
    assert attempt.usage.to_plain() == {"usd": "2.5"}


@pytest.mark.req("B03")
def test_the_last_line_counts_without_its_end_once_nothing_writes_any_more(site: Site) -> None:
    _, name, shim = alone(site)
    shim.out += b'{"type": "usage", "units": {"usd": 2}}'

    interrupt(site, name)
    site.settle()

    assert site.attempt(name).usage.to_plain() == {"usd": "3"}


@pytest.mark.req("B03", "R12")
def test_each_try_of_a_stop_that_is_not_proven_reads_on_and_what_may_still_grow_is_left(site: Site) -> None:
    _, name, shim = alone(site)
    site.host.stops = [UNPROVEN, UNPROVEN]
    say(shim, USD)
    shim.out += b'{"type": "usage", "units": {"usd": 7'

    interrupt(site, name)
    site.settle()
    assert site.attempt(name).exclusion is Exclusion.HELD
    assert site.attempt(name).usage.to_plain() == {"usd": "2"}
    shim.out += b"0}}\n"
    site.elapse(6)
    assert site.attempt(name).usage.to_plain() == {"usd": "72"}
    site.elapse(6)

    assert site.attempt(name).exclusion is Exclusion.RELEASED
    assert site.attempt(name).usage.to_plain() == {"usd": "72"}


@pytest.mark.req("B03", "S01")
def test_a_long_rest_is_read_in_stretches_each_recorded_with_how_far_it_reached(site: Site) -> None:
    _, name, shim = alone(site)
    for number in range(3 * READ_BYTES // 20):
        say(shim, {"type": "log", "n": number})
    say(shim, USD)

    interrupt(site, name)
    site.settle()

    assert site.attempt(name).usage.to_plain() == {"usd": "2"}
    assert stream(site, name).place.offset == len(shim.out)


@pytest.mark.req("B03")
def test_of_what_may_still_write_for_ever_a_try_reads_only_so_much(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control for the bound: the same output whose writer is gone is read to its end."""
    monkeypatch.setattr("worker.unread.UNPROVEN_BYTES_MAX", READ_BYTES)
    assert UNPROVEN_BYTES_MAX > READ_BYTES
    _, name, shim = alone(site)
    site.host.stops = [UNPROVEN]
    for number in range(3 * READ_BYTES // 20):
        say(shim, {"type": "log", "n": number})

    interrupt(site, name)
    site.settle()
    first = stream(site, name).place.offset
    assert READ_BYTES - 100 < first < 2 * READ_BYTES
    site.elapse(6)

    assert stream(site, name).place.offset == len(shim.out)


@pytest.mark.req("B03", "M01")
def test_whoever_takes_the_order_over_reads_on_where_it_was_read_to(site: Site) -> None:
    worker, name, shim = alone(site)
    for number in range(2 * READ_BYTES // 20):
        say(shim, {"type": "log", "n": number})
    say(shim, USD)
    before = stream(site, name).place.offset
    interrupt(site, name)
    worker.step()
    worker.stops.run()  # the stop is proven
    worker.step()
    worker.stops.run()  # a first stretch is read
    worker.step()  # and recorded; then its reader dies
    assert before < stream(site, name).place.offset < len(shim.out)
    assert site.attempt(name).exclusion is Exclusion.HELD
    site.kill(worker)
    bench(site, "worker-2")

    site.elapse(40)

    assert site.attempt(name).exclusion is Exclusion.RELEASED
    assert site.attempt(name).usage.to_plain() == {"usd": "2"}, "nothing is lost, nothing counts twice"
    assert stream(site, name).place.offset == len(shim.out)


@pytest.mark.req("B03", "R12")
def test_an_output_that_cannot_be_read_holds_no_slot_and_is_told(site: Site) -> None:
    worker, name, shim = alone(site)
    say(shim, USD)
    interrupt(site, name)

    with unreadable(site):
        worker.settle()
        [order] = site.orders()
        assert order.finding is not None
        assert "its output cannot be read: Input/output error" in order.finding
        assert site.attempt(name).exclusion is Exclusion.HELD
        for _ in range(4):
            site.clock.advance(6 * US_PER_S)
            worker.settle()

    assert site.attempt(name).exclusion is Exclusion.RELEASED
    assert [(one.code, one.why) for one in stream(site, name).refusals] == [
        (RefusalCode.LOST, "the rest cannot be read: Input/output error")
    ]


@pytest.mark.req("B03", "M04")
def test_an_output_that_could_not_be_read_for_a_moment_is_read_by_the_next_try(site: Site) -> None:
    worker, name, shim = alone(site)
    say(shim, USD)
    interrupt(site, name)
    with unreadable(site):
        worker.settle()

    site.elapse(6)

    assert site.attempt(name).exclusion is Exclusion.RELEASED
    assert site.attempt(name).usage.to_plain() == {"usd": "2"}
    assert stream(site, name).refused == 0


@pytest.mark.req("O15", "M04")
def test_while_the_output_of_an_agent_that_runs_cannot_be_read_its_worker_goes_on(site: Site) -> None:
    worker, name, shim = alone(site)
    with unreadable(site):
        say(shim, USD)
        site.elapse(3)
        assert site.attempt(name).state is AttemptState.RUNNING
        shim.end(0)
        worker.settle()
    site.elapse(3)

    assert site.attempt(name).state is AttemptState.SUCCEEDED
    assert site.attempt(name).usage.to_plain() == {"usd": "2"}


@pytest.mark.req("O15", "M04")
def test_an_end_does_not_wait_for_ever_for_an_output_that_cannot_be_read(site: Site) -> None:
    _, name, shim = alone(site)
    with unreadable(site):
        say(shim, {"type": "result", "outcome": "failed"})
        shim.end(0)
        site.elapse(6)

    assert site.attempt(name).state is AttemptState.SUCCEEDED, "the exit status decides"
    assert [one.code for one in stream(site, name).refusals] == [RefusalCode.LOST], "and that is told"


@contextmanager
def unreadable(site: Site) -> Iterator[None]:
    """No output can be read meanwhile."""
    readable = site.host.read_output

    def broken(pin: object, offset: int, limit: int) -> Piece:
        raise OSError(5, "Input/output error")

    site.host.read_output = broken  # type: ignore[method-assign]
    yield
    site.host.read_output = readable  # type: ignore[method-assign]


@pytest.mark.req("B03")
def test_of_a_job_that_nobody_listens_to_nothing_is_read(site: Site) -> None:
    bench(site)
    name, shim = start(site, "shell")
    say(shim, USD)

    interrupt(site, name)
    site.settle()

    assert site.attempt(name).exclusion is Exclusion.RELEASED
    assert site.world.store.read(lambda tx: tx.stream(name)) is None
    assert late(site, name) == []


@pytest.mark.req("T02", "E12")
def test_an_input_taken_unread_before_a_cancel_is_not_given_to_the_next_attempt(site: Site) -> None:
    site.configure(Config(Settings(), bindings=(TALK,)))
    site.head()
    bench(site)
    work = NewWork("", "talk", None, (), "/", b"first", "test", kind=WorkKind.STANDING)
    name = attempt_id(site.world.store.write(lambda tx: tx.submit(work, "agents")), 1)
    site.settle()
    shim = site.host.shim(name)
    told = site.world.store.write(lambda tx: tx.inject(work_of(name), b"more", by="t"))
    site.settle()
    say(shim, {"type": "consumed", "inputs": [told.input]})

    ending = Ending(AttemptState.CANCELLED, None, FailureClass.CANCELLED, "enough", None, "cancelled")
    change = site.world.store.read(lambda tx: change_after(tx, name, ending))
    site.world.store.write(lambda tx: tx.cancel_attempt(name, by="me", reason="enough", change=change))
    site.settle()

    assert site.work(work_of(name)).state is WorkState.IDLE
    assert late(site, name) == [{"usage": {}, "consumed": [told.input], "not_applied": {}}]
    assert intent(site, told.number).input == told.input


@pytest.mark.req("B03", "M02", "O15")
def test_what_was_said_before_an_end_that_nobody_saw_is_read_before_a_person_is_asked(site: Site) -> None:
    _, name, shim = alone(site)
    say(shim, *LAST_WORDS)

    shim.die()
    site.settle()
    shim.end_orphan(0, is_kept=False)
    site.settle()

    assert site.attempt(name).state is AttemptState.RECOVERY_REQUIRED
    assert reported(site, name) == {"usd": "2.5"}


@pytest.mark.req("B03", "M02", "O15")
def test_half_a_line_of_what_may_still_write_is_left_until_its_stop_is_proven(site: Site) -> None:
    """Its shim is dead, and what it left behind is not proven gone."""
    _, name, shim = alone(site)
    shim.die()
    site.settle()
    shim.out += b'{"type": "usage", "units": {"usd": 4'
    shim.end_orphan(0, is_kept=False)
    site.settle()
    attempt = site.attempt(name)
    assert (attempt.state, attempt.exclusion_proof) == (AttemptState.RECOVERY_REQUIRED, None)
    assert (reported(site, name), stream(site, name).refused) == ({"usd": "1"}, 0)
    shim.out += b"0}}\n"
    shim.exit = ExitRecord(status=0, ran=True, error=None, stop=None, tree_empty=True)

    failed = Ending(AttemptState.FAILED, None, FailureClass.AMBIGUOUS, "nobody saw it", None, "settled")
    change = site.world.store.read(lambda tx: change_after(tx, name, failed))
    site.world.store.write(
        lambda tx: tx.reconcile(
            name, expected_epoch=attempt.epoch, ending=failed, change=change, by="me", reason="it is gone"
        )
    )
    site.settle()

    assert site.attempt(name).exclusion is Exclusion.RELEASED
    assert site.attempt(name).usage.to_plain() == {"usd": "41"}
