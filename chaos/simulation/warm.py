"""Connections that stay open from process to process and history to history, so that no statement is compiled twice.

Opening a store and compiling its statements would cost a history more than everything else together. What a process leaves of its
connection is rolled back, as a death would leave it. A new history begins with the content of a template, copied in by the
library itself; the number of the schema is put back then, so that statements stay valid.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.store.sqlite.driver import sqlite3


class WarmConnection(sqlite3.Connection):
    """A connection whose `close` gives it back."""

    pool: WarmConnections | None = None

    def close(self) -> None:
        """Roll back, and wait for the next who asks; a no-op the second time."""
        pool, self.pool = self.pool, None
        if pool is None:
            return
        if self.in_transaction:
            self.execute("ROLLBACK")
        pool.lent.remove(self)
        pool.idle.append(self)

    def end(self) -> None:
        """Close it for good."""
        super().close()


class WarmConnections:
    """All connections to the store of one home.

    Attributes:
        idle: Those that nobody uses; `lent`: the others.
    """

    def __init__(self, path: Path) -> None:
        self.idle: list[WarmConnection] = []
        self.lent: list[WarmConnection] = []
        self._copier = sqlite3.connect(path, isolation_level=None, timeout=0)
        for pragma in ("synchronous = 0", "wal_autocheckpoint = 0"):
            self._copier.execute(f"PRAGMA {pragma}").fetchall()
        self._schema: int = self._copier.execute("PRAGMA schema_version").fetchone()[0]

    def connect(self, target: str, *, timeout: float, **options: Any) -> sqlite3.Connection:
        """See `shared.store.sqlite.connection.Connect`."""
        if self.idle:
            connection = self.idle.pop()
            connection.execute(f"PRAGMA busy_timeout = {int(timeout * 1000)}").fetchall()
        else:
            connection = sqlite3.connect(target, timeout=timeout, factory=WarmConnection, **options)
        connection.pool = self
        self.lent.append(connection)
        return connection

    @property
    def is_in_use(self) -> bool:
        """Somebody is in the middle of a transaction."""
        return any(connection.in_transaction for connection in self.lent)

    def copy_to_memory(self) -> sqlite3.Connection:
        """Keep what the store holds now, until the copy is closed."""
        copy = sqlite3.connect(":memory:", isolation_level=None)
        self._copier.backup(copy)
        return copy

    def copy_to(self, path: Path) -> sqlite3.Connection:
        """Keep what the store holds now, as a template."""
        template = sqlite3.connect(path, isolation_level=None)
        self._copier.backup(template)
        return template

    def restore(self, template: sqlite3.Connection) -> None:
        """Give the store the template's content. Nobody may be in the middle of a transaction."""
        self._copier.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        template.backup(self._copier)
        self._copier.execute(f"PRAGMA schema_version = {self._schema}").fetchall()

    def close(self) -> None:
        """Close all that are idle."""
        for connection in self.idle:
            connection.end()
        self.idle.clear()
        self._copier.close()
