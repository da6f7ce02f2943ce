"""Rows that cannot be read are left out, marked and told; everything else goes on. Beside each the same home without the damage."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from shared.errors import UnreadableError
from shared.ids import AttemptId, WorkId
from shared.model.attempt import AttemptState, LeaseKey
from shared.model.instant import US_PER_S
from shared.model.settings import DEFAULT, Config, Settings
from shared.model.work import Reason, WorkState
from shared.store.active import active_config
from shared.store.contract import UnreadableRow
from shared.store.sqlite.inspect import check, unreadable_rows
from tests.support.damage import NO_TEXT, damage
from tests.support.sites import Site, open_site
from tests.support.stores import LEASE_US

DAMAGED_WORKS = {
    "command": ("command", "'not json'"),
    "command is no list": ("command", "'5'"),
    "command has no words": ("command", "'[1]'"),
    "command is no text": ("command", NO_TEXT),
    "env": ("env", """'[["A"]]'"""),
    "env has no words": ("env", """'[["A", 1]]'"""),
    "grants": ("grants", "'{'"),
    "scope": ("scope", "'ops//backup'"),
    "scope is no text": ("scope", NO_TEXT),
    "binding is no text": ("binding", NO_TEXT),
    "reason": ("reason", "'because'"),
}
DEEP = "[" * 100_000


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as site:
        yield site


def marked(site: Site) -> list[UnreadableRow]:
    return site.world.store.read(lambda tx: tx.unreadable_rows(after=None, limit=100))


def told(site: Site) -> list[tuple[str, object]]:
    return [(event.kind, event.data["key"]) for event in site.events() if event.kind.startswith("row.")]


def end_all(site: Site) -> None:
    """Every job that runs ends well."""
    for shim in list(site.host.shims.values()):
        if shim.ran and shim.alive:
            shim.end(0)
    site.settle()


@pytest.mark.req("S05")
@pytest.mark.parametrize(("column", "value"), DAMAGED_WORKS.values(), ids=DAMAGED_WORKS)
def test_a_damaged_work_is_left_out_and_marked_and_the_others_run(site: Site, column: str, value: str) -> None:
    first, bad, last = site.world.submit(), site.world.submit(), site.world.submit()
    damage(site.world.home, f"UPDATE work SET {column} = {value} WHERE id = '{bad}'")
    site.bench()
    head = site.head()

    site.elapse(3)
    end_all(site)
    site.elapse(2)

    assert [site.work(work_id).state for work_id in (first, last)] == [WorkState.COMPLETED] * 2
    assert marked(site) == [UnreadableRow("work", bad, column)]
    with pytest.raises(UnreadableError) as caught:
        site.work(bad)
    assert (caught.value.key, caught.value.column, caught.value.__cause__) == (bad, column, None)
    outline = site.world.store.read(lambda tx: tx.work_outline(bad))
    assert outline is not None
    assert (outline.state, outline.attempts_used) == (WorkState.READY, 0)
    idle = site.world.store.read(lambda tx: tx.idle_state())
    assert (idle.live, idle.waiting, idle.needs_person) == (0, 0, (bad,)), "nothing waits for it to come by itself"

    site.kill(head)
    site.head()
    site.elapse(61)
    assert told(site) == [("row.unreadable", bad)], "the next leader knows of it"


@pytest.mark.req("S05")
def test_without_the_damage_nothing_is_marked(site: Site) -> None:
    """The control."""
    works = [site.world.submit() for _ in range(3)]
    site.bench()
    site.head()

    site.elapse(3)
    end_all(site)
    site.elapse(2)

    assert [site.work(work_id).state for work_id in works] == [WorkState.COMPLETED] * 3
    assert (marked(site), told(site), unreadable_rows(site.world.home)) == ([], [], [])


@pytest.mark.req("S05")
def test_the_content_of_a_damaged_row_is_told_nowhere(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    bad = site.world.submit()
    damage(site.world.home, f"UPDATE work SET env = '[[\"TOKEN\", \"hunter2\"' WHERE id = '{bad}'")
    site.head()

    with caplog.at_level(logging.DEBUG):
        site.elapse(3)

    assert "row.unreadable" in caplog.text
    assert "hunter2" not in caplog.text + repr(marked(site)) + repr([event.data for event in site.events()])


@pytest.mark.req("S05")
def test_a_row_that_was_repaired_loses_its_mark_and_its_work_runs(site: Site) -> None:
    bad = site.world.submit()
    damage(site.world.home, f"UPDATE work SET command = 'x' WHERE id = '{bad}'")
    site.bench()
    site.head()
    site.elapse(3)
    assert [row.key for row in marked(site)] == [bad]

    damage(site.world.home, f"""UPDATE work SET command = '["true"]' WHERE id = '{bad}'""")
    site.elapse(3)

    assert (site.work(bad).state, marked(site)) == (WorkState.RUNNING, [])
    assert told(site) == [("row.unreadable", bad), ("row.readable", bad)]


@pytest.mark.req("S05")
def test_a_row_that_is_gone_loses_its_mark(site: Site) -> None:
    bad = site.world.submit()
    damage(site.world.home, f"UPDATE work SET command = 'x' WHERE id = '{bad}'")
    site.head()
    site.elapse(3)

    damage(site.world.home, f"DELETE FROM input WHERE work_id = '{bad}'", f"DELETE FROM work WHERE id = '{bad}'")
    site.elapse(3)

    assert marked(site) == []


@pytest.mark.req("S05")
def test_a_person_can_cancel_what_cannot_be_read(site: Site) -> None:
    bad = site.world.submit()
    damage(site.world.home, f"UPDATE work SET command = 'x', reason = '?' WHERE id = '{bad}'")
    site.bench()
    site.head()
    site.elapse(3)

    site.world.store.write(lambda tx: tx.cancel_work(bad, by="a person", reason="damaged"))
    site.elapse(3)

    outline = site.world.store.read(lambda tx: tx.work_outline(bad))
    assert outline is not None
    assert outline.state is WorkState.CANCELLED
    assert site.world.store.read(lambda tx: tx.idle_state()).needs_person == ()


@pytest.mark.req("S05")
def test_many_damaged_works_hide_none_behind_them(site: Site) -> None:
    """More than a pass looks at in one window."""
    for _ in range(150):
        site.world.submit()
    last = site.world.submit()
    for number in range(1, 151):
        damage(site.world.home, f"UPDATE work SET command = 'x' WHERE id = 'w{number}'")
    site.bench()
    site.head()

    site.elapse(5)

    assert site.work(last).state is WorkState.RUNNING
    assert len(site.world.store.read(lambda tx: tx.unreadable_rows(after=None, limit=1_000))) == 150
    page = site.world.store.read(lambda tx: tx.works(states=(), after=0, limit=1))
    assert [work.id for work in page] == [last], "a page of a list is filled up too"


@pytest.fixture
def busy(site: Site) -> tuple[Site, LeaseKey, LeaseKey]:
    """Two jobs that run."""
    bench = site.bench()
    site.head()
    site.settle()
    works = [site.world.submit(), site.world.submit()]
    site.settle()
    first, second = (LeaseKey(AttemptId(f"{work_id}.1"), 1, bench.me) for work_id in works)
    return site, first, second


@pytest.mark.req("S05", "R09")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE work SET command = 'x', env = 'y', grants = 'z' WHERE id = 'w1'",
        f"UPDATE work SET command = {NO_TEXT} WHERE id = 'w1'",
        "UPDATE snapshot SET body = '{}' WHERE attempt_id = 'w1.1'",
        f"UPDATE snapshot SET body = '{DEEP}' WHERE attempt_id = 'w1.1'",
        "UPDATE segment SET phases = '{' WHERE attempt_id = 'w1.1'",
    ],
)
def test_a_running_job_ends_as_ever_whatever_of_its_definition_is_damaged(
    busy: tuple[Site, LeaseKey, LeaseKey], statement: str
) -> None:
    site, first, second = busy
    damage(site.world.home, statement)

    site.elapse(2 * LEASE_US / US_PER_S)
    end_all(site)

    assert [site.ends(key.attempt_id) for key in (first, second)] == [[AttemptState.SUCCEEDED]] * 2
    assert site.world.store.read(lambda tx: tx.usage()).counts == {}


@pytest.mark.req("S05", "R02")
@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("UPDATE snapshot SET body = 'x' WHERE attempt_id = 'w1.1'", UnreadableRow("snapshot", "w1.1", "body")),
        (
            f"UPDATE snapshot SET body = {NO_TEXT} WHERE attempt_id = 'w1.1'",
            UnreadableRow("snapshot", "w1.1", "body"),
        ),
        ("UPDATE attempt SET failure = 'x' WHERE id = 'w1.1'", UnreadableRow("attempt", "w1.1", "failure")),
    ],
)
def test_a_damaged_attempt_keeps_its_slot_and_the_other_is_recovered(
    busy: tuple[Site, LeaseKey, LeaseKey], statement: str, row: UnreadableRow
) -> None:
    site, _, second = busy
    body = site.world.store._db.value("SELECT body FROM snapshot WHERE attempt_id = 'w1.1'")  # type: ignore[attr-defined]
    damage(site.world.home, statement)
    site.kill(site.benches[0])

    other = site.bench("worker-2")
    site.elapse(3)

    assert (site.attempt(second.attempt_id).state, site.attempt(second.attempt_id).epoch) == (AttemptState.RUNNING, 2)
    assert marked(site) == [row]
    assert sum(site.world.store.read(lambda tx: tx.usage()).counts.values()) == 2, "its slot stays held"
    assert [shim.alive for shim in site.host.shims.values()] == [True, True], "and its process is left alone"
    idle = site.world.store.read(lambda tx: tx.idle_state())
    assert (idle.live, idle.needs_person) == (1, ("w1.1",))

    repaired = f"UPDATE snapshot SET body = '{body}' WHERE attempt_id = 'w1.1'"
    damage(site.world.home, repaired, "UPDATE attempt SET failure = NULL WHERE id = 'w1.1'")
    site.elapse(3)
    assert (site.attempt("w1.1").state, site.attempt("w1.1").epoch, marked(site)) == (AttemptState.RUNNING, 2, [])
    assert other.worker.held == 2


@pytest.mark.req("S05")
def test_a_claim_whose_snapshot_is_damaged_before_it_is_accepted_blocks_no_other(site: Site) -> None:
    bench = site.bench()
    head = site.head()
    site.settle()
    works = [site.world.submit(), site.world.submit()]
    head.step()
    damage(site.world.home, f"UPDATE snapshot SET body = '[]' WHERE attempt_id = '{works[0]}.1'")

    site.elapse(LEASE_US / US_PER_S)

    assert [site.attempt(f"{work_id}.1").state for work_id in works] == [AttemptState.LAUNCHING, AttemptState.RUNNING]
    assert [row.key for row in marked(site)] == [f"{works[0]}.1"]
    assert bench.worker.held == 1


@pytest.mark.req("S05")
def test_a_stop_order_is_carried_out_though_the_snapshot_is_damaged(busy: tuple[Site, LeaseKey, LeaseKey]) -> None:
    site, first, second = busy
    damage(site.world.home, "UPDATE snapshot SET body = 'x' WHERE attempt_id = 'w1.1'")

    site.cancel(first)
    site.cancel(second)
    site.elapse(10)

    assert site.orders() == []
    assert site.world.store.read(lambda tx: tx.usage()).counts == {}


@pytest.mark.req("S05")
def test_a_worker_whose_row_is_damaged_is_given_nothing_and_another_works(site: Site) -> None:
    damaged, whole = site.bench("worker-1"), site.bench("worker-2")
    site.head()
    site.settle()
    damage(site.world.home, f"UPDATE worker SET executors = 'x' WHERE id = '{damaged.me}'")

    works = [site.world.submit() for _ in range(3)]
    site.elapse(3)

    assert [site.work(work_id).state for work_id in works] == [WorkState.RUNNING] * 3
    assert (damaged.worker.held, whole.worker.held) == (0, 3)
    assert [row.key for row in marked(site)] == [damaged.me]


@pytest.mark.req("S05")
@pytest.mark.parametrize("value", ["'nothing'", "'{}'", "'[1, 2]'", "replace(body, '60000000', '61000000')", NO_TEXT])
@pytest.mark.parametrize("restart", [False, True])
def test_under_a_damaged_configuration_nothing_starts_and_all_else_goes_on(
    site: Site, value: str, restart: bool
) -> None:
    """By the newest one before it that can be read, so that coordinator and workers keep one lease."""
    older = Config(settings=Settings(lease_us=30 * US_PER_S))
    site.configure(older)
    site.configure(DEFAULT)
    bench, head = site.bench(), site.head()
    site.settle()
    runs = site.world.submit()
    site.settle()
    damage(site.world.home, f"UPDATE config SET body = {value} WHERE number = 2")
    if restart:
        site.kill(head)
        site.kill(bench)
        site.head()
        site.bench("worker-2")
    site.elapse(3)

    waits = site.world.submit()
    site.elapse(3 * LEASE_US / US_PER_S)

    assert (site.work(waits).state, site.work(waits).reason) == (WorkState.READY, Reason.UNSUPPORTED_GENERATION)
    assert site.attempt(f"{runs}.1").state is AttemptState.RUNNING
    assert site.attempt(f"{runs}.1").epoch == (2 if restart else 1), "it was recovered, or never lost"
    assert marked(site) == [UnreadableRow("config", "2", "body")]
    found = site.world.store.read(active_config)
    assert (found.number, found.config, found.fault is not None) == (2, older, True)
    end_all(site)
    assert site.ends(f"{runs}.1") == [AttemptState.SUCCEEDED]

    site.configure(DEFAULT)  # the same file once more
    site.elapse(3)
    assert (site.work(waits).state, site.attempt(f"{waits}.1").epoch) == (WorkState.RUNNING, 1)
    snapshot = site.world.store.read(lambda tx: tx.snapshot(AttemptId(f"{waits}.1")))
    assert snapshot is not None
    assert (snapshot.generation, marked(site)) == (3, []), "what was replaced is history"


@pytest.mark.req("S05")
@pytest.mark.parametrize("value", ["'x'", "'[]'", "'5'", NO_TEXT])
def test_a_damaged_event_is_left_out_of_the_changefeed_and_stops_nobody(site: Site, value: str) -> None:
    site.bench()
    site.head()
    site.settle()
    before = site.events()
    damage(site.world.home, f"UPDATE event SET data = {value} WHERE seq = 2")

    work_id = site.world.submit()
    site.elapse(2)

    assert site.work(work_id).state is WorkState.RUNNING
    kept = site.world.store.read(lambda tx: (tx.events(after=0, limit=len(before)), tuple(tx.skipped)))
    assert [event.seq for event in kept[0]] == [event.seq for event in before if event.seq != 2]
    assert kept[1] == (UnreadableRow("event", "2", "data"),)
    assert unreadable_rows(site.world.home) == [UnreadableRow("event", "2", "data")]
    assert check(site.world.home) == [], "a row that says nothing breaks no rule of the store"


@pytest.mark.req("S05")
def test_the_scan_finds_every_kind_of_damaged_row_and_names_it(site: Site) -> None:
    world = site.world
    site.configure(DEFAULT)
    owner = world.worker()
    key = world.running(owner)
    world.store.write(lambda tx: tx.cancel_work(WorkId("w1"), by="t", reason="t"))
    assert unreadable_rows(world.home) == []
    damage(
        world.home,
        f"UPDATE config SET source_path = {NO_TEXT}",
        f"UPDATE work SET submitted_by = {NO_TEXT}",
        f"UPDATE input SET consumed_by = {NO_TEXT}",
        f"UPDATE attempt SET error = {NO_TEXT}",
        "UPDATE snapshot SET body = '[]'",
        "UPDATE segment SET phases = '[[1]]'",
        "UPDATE worker SET executors = '{}'",
        f"UPDATE stop_order SET why = {NO_TEXT}",
        f"UPDATE cancellation SET reason = {NO_TEXT}",
        "UPDATE event SET data = '1' WHERE seq = 1",
    )

    assert unreadable_rows(world.home) == [
        UnreadableRow("config", "1", "source_path"),
        UnreadableRow("work", "w1", "submitted_by"),
        UnreadableRow("input", "1", "consumed_by"),
        UnreadableRow("attempt", key.attempt_id, "error"),
        UnreadableRow("snapshot", key.attempt_id, "body"),
        UnreadableRow("segment", f"{key.attempt_id}/1", "phases"),
        UnreadableRow("worker", owner, "executors"),
        UnreadableRow("stop_order", "1", "why"),
        UnreadableRow("cancellation", "1", "reason"),
        UnreadableRow("event", "1", "data"),
    ]
