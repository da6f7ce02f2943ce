"""Rows of a store that say nothing of sense, as a failing disk or a stray tool leaves them: written past all of our own code."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from shared.home import Home
from shared.store.sqlite.driver import sqlite3

NO_TEXT = "CAST(x'ff41' AS TEXT)"
"""An SQL value that is no UTF-8 in a column of text."""


def damage(home: Path, *statements: str) -> None:
    """Run statements that the store's own triggers and references would refuse; its schema is the same afterwards."""
    with closing(sqlite3.connect(Home(home).store, isolation_level=None, timeout=30)) as outsider:
        outsider.execute("BEGIN IMMEDIATE")
        triggers = outsider.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            outsider.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            changed = outsider.execute(statement).rowcount
            assert changed == 1, f"{changed} rows: {statement}"
        for _, sql in triggers:
            outsider.execute(sql)
        outsider.execute("COMMIT")
