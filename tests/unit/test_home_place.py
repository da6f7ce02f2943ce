"""The home is found by name or by going up, made private, and refused when it is not ours."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared import home as homes
from shared.errors import StoreUnavailableError, UsageError
from shared.home import Home, check_home, create_home, find_home, home_to_create, remove_empty_home


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=["umask 000", "umask 022", "umask 777"])
def any_umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refusal(path: Path, create: bool = False) -> StoreUnavailableError:
    with pytest.raises(StoreUnavailableError) as caught:
        create_home(path) if create else check_home(path)
    assert (caught.value.code, caught.value.exit_code) == ("not_a_home", 3)
    return caught.value


def test_the_option_wins_over_the_environment_and_both_over_the_folder(tmp_path: Path) -> None:
    (tmp_path / ".tenure").mkdir()
    environ = {"TENURE_HOME": "/e"}

    assert find_home("/o", environ, tmp_path) == Path("/o")
    assert find_home(None, environ, tmp_path) == Path("/e")
    assert find_home(None, {}, tmp_path) == tmp_path / ".tenure"
    assert find_home(None, {"TENURE_HOME": ""}, tmp_path) == tmp_path / ".tenure"


def test_the_nearest_home_going_up_is_found(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / ".tenure").mkdir()
    assert find_home(None, {}, deep) == tmp_path / ".tenure"

    (tmp_path / "a" / ".tenure").mkdir()
    (deep / ".tenure").touch()  # a file of that name is no home

    assert find_home(None, {}, deep) == tmp_path / "a" / ".tenure"


def test_without_any_home_the_command_that_makes_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \.tenure in") as caught:
        find_home(None, {}, tmp_path)

    assert caught.value.exit_code == 2
    assert "tenure init" in str(caught.value.hint)


def test_a_relative_name_is_meant_from_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    assert find_home("h", {}, tmp_path) == tmp_path / "h"
    assert find_home("../h", {}, tmp_path / "a") == tmp_path / "h"
    assert find_home("..", {}, tmp_path / "a") == tmp_path
    assert find_home(".", {}, tmp_path) == tmp_path


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_is_none_is_a_usage_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        find_home(name, {}, tmp_path)


def test_init_makes_a_home_right_here_also_below_another(tmp_path: Path) -> None:
    (tmp_path / ".tenure").mkdir()
    below = tmp_path / "below"

    assert home_to_create(None, {}, below) == below / ".tenure"
    assert home_to_create("/o", {}, below) == Path("/o")
    assert home_to_create(None, {"TENURE_HOME": "/e"}, below) == Path("/e")


def test_the_configuration_lies_beside_a_hidden_home_and_inside_a_named_one() -> None:
    assert Home(Path("/p/.tenure")).config_path == Path("/p/tenure.toml")
    assert Home(Path("/srv/tenure")).config_path == Path("/srv/tenure/tenure.toml")


def test_a_created_home_is_private_whatever_the_umask(tmp_path: Path, any_umask: int) -> None:
    path = tmp_path / "h"

    home, created = create_home(path)

    assert created
    assert [mode(folder) for folder in (path, home.run, home.attempts)] == [0o700] * 3
    assert mode(home.marker) == 0o600
    assert check_home(path) == home
    assert homes.exposed_mode(path) is None


def test_missing_parents_are_made_and_an_empty_folder_becomes_private(tmp_path: Path) -> None:
    create_home(tmp_path / "a" / "b" / "h")
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o755)

    create_home(empty)

    assert mode(empty) == 0o700
    check_home(tmp_path / "a" / "b" / "h")


def test_creating_a_home_again_keeps_it_and_completes_it(tmp_path: Path) -> None:
    home, _ = create_home(tmp_path / "h")
    home.store.write_text("kept")
    home.run.rmdir()
    assert "lacks its folder run" in str(refusal(home.path))

    again, created = create_home(tmp_path / "h")

    assert (again, created) == (home, False)
    assert home.store.read_text() == "kept"
    assert check_home(home.path) == home


def test_an_interrupted_creation_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.mkdir()
    (path / "home.json").touch()
    refusal(path)

    create_home(path)

    check_home(path)


def test_a_folder_that_holds_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "project"
    path.mkdir(mode=0o755)
    (path / "thesis.tex").touch()

    assert "holds thesis.tex" in str(refusal(path, create=True))
    assert (os.listdir(path), mode(path)) == (["thesis.tex"], 0o755)

    (path / "thesis.tex").rename(path / "tenure.toml")  # a configuration written beforehand is no obstacle
    create_home(path)


def test_a_home_with_anything_in_it_but_without_its_mark_is_not_begun_anew(tmp_path: Path) -> None:
    home, _ = create_home(tmp_path / "h")
    home.marker.write_bytes(b"")

    assert "holds attempts" in str(refusal(home.path, create=True))
    assert "is damaged" in str(refusal(home.path))


def test_a_file_in_place_of_the_home_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.touch()

    assert "is not a folder" in str(refusal(path))
    assert "is not a folder" in str(refusal(path, create=True))
    assert "is not a folder" in str(refusal(path / "below", create=True))


def test_a_home_that_is_not_there_names_the_command_that_makes_one(tmp_path: Path) -> None:
    error = refusal(tmp_path / "h")

    assert "does not exist" in str(error)
    assert error.hint == f"`tenure --home {tmp_path / 'h'} init` makes it"
    assert not (tmp_path / "h").exists()


@pytest.mark.parametrize("text", ["{", "[]", "7", "{}", "\udcff", '{"format": 2}', '{"format": "1"}'])
def test_a_mark_that_cannot_be_understood_is_refused(tmp_path: Path, text: str) -> None:
    home, _ = create_home(tmp_path / "h")
    check_home(home.path)

    home.marker.write_bytes(text.encode(errors="surrogateescape"))

    refusal(home.path)
    refusal(home.path, create=True)


def test_the_home_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, _ = create_home(tmp_path / "h")
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: home.path.stat().st_uid + 1)

    for error in (refusal(home.path), refusal(home.path, create=True), refusal(empty, create=True)):
        assert "belongs to user" in str(error)
    assert os.listdir(empty) == []


def test_a_home_that_others_may_enter_is_told_with_its_mode(tmp_path: Path) -> None:
    home, _ = create_home(tmp_path / "h")
    home.path.chmod(0o750)

    assert homes.exposed_mode(home.path) == 0o750
    check_home(home.path)


def test_only_a_home_that_holds_nothing_yet_is_taken_back(tmp_path: Path) -> None:
    home, _ = create_home(tmp_path / "h")
    remove_empty_home(home)
    assert not home.path.exists()

    home, _ = create_home(tmp_path / "h")
    home.store.touch()
    remove_empty_home(home)
    assert home.store.exists()
    assert home.marker.exists()

    remove_empty_home(Home(tmp_path / "none"))


def test_paths_of_a_home_lie_in_it() -> None:
    home = Home(Path("/h"))

    names = [path.relative_to(home.path).as_posix() for path in (home.store, home.queue_lock, home.run, home.attempts)]

    assert names == ["store.db", "queue.lock", "run", "attempts"]
