"""What `tenure init` does when the store or the file gets in its way; in this process, on a real store."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.clock import Clock
from shared.commands import configure
from shared.errors import ConfigError, StoreUnavailableError
from shared.home import Home, create_home
from shared.store.sqlite import store as sqlite
from shared.store.sqlite.place import Place, place_of

NFS = 0x6969
real_create = sqlite.create


def on_a_network_filesystem(home: Path, clock: Clock) -> None:
    here = place_of(home)
    real_create(home, clock, place=Place(NFS, here.machine_id, here.time_ns))


def a_moment_later_than_another(home: Path, clock: Clock) -> None:
    real_create(home, clock)
    real_create(home, clock)


@pytest.mark.req("L03")
def test_a_home_that_can_have_no_store_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "h"
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "create", on_a_network_filesystem)

        with pytest.raises(StoreUnavailableError) as caught:
            configure.init([], home=str(path))

    assert (caught.value.code, caught.value.exit_code) == ("network_filesystem", 3)
    assert list(tmp_path.iterdir()) == []

    assert configure.init([], home=str(path)) == 0


def test_a_home_that_was_there_before_stays_when_it_can_have_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = create_home(tmp_path / "h")
    monkeypatch.setattr(sqlite, "create", on_a_network_filesystem)

    with pytest.raises(StoreUnavailableError):
        configure.init([], home=str(home.path))

    assert home.run.is_dir()


def test_two_inits_in_one_moment_make_one_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sqlite, "create", a_moment_later_than_another)

    assert configure.init([], home=str(tmp_path / "h")) == 0

    assert "generation 1 is active" in capsys.readouterr().out


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "h"

    def while_somebody_writes(home: Path, clock: Clock) -> None:
        real_create(home, clock)
        Home(path).config_path.write_text("# theirs\n")

    monkeypatch.setattr(sqlite, "create", while_somebody_writes)

    with pytest.raises(ConfigError, match="appeared while"):
        configure.init([], home=str(path))

    assert Home(path).config_path.read_text() == "# theirs\n"
    assert list(path.glob(".tenure.toml*")) == []
    assert configure.init([], home=str(path)) == 0
