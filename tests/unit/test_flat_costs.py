"""What a store holds does not decide what a step costs: counted on a small store, and on one as full as years make it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from chaos.crowd.copies import Copies
from chaos.crowd.costs import Cost, cost_of
from chaos.crowd.crowd import Crowd, populated
from chaos.crowd.population import GREAT, SMALL
from chaos.crowd.site import FAILING
from chaos.crowd.steps import STEPS, pass_once
from coordinator.starts import WINDOW_MAX, WINDOWS_MAX
from shared.clock import VirtualClock
from shared.commands import capacity, findings_rows, status
from shared.commands.doctor import examine_store
from shared.commands.open_home import OpenHome
from shared.commands.work_list import LOOKED_AT_MAX, Wanted, page
from shared.home import Home
from shared.model.work import Reason, Work
from shared.store.sqlite import readable, rows
from shared.store.sqlite.connection import Row
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.inspect import check, unreadable_rows
from shared.store.values import UnreadableRow
from tests.support.stores import ram_folder

STEPS_OF_A_ROW = 8
"""Of SQLite's machine, at most, where rows are but counted."""
COUNTED = {
    "look_at_status": 5 * status.COUNTED_MAX,
    "look_at_capacity": 9 * capacity.COUNTED_MAX,
    "examine": 11 * capacity.COUNTED_MAX,
}
"""Rows that these steps count to tell people a number, which is cut at a bound: so many lists of so many."""
SLACK_STEPS = 8_000
"""For the 256 places at the front of the queue, at some 25 each, and a look at each scope."""
SLACK_STATEMENTS = 40

Crowds = tuple[Crowd, Crowd]


@pytest.fixture(scope="module")
def crowds() -> Iterator[Crowds]:
    """A small store, and a great one."""
    with ram_folder() as folder:
        small = populated(folder / "small", VirtualClock(), SMALL)
        assert (check(small.site.home), unreadable_rows(small.site.home)) == ([], []), "what was copied is whole"
        great = populated(folder / "great", VirtualClock(), GREAT)
        yield small, great
        small.site.close()
        great.site.close()


@pytest.fixture(scope="module")
def costs(crowds: Crowds) -> dict[str, tuple[Cost, Cost]]:
    """Of every step, on each of the two."""
    small, great = crowds
    return {name: (counted(small, name), counted(great, name)) for name in STEPS}


def counted(crowd: Crowd, name: str) -> Cost:
    """The second time, once every statement is prepared and every reason noted."""
    STEPS[name](crowd)()
    return cost_of(crowd.site, STEPS[name](crowd))


def is_flat(small: Cost, great: Cost, *, counting: int = 0) -> bool:
    """Whether the second cost is the first, but for what is counted for people."""
    return (
        great.commits == small.commits
        and great.statements <= small.statements + SLACK_STATEMENTS
        and great.steps <= small.steps + SLACK_STEPS + STEPS_OF_A_ROW * counting
    )


@pytest.mark.req("S01", "S02", "C03", "W02")
@pytest.mark.parametrize("name", STEPS)
def test_a_step_costs_the_same_on_a_great_store(costs: dict[str, tuple[Cost, Cost]], name: str) -> None:
    small, great = costs[name]

    assert is_flat(small, great, counting=COUNTED.get(name, 0)), (small, great)


@pytest.mark.req("V01", "S01")
def test_a_list_reads_no_work_that_it_does_not_show(crowds: Crowds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its filter leaves most of them out; some pages of it show nothing, and go on."""
    site, population = crowds[1].site, crowds[1].population
    read: list[Row] = []
    real = rows.work_of_row

    def reading(row: Row) -> Work:
        read.append(row)
        return real(row)

    monkeypatch.setattr(rows, "work_of_row", reading)
    wanted, pages, shown = Wanted((), frozenset(), FAILING, None), 0, 0
    cursor: int | None = 0
    while cursor is not None:
        found, cursor = site.store.read(lambda tx, after=cursor: page(tx, wanted, after, 1_000))  # type: ignore[misc]
        pages, shown = pages + 1, shown + len(found)

    assert shown == population.aside // 2
    assert len(read) <= shown + pages
    assert pages <= shown / 1_000 + 1 + site.store.read(lambda tx: tx.last_work_number()) / LOOKED_AT_MAX


@pytest.mark.req("S01", "C04")
def test_many_that_nothing_lets_start_are_looked_at_once_by_bounded_passes_and_then_no_more() -> None:
    many = 10_000
    with ram_folder() as folder:
        crowd = populated(folder / "home", VirtualClock(), replace(SMALL, ready=10))
        site = crowd.site
        gone = site.submit(binding="gone", priority=1)
        pass_once(site)
        at_rest = counted(crowd, "pass_over_a_full_pool")
        with closing(Copies(folder / "home")) as copies:
            copies.works(gone, many, work={"reason": "NULL"})

        costs, dues = [], [0]
        site.coordinator.notice_decision()
        while dues[-1] <= site.clock.now().mono_us:
            costs.append(cost_of(site, lambda: dues.append(site.coordinator.step())))

        waiting = site.store.read(lambda tx: tx.ready_counts(cap=2 * many))
        assert waiting["jobs", Reason.UNSUPPORTED_GENERATION] > many, "each has been told why"
        assert 2 * len(costs) < many / WINDOW_MAX, "each pass gets on by much"
        assert max(cost.statements for cost in costs) < 8 * WINDOWS_MAX * WINDOW_MAX, "and is bounded"
        after = counted(crowd, "pass_over_a_full_pool")
        assert is_flat(at_rest, after), (at_rest, after)
        site.close()


@pytest.mark.req("V04")
def test_doctor_reads_a_bounded_number_of_rows_and_says_that_there_are_more(
    crowds: Crowds, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, great = crowds
    read: list[readable.Kind] = []
    real = readable._fault

    def reading(kind: readable.Kind, row: Row) -> UnreadableRow | None:
        read.append(kind)
        return real(kind, row)

    monkeypatch.setattr(readable, "_fault", reading)

    def codes(crowd: Crowd) -> set[str]:
        site = crowd.site
        checks = examine_store(OpenHome(Home(site.home), site.store, site.clock, None))
        return {finding.code for each in checks for finding in each.findings}

    assert {"store.large", "rows.newest"} <= codes(great)
    assert len(read) <= len(readable.KINDS) * findings_rows.NEWEST
    read.clear()
    assert {"store.large", "rows.newest"} & codes(small) == set(), "the control: it reads all of a small one"
    assert len(read) > SMALL.events


@pytest.mark.parametrize(
    ("index", "name"),
    [("work_state", "list_works"), ("work_held", "list_held_for_a_reason"), ("wait_event", "wake_one_of_many")],
)
def test_a_lost_index_would_be_noticed(index: str, name: str) -> None:
    """The control: what is not looked up by an index is not flat, and so little more is enough to see that."""
    some = replace(SMALL, held=8_000, apart=8_000)
    with ram_folder() as folder:
        crowd = populated(folder / "home", VirtualClock(), some)
        before = counted(crowd, name)
        assert is_flat(before, counted(crowd, name))
        with closing(sqlite3.connect(folder / "home" / "store.db", isolation_level=None)) as outsider:
            outsider.execute(f"DROP INDEX {index}")

        after = counted(crowd, name)

        crowd.site.close()
    assert not is_flat(before, after), (before, after)
