"""What the scripts do on a new machine, tried with a Python that only pretends."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

PROGRAMS = ["bash", "cat", "cksum", "cp", "dirname", "flock", "grep", "mkdir", "rm"]

# Answers what setup.sh asks, notes each call in calls.txt beside the checkout, and "makes" an environment by copying itself.
PRETENDER = """#!{bash}
echo "$*" >>"{calls}"
case "$*" in
    *"sys.version_info < (3, 11)"*) exit {too_old} ;;
    *python_version*) echo 3.9.2 ;;
    *"import ensurepip"*) exit {no_venv} ;;
    *sys.version_info*) echo 3.11 ;;
    *"-m venv"*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
    *"pip install"*) if [ -e "{fail_once}" ]; then rm "{fail_once}"; exit 1; fi ;;
esac
"""


class NewMachine:
    """A checkout of the set-up alone, and a PATH with nothing but what it needs."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "checkout"
        self.path = folder / "bin"
        self.calls = folder / "calls.txt"
        self.fail_once = folder / "fail-once"
        (self.checkout / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "setup.sh", self.checkout / "scripts")
        shutil.copy(ROOT / "pyproject.toml", self.checkout)
        self.path.mkdir()
        for program in PROGRAMS:
            found = shutil.which(program)
            if found is not None:
                (self.path / program).symlink_to(found)

    def add_python(self, *, too_old: bool = False, has_venv: bool = True) -> None:
        python = self.path / "python3"
        python.write_text(
            PRETENDER.format(
                bash=shutil.which("bash"),
                calls=self.calls,
                fail_once=self.fail_once,
                too_old=int(too_old),
                no_venv=int(not has_venv),
            )
        )
        python.chmod(0o755)

    def setup(self, extras: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Set up, and return how it went; `calls` then holds what this set-up alone asked of Python."""
        self.calls.write_text("")
        script = f'set -euo pipefail; source "{self.checkout}/scripts/setup.sh"; setup "{extras}"; echo ready'
        return subprocess.run(
            [str(shutil.which("bash")), "-c", script],
            cwd=cwd or self.checkout,
            env={"PATH": str(self.path)},
            capture_output=True,
            text=True,
            check=False,
        )

    def count(self, words: str) -> int:
        return sum(words in line for line in self.calls.read_text().splitlines())


@pytest.fixture
def machine(tmp_path: Path) -> NewMachine:
    return NewMachine(tmp_path)


def test_first_set_up_makes_the_environment_and_installs(machine: NewMachine, tmp_path: Path) -> None:
    machine.add_python()

    result = machine.setup("dev", cwd=tmp_path)

    assert (result.returncode, result.stdout) == (0, "ready\n")
    assert (machine.count("-m venv"), machine.count("pip install")) == (1, 1)
    assert machine.count(f"--editable {machine.checkout}[dev]") == 1


def test_second_set_up_does_nothing(machine: NewMachine) -> None:
    machine.add_python()
    machine.setup("dev")

    for extras in ("dev", ""):
        result = machine.setup(extras)

        assert (result.returncode, result.stdout, result.stderr) == (0, "ready\n", "")
        assert machine.count("pip") == 0


def test_installation_for_use_is_completed_for_tests(machine: NewMachine) -> None:
    machine.add_python()
    machine.setup("")

    machine.setup("dev")

    assert (machine.count("-m venv"), machine.count("pip install")) == (0, 1)


def test_changed_pyproject_installs_again_in_the_same_environment(machine: NewMachine) -> None:
    machine.add_python()
    machine.setup("dev")
    with (machine.checkout / "pyproject.toml").open("a") as file:
        file.write("# changed\n")

    machine.setup("")

    assert (machine.count("-m venv"), machine.count(f"--editable {machine.checkout}[dev]")) == (0, 1)


def test_moved_checkout_gets_a_new_environment(machine: NewMachine) -> None:
    machine.add_python()
    machine.setup("dev")
    machine.checkout = machine.checkout.rename(machine.checkout.with_name("moved"))

    assert machine.setup("dev").returncode == 0
    assert (machine.count("-m venv"), machine.count("pip install")) == (1, 1)


def test_failed_installation_is_tried_once_more(machine: NewMachine) -> None:
    machine.add_python()
    machine.fail_once.touch()

    assert machine.setup("dev").returncode == 0
    assert machine.count("pip install") == 2


def test_missing_venv_gets_one_line_with_the_package(machine: NewMachine) -> None:
    machine.add_python(has_venv=False)

    result = machine.setup("dev")

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == (
        "tenure: Python 3.11 here has no venv: install the package python3.11-venv (or python3-venv) and run this again"
    )
    assert not (machine.checkout / ".venv").exists()


def test_old_python_gets_one_line_with_both_versions(machine: NewMachine) -> None:
    machine.add_python(too_old=True)

    result = machine.setup("dev")

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == "tenure: needs Python 3.11 or newer; python3 here is 3.9.2"


def test_no_python_gets_one_line(machine: NewMachine) -> None:
    result = machine.setup("dev")

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == (
        "tenure: needs Python 3.11 or newer, and found none: install the package python3"
    )
