"""Nobody takes part: what has to hold before a store is adopted or migrated."""

from __future__ import annotations

from shared.errors import RefusedError
from shared.home import Home
from shared.model.evidence import LockState
from shared.process.filelock import probe


def require_quiet(home: Home, *, to: str) -> None:
    """Refuse while any process of the home holds its lock. Every such lock in the home counts, not only those that the store
    knows: it may be older than they are.

    Args:
        to: What it is needed for, for the message.

    Raises:
        RefusedError: names those that are there.
    """
    there = []
    for path in sorted(home.run.glob("*.lock")):
        found = path.stat(follow_symlinks=False)
        if probe(path, found.st_dev, found.st_ino) is LockState.HELD:
            there.append(path.stem)
    if there:
        raise RefusedError(
            f"{', '.join(there)} still run here; to {to}, stop them first", hint="jobs live on meanwhile"
        )
