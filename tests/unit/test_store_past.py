"""Noticing a store that went back in time; each refusal with its control."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.errors import StoreUnavailableError
from shared.home import Home
from shared.store.regress import check_regressed, names_in
from shared.store.sqlite.store import open_store
from tests.support.stores import COMPLETED, LEASE_US, SQLITE, SUCCEEDED, World, new_work, ram_folder


@pytest.fixture
def world() -> Iterator[World]:
    with ram_folder() as folder:
        made = World(SQLITE, folder)
        yield made
        made.close()


def launched(world: World, *names: str) -> Path:
    attempts = Home(world.home).attempts
    for name in names:
        (attempts / name).mkdir()
    return attempts


def test_a_store_that_knows_its_directories_has_not_gone_back(world: World) -> None:
    owner = world.worker()
    key = world.running(owner)
    world.release(key)
    key = world.take_over(key, owner)
    world.ended(owner)
    attempts = launched(world, "w1.1.1", "w1.1.2", "w2.1.1", "lost+found", "w1.1", "w0.1.1")

    assert check_regressed(world.store, names_in(attempts)) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("w1.1.3", "w1.1 has a directory of epoch 3, the store knows it at epoch 1"),
        ("w1.2.1", "w1.2 has a directory, the last attempt that the store knows of w1 is 1"),
        ("w2.1.1", "w2 has a directory, the last Work that the store gave out is w1"),
    ],
)
def test_a_directory_that_the_store_cannot_know_is_told(world: World, name: str, told: str) -> None:
    world.running(world.worker())
    attempts = launched(world, "w1.1.1")
    assert check_regressed(world.store, names_in(attempts)) == []

    launched(world, name)

    assert check_regressed(world.store, names_in(attempts)) == [told]


def test_what_retention_took_away_is_no_sign_of_the_past(world: World) -> None:
    """The control of the above: the row is gone, the counter is not."""
    key = world.ended(world.worker())
    attempts = launched(world, f"{key.attempt_id}.1")
    with world.outsider() as outsider:
        for statement in (
            "DELETE FROM lease",
            "DELETE FROM segment",
            "DELETE FROM snapshot",
            "UPDATE input SET consumed_by = NULL",
            "DELETE FROM attempt",
        ):
            outsider.execute(statement)
        assert check_regressed(world.store, names_in(attempts)) == []
        outsider.execute("DELETE FROM input")
        outsider.execute("DELETE FROM work")

    assert check_regressed(world.store, names_in(attempts)) == []


def test_findings_are_bounded(world: World) -> None:
    attempts = launched(world, *(f"w{number}.1.1" for number in range(1, 60)))

    assert len(check_regressed(world.store, names_in(attempts))) == 20
    newest = check_regressed(world.store, names_in(attempts), most=3)
    assert [told.split()[0] for told in newest] == ["w59", "w58", "w57"]


def test_a_store_with_fewer_events_than_were_seen_is_refused(world: World) -> None:
    """Somebody wrote an older copy into the file while it was open; the incarnation alone does not tell."""
    key = world.running(world.worker())
    other = world.open()
    other.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))
    world.store.write(lambda tx: tx.renew(key.owner, lease_us=LEASE_US))
    with world.outsider() as outsider:
        outsider.execute("UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'event'")

    for store in (world.store, other):
        with pytest.raises(StoreUnavailableError) as caught:
            store.write(lambda tx: tx.submit(new_work(), "jobs"))
        assert (caught.value.code, caught.value.hint is not None) == ("store_regressed", True)

    open_store(world.home, world.clock).close()


def test_an_older_store_that_has_gone_on_since_is_refused(world: World) -> None:
    """It has as many events as were seen; the last one that was seen is another one in it."""
    key = world.running(world.worker())
    other = world.open()
    other.write(lambda tx: tx.renew(key.owner, lease_us=LEASE_US))
    world.store.write(lambda tx: tx.submit(new_work(), "jobs"))
    other.write(lambda tx: tx.renew(key.owner, lease_us=LEASE_US))
    with world.outsider() as outsider:
        seq, at_us = outsider.execute("SELECT seq, at_us FROM event ORDER BY seq DESC LIMIT 1").fetchone()
        outsider.execute("DELETE FROM event WHERE seq = ?", (seq,))
        outsider.execute(
            "INSERT INTO event (seq, at_us, kind, data) VALUES (?, ?, 'work.submitted', '{}')", (seq, at_us + 1)
        )

    for store in (world.store, other):
        with pytest.raises(StoreUnavailableError, match="which is another one now") as caught:
            store.write(lambda tx: tx.submit(new_work(), "jobs"))
        assert caught.value.code == "store_regressed"


def test_an_event_that_retention_took_away_is_no_sign_of_the_past(world: World) -> None:
    """The control of the above."""
    key = world.running(world.worker())
    with world.outsider() as outsider:
        outsider.execute("DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)")

    world.store.write(lambda tx: tx.renew(key.owner, lease_us=LEASE_US))
    world.store.write(lambda tx: tx.submit(new_work(), "jobs"))


def test_a_transaction_that_was_not_kept_counts_for_nothing_seen(world: World) -> None:
    """The control: after a rollback the store has fewer events than the transaction had written."""
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            world.store.write(lambda tx: (tx.submit(new_work(), "jobs"), 1 // 0))

    assert world.submit() == "w1"
