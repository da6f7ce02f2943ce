"""What a transaction is: all or nothing, one instant, bells after its commit."""

from __future__ import annotations

import fcntl
import os

import pytest

from shared.errors import StoreBusyError, StoreUnavailableError
from shared.model.instant import Instant
from shared.store.contract import ReadTx, Tx
from shared.wake import COORDINATOR
from tests.contract.store_cases import case
from tests.support.stores import World, new_work


class BrokenError(Exception):
    """What a function in a transaction raises."""


@case(pytest.mark.req("E07"))
def nothing_is_kept_of_a_transaction_that_raises(world: World) -> None:
    def broken(tx: Tx) -> None:
        tx.submit(new_work(), "jobs")
        raise BrokenError

    world.rung.clear()
    before = world.everything()

    with pytest.raises(BrokenError):
        world.store.write(broken)

    assert (world.everything(), world.rung) == (before, [])
    assert world.submit() == "w1", "the next transaction is not hindered, and no number was used"


@case(pytest.mark.req("K03"))
def bells_ring_once_each_and_after_the_commit(world: World) -> None:
    seen: list[int] = []
    other = world.open()

    def ring(_names: object) -> None:
        seen.append(len(other.read(lambda tx: tx.works(states=(), after=0, limit=9))))

    store = world.backend.open(world.home, world.clock, ring=ring)
    store.write(lambda tx: [tx.submit(new_work(), "jobs") for _ in range(2)])
    store.close()

    assert seen == [2]


@case(pytest.mark.req("K03"))
def a_name_is_rung_once_a_transaction(world: World) -> None:
    world.rung.clear()

    world.store.write(lambda tx: [tx.submit(new_work(), "jobs") for _ in range(3)])

    assert world.rung == [COORDINATOR]


@case(pytest.mark.req("K01"))
def a_transaction_has_one_instant_read_after_its_lock(world: World) -> None:
    def run(tx: Tx) -> tuple[Instant, Instant, int]:
        first = tx.now
        world.clock.advance(1_000)
        work_id = tx.submit(new_work(), "jobs")
        work = tx.work(work_id)
        assert work is not None
        return first, tx.now, work.submitted_at_us

    begun = world.clock.now()

    first, second, submitted = world.store.write(run)

    assert (first, second, submitted) == (begun, begun, begun.wall_us)


@case(pytest.mark.req("E07"))
def a_transaction_reads_what_it_wrote_and_others_do_not_yet(world: World) -> None:
    other = world.open()

    def run(tx: Tx) -> tuple[bool, bool]:
        work_id = tx.submit(new_work(), "jobs")
        return tx.work(work_id) is not None, other.read(lambda read: read.work(work_id)) is not None

    assert world.store.write(run) == (True, False)
    assert other.read(lambda tx: tx.works(states=(), after=0, limit=9)) != []


@case(pytest.mark.req("E07"))
def a_read_is_one_snapshot(world: World) -> None:
    other = world.open()

    def run(tx: ReadTx) -> tuple[int, int]:
        def count() -> int:
            return len(tx.works(states=(), after=0, limit=9))

        before = count()
        other.write(lambda write: write.submit(new_work(), "jobs"))
        return before, count()

    assert world.store.read(run) == (0, 0)
    assert world.store.read(lambda tx: len(tx.works(states=(), after=0, limit=9))) == 1


@case(pytest.mark.req("K03"))
def changed_tells_of_others_commits_only(world: World) -> None:
    other = world.open()
    assert world.store.changed()
    assert not world.store.changed()

    world.submit()
    assert not world.store.changed()
    other.write(lambda tx: tx.submit(new_work(), "jobs"))

    assert world.store.changed()
    assert not world.store.changed()


@case(pytest.mark.req("E07"))
def a_second_writer_is_busy_and_keeps_nothing(world: World) -> None:
    """Another door to the store waits for its bound (nothing, here) while a transaction is open."""
    other = world.open()

    def run(tx: Tx) -> None:
        tx.submit(new_work(), "jobs")
        with pytest.raises(StoreBusyError):
            other.write(lambda late: late.submit(new_work(), "jobs"))

    world.store.write(run)

    assert other.write(lambda tx: tx.submit(new_work(), "jobs")) == "w2"


@case(needs="file")
def a_store_replaced_while_open_is_noticed(world: World) -> None:
    world.store.check_file()
    path = world.home / "store.db"
    path.rename(path.with_name("moved.db"))
    with pytest.raises(StoreUnavailableError, match="deleted or replaced") as missing:
        world.store.check_file()
    path.write_bytes(b"")

    with pytest.raises(StoreUnavailableError) as other:
        world.store.check_file()

    assert {missing.value.code, other.value.code} == {"store_replaced"}
    path.with_name("moved.db").rename(path)
    world.store.check_file()


@case(pytest.mark.req("E07"), needs="queue_file")
def a_held_queue_keeps_writers_out(world: World) -> None:
    """The queue is a lock of its own in front of the store's: whoever holds it is served first, and named."""
    with (world.home / "queue.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreBusyError, match=f"process {os.getpid()} "):
            world.submit()
        assert world.store.read(lambda tx: tx.works(states=(), after=0, limit=9)) == []

    assert world.submit() == "w1"
