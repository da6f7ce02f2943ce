"""Each dangerous name has one owner: everyone else's use is refused by the linter, the owner's is not."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support.checkout import ROOT, tool

BANNED = sorted(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
)

MUST_BE_BANNED = {
    *("time.time", "time.monotonic", "time.sleep", "datetime.datetime.now", "datetime.datetime.utcnow"),
    *("sqlite3", "pysqlite3", "sqlite_utils", "apsw", "psutil", "subprocess", "multiprocessing_logging", "greenlet"),
    *("os.kill", "os.fork", "os.fsync", "os.rename", "os.replace", "fcntl.flock", "signal.pidfd_send_signal"),
}

OWNERS = {
    "time.time": "shared/clock.py",
    "sqlite3": "shared/store/sqlite/driver.py",
    "psutil": "shared/process/identity.py",
    "os.fork": "shared/process/zygote.py",
    "os.kill": "shared/boundary.py",
    "fcntl.flock": "shared/boundary.py",
    "multiprocessing_logging": "shared/logs.py",
    "subprocess": "tests/support/processes.py",
}


def use_of(name: str) -> str:
    """Write code that uses the name as people would: imported as a module, or reached through one."""
    module, _, attribute = name.partition(".")
    return f"import {module}\n\n{name}\n" if attribute else f"import {module}\n\n{module}\n"


def banned_in(folder: Path, file: str, code: str) -> list[str]:
    """Lint the code as if it stood in that file of the checkout; return the names refused."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    (folder / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    result = subprocess.run(
        [tool("ruff"), "check", "--no-cache", "--select", "TID251", "--output-format", "json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode in {0, 1}, result.stderr
    return [finding["message"].split("`")[1] for finding in json.loads(result.stdout)]


def test_no_dangerous_name_is_missing_from_the_list() -> None:
    assert set(BANNED) >= MUST_BE_BANNED


@pytest.mark.parametrize("name", BANNED)
def test_dangerous_name_is_refused(tmp_path: Path, name: str) -> None:
    assert name in banned_in(tmp_path, "worker/violation.py", use_of(name))


@pytest.mark.parametrize("name", ["time.time", "datetime.datetime.now", "os.kill"])
def test_dangerous_name_is_refused_under_another_name(tmp_path: Path, name: str) -> None:
    module, _, attribute = name.partition(".")
    first, _, rest = attribute.partition(".")
    code = f"from {module} import {first} as harmless\n\nharmless{'.' + rest if rest else ''}\n"

    assert name in banned_in(tmp_path, "worker/violation.py", code)


def test_harmless_names_pass(tmp_path: Path) -> None:
    code = "import os\nimport datetime\n\nos.getpid\ndatetime.datetime.fromisoformat\n"

    assert banned_in(tmp_path, "worker/harmless.py", code) == []


@pytest.mark.parametrize(("name", "owner"), OWNERS.items())
def test_owner_may_use_its_dangerous_name(tmp_path: Path, name: str, owner: str) -> None:
    assert banned_in(tmp_path, owner, use_of(name)) == []
