"""Files that a drill writes for people: their owner's alone, whole or not there at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from shared.errors import UsageError

PRIVATE = 0o600


def require_writable(path: Path, option: str) -> None:
    """Refuse a place where a file cannot be written, before anything was done for it.

    Raises:
        UsageError: its folder is not there or not ours, or something else than a file is in its place.
    """
    if path.exists() and not path.is_file():
        raise UsageError(f"{option}: {path} is there and is no file")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(f"{option}: no file can be written in {path.parent}")


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read; one that was there is replaced in one go.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    begun = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    try:
        with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(begun, path)
    except BaseException:
        begun.unlink(missing_ok=True)
        raise
