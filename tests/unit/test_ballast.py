"""Files of a home that must be whole or not there, also when whoever makes them dies: the ballast, and the store's own name."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shared import boundary
from shared.boundary import Boundary, Side
from shared.clock import VirtualClock
from shared.errors import RefusedError
from shared.home import create_home
from shared.store.sqlite.ballast import BALLAST_BYTES, Ballast
from shared.store.sqlite.store import create, open_store
from tests.support.stores import new_work, ram_folder


@pytest.fixture
def home() -> Iterator[Path]:
    with ram_folder() as folder:
        create_home(folder / "home")
        yield folder / "home"


def killed_at(at: Boundary, side: Side, act: Callable[[], object]) -> None:
    """Do it in a process that dies there."""

    def die(reached: Boundary, on: Side) -> None:
        if (reached, on) == (at, side):
            os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if pid == 0:
        boundary.install(die)
        try:
            act()
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL


def taken(home: Path) -> int:
    """Bytes of the disk that the ballast and what it was made from take."""
    return sum(path.stat().st_blocks * 512 for path in home.glob("ballast*"))


@pytest.mark.req("M05", "M01")
@pytest.mark.parametrize("side", Side)
def test_a_death_while_the_ballast_is_made_keeps_none_of_its_space_from_the_ends_it_is_for(
    home: Path, side: Side
) -> None:
    """Had it two names at any time, a death between them would leave its space taken for good."""
    killed_at(Boundary.BALLAST_RENAME, side, Ballast(home).restore)

    assert Ballast(home).is_there() == (side is Side.AFTER)
    assert taken(home) == BALLAST_BYTES
    assert Ballast(home).free()
    assert taken(home) == 0
    assert Ballast(home).restore()
    assert taken(home) == BALLAST_BYTES


@pytest.mark.req("M05", "M01")
@pytest.mark.parametrize("side", Side)
def test_a_death_while_the_ballast_is_given_up_leaves_it_there_or_to_be_made_again(home: Path, side: Side) -> None:
    assert Ballast(home).restore()

    killed_at(Boundary.BALLAST_FREE, side, Ballast(home).free)

    assert Ballast(home).is_there() == (side is Side.BEFORE)
    assert Ballast(home).restore()


def test_what_cannot_be_made_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        assert not Ballast(home).restore()
    assert taken(home) == 0
    assert not Ballast(home).free(), "there is nothing to give"

    assert Ballast(home).restore()


def test_what_another_process_makes_meanwhile_is_enough(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both filled the same file; the second finds that it has its name."""
    real = os.posix_fallocate

    def overtaken(fd: int, offset: int, length: int) -> None:
        real(fd, offset, length)
        (home / "ballast.part").rename(home / "ballast")

    monkeypatch.setattr(os, "posix_fallocate", overtaken)

    assert Ballast(home).restore()
    assert taken(home) == BALLAST_BYTES


@pytest.mark.req("M01")
@pytest.mark.parametrize("at", [Boundary.MIGRATE_COMMIT, Boundary.STORE_LINK, Boundary.HOME_SYNC])
@pytest.mark.parametrize("side", Side)
def test_a_death_while_a_store_is_made_leaves_a_whole_one_or_none(home: Path, at: Boundary, side: Side) -> None:
    clock = VirtualClock()

    killed_at(at, side, lambda: create(home, clock))

    if (home / "store.db").exists():
        with pytest.raises(RefusedError):
            create(home, clock)
    else:
        create(home, clock)
    store = open_store(home, clock, check=True)
    assert store.write(lambda tx: tx.submit(new_work(), "jobs")) == "w1"
    store.close()
