"""A disk that is really full: a small file system of its own, filled to the last block. Needs the right to mount."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.errors import StoreUnavailableError
from shared.model.attempt import AttemptState
from shared.model.work import Reason
from shared.store.contract import ClaimRefused
from shared.store.sqlite.inspect import check
from tests.support.small_disks import fill, small_disk
from tests.support.stores import COMPLETED, LEASE_US, SQLITE, SUCCEEDED, World

SIZE = "12m"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", SIZE) as folder:
        yield folder


def submit_until_refused(world: World) -> None:
    """What the log's file has allocated already may still be written; then there is no more."""
    for _ in range(100):
        world.submit(input_=bytes(100_000))


@pytest.mark.req("M05", "C04")
def test_on_a_full_disk_ends_and_holds_are_written_and_claims_resume_by_themselves(small: Path) -> None:
    world = World(SQLITE, small)
    owner = world.worker()
    ended, uncertain, cancelled = (world.running(owner) for _ in range(3))
    waiting = world.submit()
    world.store._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[attr-defined]
    filler = small / "filler"
    fill(filler)
    with pytest.raises(StoreUnavailableError) as caught:
        submit_until_refused(world)
    assert caught.value.code == "disk_full"
    assert (world.home / "ballast").exists(), "nothing but an end gives it up"

    world.store.write(lambda tx: tx.finish(ended, SUCCEEDED, COMPLETED))
    world.store.write(lambda tx: tx.require_recovery(uncertain, why="?", proof=None))
    world.store.write(lambda tx: tx.cancel_attempt(cancelled.attempt_id, by="t", reason="t", change=COMPLETED))

    states = [world.attempt(key.attempt_id).state for key in (ended, uncertain, cancelled)]
    assert states == [AttemptState.SUCCEEDED, AttemptState.RECOVERY_REQUIRED, AttemptState.CANCELLED]
    assert not (world.home / "ballast").exists()
    world.store.checkpoint()
    assert not (world.home / "ballast").exists(), "there is no space for it yet"
    assert world.store.write(lambda tx: tx.renew(owner, lease_us=LEASE_US)) == set()
    assert world.try_claim(waiting, owner) == ClaimRefused(None, Reason.DISK_FULL, None)
    filler.unlink()
    world.store.checkpoint()
    assert world.claimed(owner, waiting).epoch == 1
    world.close()
    assert check(world.home) == []
    assert os.stat(world.home / "ballast").st_size == 1024 * 1024


@pytest.mark.req("M05")
def test_what_is_new_is_refused_while_the_ballast_is_given_up(small: Path) -> None:
    """Its space is for ends and holds; the first to come when there is space again makes it anew."""
    world = World(SQLITE, small)
    ballast = world.home / "ballast"
    ballast.unlink()
    filler = small / "filler"
    filler.write_bytes(bytes(8 * 1024 * 1024))
    before = world.everything()

    with pytest.raises(StoreUnavailableError) as caught:
        world.submit()
    assert caught.value.code == "disk_full"
    with pytest.raises(StoreUnavailableError):
        world.store.write(lambda tx: tx.activate_config("{}", "digest", "tenure.toml"))
    assert world.everything() == before

    filler.unlink()
    assert world.submit()
    assert ballast.exists()
    world.close()
