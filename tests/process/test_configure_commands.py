"""`tenure init` and `tenure apply` as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from shared.clock import SystemClock
from shared.store.contract import ConfigGeneration
from shared.store.sqlite.store import open_store


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


class Shell:
    """Runs tenure in one folder and looks at the store of the home in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / ".tenure"
        self.file = folder / "tenure.toml"

    def run(self, *words: str, cwd: Path | None = None, **environ: str) -> Said:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "shared.cli", *words],
            cwd=cwd or self.folder,
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str, cwd: Path | None = None, **environ: str) -> str:
        said = self.run(*words, cwd=cwd, **environ)
        assert (said.code, said.err) == (0, "")
        return said.out

    def refused(self, code: int, *words: str, cwd: Path | None = None) -> str:
        said = self.run(*words, cwd=cwd)
        assert (said.code, said.out) == (code, "")
        assert "Traceback" not in said.err
        return said.err

    def active(self, home: Path | None = None) -> ConfigGeneration | None:
        store = open_store(home or self.home, SystemClock())
        try:
            return store.read(lambda tx: tx.config())
        finally:
            store.close()

    def generation(self, home: Path | None = None) -> int:
        active = self.active(home)
        assert active is not None
        return active.number


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def tree(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_init_writes_a_file_a_home_and_the_first_generation(shell: Shell) -> None:
    out = shell.ok("init")

    assert "generation 1 is active: bindings backup, disk; 1 scope" in out
    assert shell.home.stat().st_mode & 0o777 == 0o700
    active = shell.active()
    assert active is not None
    assert (active.number, active.source_path) == (1, str(shell.file))
    assert sorted(os.listdir(shell.folder)) == [".tenure", "tenure.toml"]
    command = tomllib.loads(shell.file.read_text())["binding"]["backup"]["command"]
    assert Path(command[0]).is_absolute()
    assert command[command.index("--home") + 1] == str(shell.home)


def test_init_never_overwrites_a_file_and_activates_the_one_it_finds(shell: Shell) -> None:
    shell.file.write_text('[binding.mine]\ncommand = ["true"]\n')

    out = shell.ok("init")

    assert "kept as it was" in out
    assert "bindings mine" in out
    assert shell.file.read_text() == '[binding.mine]\ncommand = ["true"]\n'


def test_init_twice_changes_nothing_and_says_so(shell: Shell) -> None:
    shell.ok("init")
    shell.file.write_text("# emptied\n")

    out = shell.ok("init")

    assert "is a home already; generation 1" in out
    assert shell.file.read_text() == "# emptied\n"
    assert shell.generation() == 1


def test_an_interrupted_init_is_completed_by_the_next_one(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "home.json").touch()

    shell.ok("init")

    assert shell.generation() == 1


def test_init_beside_a_faulty_file_creates_nothing(shell: Shell) -> None:
    shell.file.write_text("[settings]\nslots = 1\nslot = 1\n")

    err = shell.refused(2, "init")

    assert f'{shell.file}:3: unknown key "slot" in settings' in err
    assert tree(shell.folder) == {"tenure.toml"}


def test_init_in_a_folder_that_is_not_ours_is_refused_and_leaves_it_alone(shell: Shell) -> None:
    other = shell.folder / "other"
    other.mkdir(mode=0o755)
    (other / "thesis.tex").touch()

    err = shell.refused(3, "--home", str(other), "init")

    assert "neither empty nor a home of tenure" in err
    assert tree(shell.folder) == {"other", "other/thesis.tex"}
    assert other.stat().st_mode & 0o777 == 0o755

    (other / "thesis.tex").unlink()
    assert f"next: `tenure --home {other} up`" in shell.ok("--home", str(other), "init")
    assert (other / "tenure.toml").is_file()


def test_init_does_not_begin_a_new_store_beside_old_attempts(shell: Shell) -> None:
    shell.ok("init")
    (shell.home / "attempts" / "w1.1.1").mkdir()
    for path in shell.home.glob("store.db*"):
        path.unlink()

    err = shell.refused(3, "init")

    assert "the store that knows them is gone" in err
    assert not (shell.home / "store.db").exists()


def test_a_home_may_be_named_by_the_environment(shell: Shell) -> None:
    named = shell.folder / "srv"

    shell.ok("init", TENURE_HOME=str(named))

    assert shell.generation(named) == 1
    assert (named / "tenure.toml").is_file()
    assert not shell.home.exists()


def test_without_a_home_apply_names_the_command_that_makes_one(shell: Shell) -> None:
    err = shell.refused(2, "apply")

    assert "no home" in err
    assert "tenure init" in err
    assert tree(shell.folder) == set()


def test_apply_activates_a_changed_file_and_says_what_changed(shell: Shell) -> None:
    shell.ok("init")
    shell.file.write_text(
        '[settings]\nlease = "30s"\n[scope.ops]\nconcurrency = 2\n'
        '[binding.disk]\ncommand = ["df"]\ntimeout = "1m"\n[binding.new]\ncommand = ["true"]\n'
    )
    deep = shell.folder / "a" / "b"
    deep.mkdir(parents=True)

    out = shell.ok("apply", cwd=deep)

    assert out.splitlines() == [
        f"{shell.file}: generation 2 is active",
        "  new: binding new; changed: settings.lease, binding disk; gone: binding backup",
    ]
    assert shell.generation() == 2


@pytest.mark.req("B01")
def test_apply_says_which_budgets_changed(shell: Shell) -> None:
    shell.ok("init")
    first = '[scope.ops]\n[binding.a]\ncommand = ["true"]\n'
    shell.file.write_text(first)
    shell.ok("apply")
    day = '[[budget]]\nunit = "usd"\nmax = 20\nper = "work"\nscope = "ops"\nperiod = "day"\n'
    life = '[[budget]]\nunit = "turns"\nmax = 9\nper = "all"\n'
    shell.file.write_text(first + day + life)
    assert "new: budget usd per work in ops (day), budget turns of all (life)" in shell.ok("apply")

    shell.file.write_text(first + day.replace("20", "30") + life)
    assert "changed: budget usd per work in ops (day)\n" in shell.ok("apply")

    shell.file.write_text(first + life + day.replace("20", "30"))
    assert "the budgets in another order\n" in shell.ok("apply")


def test_apply_of_an_unchanged_file_makes_no_generation(shell: Shell) -> None:
    shell.ok("init")
    shell.file.write_text(shell.file.read_text() + "\n# a remark\n")

    assert "unchanged; generation 1 stays active" in shell.ok("apply")
    assert shell.generation() == 1


def test_apply_check_judges_and_changes_nothing(shell: Shell) -> None:
    shell.ok("init")
    assert "the same as generation 1" in shell.ok("apply", "--check")

    shell.file.write_text("")

    assert "nothing was changed. To activate: gone: scope" in shell.ok("apply", "--check")
    assert shell.generation() == 1


def test_apply_check_of_a_file_needs_no_home(shell: Shell) -> None:
    shell.file.write_text('[binding.a]\ncommand = ["true"]\n')

    assert "tenure.toml: valid: bindings a; 0 scopes" in shell.ok("apply", "--check", "tenure.toml")
    assert tree(shell.folder) == {"tenure.toml"}

    shell.file.write_text('[binding.a]\ncomand = ["true"]\n')
    assert "tenure.toml:1: binding.a has no command" in shell.refused(2, "apply", "--check", "tenure.toml")


def test_a_faulty_file_is_one_line_and_the_old_configuration_stays(shell: Shell) -> None:
    shell.ok("init")
    shell.file.write_text('[settings]\nlease = "30"\n')

    err = shell.refused(2, "apply")

    fault = f'tenure: {shell.file}:2: settings.lease "30" needs a unit, e.g. "30s"; generation 1 stays active\n'
    assert err == fault
    assert shell.generation() == 1

    shell.file.rename(shell.folder / "other.toml")
    assert "other.toml:2: " in shell.refused(2, "apply", "other.toml")
    assert "cannot be read: No such file or directory; generation 1 stays active" in shell.refused(2, "apply")
    assert shell.generation() == 1


def test_apply_reads_the_file_last_applied(shell: Shell) -> None:
    shell.ok("init")
    other = shell.folder / "other.toml"
    other.write_text("[scope.x]\n")
    shell.ok("apply", "other.toml")
    other.write_text("[scope.y]\n")

    out = shell.ok("apply", cwd=shell.home)

    assert f"{other}: generation 3 is active" in out
    assert "new: scope y; gone: scope x" in out


def test_the_same_content_from_another_file_is_a_generation_of_its_own(shell: Shell) -> None:
    shell.ok("init")
    (shell.folder / "copy.toml").write_text(shell.file.read_text())

    assert "the same content, from another file" in shell.ok("apply", "copy.toml")
    active = shell.active()
    assert active is not None
    assert (active.number, active.source_path) == (2, str(shell.folder / "copy.toml"))


def test_a_retry_is_stored_with_all_that_it_means(shell: Shell) -> None:
    shell.ok("init")
    shell.file.write_text('[binding.a]\ncommand = ["true"]\nretry = { delays = ["5m"] }\n')

    assert "note:" not in shell.ok("apply")

    active = shell.active()
    assert active is not None
    assert json.loads(active.body)["bindings"][0]["retry"] == {
        "delays_us": [300_000_000],
        "on": ["failure"],
        "exponential": None,
        "exhausted": "fail",
    }


@pytest.mark.parametrize("words", [("init", "x"), ("init", "--force"), ("apply", "a", "b"), ("apply", "--chek")])
def test_a_wrong_command_line_is_exit_code_2(shell: Shell, words: tuple[str, ...]) -> None:
    err = shell.refused(2, *words)

    assert err.startswith("tenure: ")
    assert f"`tenure {words[0]} --help`" in err
    assert tree(shell.folder) == set()


@pytest.mark.parametrize("name", ["init", "apply"])
def test_each_command_explains_itself(shell: Shell, name: str) -> None:
    assert f"Usage: tenure {name}" in shell.ok(name, "--help")
    assert tree(shell.folder) == set()
