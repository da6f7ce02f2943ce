"""What is looked at before a store is used; each refusal is a StoreUnavailableError that says what to do.

Rule: design §4; research "store" §9; requirement L03.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.errors import StoreUnavailableError
from shared.model.instant import Instant
from shared.store.sqlite.connection import Connection
from shared.store.sqlite.driver import VERSION_MIN, library_version
from shared.store.sqlite.fingerprint import schema_differences, schema_text
from shared.store.sqlite.place import NETWORK_FILESYSTEMS, Place
from shared.store.sqlite.schema import APPLICATION_ID, SCHEMA_VERSION
from shared.store.sqlite.writing import foreign_time_namespace, time_namespace


def check_place(home: Path, place: Place) -> None:
    """Refuse a network file system, and a library that is too old."""
    kind = NETWORK_FILESYSTEMS.get(place.filesystem)
    if kind is not None:
        raise StoreUnavailableError(
            "network_filesystem",
            f"{home} lies on {kind}: several hosts could write the store at once",
            hint="choose a home on a local disk",
        )
    if library_version() < VERSION_MIN:
        found, wanted = ".".join(map(str, library_version())), ".".join(map(str, VERSION_MIN))
        raise StoreUnavailableError("library", f"SQLite is {found}, tenure needs {wanted}", hint="install pysqlite3")


def check_ours(connection: Connection, path: Path, known: int) -> int:
    """Refuse what is no store of ours, or one of a newer schema than `known`; returns its schema version."""
    application = connection.value("PRAGMA application_id")
    if application != APPLICATION_ID:
        raise StoreUnavailableError("not_a_home", f"{path} is a database of another program", hint="name another home")
    version = int(connection.value("PRAGMA user_version"))
    if version > known:
        raise StoreUnavailableError(
            "schema_newer",
            f"the store has schema {version}, this version of tenure knows {known}",
            hint="use the newer tenure",
        )
    return version


def check_identity(connection: Connection, path: Path) -> None:
    """Refuse what is no store of ours, or one of another schema version."""
    version = check_ours(connection, path, SCHEMA_VERSION)
    if version < SCHEMA_VERSION:
        raise StoreUnavailableError(
            "schema_older",
            f"the store has schema {version}, this version of tenure needs {SCHEMA_VERSION}",
            hint="`tenure store migrate` brings it up to date",
        )


def check_schema(connection: Connection) -> None:
    """Refuse a store whose tables, indexes or triggers are not those it was made with."""
    different = schema_differences(remembered_schema(connection), schema_text(connection.rows))
    if different:
        raise StoreUnavailableError(
            "corrupt", f"the store's schema was altered: {', '.join(different)}", hint="restore a backup"
        )


def remembered_schema(connection: Connection) -> str:
    """The schema that the store was made with."""
    return str(connection.value("SELECT value FROM meta WHERE key = 'schema'"))


def check_home(connection: Connection, path: Path, place: Place, now: Instant) -> int:
    """Refuse a store that was copied, restored or moved here, and another time namespace; returns the store's incarnation."""
    meta = _identity(connection)
    moved = how_moved(connection, path, place)
    if moved is not None:
        raise StoreUnavailableError(
            "home_moved", f"the store {path} {moved}", hint="`tenure store adopt` takes it over here"
        )
    remembered = str(meta["time_namespace"])
    if remembered.startswith(f"{now.boot_id}:") and remembered != time_namespace(now.boot_id, place.time_ns):
        raise foreign_time_namespace()
    return int(meta["incarnation"])


def how_moved(connection: Connection, path: Path, place: Place) -> str | None:
    """How the store came here, when it was not made here; None when it was."""
    meta = _identity(connection)
    if meta["file_inode"] != path.stat().st_ino:
        return "was copied or restored: it is another file than the one it was made as"
    if place.machine_id and meta["machine_id"] and place.machine_id != meta["machine_id"]:
        return "was made on another machine"
    if connection.value("PRAGMA journal_mode") != "wal":  # as `store backup` writes it, one file with nothing beside it
        return "is a backup that was put back"
    return None


def _identity(connection: Connection) -> dict[str, Any]:
    return {row["key"]: row["value"] for row in connection.rows("SELECT key, value FROM meta WHERE key <> 'schema'")}


def check_pages(connection: Connection) -> None:
    """Refuse a store with a damaged page; reads all of it."""
    found = [row[0] for row in connection.rows("PRAGMA quick_check(3)")]
    if found != ["ok"]:
        raise StoreUnavailableError(
            "corrupt",
            f"the store is damaged: {'; '.join(found)}",
            hint="keep the file as it is, run `tenure store check`, and restore a backup",
        )
