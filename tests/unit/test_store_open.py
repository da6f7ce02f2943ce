"""What is refused when a store is made or opened, each with its control."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shared.clock import VirtualClock
from shared.errors import RefusedError, StoreUnavailableError
from shared.home import create_home
from shared.store.sqlite import checks, driver, schema
from shared.store.sqlite.place import NETWORK_FILESYSTEMS, Place, place_of
from shared.store.sqlite.store import create, open_store
from tests.support.stores import identity, ram_folder

CLOCK = VirtualClock()
PLACE = Place(0xEF53, "machine-1", 4026531834)


@pytest.fixture
def home() -> Iterator[Path]:
    with ram_folder() as folder:
        made = folder / "home"
        create_home(made)
        create(made, CLOCK, place=PLACE)
        yield made


def opened(home: Path, *, place: Place = PLACE, clock: VirtualClock = CLOCK, check: bool = False) -> None:
    open_store(home, clock, place=place, check=check).close()


def refused(home: Path, **options: object) -> StoreUnavailableError:
    with pytest.raises(StoreUnavailableError) as caught:
        opened(home, **options)  # type: ignore[arg-type]
    assert caught.value.exit_code == 3
    assert caught.value.hint is not None, "every refusal says what to do"
    return caught.value


def change(home: Path, *statements: str) -> None:
    connection = driver.sqlite3.connect(home / "store.db", isolation_level=None)
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def test_a_new_store_opens_private_and_whole(home: Path) -> None:
    opened(home, check=True)

    modes = {name: (home / name).stat().st_mode & 0o777 for name in ("store.db", "queue.lock", "ballast")}
    assert set(modes.values()) == {0o600}
    assert sorted(path.name for path in home.iterdir() if path.suffix in (".part", ".part-wal")) == []
    assert (home / "ballast").stat().st_blocks * 512 >= 1024 * 1024


def test_an_open_stores_log_is_private_too(home: Path) -> None:
    old = os.umask(0)
    try:
        store = open_store(home, CLOCK, place=PLACE)
        store.write(lambda tx: tx.next_incarnation("worker-1"))
        modes = {path.name: path.stat().st_mode & 0o777 for path in home.glob("store.db-*")}
        store.close()
    finally:
        os.umask(old)

    assert modes == {"store.db-wal": 0o600, "store.db-shm": 0o600}


def test_making_a_store_twice_is_refused_and_changes_nothing(home: Path) -> None:
    before = (home / "store.db").read_bytes()

    with pytest.raises(RefusedError, match="has a store already"):
        create(home, CLOCK, place=PLACE)

    assert (home / "store.db").read_bytes() == before


def test_an_interrupted_creation_is_no_store_and_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from shared.store.sqlite import migrate

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with ram_folder() as folder:
        made = folder / "home"
        create_home(made)
        with monkeypatch.context() as patch:
            patch.setattr(migrate, "_create_triggers", interrupted)
            with pytest.raises(KeyboardInterrupt):
                create(made, CLOCK, place=PLACE)
        assert refused(made).code == "not_a_home"

        create(made, CLOCK, place=PLACE)

        opened(made, check=True)


def test_a_home_without_a_store(home: Path) -> None:
    (home / "store.db").unlink()

    error = refused(home)

    assert (error.code, error.hint) == ("not_a_home", "`tenure init` makes one")
    assert not (home / "store.db").exists(), "opening never creates"


@pytest.mark.req("L03")
@pytest.mark.parametrize("kind", NETWORK_FILESYSTEMS, ids=NETWORK_FILESYSTEMS.get)
def test_a_network_file_system(home: Path, kind: int) -> None:
    error = refused(home, place=replace(PLACE, filesystem=kind))

    assert error.code == "network_filesystem"
    assert NETWORK_FILESYSTEMS[kind] in error.message
    with pytest.raises(StoreUnavailableError, match="several hosts"):
        create(home, CLOCK, place=replace(PLACE, filesystem=kind))


@pytest.mark.req("L03")
def test_the_file_system_of_a_folder_is_what_the_kernel_says(home: Path) -> None:
    told = subprocess.run(["stat", "-f", "-c", "%t", home], capture_output=True, text=True, check=True)

    assert place_of(home).filesystem == int(told.stdout, 16)
    assert place_of(home).filesystem not in NETWORK_FILESYSTEMS
    with pytest.raises(FileNotFoundError):
        place_of(home / "missing")


def test_a_newer_schema_names_both(home: Path) -> None:
    change(home, f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")

    error = refused(home)

    assert (error.code, str(schema.SCHEMA_VERSION + 1) in error.message) == ("schema_newer", True)
    assert f"knows {schema.SCHEMA_VERSION}" in error.message


def test_an_older_schema_names_both(home: Path) -> None:
    change(home, "PRAGMA user_version = 0")

    error = refused(home)

    assert (error.code, error.message) == (
        "schema_older",
        f"the store has schema 0, this version of tenure needs {schema.SCHEMA_VERSION}",
    )


def test_another_programs_database(home: Path) -> None:
    change(home, "PRAGMA application_id = 7")

    assert refused(home).code == "not_a_home"


def test_an_empty_file(home: Path) -> None:
    (home / "store.db").write_bytes(b"")

    assert refused(home).code == "not_a_home"
    assert (home / "store.db").read_bytes() == b""


def _overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_a_lost_header(home: Path) -> None:
    _overwrite(home / "store.db", 0, bytes(96))

    error = refused(home)

    assert (error.code, error.message.startswith("the store is no database")) == ("corrupt", True)


def test_a_damaged_page_is_found_by_the_whole_check(home: Path) -> None:
    """Page by page only the coordinator looks, at its start; the control is the open without it."""
    filler = "INSERT INTO event (at_us, kind, data) VALUES (1, 'filler', hex(zeroblob(9000)))"
    change(home, filler, "PRAGMA wal_checkpoint(TRUNCATE)")
    opened(home, check=True)
    _overwrite(home / "store.db", (home / "store.db").stat().st_size - 4096, b"\xff" * 4096)
    opened(home)

    assert refused(home, check=True).code == "corrupt"


def test_damage_that_the_opening_itself_meets(home: Path) -> None:
    whole = (home / "store.db").read_bytes()
    _overwrite(home / "store.db", whole.index(b"\n;\ntrigger "), b"\xff\xfe")  # only the remembered text has this

    assert refused(home).code == "corrupt"


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER lease_live",
        "DROP INDEX attempt_one_unexcluded",
        "ALTER TABLE lease ADD COLUMN extra TEXT",
        "CREATE TRIGGER added AFTER INSERT ON event BEGIN DELETE FROM pass; END",
    ],
)
def test_an_altered_schema(home: Path, statement: str) -> None:
    change(home, statement)

    error = refused(home)

    assert error.code == "corrupt"
    assert statement.split()[2] in error.message


def test_the_store_remembers_the_schema_of_the_code(home: Path) -> None:
    store = open_store(home, CLOCK, place=PLACE)
    remembered = checks.remembered_schema(store._db)
    store.close()

    written = (*schema.TABLES, *schema.INDEXES, *schema.TRIGGERS)
    assert all(statement in remembered for statement in written)
    assert len(remembered.split("\n;\n")) == len(written)


def test_a_copied_home(home: Path) -> None:
    copy = home.with_name("copy")
    shutil.copytree(home, copy)

    error = refused(copy)

    assert (error.code, "tenure store adopt" in (error.hint or "")) == ("home_moved", True)
    opened(home)


def test_another_machine(home: Path) -> None:
    assert refused(home, place=replace(PLACE, machine_id="machine-2")).code == "home_moved"

    opened(home, place=replace(PLACE, machine_id=None))


def test_a_renamed_home_is_the_same_home(home: Path) -> None:
    home.rename(home.with_name("renamed"))

    opened(home.with_name("renamed"))


@pytest.mark.req("K01")
def test_another_time_namespace_of_this_boot(home: Path) -> None:
    other = replace(PLACE, time_ns=PLACE.time_ns + 1)

    assert refused(home, place=other).code == "time_namespace"

    rebooted = VirtualClock()
    rebooted.reboot("boot-2")
    opened(home, place=other, clock=rebooted)


@pytest.mark.req("K01")
def test_who_takes_part_first_in_a_boot_sets_its_time_namespace(home: Path) -> None:
    clock = VirtualClock()
    clock.reboot("boot-2")
    ours, other = (open_store(home, clock, place=place) for place in (PLACE, replace(PLACE, time_ns=7)))

    def lead(store: object) -> None:
        store.write(  # type: ignore[attr-defined]
            lambda tx: tx.take_leadership(
                tx.next_incarnation("coordinator"),
                process=identity(1),
                lock_device=1,
                lock_inode=1,
                duration_us=1,
                proven_dead=None,
            )
        )

    lead(ours)

    with pytest.raises(StoreUnavailableError, match="time namespace"):
        lead(other)
    assert refused(home, place=replace(PLACE, time_ns=7), clock=clock).code == "time_namespace"
    for store in (ours, other):
        store.close()


def test_a_store_taken_over_while_open(home: Path) -> None:
    store = open_store(home, CLOCK, place=PLACE)
    store.write(lambda tx: tx.next_incarnation("worker-1"))
    change(home, "UPDATE meta SET value = 2 WHERE key = 'incarnation'")

    with pytest.raises(StoreUnavailableError) as caught:
        store.write(lambda tx: tx.next_incarnation("worker-1"))

    assert caught.value.code == "store_replaced"
    store.close()
    opened(home)


def test_pragmas_are_read_back(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shared.store.sqlite import connection

    monkeypatch.setattr(connection, "PRAGMAS", (("foreign_keys", 7),))

    with pytest.raises(StoreUnavailableError, match="foreign_keys at 1, wanted 7") as caught:
        opened(home)

    assert caught.value.code == "library"


def test_a_library_that_is_too_old(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "library_version", lambda: (3, 36, 0))

    error = refused(home)

    assert (error.code, "3.36.0" in error.message) == ("library", True)


def test_the_library_is_the_one_that_sqlite_utils_uses() -> None:
    theirs = importlib.import_module("sqlite_utils.utils")

    assert driver.sqlite3 is theirs.sqlite3


@pytest.mark.parametrize(
    ("version", "racy"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 4), False),
    ],
)
def test_versions_with_the_wal_reset_race(version: tuple[int, int, int], racy: bool) -> None:
    assert driver.has_wal_reset_race(version) is racy


def test_the_standard_library_stands_in_where_there_is_no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pysqlite3", None)
        chosen = importlib.reload(driver).sqlite3
    importlib.reload(driver)

    assert chosen is sqlite3


def test_opening_is_lean(home: Path) -> None:
    """The commands that must start fast open the store without sqlite-utils, and with one SQLite library only."""
    program = (
        "import sys; from pathlib import Path; from shared.clock import SystemClock; from shared.store.sqlite.store import open_store;"
        "from shared.store.sqlite.place import place_of; from dataclasses import replace;"
        "home = Path(sys.argv[1]); place = replace(place_of(home), machine_id='machine-1');"
        "open_store(home, SystemClock(), place=place).close();"
        "print(sorted({'sqlite_utils', 'sqlite3', 'pysqlite3', 'pydantic', 'psutil', 'apsw'} & set(sys.modules)))"
    )

    told = subprocess.run(
        [sys.executable, "-c", program, home], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )

    assert told.stdout.strip() in ("['pysqlite3']", "['sqlite3']")
