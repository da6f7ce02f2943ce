"""`tenure store`: check, backup, adopt, migrate."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from shared.process.filelock import IncarnationLock
from shared.process.sandbox import find_bwrap, why_not
from shared.store.sqlite.driver import sqlite3
from tests.support.command_homes import Ask, CommandHome, Said
from tests.support.examinations import Found

pytestmark = pytest.mark.usefixtures("quiet")


def test_sound_store_has_no_problem(home: CommandHome, ask: Ask) -> None:
    home.ended(home.staff())

    assert ask("store", "check") == Said(0, f"{home.home}/store.db: no problem found\n", "")
    assert ask("store", "check", "--json").json == {"home": str(home.home), "ok": True, "problems": []}


def test_a_home_on_a_file_system_that_is_read_only_is_named_with_why(home: CommandHome) -> None:
    bwrap = find_bwrap(os.environ.get("PATH", ""))
    if bwrap is None or why_not(bwrap) is not None:
        pytest.skip("bubblewrap, which can show a folder read-only, does not work here")

    def status(bind: str) -> Said:
        """As `tenure status` says where the home is bound like that."""
        words = [bwrap, "--dev-bind", "/", "/", bind, str(home.home), str(home.home), "--", *home.argv("status")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, cwd=home.folder)
        return Said(done.returncode, done.stdout, done.stderr)

    refused = status("--ro-bind")

    assert refused.code == 3
    assert refused.err.splitlines()[0].startswith(
        f"tenure: {home.home} lies on a file system that is mounted read-only"
    )
    assert status("--bind").code == 0, "control: where it can be written"


def test_broken_rule_is_a_problem(home: CommandHome, ask: Ask, found: Found) -> None:
    home.staff()
    home.submit()
    with closing(sqlite3.connect(home.home / "store.db")) as outsider:
        outsider.execute("UPDATE work SET state = 'running', revision = revision + 1")
        outsider.commit()

    said = ask("store", "check")

    assert said.code == 1
    assert said.out.splitlines()[:2] == ["1 problem", "  w1: a running Work has an unfinished attempt"]
    assert found() == {"store.damaged": "error"}


def test_damaged_store_is_3_and_keeps_its_file(home: CommandHome, ask: Ask, found: Found) -> None:
    for _ in range(200):
        home.submit()
    home.close()
    path = home.home / "store.db"
    data = bytearray(path.read_bytes())
    data[8 * 4096 : 12 * 4096] = os.urandom(4 * 4096)
    path.write_bytes(data)

    said = ask("store", "check")

    assert said.code == 3
    assert "integrity: " in said.out
    assert path.read_bytes() == bytes(data)
    assert {"store.damaged", "store.corrupt"} & set(found())


def test_backup_is_whole_private_and_never_written_over(home: CommandHome, ask: Ask) -> None:
    home.ended(home.staff())
    target = home.folder / "copy.db"

    said = ask("store", "backup", str(target))

    assert said == Said(0, f"{target}  {target.stat().st_size} bytes, checked\n", "")
    assert target.stat().st_mode & 0o777 == 0o600
    before = target.read_bytes()
    again = ask("store", "backup", str(target))
    assert (again.code, again.out) == (1, "")
    assert "exists already" in again.err
    assert target.read_bytes() == before


def test_backup_without_a_name_is_dated(home: CommandHome, ask: Ask) -> None:
    paths = [Path(ask("store", "backup", "--json").json["path"]) for _ in range(2)]

    assert len(set(paths)) == 2
    assert all(path.parent == home.home / "backups" and path.is_file() for path in paths)


# --- store adopt, store migrate


def moved(home: CommandHome) -> None:
    """The store's file is another one than it was made as: a copy put in its place."""
    home.close()
    path = home.home / "store.db"
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    copy.chmod(0o600)
    copy.replace(path)


def test_moved_store_is_refused_until_it_is_adopted(home: CommandHome, ask: Ask) -> None:
    home.submit()
    assert ask("store", "adopt").code == 1  # there is nothing to adopt yet
    moved(home)

    refused = ask("work", "list")
    assert (refused.code, refused.out) == (3, "")
    assert "was copied or restored" in refused.err
    assert "tenure store adopt" in refused.err

    said = ask("store", "adopt", "--json")

    assert (said.code, said.json) == (0, {"home": str(home.home), "incarnation": 2})
    assert [work["id"] for work in ask("work", "list", "--json").json["items"]] == ["w1"]
    assert "nothing to adopt" in ask("store", "adopt").err


def test_adoption_is_refused_while_a_worker_lives(home: CommandHome, ask: Ask) -> None:
    moved(home)
    with IncarnationLock.take(home.home / "run" / "worker-1.9.lock"):
        said = ask("store", "adopt")

        assert (said.code, said.out) == (1, "")
        assert "worker-1.9" in said.err

    assert ask("store", "adopt").out == f"{home.home}/store.db belongs to this home now, incarnation 2\n"


def test_store_of_this_version_needs_no_migration(home: CommandHome, ask: Ask) -> None:
    assert ask("store", "migrate").out == f"{home.home}/store.db is up to date: there was nothing to do\n"
    assert ask("store", "migrate", "--json").json == {"home": str(home.home), "steps": []}


@pytest.mark.parametrize(("version", "words"), [(0, "store migrate"), (99, "newer tenure")])
def test_store_of_another_version_is_refused_with_both_named(
    home: CommandHome, ask: Ask, version: int, words: str
) -> None:
    home.close()
    with closing(sqlite3.connect(home.home / "store.db")) as outsider:
        outsider.execute(f"PRAGMA user_version = {version}")

    said = ask("work", "list")

    assert (said.code, said.out) == (3, "")
    assert f"the store has schema {version}, this version of tenure" in said.err
    assert words in said.err
    if version > 1:
        assert ask("store", "migrate").code == 3
